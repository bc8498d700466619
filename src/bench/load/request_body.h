// Bodies of OpenAI-style requests, in aiperf's order of fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/session.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {

enum class Endpoint { kChat, kCompletions, kResponses };

// "chat", "completions" or "responses".
std::string_view EndpointName(Endpoint endpoint);

// Its path on a server, such as "/v1/responses".
std::string_view EndpointPath(Endpoint endpoint);

// What all requests of a cell have in common.
struct RequestShape {
  Endpoint endpoint = Endpoint::kChat;
  std::string model;
  bool streaming = true;
  bool legacy_max_tokens = false;  // max_tokens instead of max_completion_tokens
  bool per_chunk_usage = false;    // asks for running token counts in every message
  // Merged over the fields above. The word "osl" as a value stands for the request's output length.
  nlohmann::ordered_json extra = nlohmann::ordered_json::object();
  bool clamp_min_tokens = true;  // servers refuse min_tokens above max_tokens
};

// `messages` is the whole conversation; a completion takes the last one's content as prompt.
std::string MakeBody(const RequestShape& shape, const std::vector<ChatMessage>& messages,
                     std::optional<int64_t> output_tokens);

// Adds one --extra-inputs word: "key:value" with the value read as JSON where it is JSON, or an
// object.
absl::Status AddExtraInput(const std::string& word, nlohmann::ordered_json& extra);

}  // namespace fulgur::bench
