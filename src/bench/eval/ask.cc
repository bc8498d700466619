#include "bench/eval/ask.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/load/clock.h"
#include "bench/load/http_client.h"
#include "bench/load/server_info.h"

namespace fulgur::bench {
namespace {

using Json = nlohmann::json;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kLookInterval = kSecond / 5;  // for cancellation
constexpr size_t kShownBody = 300;              // bytes of a server's complaint

std::vector<std::pair<std::string, std::string>> Headers(const AskOptions& options) {
  std::vector<std::pair<std::string, std::string>> headers = {{"Content-Type", "application/json"}};
  if (!options.api_key.empty()) {
    headers.emplace_back("Authorization", absl::StrCat("Bearer ", options.api_key));
  }
  return headers;
}

std::string TextAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<int64_t> CountAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

// Both spellings of the reasoning field are read, since servers differ.
bool ReadChoice(const Json& body, Answer& answer) {
  const auto choices = body.find("choices");
  if (choices == body.end() || !choices->is_array() || choices->empty()) return false;
  const Json& choice = choices->front();
  const auto message = choice.find("message");
  if (message == choice.end() || !message->is_object()) return false;
  answer.text = TextAt(*message, "content");
  answer.reasoning = TextAt(*message, "reasoning_content");
  if (answer.reasoning.empty()) answer.reasoning = TextAt(*message, "reasoning");
  answer.finish_reason = TextAt(choice, "finish_reason");
  return true;
}

void ReadAnswer(int status, const std::string& text, Answer& answer) {
  const Json body = Json::parse(text, nullptr, false);
  if (status != 200) {
    answer.error = absl::StrCat("status ", status, ": ", text.substr(0, kShownBody));
    return;
  }
  if (!body.is_object() || !ReadChoice(body, answer)) {
    answer.error = absl::StrCat("the answer is no chat completion: ", text.substr(0, kShownBody));
    return;
  }
  const auto usage = body.find("usage");
  if (usage == body.end() || !usage->is_object()) return;
  answer.prompt_tokens = CountAt(*usage, "prompt_tokens");
  answer.completion_tokens = CountAt(*usage, "completion_tokens");
}

// One question on its way.
class Question : public CallObserver {
 public:
  Question(Answer answer, std::function<void(Answer)> on_end)
      : answer_(std::move(answer)), on_end_(std::move(on_end)) {}

  void OnStart(int64_t time_ns, bool) override {
    started_ns_ = time_ns;
    body_.clear();
  }
  void OnHeaders(int status, std::string_view, std::string_view, int64_t) override {
    status_ = status;
  }
  void OnBody(std::string_view piece, int64_t) override { body_.append(piece); }
  void OnEnd(const CallEnd& end) override {
    answer_.latency_ms = static_cast<double>(end.time_ns - started_ns_) / 1e6;
    if (end.outcome == CallOutcome::kComplete) {
      ReadAnswer(status_, body_, answer_);
    } else if (end.outcome == CallOutcome::kTimedOut) {
      answer_.error = "no answer in time";
    } else {
      answer_.error = end.detail.empty() ? "the connection ended" : end.detail;
    }
    on_end_(std::move(answer_));
  }

 private:
  Answer answer_;
  std::function<void(Answer)> on_end_;
  std::string body_;
  int status_ = 0;
  int64_t started_ns_ = 0;
};

// Keeps `concurrency` questions on their way until all are answered.
class Asker {
 public:
  Asker(const AskOptions& options, const EvalData& data, HttpClient& client, std::string path)
      : options_(options), data_(data), client_(client), path_(std::move(path)) {
    const auto count = static_cast<int64_t>(data.items.size()) * options.samples;
    answers_.resize(static_cast<size_t>(count));
    questions_.resize(answers_.size());
    calls_.resize(answers_.size());
  }

  std::vector<Answer> Run(const AskProgress& progress, const std::function<bool()>& cancelled) {
    progress_ = &progress;
    client_.Post([this] {
      for (int64_t i = 0; i < options_.concurrency; ++i) SendNext();
    });
    Watch(cancelled);
    client_.Run();
    answers_.resize(next_);
    std::erase_if(answers_, [](const Answer& answer) { return answer.latency_ms < 0.0; });
    return std::move(answers_);
  }

