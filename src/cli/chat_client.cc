#include "cli/chat_client.h"

#include <utility>

#include "base/status_macros.h"
#include "cli/sse_reader.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

using nlohmann::json;

// Texts from a terminal or a server need not be UTF-8.
std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string TextAt(const json& object, std::string_view key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// The sentence of an error body: {"error": {"message": ...}}, or what there is.
absl::Status ErrorOf(const HttpAnswer& answer) {
  const json body = json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  std::string text = answer.body.substr(0, 500);
  if (body.is_object() && body.contains("error")) {
    const json& error = body["error"];
    text = error.is_string() ? error.get<std::string>() : TextAt(error, "message");
  }
  return absl::InternalError(fmt::format("the server answered {}: {}", answer.status, text));
}

// Reads the events of one streamed answer.
class AnswerReader {
 public:
  explicit AnswerReader(const ChatClient::OnPiece& on_piece) : on_piece_(on_piece) {}

  void Feed(std::string_view bytes) {
    for (const std::string& event : sse_.Feed(bytes)) ReadEvent(event);
  }

  absl::StatusOr<ChatAnswer> Finish() {
    if (!error_.empty()) return absl::InternalError(error_);
    return std::move(answer_);
  }

  bool complete() const { return done_ || !answer_.finish_reason.empty(); }

 private:
  void ReadEvent(const std::string& event) {
    if (event == "[DONE]") {
      done_ = true;
      return;
    }
    const json chunk = json::parse(event, nullptr, /*allow_exceptions=*/false);
    if (!chunk.is_object()) return;
    if (chunk.contains("error")) {
      const json& error = chunk["error"];
      error_ = error.is_object() ? TextAt(error, "message") : Dump(error);
    }
    const auto choices = chunk.find("choices");
    if (choices == chunk.end() || !choices->is_array() || choices->empty()) return;
    ReadChoice((*choices)[0]);
  }

  void ReadChoice(const json& choice) {
    if (!choice.is_object()) return;
    if (const std::string reason = TextAt(choice, "finish_reason"); !reason.empty()) {
      answer_.finish_reason = reason;
    }
    const auto delta = choice.find("delta");
    if (delta == choice.end() || !delta->is_object()) return;
    // Servers name the field one way, the other, or both.
    std::string reasoning = TextAt(*delta, "reasoning");
    if (reasoning.empty()) reasoning = TextAt(*delta, "reasoning_content");
    Take(reasoning, answer_.reasoning, true);
    Take(TextAt(*delta, "content"), answer_.content, false);
  }

  void Take(const std::string& piece, std::string& whole, bool reasoning) {
    if (piece.empty()) return;
    whole += piece;
    on_piece_(piece, reasoning);
  }

  const ChatClient::OnPiece& on_piece_;
  SseReader sse_;
  ChatAnswer answer_;
  std::string error_;
  bool done_ = false;
};

}  // namespace

ChatClient::ChatClient(HttpClient& http, ChatSettings settings)
    : http_(http), settings_(std::move(settings)) {
  Reset();
}

void ChatClient::Reset() {
  messages_ = json::array();
  if (!settings_.system_prompt.empty()) {
    messages_.push_back({{"role", "system"}, {"content", settings_.system_prompt}});
  }
}

absl::StatusOr<std::string> ChatClient::Model() {
  if (!settings_.model.empty()) return settings_.model;
  ASSIGN_OR_RETURN(const HttpAnswer answer, http_.Get("/v1/models"));
  if (answer.status != 200) return ErrorOf(answer);
  const json body = json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const json::json_pointer first("/data/0/id");
  if (!body.is_object() || !body.contains(first) || !body[first].is_string()) {
    return absl::InternalError("the server lists no model at /v1/models; name one with --model");
  }
  settings_.model = body[first].get<std::string>();
  return settings_.model;
}

json ChatClient::RequestBody() const {
  json body = {{"model", settings_.model}, {"messages", messages_}, {"stream", true}};
  if (settings_.temperature) body["temperature"] = *settings_.temperature;
  if (settings_.max_tokens) body["max_tokens"] = *settings_.max_tokens;
  if (!settings_.reasoning_effort.empty()) body["reasoning_effort"] = settings_.reasoning_effort;
  return body;
}

absl::StatusOr<ChatAnswer> ChatClient::Say(const std::string& message, const OnPiece& on_piece,
                                           const HttpClient::Cancelled& cancelled) {
  RETURN_IF_ERROR(Model().status());
  messages_.push_back({{"role", "user"}, {"content", message}});
  AnswerReader reader(on_piece);
  const auto http = http_.PostJson(
      "/v1/chat/completions", Dump(RequestBody()),
      [&](std::string_view bytes) { reader.Feed(bytes); }, cancelled);
  const bool was_cancelled = absl::IsCancelled(http.status());
  absl::StatusOr<ChatAnswer> answer = reader.Finish();
  if (!http.ok() && !was_cancelled) answer = http.status();
  if (http.ok() && http->status != 200) answer = ErrorOf(*http);
  if (http.ok() && answer.ok() && !reader.complete()) {
    answer = absl::DataLossError("the server ended the answer early");
  }
  if (!answer.ok()) {
    messages_.erase(messages_.size() - 1);
    return answer;
  }
  answer->cancelled = was_cancelled;
  messages_.push_back({{"role", "assistant"}, {"content", answer->content}});
  return answer;
}

}  // namespace fulgur::cli
