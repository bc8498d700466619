#include "engine/request_check.h"

#include <span>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace fulgur::engine {
namespace {

absl::Status CheckTokens(std::span<const int32_t> tokens, int64_t vocab_size, const char* what) {
  for (const int32_t token : tokens) {
    if (token >= 0 && token < vocab_size) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s holds token id %d, but the vocabulary has ids 0 to %d", what, token, vocab_size - 1));
  }
  return absl::OkStatus();
}

absl::Status CheckSampling(const sample::SamplingParams& params, int64_t vocab_size) {
  RETURN_IF_ERROR(CheckTokens(params.stop_token_ids, vocab_size, "stop_token_ids"));
  RETURN_IF_ERROR(CheckTokens(params.allowed_token_ids, vocab_size, "allowed_token_ids"));
  for (const auto& word : params.bad_words) {
    RETURN_IF_ERROR(CheckTokens(word, vocab_size, "bad_words"));
  }
  for (const auto& [token, bias] : params.logit_bias) {
    RETURN_IF_ERROR(CheckTokens({&token, 1}, vocab_size, "logit_bias"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRequest(const Request& request, int64_t max_model_len, int64_t vocab_size) {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t max_tokens = request.params.max_tokens;
  if (prompt == 0) return absl::InvalidArgumentError("the prompt is empty");
  if (max_tokens < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("max_tokens is %d, but must be at least 1", max_tokens));
  }
  if (prompt >= max_model_len || max_tokens > max_model_len - prompt) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the prompt has %d tokens and up to %d may follow, but the context holds %d", prompt,
        max_tokens, max_model_len));
  }
  RETURN_IF_ERROR(CheckTokens(request.prompt, vocab_size, "the prompt"));
  return CheckSampling(request.params, vocab_size);
}

}  // namespace fulgur::engine
