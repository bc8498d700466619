#include "cli/dry_run.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "cli/flag_help.h"
#include "cli/model_memory.h"
#include "cli/serve_drafter.h"
#include "cli/serve_files.h"
#include "cli/words.h"
#include "engine/model_engine.h"
#include "fmt/format.h"
#include "model/checkpoint.h"
#include "model/weight_loader.h"

namespace fulgur::cli {
namespace {

constexpr size_t kNameWidth = 34;
constexpr size_t kValueWidth = 26;

std::string Row(std::string_view name, const std::string& value, FlagEffect effect,
                std::string_view reason) {
  std::string row = fmt::format("  {:<{}} {:<{}} {}", name, kNameWidth, value, kValueWidth,
                                EffectName(effect, Language::kEnglish));
  if (effect != FlagEffect::kUsed) row += fmt::format(": {}", reason);
  return row + "\n";
}

bool IsSecret(std::string_view name) {
  return name == "api-key" || name == "hf-token" || name == "VLLM_API_KEY";
}

// A refused flag whose value asks for nothing is as good as used.
FlagEffect EffectOf(const FlagSpec& flag, const FlagValues& values) {
  const bool idle = flag.effect == FlagEffect::kRefused && !values.AsksFor(flag);
  return idle ? FlagEffect::kUsed : flag.effect;
}

std::string DescribeFlags(const FlagValues& values) {
  std::string text = "flags\n";
  for (const auto& [name, value] : values.given()) {
    const FlagSpec& flag = values.table().Get(name);
    const std::string shown = IsSecret(name) ? "(hidden)" : value.text;
    const std::string source = value.from_file ? " (file)" : "";
    text += Row(fmt::format("--{}", name), shown + source, EffectOf(flag, values), flag.reason.en);
  }
  return text;
}

std::string DescribeEnvironment(const Environment& environment) {
  std::string text;
  for (const EnvironmentVariable& variable : ServeEnvironment()) {
    const auto found = environment.find(std::string(variable.name));
    if (found == environment.end()) continue;
    const std::string shown = IsSecret(variable.name) ? "(hidden)" : found->second;
    text += Row(variable.name, shown, variable.effect, variable.help.en);
  }
  return text.empty() ? text : "environment\n" + text;
}

// Of the drafter's weights; 0 if there is none or they cannot be read.
int64_t DescribeDrafter(const ServeOptions& options, std::string& text) {
  if (!options.speculation.enabled) return 0;
  const auto source = model::Checkpoint::Open(DrafterFolder(options));
  const auto bytes = source.ok() ? model::DrafterBytes(*source, options.engine.precision)
                                 : absl::StatusOr<int64_t>(source.status());
  if (!bytes.ok()) {
    text += fmt::format("  drafter: {}\n", Message(bytes.status()));
    return 0;
  }
  text += fmt::format("  drafter: {} in memory\n", FormatBytes(*bytes));
  return *bytes;
}

// Of the weights, from the headers of the files alone; 0 if they cannot be read.
int64_t DescribeWeights(const ServeOptions& options, std::string& text) {
  if (options.dummy_weights) {
    text += "  weights: random, as --load-format dummy says\n";
    return 0;
  }
  const auto checkpoint = model::Checkpoint::Open(options.model);
  if (!checkpoint.ok()) {
    text += fmt::format("  weights: {}\n", Message(checkpoint.status()));
    return 0;
  }
  const auto summary = model::Summarize(*checkpoint, options.engine.precision);
  if (!summary.ok()) {
    text += fmt::format("  weights: {}\n", Message(summary.status()));
    return 0;
  }
  text += fmt::format("  weights: {} tensors, {} on disk, {} in memory\n", summary->main.tensors,
                      FormatBytes(summary->main.bytes), FormatBytes(summary->weight_bytes));
  if (summary->draft_blocks > 0) {
    const bool used = options.speculation.enabled && options.speculation.model.empty();
    text += fmt::format("  draft model: {} blocks, {} tensors, {}; {}loaded\n",
                        summary->draft_blocks, summary->drafts.tensors,
                        FormatBytes(summary->drafts.bytes), used ? "" : "not ");
  }
  return summary->weight_bytes + DescribeDrafter(options, text);
}

std::string DescribeSequences(const ServeOptions& options, const model::ModelConfig& config,
                              int64_t available_bytes) {
  std::string text = fmt::format("  sequence memory: {}\n",
                                 DescribeSequenceMemory(SequenceLayout(options.engine, config)));
  const auto plan = engine::PlanModelMemory(options.engine, config, available_bytes);
  return text + fmt::format("  {}\n", plan.ok() ? engine::DescribePlan(*plan)
                                                : "does not fit: " + Message(plan.status()));
}

std::string DescribeMemory(ServeOptions options, const base::Machine& machine) {
  std::string text = fmt::format("memory plan\n  machine: {}\n", base::DescribeMachine(machine));
  if (!options.script.empty()) return text + "  a script is replayed; no model is loaded\n";
  std::error_code error;
  if (!std::filesystem::exists(options.model, error)) {
    return text + fmt::format("  model: {} is not on this machine, so its memory is not known\n",
                              options.model);
  }
  auto config = CompleteFromCheckpoint(options);
  if (config.ok()) {
    const auto with_drafter = AddDrafter(options, *std::move(config));
    config = with_drafter.ok() ? absl::StatusOr<model::ModelConfig>(with_drafter->config)
                               : with_drafter.status();
  }
  if (!config.ok()) return text + fmt::format("  model: {}\n", Message(config.status()));
  if (options.speculation.enabled) {
    text += fmt::format("  speculation: {}\n",
                        DescribeSpeculation(options.engine.speculation, config->drafter));
    for (const std::string& note : options.speculation.notes) {
      text += fmt::format("  note: {}\n", note);
    }
  }
  const int64_t weights = DescribeWeights(options, text);
  const int64_t left = std::max<int64_t>(0, machine.available_bytes - weights);
  return text + DescribeSequences(options, *config, left);
}

std::string DescribeOutcome(const FlagValues& values) {
  const auto refused = RefusedFlags(values);
  if (refused.empty()) return "Every flag is understood.\n";
  return fmt::format("Every flag is understood. Serving would stop at {} of them:\n  {}\n",
                     refused.size(), fmt::join(refused, "\n  "));
}

}  // namespace

std::string DescribeCommand(const ParsedCommand& command, const Environment& environment,
                            ServeOptions options, const base::Machine& machine) {
  std::string text = fmt::format("model\n  {}\n", options.model);
  text += DescribeFlags(command.values);
  text += DescribeEnvironment(environment);
  for (const std::string& warning : command.warnings) text += fmt::format("note: {}\n", warning);
  text += DescribeMemory(std::move(options), machine);
  return text + "\n" + DescribeOutcome(command.values);
}

}  // namespace fulgur::cli
