// From the JSON of a chat request to messages and rendering options.
//
// Only what decides the prompt is read here; all other request fields are the server's. Errors are
// one sentence for the client and name the field. Pure functions, callable from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "text/chat_encoding.h"

namespace fulgur::text {

// How lists of content parts become one text.
struct ContentRules {
  std::string separator = "\n\n";
  std::string separator_in_tool_results = "\n";
  // False: image, audio and other parts are an error. True: "[Unsupported TYPE]" in their place.
  bool placeholder_for_unsupported = false;
};

// Reads the `messages` array of an OpenAI chat request (JSON text). Accepts `reasoning` and its
// older name `reasoning_content`, arguments of past calls as text or object, and the V4 extras
// `task`, `wo_eos`, and `tools` and `response_format` on system and developer messages.
absl::StatusOr<std::vector<ChatMessage>> ParseMessages(std::string_view messages_json,
                                                       const ContentRules& rules = {});

// The fields of a request that choose between thinking and plain chat.
struct ThinkingRequest {
  std::optional<std::string> reasoning_effort = {};  // top-level field
  std::optional<std::string> thinking_type = {};     // top-level {"thinking": {"type": ...}}
  std::string template_kwargs = {};                  // chat_template_kwargs, JSON object or empty
  std::string default_template_kwargs = {};          // the server's, of lower rank
};

// The behaviour of vLLM to follow where its versions differ.
enum class ThinkingDefaults {
  kCurrent,   // thinking at high effort unless told otherwise
  kVllm0_27,  // plain chat unless told otherwise; every effort but "max" and "xhigh" is high
};

struct ThinkingChoice {
  bool thinking = true;
  ReasoningEffort effort = ReasoningEffort::kHigh;
  bool drop_thinking = true;
};

// Maps request fields to mode and effort. A top-level reasoning_effort outranks the template's and
// switches thinking on or off ("none") unless the template's enable_thinking says otherwise. An
// error if it is none of: none, minimal, low, medium, high, xhigh, max.
absl::StatusOr<ThinkingChoice> ResolveThinking(const ThinkingRequest& request,
                                               ThinkingDefaults defaults);

}  // namespace fulgur::text
