#include "server/generation_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/status_macros.h"
#include "server/api_error.h"
#include "server/format_fields.h"
#include "server/json_writer.h"

namespace fulgur::server {
namespace {

constexpr float kGreedyBelow = 1e-5F;
constexpr float kLowestTemperature = 0.01F;
constexpr size_t kMaxCacheSaltBytes = 128;
constexpr size_t kMaxBadWordSequences = 128;
// Prompts that are too long by no more than this are counted to the end, so that the client learns
// by how much.
constexpr size_t kExactCountMargin = 65536;

absl::Status ReadSampling(const RequestFields& fields, const SamplingDefaults& defaults,
                          GenerationRequest* request) {
  sample::SamplingParams& sampling = request->sampling;
  sampling.temperature = defaults.temperature;
  sampling.top_p = defaults.top_p;
  sampling.top_k = defaults.top_k;
  sampling.min_p = defaults.min_p;
  sampling.repetition_penalty = defaults.repetition_penalty;
  RETURN_IF_ERROR(fields.Read("temperature", &sampling.temperature));
  RETURN_IF_ERROR(fields.Read("top_p", &sampling.top_p));
  RETURN_IF_ERROR(fields.Read("top_k", &sampling.top_k));
  RETURN_IF_ERROR(fields.Read("min_p", &sampling.min_p));
  RETURN_IF_ERROR(fields.Read("presence_penalty", &sampling.presence_penalty));
  RETURN_IF_ERROR(fields.Read("frequency_penalty", &sampling.frequency_penalty));
  RETURN_IF_ERROR(fields.Read("repetition_penalty", &sampling.repetition_penalty));
  RETURN_IF_ERROR(fields.Read("seed", &request->seed));
  RETURN_IF_ERROR(fields.Read("n", &request->n));
  RETURN_IF_ERROR(fields.Read("min_tokens", &sampling.min_tokens));
  RETURN_IF_ERROR(fields.Read("ignore_eos", &sampling.ignore_eos));
  RETURN_IF_ERROR(fields.Read("stop_token_ids", &sampling.stop_token_ids));
  RETURN_IF_ERROR(fields.Read("allowed_token_ids", &sampling.allowed_token_ids));
  if (fields.Has("allowed_token_ids") && sampling.allowed_token_ids.empty()) {
    return RuleError(
        "allowed_token_ids must not be empty: no token could be chosen. Leave the field out to "
        "allow all.",
        "allowed_token_ids");
  }
  RETURN_IF_ERROR(fields.Read("bad_words", &request->bad_words));
  RETURN_IF_ERROR(fields.ReadIdMap("logit_bias", &request->logit_bias));
  return fields.Read("thinking_token_budget", &request->thinking_token_budget);
}

absl::Status ReadStreaming(const RequestFields& fields, const ServerOptions& options,
                           GenerationRequest* request) {
  RETURN_IF_ERROR(fields.Read("stream", &request->stream));
  ASSIGN_OR_RETURN(RequestFields stream_options, fields.Object("stream_options"));
  RETURN_IF_ERROR(stream_options.Read("include_usage", &request->include_usage));
  RETURN_IF_ERROR(stream_options.Read("continuous_usage_stats", &request->continuous_usage));
  if (options.enable_force_include_usage) request->include_usage = true;
  RETURN_IF_ERROR(fields.Read("stream_interval", &request->stream_interval));
  if (request->stream_interval < 1) {
    return ValueError("stream_interval must be at least 1.", "stream_interval",
                      std::to_string(request->stream_interval));
  }
  request->stream_interval = std::max(request->stream_interval, options.stream_interval);
  return absl::OkStatus();
}

absl::Status ReadReturns(const RequestFields& fields, const ServerOptions& options,
                         GenerationRequest* request) {
  request->return_tokens_as_token_ids = options.return_tokens_as_token_ids;
  RETURN_IF_ERROR(fields.Read("echo", &request->echo));
  RETURN_IF_ERROR(fields.Read("skip_special_tokens", &request->skip_special_tokens));
  RETURN_IF_ERROR(fields.Read("return_token_ids", &request->return_token_ids));
  RETURN_IF_ERROR(fields.Read("return_tokens_as_token_ids", &request->return_tokens_as_token_ids));
  RETURN_IF_ERROR(fields.Read("return_prompt_text", &request->return_prompt_text));
  RETURN_IF_ERROR(fields.Read("truncate_prompt_tokens", &request->truncate_prompt_tokens));
  std::string side = "left";
  RETURN_IF_ERROR(fields.Read("truncation_side", &side));
  if (side != "left" && side != "right") {
    return MalformedError("truncation_side: Input should be 'left' or 'right'.", "truncation_side");
  }
  request->truncate_left = side == "left";
  return fields.Read("prompt_logprobs", &request->prompt_logprobs);
}

// "off", "auto", or the most drafts per step.
absl::Status ReadSpeculative(const RequestFields& fields, GenerationRequest* request) {
  const std::optional<std::string_view> raw = fields.Raw("speculative");
  if (!raw || *raw == "\"auto\"") return absl::OkStatus();
  int32_t limit = 0;
  const bool off = *raw == "\"off\"";
  if (!off && (!fields.Read("speculative", &limit).ok() || limit < 0)) {
    return MalformedError(
        "speculative: Input should be 'off', 'auto' or the most drafts per step, a whole number "
        "from 0.",
        "speculative");
  }
  request->max_drafts = limit;
  return absl::OkStatus();
}

absl::Status CheckStopStrings(const ServerOptions& options, const GenerationRequest& request) {
  for (const std::string& stop : request.stop) {
    if (stop.empty()) return RuleError("stop cannot contain an empty string.", "stop");
  }
  if (static_cast<int64_t>(request.stop.size()) > options.max_stop_strings) {
    return RuleError(fmt::format("stop may hold at most {} strings, got {}.",
                                 options.max_stop_strings, request.stop.size()),
                     "stop");
  }
  for (const std::string& word : request.bad_words) {
    if (word.empty()) return RuleError("bad_words cannot contain an empty string.", "bad_words");
  }
  return absl::OkStatus();
}

absl::Status CheckCacheSalt(const RequestFields& fields) {
  std::optional<std::string> salt;
  RETURN_IF_ERROR(fields.Read("cache_salt", &salt));
  if (!salt) return absl::OkStatus();
  if (salt->empty()) {
    return RuleError("Parameter 'cache_salt' must be a non-empty string if provided.",
                     "cache_salt");
  }
  if (salt->size() > kMaxCacheSaltBytes ||
      salt->find_first_of(std::string_view("@/\\\0", 4)) != std::string::npos) {
    return RuleError(
        fmt::format("Parameter 'cache_salt' may have at most {} characters, none of them '@', '/', "
                    "'\\' or NUL.",
                    kMaxCacheSaltBytes),
        "cache_salt");
  }
  return absl::OkStatus();
}

absl::Status CheckRefusedFeatures(const RequestFields& fields) {
  bool beam_search = false;
  RETURN_IF_ERROR(fields.Read("use_beam_search", &beam_search));
  if (beam_search) return RuleError("Beam search is not supported.", "use_beam_search");
  for (const char* name : {"repetition_detection", "watermarking"}) {
    if (fields.Has(name)) return RuleError(fmt::format("`{}` is not supported.", name), name);
  }
  if (auto ids = fields.Raw("logprob_token_ids"); ids && *ids != "[]") {
    return RuleError("`logprob_token_ids` is not supported; use `top_logprobs`.",
                     "logprob_token_ids");
  }
  return absl::OkStatus();
}

absl::Status CheckLogprobCount(const ServerOptions& options, std::optional<int64_t> count,
                               std::string_view kind, std::string_view param) {
  if (!count) return absl::OkStatus();
  if (*count < -1) {
    return ValueError(fmt::format("`{}` must be a non-negative value or -1.", param), param,
                      std::to_string(*count));
  }
  bool unlimited = options.max_logprobs < 0;
  if (unlimited || (*count >= 0 && *count <= options.max_logprobs)) return absl::OkStatus();
  std::string asked = *count < 0 ? "the whole vocabulary" : std::to_string(*count);
  return ValueError(
      fmt::format("Requested {} logprobs of {}, which is greater than max allowed: {}", kind, asked,
                  options.max_logprobs),
      param, std::to_string(*count));
}

template <typename T>
std::string Show(T value) {
  if constexpr (std::is_floating_point_v<T>) return FormatNumber(value);
  return fmt::format("{}", value);
}

template <typename T>
absl::Status Outside(std::string_view rule, std::string_view param, T value) {
  return ValueError(fmt::format("{}, got {}.", rule, Show(value)), param, Show(value));
}

absl::Status CheckPenalty(std::string_view param, float value) {
  if (value >= -2.0F && value <= 2.0F) return absl::OkStatus();
  return Outside(fmt::format("{} must be in [-2, 2]", param), param, value);
}

// Comparisons are written so that a NaN fails them.
absl::Status CheckRanges(const GenerationRequest& request) {
  const sample::SamplingParams& sampling = request.sampling;
  if (request.n < 1) return Outside("n must be at least 1", "n", request.n);
  if (request.n > kMaxChoices) {
    return Outside(fmt::format("n must be at most {}", kMaxChoices), "n", request.n);
  }
  RETURN_IF_ERROR(CheckPenalty("presence_penalty", sampling.presence_penalty));
  RETURN_IF_ERROR(CheckPenalty("frequency_penalty", sampling.frequency_penalty));
  if (!(sampling.repetition_penalty > 0.0F)) {
    return Outside("repetition_penalty must be greater than zero", "repetition_penalty",
                   sampling.repetition_penalty);
  }
  if (!(sampling.temperature >= 0.0F)) {
    return Outside("temperature must be non-negative", "temperature", sampling.temperature);
  }
  if (!(sampling.top_p > 0.0F && sampling.top_p <= 1.0F)) {
    return Outside("top_p must be in (0, 1]", "top_p", sampling.top_p);
  }
  if (sampling.top_k < -1) {
    return Outside("top_k must be 0 (disable), or at least 1", "top_k", sampling.top_k);
  }
  if (!(sampling.min_p >= 0.0F && sampling.min_p <= 1.0F)) {
    return Outside("min_p must be in [0, 1]", "min_p", sampling.min_p);
  }
  if (sampling.temperature < kGreedyBelow && request.n > 1) {
    return Outside("n must be 1 when using greedy sampling", "n", request.n);
  }
  return absl::OkStatus();
}

absl::Status CheckMinTokens(const GenerationRequest& request) {
  int64_t min_tokens = request.sampling.min_tokens;
  if (min_tokens < 0) {
    return Outside("min_tokens must be greater than or equal to 0", "min_tokens", min_tokens);
  }
  if (min_tokens > request.sampling.max_tokens) {
    return Outside(fmt::format("min_tokens must be less than or equal to max_tokens={}",
                               request.sampling.max_tokens),
                   "min_tokens", min_tokens);
  }
  return absl::OkStatus();
}

absl::Status OutOfVocabulary(std::string_view field, const std::vector<int64_t>& bad,
                             int64_t vocab_size) {
  if (bad.empty()) return absl::OkStatus();
  return RuleError(
      fmt::format("token_id(s) [{}] in {} contain out-of-vocab token ids. Vocabulary size: {}",
                  fmt::join(bad, ", "), field, vocab_size),
      field);
}

absl::Status CheckIds(std::string_view field, const std::vector<int32_t>& ids, int64_t vocab_size) {
  std::vector<int64_t> bad;
  for (int32_t id : ids) {
    if (id >= vocab_size && bad.size() < 10) bad.push_back(id);
  }
  return OutOfVocabulary(field, bad, vocab_size);
}

absl::Status ResolveBias(int64_t vocab_size, GenerationRequest* request) {
  std::vector<int64_t> bad;
  for (auto [id, bias] : request->logit_bias) {
    if (id >= 0 && id < vocab_size) {
      request->sampling.logit_bias.emplace_back(static_cast<int32_t>(id), bias);
    } else if (bad.size() < 10) {
      bad.push_back(id);
    }
  }
  return OutOfVocabulary("logit_bias", bad, vocab_size);
}

// A word in the middle of a text is another token sequence than at its beginning: both are barred.
absl::Status ResolveBadWords(const text::Tokenizer* tokenizer, GenerationRequest* request) {
  if (request->bad_words.empty()) return absl::OkStatus();
  if (tokenizer == nullptr) {
    return RuleError("bad_words need a tokenizer; the server runs without one.", "bad_words");
  }
  auto& sequences = request->sampling.bad_words;
  for (const std::string& word : request->bad_words) {
    std::string_view bare = word;
    bare.remove_prefix(std::min(bare.find_first_not_of(' '), bare.size()));
    sequences.push_back(tokenizer->Encode(bare));
    auto spaced = tokenizer->Encode(" " + std::string(bare));
    const auto& first = sequences.back();
    if (!spaced.empty() && spaced.size() == first.size() && spaced[0] != first[0]) {
      sequences.push_back(std::move(spaced));
    }
  }
  std::erase_if(sequences, [](const auto& sequence) { return sequence.empty(); });
  if (sequences.size() > kMaxBadWordSequences) {
    return RuleError(fmt::format("bad_words make {} token sequences; at most {} are possible.",
                                 sequences.size(), kMaxBadWordSequences),
                     "bad_words");
  }
  return absl::OkStatus();
}

int32_t Alternatives(int64_t count, int64_t vocab_size) {
  return static_cast<int32_t>(count < 0 ? vocab_size : std::min(count, vocab_size));
}

}  // namespace

absl::Status ReadGenerationFields(const RequestFields& fields, const ServerOptions& options,
                                  GenerationRequest* request) {
  RETURN_IF_ERROR(fields.Read("model", &request->model));
  RETURN_IF_ERROR(fields.Read("request_id", &request->request_id));
  RETURN_IF_ERROR(fields.Read("max_tokens", &request->max_tokens));
  RETURN_IF_ERROR(fields.ReadTextOrList("stop", &request->stop));
  RETURN_IF_ERROR(fields.Read("include_stop_str_in_output", &request->include_stop_string));
  RETURN_IF_ERROR(fields.Read("priority", &request->priority));
  RETURN_IF_ERROR(ReadSpeculative(fields, request));
  RETURN_IF_ERROR(ReadSampling(fields, options.sampling, request));
  RETURN_IF_ERROR(ReadStreaming(fields, options, request));
  ASSIGN_OR_RETURN(request->format, ReadOutputFormat(fields));
  return ReadReturns(fields, options, request);
}

absl::Status CheckGenerationRules(const RequestFields& fields, const ServerOptions& options,
                                  const GenerationRequest& request) {
  if (fields.Has("stream_options") && !request.stream) {
    return RuleError("Stream options can only be defined when `stream=True`.", "stream_options");
  }
  RETURN_IF_ERROR(CheckStopStrings(options, request));
  RETURN_IF_ERROR(CheckCacheSalt(fields));
  RETURN_IF_ERROR(CheckRefusedFeatures(fields));
  if (request.stream && request.prompt_logprobs.value_or(0) != 0) {
    return RuleError("`prompt_logprobs` are not available when `stream=True`.", "prompt_logprobs");
  }
  RETURN_IF_ERROR(CheckLogprobCount(options, request.prompt_logprobs, "prompt", "prompt_logprobs"));
  if (request.thinking_token_budget.value_or(0) < -1) {
    return ValueError("`thinking_token_budget` must be a non-negative integer or -1 for unlimited.",
                      "thinking_token_budget", std::to_string(*request.thinking_token_budget));
  }
  std::string_view param = fields.Has("top_logprobs") ? "top_logprobs" : "logprobs";
  return CheckLogprobCount(options, request.logprobs, "sample", param);
}

absl::Status ResolveSampling(int64_t vocab_size, const text::Tokenizer* tokenizer,
                             GenerationRequest* request) {
  sample::SamplingParams& sampling = request->sampling;
  RETURN_IF_ERROR(CheckRanges(*request));
  RETURN_IF_ERROR(CheckMinTokens(*request));
  RETURN_IF_ERROR(CheckIds("stop_token_ids", sampling.stop_token_ids, vocab_size));
  RETURN_IF_ERROR(CheckIds("allowed_token_ids", sampling.allowed_token_ids, vocab_size));
  RETURN_IF_ERROR(ResolveBias(vocab_size, request));
  RETURN_IF_ERROR(ResolveBadWords(tokenizer, request));
  if (sampling.temperature < kGreedyBelow) {
    sampling.temperature = 0.0F;
  } else {
    sampling.temperature = std::max(sampling.temperature, kLowestTemperature);
  }
  sampling.top_k = std::max(sampling.top_k, 0);
  if (request->seed && *request->seed != -1) sampling.seed = static_cast<uint64_t>(*request->seed);
  if (request->logprobs) sampling.num_logprobs = Alternatives(*request->logprobs, vocab_size);
  if (request->prompt_logprobs) {
    sampling.num_prompt_logprobs = Alternatives(*request->prompt_logprobs, vocab_size);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ResolveMaxTokens(const GenerationRequest& request, PromptLength prompt,
                                         int64_t max_model_len,
                                         std::optional<int64_t> default_max_tokens) {
  int64_t prompt_tokens = prompt.tokens;
  bool stopped_early = static_cast<size_t>(prompt_tokens) > prompt.limit;
  std::string_view at_least = stopped_early ? "at least " : "";
  if (prompt_tokens == 0) return RuleError("The decoder prompt cannot be empty", "prompt");
  int64_t output = request.max_tokens.value_or(0);
  int64_t room = max_model_len - prompt_tokens;
  if (request.max_tokens && output < 1) {
    return Outside("max_tokens must be at least 1", request.max_tokens_param, output);
  }
  if (!request.max_tokens && prompt_tokens > max_model_len) {
    return ValueError(
        fmt::format("This model's maximum context length is {} tokens. However, your prompt "
                    "contains {}{} input tokens, which exceeds this limit even without any output "
                    "tokens. Please reduce the length of the input prompt.",
                    max_model_len, at_least, prompt_tokens),
        "input_tokens", std::to_string(prompt_tokens));
  }
  if (prompt_tokens > max_model_len - output) {
    return ValueError(
        fmt::format("This model's maximum context length is {} tokens. However, you requested {} "
                    "output tokens and your prompt contains {}{} input tokens, for a total of {}{} "
                    "tokens. Please reduce the length of the input prompt or the number of "
                    "requested output tokens.",
                    max_model_len, output, at_least, prompt_tokens, at_least,
                    output + prompt_tokens),
        "input_tokens", std::to_string(prompt_tokens));
  }
  if (room < 1) {
    return ValueError(
        fmt::format("This model's maximum context length is {} tokens. However, your prompt "
                    "contains {} input tokens: the prompt plus at least 1 output token is longer "
                    "than that. Please reduce the length of the input prompt.",
                    max_model_len, prompt_tokens),
        "input_tokens", std::to_string(prompt_tokens));
  }
  return std::min(request.max_tokens.value_or(default_max_tokens.value_or(room)), room);
}

absl::StatusOr<size_t> PromptTokenLimit(const GenerationRequest& request, size_t prompt_bytes,
                                        size_t longest_token_bytes, int64_t max_model_len) {
  int64_t output = std::max<int64_t>(request.max_tokens.value_or(0), 0);
  if (output > max_model_len) {
    return ValueError(
        fmt::format("max_tokens={} cannot be greater than max_model_len={}. Please request fewer "
                    "output tokens.",
                    output, max_model_len),
        request.max_tokens_param, std::to_string(output));
  }
  if (request.truncate_prompt_tokens) return std::numeric_limits<size_t>::max();
  auto room = static_cast<size_t>(max_model_len - output);
  if (prompt_bytes <= room * longest_token_bytes) return room + kExactCountMargin;
  std::string asked =
      output == 0
          ? ""
          : fmt::format("you requested {} output tokens, which leave {}, and ", output,
                        room == 0 ? "no room for a prompt" : fmt::format("{} tokens", room));
  return ValueError(
      fmt::format("This model's maximum context length is {} tokens. However, {}your prompt "
                  "contains {} bytes of text, which make at least {} tokens. Please reduce the "
                  "length of the input prompt{}.",
                  max_model_len, asked, prompt_bytes,
                  (prompt_bytes + longest_token_bytes - 1) / longest_token_bytes,
                  output == 0 ? "" : " or the number of requested output tokens"),
      "input_text", std::to_string(prompt_bytes));
}

absl::Status TruncatePrompt(const GenerationRequest& request, int64_t max_model_len,
                            std::vector<int32_t>* prompt) {
  if (!request.truncate_prompt_tokens) return absl::OkStatus();
  int64_t keep = *request.truncate_prompt_tokens;
  if (keep == -1) keep = max_model_len - request.max_tokens.value_or(1);
  if (keep < 1 || keep > max_model_len) {
    return ValueError(
        fmt::format("truncate_prompt_tokens must be -1 or between 1 and max_model_len={}.",
                    max_model_len),
        "truncate_prompt_tokens", std::to_string(*request.truncate_prompt_tokens));
  }
  auto size = static_cast<int64_t>(prompt->size());
  if (size <= keep) return absl::OkStatus();
  if (request.truncate_left) {
    prompt->erase(prompt->begin(), prompt->end() - keep);
  } else {
    prompt->resize(static_cast<size_t>(keep));
  }
  return absl::OkStatus();
}

}  // namespace fulgur::server
