#include "server/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/status_macros.h"
#include "server/api_error.h"

namespace fulgur::server {
namespace {

absl::Status CheckPromptIds(const ServingContext& context, const JobPrompt& prompt) {
  for (int32_t id : prompt.tokens) {
    if (id < 0 || id >= context.vocab_size) {
      return RuleError(fmt::format("Token id {} is out of vocabulary", id), "prompt");
    }
  }
  return absl::OkStatus();
}

absl::Status CompileFormat(const ServingContext& context, Job* job) {
  if (!job->request.format) return absl::OkStatus();
  if (context.formats == nullptr) {
    return RuleError(
        "A format of the answer needs a tokenizer; the server runs without one "
        "(--skip-tokenizer-init).",
        "response_format");
  }
  auto format = context.formats->Compile(*job->request.format);
  if (!format.ok()) {
    return RuleError(fmt::format("The requested format cannot be used: {}.",
                                 std::string(format.status().message())),
                     "response_format");
  }
  job->format = *std::move(format);
  return absl::OkStatus();
}

}  // namespace

absl::Status FinishJob(const ServingContext& context, size_t limit, Job* job) {
  GenerationRequest& request = job->request;
  int64_t max_tokens = 1;
  for (JobPrompt& prompt : job->prompts) {
    RETURN_IF_ERROR(TruncatePrompt(request, context.max_model_len, &prompt.tokens));
    RETURN_IF_ERROR(CheckPromptIds(context, prompt));
    PromptLength length{static_cast<int64_t>(prompt.tokens.size()), limit};
    ASSIGN_OR_RETURN(int64_t room, ResolveMaxTokens(request, length, context.max_model_len,
                                                    context.options->sampling.max_new_tokens));
    max_tokens = std::max(max_tokens, room);
  }
  request.sampling.max_tokens = max_tokens;
  RETURN_IF_ERROR(ResolveSampling(context.vocab_size, context.tokenizer, &request));
  RETURN_IF_ERROR(CompileFormat(context, job));
  if (job->num_choices() <= kMaxChoices) return absl::OkStatus();
  return RuleError(fmt::format("{} prompts with n={} make {} choices; one request may ask for {}.",
                               job->prompts.size(), request.n, job->num_choices(), kMaxChoices),
                   "n");
}

absl::Status CheckModelName(const ServerOptions& options, std::string_view name) {
  const auto& names = options.served_model_names;
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) {
    return absl::OkStatus();
  }
  return ModelNotFoundError(fmt::format("The model `{}` does not exist. Valid aliases: {}.", name,
                                        fmt::join(names, ", ")));
}

}  // namespace fulgur::server
