// Bodies of chat and completion requests: no input crashes, every refusal is a 4xx with a JSON
// body, and what is accepted as JSON here is what the strict parser of text/json.h accepts.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "base/check.h"
#include "server/api_error.h"
#include "server/chat_request.h"
#include "server/completion_request.h"
#include "server/request_fields.h"
#include "text/json.h"

namespace {

using fulgur::server::Job;
using fulgur::server::RequestFields;

// Run in the repository's root.
const fulgur::text::Tokenizer& TinyTokenizer() {
  static const auto* tokenizer = [] {
    std::ifstream file("src/text/testdata/tiny_tokenizer.json", std::ios::binary);
    std::string json((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    auto loaded = fulgur::text::Tokenizer::FromJson(json);
    CHECK(loaded.ok());
    return new fulgur::text::Tokenizer(*std::move(loaded));
  }();
  return *tokenizer;
}

fulgur::server::ServerOptions Options() {
  fulgur::server::ServerOptions options;
  options.served_model_names = {"m"};
  options.chat.tool_parser = true;
  options.chat.auto_tool_choice = true;
  options.chat.reasoning_parser = true;
  return options;
}

void CheckAnswer(const absl::StatusOr<Job>& job) {
  if (job.ok()) {
    CHECK(!job->prompts.empty());
    for (const auto& prompt : job->prompts) CHECK(!prompt.tokens.empty());
    CHECK(job->request.sampling.max_tokens >= 1);
    return;
  }
  int status = fulgur::server::HttpStatusOf(job.status());
  CHECK(status >= 400 && status < 500);
  CHECK(fulgur::text::ParseJson(fulgur::server::ErrorBody(job.status())).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* options = new fulgur::server::ServerOptions(Options());
  const auto& tokenizer = TinyTokenizer();
  fulgur::server::ServingContext context{options, &tokenizer, {1}, 4096, tokenizer.vocab_size()};
  std::string body(reinterpret_cast<const char*>(data), size);

  auto strict = fulgur::text::ParseJson(body);
  CHECK(fulgur::text::CheckJson(body).ok() == strict.ok());
  auto fields = RequestFields::Parse(body);
  CHECK(!fields.ok() || (strict.ok() && strict->is_object()));
  if (!fields.ok()) {
    // simdjson takes no number whose exponent has more than 18 digits; the strict parser does.
    bool number = fields.status().message().find("number") != absl::string_view::npos;
    CHECK(number || !strict.ok() || !strict->is_object());
    return 0;
  }
  CheckAnswer(fulgur::server::MakeChatJob(context, *fields));
  CheckAnswer(fulgur::server::MakeCompletionJob(context, *fields));
  context.tokenizer = nullptr;
  CheckAnswer(fulgur::server::MakeCompletionJob(context, *fields));
  return 0;
}
