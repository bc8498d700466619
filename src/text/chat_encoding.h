// The DeepSeek-V4 prompt format: a conversation rendered as one text, then as token ids.
//
// V4 checkpoints carry no chat template; the layout is code (encoding/encoding_dsv4.py in the
// checkpoint repositories). Functions here are pure and may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/output_parser.h"
#include "text/tokenizer.h"

namespace fulgur::text {

enum class Role { kSystem, kDeveloper, kUser, kAssistant, kTool, kLatestReminder };

struct ChatToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text; empty means {}
};

// One message of a conversation. chat_request.h makes these from a request's JSON.
struct ChatMessage {
  Role role = Role::kUser;
  std::string content = {};

  std::string reasoning = {};                 // assistant
  std::vector<ChatToolCall> tool_calls = {};  // assistant
  bool without_eos = false;                   // assistant: leave the turn open in the text
  std::string tool_call_id = {};              // tool
  std::string task = {};             // user: "title", "query", ... (DeepSeek's quick tasks)
  std::string tools = {};            // system, developer: JSON array; empty: none
  std::string response_format = {};  // system, developer: JSON value; empty: none
};

enum class ReasoningEffort { kNone, kLow, kHigh, kMax };

// Which texts stand for an effort: the first uploads of V4 knew only "max", later ones two texts.
enum class EffortProfile { kPreview, kOfficial };

// Recognises the profile in the text of a checkpoint's encoding/encoding_dsv4.py, which is read,
// never run. Nothing if it tells neither.
std::optional<EffortProfile> DetectEffortProfile(std::string_view encoding_script);

struct ChatOptions {
  bool thinking = true;
  ReasoningEffort effort = ReasoningEffort::kNone;
  EffortProfile effort_profile = EffortProfile::kPreview;

  // Reasoning of turns before the last user turn is left out, as the model was trained. Without
  // effect as soon as any message carries tools: then all reasoning stays.
  bool drop_thinking = true;

  // The request's tools, a JSON array as in the API; empty: none. They go to the first system
  // message, or with `tools_in_own_message` always to one of their own in front of all others.
  std::string tools = {};
  bool tools_in_own_message = false;

  // False: the prompt ends with the last message (API field of that name).
  bool add_generation_prompt = true;
  // The last message, an assistant turn, is continued instead of answered. Excludes
  // add_generation_prompt.
  bool continue_final_message = false;
  // A conversation that ends with an assistant turn gets a new one to fill.
  bool reopen_after_assistant = true;
  // A system message before an assistant turn or at the end is answered like a user turn.
  bool header_after_system = true;
  // Turns without reasoning, where reasoning is kept, are marked as answered without thinking
  // instead of carrying an empty pair of think tags.
  bool empty_reasoning_as_chat = false;

  // Opens a block of tool calls for the model (tool_choice "required"): "" for any tool, else the
  // name of the one to call. Needs chat mode: thinking comes before calls.
  std::optional<std::string> forced_tool = {};
};

struct ChatPrompt {
  std::string text;
  // What came from the client: its special-token spellings are not markup.
  std::vector<ByteRange> client_text;
  // How the answer begins, for OutputParserOptions::start.
  OutputStart start = OutputStart::kContent;
};

// Renders a conversation. Errors say which message or field cannot be rendered and why.
absl::StatusOr<ChatPrompt> RenderChat(std::vector<ChatMessage> messages,
                                      const ChatOptions& options);

// Fill-in-the-middle: the model writes what belongs between `prefix` and `suffix`.
ChatPrompt RenderFillInTheMiddle(std::string_view prefix, std::string_view suffix);

struct PromptEncodeOptions {
  // True: special tokens that clients type become real ones, as in vLLM. False: they stay text.
  bool client_special_tokens = false;
  // See EncodeOptions::max_tokens.
  size_t max_tokens = std::numeric_limits<size_t>::max();
};

// Token ids of a prompt; the text already holds BOS.
std::vector<int32_t> EncodePrompt(const Tokenizer& tokenizer, const ChatPrompt& prompt,
                                  const PromptEncodeOptions& options = {});

// Whether the vocabulary has every special token this format needs; names the first missing one.
absl::Status CheckChatTokens(const Tokenizer& tokenizer);

}  // namespace fulgur::text
