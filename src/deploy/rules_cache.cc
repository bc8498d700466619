#include <algorithm>
#include <cstdlib>

#include "deploy/rules.h"
#include "fmt/format.h"

namespace fulgur::deploy {
namespace {

constexpr int64_t kUnitsPerBlock = 128;  // S = 128 * block size: the layers' common cache unit
constexpr char kRetentionVariable[] = "VLLM_PREFIX_CACHE_RETENTION_INTERVAL";

void CheckRetention(int64_t interval, int64_t block, int line, Reporter& report) {
  const int64_t unit = kUnitsPerBlock * block;
  if (interval >= 0 && interval % unit == 0) return;
  const int64_t below = std::max<int64_t>(interval, 0) / unit * unit;
  report.Error(
      "retention-interval", line,
      fmt::format("a retention interval of {} is no multiple of {} (128 x block size {})", interval,
                  unit, block),
      fmt::format("write {}{}", below > 0 ? fmt::format("{} or ", below) : "", below + unit));
}

void CheckBlocks(const ServeCommand& command, Reporter& report) {
  const auto block = command.Number("block-size");
  if (block && *block != 32 && *block != 64 && *block != 128) {
    report.Error("block-size", command.LineOf("block-size"),
                 fmt::format("V4 on Ascend has blocks of 32, 64 or 128 tokens; {} silently becomes "
                             "32",
                             *block),
                 "write 32 (prefix hits from 4K tokens) or 128 (from 16K)");
    return;
  }
  const int64_t size = block.value_or(128);
  if (const auto interval = command.Number("prefix-cache-retention-interval")) {
    CheckRetention(*interval, size, command.LineOf("prefix-cache-retention-interval"), report);
  }
  if (const auto text = command.Variable(kRetentionVariable)) {
    const auto interval = command.count(*text);
    const int line = command.environment.at(kRetentionVariable).line;
    if (interval) CheckRetention(*interval, size, line, report);
    if (command.IsOff("enable-prefix-caching")) {
      report.Warn("retention-without-cache", line,
                  "a retention interval without prefix caching has no effect",
                  "remove it, or remove --no-enable-prefix-caching");
    }
  }
  const Speculation speculation = SpeculationOf(command);
  if (speculation.depth && *speculation.depth > kUnitsPerBlock * size &&
      !command.IsOff("enable-prefix-caching")) {
    report.Error("draft-longer-than-unit", command.LineOf("speculative-config"),
                 fmt::format("{} draft tokens do not fit in a cache unit of {}", *speculation.depth,
                             kUnitsPerBlock * size),
                 "write fewer draft tokens");
  }
}

void CheckHybrid(const ServeCommand& command, Reporter& report) {
  constexpr char kFlag[] = "disable-hybrid-kv-cache-manager";
  if (command.IsOn(kFlag)) {
    report.Error("hybrid-cache-off", command.LineOf(kFlag),
                 "V4 has several kinds of cache; without the hybrid manager the start fails or "
                 "memory runs out",
                 "write --no-disable-hybrid-kv-cache-manager");
  } else if (!command.IsOff(kFlag) && command.Has("kv-transfer-config")) {
    report.Error("hybrid-cache-off-by-connector", command.LineOf("kv-transfer-config"),
                 "a KV connector switches the hybrid cache manager off, which V4 needs",
                 "add --no-disable-hybrid-kv-cache-manager");
  }
}

void CheckBudget(const ServeCommand& command, Reporter& report) {
  const auto tokens = command.Number("max-num-batched-tokens");
  const auto sequences = command.Number("max-num-seqs");
  const auto length = command.Number("max-model-len");
  const int line = command.LineOf("max-num-batched-tokens");
  if (tokens && sequences && *tokens < *sequences) {
    report.Error(
        "budget-below-sequences", line,
        fmt::format("--max-num-batched-tokens {} is below --max-num-seqs {}", *tokens, *sequences),
        "raise the one or lower the other");
    return;
  }
  if (command.IsOff("enable-chunked-prefill") && tokens && length && *tokens < *length) {
    report.Error("budget-below-length", line,
                 fmt::format("without chunked prefill a prompt of {} tokens does not fit in a step "
                             "of {}",
                             *length, *tokens),
                 "remove --no-enable-chunked-prefill");
  }
  // Window and state caches of a chunk are set aside for every request that is admitted, in full.
  constexpr int64_t kLargeChunk = 32768;
  constexpr double kGibPerToken = 0.53 / 1024;
  if (RoleOf(command) != kConsumer && tokens && *tokens > kLargeChunk) {
    report.Warn(
        "admission-reserve", line,
        fmt::format("each admitted request sets aside cache for a chunk of {} tokens, about "
                    "{:.0f} GiB, however short it is",
                    *tokens, static_cast<double>(*tokens) * kGibPerToken),
        "write 8192 to 10240, as the recipes do");
  }
  const int64_t rows = 1 + SpeculationOf(command).depth.value_or(0);
  if (RoleOf(command) == kConsumer && tokens && sequences && *tokens < *sequences * rows) {
    report.Warn("decode-budget", line,
                fmt::format("{} sequences with {} draft tokens need {} tokens a step, not {}: "
                            "fewer of them run than asked for",
                            *sequences, rows - 1, *sequences * rows, *tokens),
                fmt::format("write --max-num-batched-tokens {}", *sequences * rows));
  }
}

void CheckMemory(const ServeCommand& command, Reporter& report) {
  const auto text = command.Text("gpu-memory-utilization");
  if (!text) return;
  const double share = std::strtod(text->c_str(), nullptr);
  if (share > 0 && share <= 1) return;
  report.Error("memory-share", command.LineOf("gpu-memory-utilization"),
               fmt::format("--gpu-memory-utilization {} is not above 0 and at most 1", *text),
               "write 0.9");
}

// Graphs hold whole rows of every rank where activations are split over the ranks.
void CheckGraphSizes(const ServeCommand& command, Reporter& report) {
  const nlohmann::json& extra = command.Json("additional-config");
  bool splits = false;
  for (const char* name : {"enable_flashcomm1", "enable_shared_expert_dp", "enable_dsa_cp"}) {
    splits = splits || extra.value(name, nlohmann::json()) == true;
  }
  const nlohmann::json& compilation = command.Json("compilation-config");
  const auto ranks = KnownSize(command, "tensor-parallel-size");
  if (!splits || !ranks || !compilation.contains("cudagraph_capture_sizes")) return;
  std::string wrong;
  for (const auto& size : compilation["cudagraph_capture_sizes"]) {
    if (!size.is_number_integer() || size.get<int64_t>() % *ranks == 0) continue;
    wrong += (wrong.empty() ? "" : ", ") + size.dump();
  }
  if (wrong.empty()) return;
  report.Error(
      "graph-sizes", command.LineOf("compilation-config"),
      fmt::format("graph sizes {} are no multiples of the tensor-parallel size {}", wrong, *ranks),
      "choose multiples of it");
}

}  // namespace

void CheckCache(const ServeCommand& command, Findings& findings) {
  Reporter report(command, findings);
  CheckBlocks(command, report);
  CheckHybrid(command, report);
  CheckBudget(command, report);
  CheckMemory(command, report);
  CheckGraphSizes(command, report);
}

}  // namespace fulgur::deploy
