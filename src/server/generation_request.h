// The fields that chat and plain completions share: sampling, stopping, streaming, what to return.
//
// Validation follows the order clients see: types while reading, then rules between fields, and
// only after prompt and length the sampling values. All errors are made by api_error.h.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "grammar/output_format.h"
#include "sample/sampling_params.h"
#include "server/request_fields.h"
#include "server/server_options.h"
#include "text/tokenizer.h"

namespace fulgur::server {

// Answers that one request may ask for: choices per prompt times prompts.
inline constexpr int64_t kMaxChoices = 16384;

struct GenerationRequest {
  std::string model;       // empty: the served one
  std::string request_id;  // empty: a random one

  sample::SamplingParams sampling;
  std::optional<int64_t> max_tokens;
  std::string_view max_tokens_param = "max_tokens";  // the field that said so
  int64_t n = 1;
  std::optional<int64_t> seed;
  std::vector<std::string> stop;
  bool include_stop_string = false;
  std::vector<std::string> bad_words;
  std::vector<std::pair<int64_t, float>> logit_bias;
  std::optional<int64_t> logprobs;         // alternatives per token; -1: the whole vocabulary
  std::optional<int64_t> prompt_logprobs;  // the same for the prompt
  std::optional<int64_t> thinking_token_budget;
  std::optional<grammar::OutputFormat> format;  // none: any

  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  int64_t stream_interval = 1;

  bool echo = false;
  bool skip_special_tokens = true;
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;
  bool return_prompt_text = false;
  std::optional<int64_t> truncate_prompt_tokens;
  bool truncate_left = true;
  int32_t priority = 0;
  std::optional<int32_t> max_drafts;  // per step; 0: no speculation; none: as the engine sees fit
};

// Reads the shared fields; absent ones get the server's defaults.
absl::Status ReadGenerationFields(const RequestFields& fields, const ServerOptions& options,
                                  GenerationRequest* request);

// Rules that need no model: stream options, counts of logprobs, stop strings, cache salt, refused
// features.
absl::Status CheckGenerationRules(const RequestFields& fields, const ServerOptions& options,
                                  const GenerationRequest& request);

// Ranges of the sampling values, ids inside the vocabulary; then turns texts into what the engine
// samples with (bad words need `tokenizer`, which may be null). Last step of validation.
absl::Status ResolveSampling(int64_t vocab_size, const text::Tokenizer* tokenizer,
                             GenerationRequest* request);

// How long a prompt is. `limit` is the number of tokens after which counting may have stopped.
struct PromptLength {
  int64_t tokens = 0;
  size_t limit = std::numeric_limits<size_t>::max();
};

// Checks the lengths of prompt and output against the context of `max_model_len` tokens and returns
// the number of tokens that may be generated.
absl::StatusOr<int64_t> ResolveMaxTokens(const GenerationRequest& request, PromptLength prompt,
                                         int64_t max_model_len,
                                         std::optional<int64_t> default_max_tokens);

// The most tokens worth encoding: a prompt with more is refused anyway, and with how many hardly
// matters. An error if the length of the text alone says so.
absl::StatusOr<size_t> PromptTokenLimit(const GenerationRequest& request, size_t prompt_bytes,
                                        size_t longest_token_bytes, int64_t max_model_len);

// Shortens a prompt as truncate_prompt_tokens asks.
absl::Status TruncatePrompt(const GenerationRequest& request, int64_t max_model_len,
                            std::vector<int32_t>* prompt);

}  // namespace fulgur::server
