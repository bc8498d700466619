#include "server/completion_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "server/api_error.h"
#include "text/chat_encoding.h"
#include "text/json.h"

namespace fulgur::server {
namespace {

constexpr int64_t kDefaultMaxTokens = 16;
constexpr size_t kMaxPrompts = kMaxChoices;

// The `prompt` field: texts or token ids, one or many.
struct PromptInput {
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> ids;
};

absl::Status NoPrompt() {
  return RuleError("Either prompt or prompt_embeds must be provided and non-empty.", "prompt");
}

absl::Status BadPrompt() {
  return MalformedError(
      "prompt: Input should be a string, a list of strings, a list of token ids or a list of lists "
      "of token ids.",
      "prompt");
}

char FirstItem(std::string_view list) {
  size_t at = list.find_first_not_of(" \t\r\n", 1);
  return at == std::string_view::npos ? ']' : list[at];
}

absl::Status ReadIdLists(std::string_view raw, PromptInput* input) {
  ASSIGN_OR_RETURN(auto lists, SplitList(raw, "prompt"));
  for (std::string_view list : lists) {
    if (list.front() != '[') return BadPrompt();
    RETURN_IF_ERROR(ParseIdList(list, "prompt", &input->ids.emplace_back()));
    if (input->ids.back().empty()) return NoPrompt();
  }
  return absl::OkStatus();
}

absl::StatusOr<PromptInput> ReadPrompt(const RequestFields& fields) {
  PromptInput input;
  auto raw = fields.Raw("prompt");
  if (!raw) return NoPrompt();
  if (raw->front() == '"') {
    RETURN_IF_ERROR(fields.Read("prompt", &input.texts.emplace_back()));
  } else if (raw->front() != '[') {
    return BadPrompt();
  } else if (FirstItem(*raw) == '"') {
    RETURN_IF_ERROR(fields.Read("prompt", &input.texts));
  } else if (FirstItem(*raw) == '[') {
    RETURN_IF_ERROR(ReadIdLists(*raw, &input));
  } else if (FirstItem(*raw) != ']') {
    RETURN_IF_ERROR(ParseIdList(*raw, "prompt", &input.ids.emplace_back()));
  }
  if (input.texts.empty() && input.ids.empty()) return NoPrompt();
  for (const std::string& text : input.texts) {
    if (text.empty()) return NoPrompt();
  }
  if (input.texts.size() + input.ids.size() > kMaxPrompts) {
    return RuleError(fmt::format("prompt may hold at most {} prompts.", kMaxPrompts), "prompt");
  }
  return input;
}

absl::Status ReadLogprobs(const RequestFields& fields, GenerationRequest* request) {
  RETURN_IF_ERROR(fields.Read("logprobs", &request->logprobs));
  if (request->logprobs && *request->logprobs < 0) {
    return ValueError("`logprobs` must be a non-negative value.", "logprobs",
                      std::to_string(*request->logprobs));
  }
  return absl::OkStatus();
}

// Echoed prompts with logprobs need the prompt's logprobs; an echo without output still needs one
// token of room.
void ApplyEcho(Job* job) {
  GenerationRequest& request = job->request;
  if (!request.echo) return;
  if (request.logprobs && !request.prompt_logprobs) request.prompt_logprobs = request.logprobs;
  if (request.max_tokens == 0) {
    job->prompt_only = true;
    request.max_tokens = 1;
  }
}

absl::Status CheckSuffix(const GenerationRequest& request, const PromptInput& input) {
  if (input.texts.empty()) return RuleError("suffix needs prompts given as text.", "suffix");
  if (request.echo) return RuleError("suffix cannot be used with echo.", "suffix");
  if (request.truncate_prompt_tokens) {
    return RuleError("suffix cannot be used with truncate_prompt_tokens.", "suffix");
  }
  return absl::OkStatus();
}

absl::StatusOr<JobPrompt> EncodeText(const ServingContext& context,
                                     const GenerationRequest& request,
                                     const std::optional<std::string>& suffix, std::string text,
                                     size_t* limit) {
  size_t bytes = text.size() + (suffix ? suffix->size() : 0);
  ASSIGN_OR_RETURN(*limit,
                   PromptTokenLimit(request, bytes, context.tokenizer->longest_token_bytes(),
                                    context.max_model_len));
  JobPrompt prompt;
  if (suffix) {
    text::ChatPrompt rendered = text::RenderFillInTheMiddle(text, *suffix);
    text::PromptEncodeOptions options;
    options.client_special_tokens = context.options->chat.special_tokens_in_text;
    options.max_tokens = *limit;
    prompt.tokens = text::EncodePrompt(*context.tokenizer, rendered, options);
    prompt.text = std::move(rendered.text);
    return prompt;
  }
  text::EncodeOptions options;
  options.max_tokens = *limit;
  prompt.tokens = context.tokenizer->Encode(text, options);
  prompt.text = std::move(text);
  return prompt;
}

absl::StatusOr<size_t> AddPrompts(const ServingContext& context, const RequestFields& fields,
                                  PromptInput input, Job* job) {
  std::optional<std::string> suffix;
  RETURN_IF_ERROR(fields.Read("suffix", &suffix));
  if (suffix && suffix->empty()) suffix.reset();
  if (suffix) RETURN_IF_ERROR(CheckSuffix(job->request, input));
  if (!input.texts.empty() && context.tokenizer == nullptr) {
    return RuleError(
        "This server runs without a tokenizer (--skip-tokenizer-init): the prompt "
        "must be token ids.",
        "prompt");
  }
  size_t limit = std::numeric_limits<size_t>::max();
  for (std::string& text : input.texts) {
    ASSIGN_OR_RETURN(JobPrompt prompt,
                     EncodeText(context, job->request, suffix, std::move(text), &limit));
    job->prompts.push_back(std::move(prompt));
  }
  for (auto& ids : input.ids) {
    // Lists of ids have no text to measure; this checks max_tokens alone.
    RETURN_IF_ERROR(PromptTokenLimit(job->request, 0, 1, context.max_model_len).status());
    std::string text;
    if (job->request.echo && context.tokenizer != nullptr) text = context.tokenizer->Decode(ids);
    job->prompts.push_back({std::move(ids), std::move(text)});
  }
  return limit;
}

}  // namespace

absl::StatusOr<Job> MakeCompletionJob(const ServingContext& context, const RequestFields& fields) {
  Job job;
  GenerationRequest& request = job.request;
  RETURN_IF_ERROR(ReadGenerationFields(fields, *context.options, &request));
  if (!request.max_tokens) request.max_tokens = kDefaultMaxTokens;
  RETURN_IF_ERROR(ReadLogprobs(fields, &request));
  ASSIGN_OR_RETURN(PromptInput input, ReadPrompt(fields));
  RETURN_IF_ERROR(CheckGenerationRules(fields, *context.options, request));
  RETURN_IF_ERROR(CheckModelName(*context.options, request.model));
  ApplyEcho(&job);
  if (context.tokenizer == nullptr && !request.stop.empty()) {
    return RuleError("Stop strings need a tokenizer; use stop_token_ids.", "stop");
  }
  if (!input.texts.empty()) job.script_key = input.texts.front();
  ASSIGN_OR_RETURN(size_t limit, AddPrompts(context, fields, std::move(input), &job));
  RETURN_IF_ERROR(FinishJob(context, limit, &job));
  return job;
}

}  // namespace fulgur::server
