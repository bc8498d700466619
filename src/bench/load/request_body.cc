#include "bench/load/request_body.h"

#include <algorithm>

#include "fmt/format.h"

namespace fulgur::bench {
namespace {

using Json = nlohmann::ordered_json;

void MergeExtra(const RequestShape& shape, std::optional<int64_t> output_tokens, Json& body) {
  for (const auto& [key, value] : shape.extra.items()) {
    if (value != "osl") {
      body[key] = value;
    } else if (output_tokens) {
      body[key] = *output_tokens;
    }
  }
  if (!shape.clamp_min_tokens || !output_tokens) return;
  const auto least = body.find("min_tokens");
  if (least != body.end() && least->is_number_integer() && *least > *output_tokens) {
    *least = *output_tokens;
  }
}

// How the field is called that limits the answer's length.
const char* LimitName(const RequestShape& shape) {
  if (shape.endpoint == Endpoint::kResponses) return "max_output_tokens";
  const bool new_name = shape.endpoint == Endpoint::kChat && !shape.legacy_max_tokens;
  return new_name ? "max_completion_tokens" : "max_tokens";
}

}  // namespace

std::string_view EndpointName(Endpoint endpoint) {
  switch (endpoint) {
    case Endpoint::kCompletions:
      return "completions";
    case Endpoint::kResponses:
      return "responses";
    default:
      return "chat";
  }
}

std::string_view EndpointPath(Endpoint endpoint) {
  switch (endpoint) {
    case Endpoint::kCompletions:
      return "/v1/completions";
    case Endpoint::kResponses:
      return "/v1/responses";
    default:
      return "/v1/chat/completions";
  }
}

std::string MakeBody(const RequestShape& shape, const std::vector<ChatMessage>& messages,
                     std::optional<int64_t> output_tokens) {
  Json body;
  if (shape.endpoint == Endpoint::kCompletions) {
    body["prompt"] = messages.empty() ? "" : messages.back().content;
  } else {
    Json list = Json::array();
    for (const ChatMessage& message : messages) {
      list.push_back(Json{{"role", message.role}, {"content", message.content}});
    }
    body[shape.endpoint == Endpoint::kChat ? "messages" : "input"] = std::move(list);
  }
  body["model"] = shape.model;
  body["stream"] = shape.streaming;
  if (output_tokens) body[LimitName(shape)] = *output_tokens;
  MergeExtra(shape, output_tokens, body);
  // The Responses API always ends with usage.
  if (shape.streaming && shape.endpoint != Endpoint::kResponses) {
    body["stream_options"]["include_usage"] = true;
    if (shape.per_chunk_usage) body["stream_options"]["continuous_usage_stats"] = true;
  }
  // A text that is no UTF-8 cannot be sent as it is.
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::Status AddExtraInput(const std::string& word, Json& extra) {
  if (word.starts_with('{')) {
    const Json object = Json::parse(word, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) {
      return absl::InvalidArgumentError(fmt::format(
          "--extra-inputs: {} is not a JSON object; did the shell take the quotes?", word));
    }
    for (const auto& [key, value] : object.items()) extra[key] = value;
    return absl::OkStatus();
  }
  const size_t colon = word.find(':');
  if (colon == 0 || colon == std::string::npos) {
    return absl::InvalidArgumentError(
        fmt::format("--extra-inputs: \"{}\" is neither KEY:VALUE nor a JSON object", word));
  }
  const std::string text = word.substr(colon + 1);
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  extra[word.substr(0, colon)] = value.is_discarded() ? Json(text) : std::move(value);
  return absl::OkStatus();
}

}  // namespace fulgur::bench
