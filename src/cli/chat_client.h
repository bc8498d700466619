// One side of a conversation with any server that speaks OpenAI's chat completions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/http_client.h"
#include "nlohmann/json.hpp"

namespace fulgur::cli {

struct ChatSettings {
  std::string model;  // empty: the server's first
  std::string system_prompt;
  std::string reasoning_effort;  // empty: the server's default
  std::optional<double> temperature;
  std::optional<int64_t> max_tokens;
};

struct ChatAnswer {
  std::string content;
  std::string reasoning;
  std::string finish_reason;
  bool cancelled = false;
};

class ChatClient {
 public:
  ChatClient(HttpClient& http, ChatSettings settings);

  // Gets pieces as they arrive; `reasoning` says which kind.
  using OnPiece = std::function<void(std::string_view piece, bool reasoning)>;

  // Sends a user message after what was said before. A failed one is forgotten; a cancelled answer
  // counts as far as it came.
  absl::StatusOr<ChatAnswer> Say(const std::string& message, const OnPiece& on_piece,
                                 const HttpClient::Cancelled& cancelled);

  // Forgets the conversation, but not the system prompt.
  void Reset();

  // The model in use; asks the server if none was set.
  absl::StatusOr<std::string> Model();

 private:
  nlohmann::json RequestBody() const;

  HttpClient& http_;
  ChatSettings settings_;
  nlohmann::json messages_ = nlohmann::json::array();
};

}  // namespace fulgur::cli