 private:
  void SendNext() {
    if (stopped_ || next_ == answers_.size()) return;
    const size_t index = next_++;
    Answer answer;
    answer.item = index / static_cast<size_t>(options_.samples);
    answer.sample = static_cast<int64_t>(index) % options_.samples;
    HttpCall call;
    call.path = path_;
    call.headers = Headers(options_);
    call.body = RequestBody(options_, data_.items[answer.item], answer.sample).dump();
    call.timeout_ns = options_.timeout_s * kSecond;
    answers_[index].latency_ms = -1.0;  // on its way
    ++in_flight_;
    questions_[index] = std::make_unique<Question>(
        std::move(answer), [this, index](Answer ended) { Keep(index, std::move(ended)); });
    calls_[index] = client_.Start(std::move(call), questions_[index].get());
  }

  void Keep(size_t index, Answer answer) {
    --in_flight_;
    if (!stopped_) {
      failed_ += answer.error.empty() ? 0 : 1;
      answers_[index] = std::move(answer);
      (*progress_)(++done_, failed_);
    }
    // Not from inside the call that ends: it may be on the stack of the client.
    client_.Post([this, index] {
      questions_[index].reset();
      SendNext();
      if (in_flight_ == 0) client_.Stop();
    });
  }

  void Watch(const std::function<bool()>& cancelled) {
    client_.RunAt(MonotonicNs() + kLookInterval, [this, &cancelled] {
      if (cancelled()) return CancelAll();
      Watch(cancelled);
    });
  }

  void CancelAll() {
    stopped_ = true;
    for (size_t i = 0; i < next_; ++i) {
      if (questions_[i] != nullptr) client_.Cancel(calls_[i]);
    }
    client_.Post([this] { client_.Stop(); });
  }

  const AskOptions& options_;
  const EvalData& data_;
  HttpClient& client_;
  const std::string path_;
  const AskProgress* progress_ = nullptr;
  std::vector<Answer> answers_;
  std::vector<std::unique_ptr<Question>> questions_;
  std::vector<CallId> calls_;
  size_t next_ = 0;
  int64_t in_flight_ = 0;
  int64_t done_ = 0;
  int64_t failed_ = 0;
  bool stopped_ = false;
};

absl::StatusOr<std::string> FirstModel(const AskOptions& options, HttpClient& client,
                                       const HttpTarget& target) {
  ServerInfo server(client, {target, Headers(options)});
  ASSIGN_OR_RETURN(const std::vector<ServedModel> models, server.Models());
  if (models.empty()) {
    return absl::UnavailableError(absl::StrCat(options.url, " names no model; give --model"));
  }
  return models.front().name;
}

}  // namespace

Json RequestBody(const AskOptions& options, const EvalItem& item, int64_t sample) {
  Json body = {
      {"model", options.model},
      {"messages",
       Json::array({{{"role", "user"}, {"content", RenderPrompt(options.prompt_template, item)}}})},
      {"temperature", options.temperature},
      {"top_p", options.top_p},
      {"max_tokens", options.max_tokens}};
  if (options.thinking) body["chat_template_kwargs"] = {{"thinking", *options.thinking}};
  if (options.seed) body["seed"] = *options.seed + sample;
  body.merge_patch(options.extra);
  return body;
}

absl::StatusOr<std::vector<Answer>> AskAll(const AskOptions& options, const EvalData& data,
                                           const AskProgress& progress,
                                           const std::function<bool()>& cancelled) {
  ASSIGN_OR_RETURN(const HttpTarget target, ParseUrl(options.url));
  ASSIGN_OR_RETURN(const auto client, HttpClient::Create({target}, {}));
  AskOptions complete = options;
  if (complete.model.empty()) {
    ASSIGN_OR_RETURN(complete.model, FirstModel(options, *client, target));
  }
  if (complete.prompt_template.empty()) complete.prompt_template = DefaultTemplate(data.kind);
  Asker asker(complete, data, *client, target.path + "/v1/chat/completions");
  return asker.Run(progress, cancelled);
}

}  // namespace fulgur::bench
