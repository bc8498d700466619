#include "cli/plan_options.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/status_macros.h"
#include "base/team.h"
#include "cli/serve_files.h"
#include "cli/words.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "kernels/op_table.h"
#include "model/checkpoint.h"
#include "plan/measure.h"

namespace fulgur::cli {
namespace {

namespace fs = std::filesystem;

constexpr FlagSpec kFlags[] = {
    {.name = "machine",
     .default_value = "this",
     .help = {"this: measure this machine for about two seconds; otherwise a file of figures: "
              "cores, memory_gb, read_gbps and what else docs/en/performance.md names",
              "this：测量本机约两秒；否则为数据文件：cores、memory_gb、read_gbps 等，见 "
              "docs/zh/performance.md"}},
    {.name = "users",
     .default_value = "1,4,16",
     .help = {"numbers of requests that run at once", "同时运行的请求数"}},
    {.name = "contexts",
     .help = {"tokens of context (default: 4K,128K,1M, as far as the model goes)",
              "上下文 token 数（默认：4K,128K,1M，以模型上限为止）"}},
    {.name = "max-num-batched-tokens",
     .type = FlagType::kCount,
     .default_value = "2048",
     .help = {"most prompt tokens computed in one step", "一步计算的最多提示 token 数"},
     .range = {.min = 1, .max = 1 << 24}},
    {.name = "threads",
     .type = FlagType::kInt,
     .help = {"worker threads on this machine (default: all usable cores)",
              "本机的工作线程数（默认：全部可用核心）"},
     .range = {.min = 1, .max = 4096}},
    {.name = "stages",
     .type = FlagType::kBool,
     .help = {"also show where the time of a decoded token goes",
              "同时显示解码一个 token 的时间分布"}},
};

constexpr int64_t kUsualContexts[] = {4 << 10, 128 << 10, 1 << 20};
constexpr int64_t kMostUsers = 65536;

absl::StatusOr<std::vector<int64_t>> ParseCounts(const FlagValues& values, std::string_view flag,
                                                 int64_t most) {
  std::vector<int64_t> counts;
  const std::string text = values.String(flag);
  for (const std::string_view word : SplitWords(text, ',')) {
    const auto count = ParseCount(word);
    if (!count || *count < 1 || *count > most) {
      return absl::InvalidArgumentError(
          fmt::format("--{} '{}' is not accepted; write numbers from 1 to {}, such as 4K,128K",
                      flag, text, most));
    }
    counts.push_back(*count);
  }
  if (counts.empty()) return absl::InvalidArgumentError(fmt::format("--{} is empty", flag));
  return counts;
}

bool HasTensors(const std::string& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".safetensors") return true;
  }
  return fs::exists(fs::path(folder) / "model.safetensors.index.json", error);
}

absl::StatusOr<plan::ModelShape> ShapeOfFolder(const std::string& folder) {
  RETURN_IF_ERROR(CheckModelFolder(folder));
  if (!HasTensors(folder)) {
    ASSIGN_OR_RETURN(const model::ModelConfig config, model::LoadConfig(folder));
    return plan::ShapeOfConfig(config);
  }
  ASSIGN_OR_RETURN(const model::Checkpoint checkpoint, model::Checkpoint::Open(folder));
  return plan::ShapeOfCheckpoint(checkpoint);
}

}  // namespace

const FlagTable& PlanFlags() {
  static const FlagTable table({{"plan", {"Flags", "参数"}, kFlags}});
  return table;
}

absl::StatusOr<PlanOptions> BuildPlanOptions(const FlagValues& values,
                                             const std::vector<std::string>& positionals,
                                             const base::Machine& machine) {
  if (positionals.empty()) return absl::InvalidArgumentError("give the folder of a checkpoint");
  if (positionals.size() > 1) {
    return absl::InvalidArgumentError(fmt::format("unexpected argument '{}'", positionals[1]));
  }
  PlanOptions options;
  options.model = positionals[0];
  options.machine = values.String("machine");
  options.threads =
      values.Given("threads") ? static_cast<int>(values.Int("threads")) : machine.usable_cores;
  if (values.Given("threads") && options.machine != "this") {
    return absl::InvalidArgumentError("--threads is for --machine this; a file names its cores");
  }
  ASSIGN_OR_RETURN(options.users, ParseCounts(values, "users", kMostUsers));
  if (values.Given("contexts")) {
    ASSIGN_OR_RETURN(options.contexts,
                     ParseCounts(values, "contexts", std::numeric_limits<int32_t>::max()));
  }
  options.chunk = values.Int("max-num-batched-tokens");
  options.stages = values.Bool("stages");
  return options;
}

absl::StatusOr<plan::ModelShape> ReadModelShape(PlanOptions& options) {
  const fs::path path(options.model);
  if (path.filename() == "config.json") options.model = path.parent_path().string();
  ASSIGN_OR_RETURN(plan::ModelShape shape, ShapeOfFolder(options.model));
  const int64_t longest = shape.config.max_position;
  for (const int64_t context : options.contexts) {
    if (context <= longest) continue;
    return absl::InvalidArgumentError(fmt::format(
        "--contexts {} is above what the model was made for, {} tokens", context, longest));
  }
  if (options.contexts.empty()) {
    for (const int64_t context : kUsualContexts) {
      if (context <= longest) options.contexts.push_back(context);
    }
  }
  if (options.contexts.empty()) options.contexts = {longest};
  return shape;
}

absl::StatusOr<plan::MachineFigures> ReadMachine(const PlanOptions& options,
                                                 const base::Machine& machine) {
  if (options.machine != "this") return plan::ReadMachineFile(options.machine);
  base::WorkerTeam team(options.threads);
  return plan::MeasureMachine(machine, kernels::SelectOps(machine, kernels::OpChoice::kAuto), team);
}

engine::ModelEngineOptions EngineOptionsOf(const PlanOptions& options, int cores) {
  const int64_t most_users = *std::ranges::max_element(options.users);
  engine::ModelEngineOptions engine;
  engine.num_threads = cores;
  engine.limits.max_num_seqs = most_users;
  engine.limits.max_num_batched_tokens = std::max(options.chunk, most_users);
  engine.limits.max_model_len = *std::ranges::max_element(options.contexts);
  engine.memory.max_num_seqs = most_users;
  engine.memory.max_model_len = engine.limits.max_model_len;
  return engine;
}

}  // namespace fulgur::cli
