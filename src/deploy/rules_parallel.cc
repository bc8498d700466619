#include "deploy/rules.h"
#include "fmt/format.h"

namespace fulgur::deploy {
namespace {

bool IsSet(const ServeCommand& command, const std::string& name) {
  const auto value = command.Variable(name);
  return value && !value->empty() && *value != "0" && *value != "false";
}

int LineOfVariable(const ServeCommand& command, const std::string& name) {
  const auto found = command.environment.find(name);
  return found == command.environment.end() ? command.line : found->second.line;
}

bool ExtraIsOn(const ServeCommand& command, const char* name) {
  return command.Json("additional-config").value(name, nlohmann::json()) == true;
}

void CheckSharding(const ServeCommand& command, Reporter& report) {
  const int line = command.LineOf("additional-config");
  const bool experts = command.IsOn("enable-expert-parallel");
  const bool one_rank = TensorParallel(command, 2) == 1;
  if (ExtraIsOn(command, "enable_shared_expert_dp") && (!experts || one_rank)) {
    report.Error("shared-expert-dp", line,
                 "enable_shared_expert_dp needs expert parallelism and a tensor-parallel size "
                 "above 1",
                 one_rank ? "remove it" : "add --enable-expert-parallel, or remove it");
  }
  if (ExtraIsOn(command, "enable_flashcomm1") && (!experts || one_rank)) {
    report.Error("sequence-parallel", line,
                 "enable_flashcomm1 (sequence parallelism) needs expert parallelism and a "
                 "tensor-parallel size above 1",
                 "remove it, or add --enable-expert-parallel");
  }
  if (command.Number("prefill-context-parallel-size").value_or(1) > 1) {
    report.Error("prefill-context-parallel", command.LineOf("prefill-context-parallel-size"),
                 "prefill context parallelism is rejected for V4", "remove the flag");
  }
  if (command.Number("decode-context-parallel-size").value_or(1) > 1) {
    report.Error("decode-context-parallel", command.LineOf("decode-context-parallel-size"),
                 "V4's window and state caches cannot be split by context on Ascend",
                 "remove the flag");
  }
  const nlohmann::json& fine =
      command.Json("additional-config").value("finegrained_tp_config", nlohmann::json::object());
  const auto dp = KnownSize(command, "data-parallel-size");
  for (const auto& [name, size] : fine.items()) {
    if (!size.is_number_integer() || size.get<int64_t>() < 1 || !dp) continue;
    if (*dp % size.get<int64_t>() == 0) continue;
    report.Error("fine-grained-tp", line,
                 fmt::format("{} = {} does not divide the data-parallel size {}", name,
                             size.get<int64_t>(), *dp),
                 "choose a divisor");
  }
  if (!experts && command.Has("tensor-parallel-size")) {
    report.Warn("expert-parallel-off", command.line,
                "without --enable-expert-parallel every rank holds a slice of all 256 experts, "
                "which is slower and is not what the recipes were tuned with",
                "add --enable-expert-parallel");
  }
}

// Two implementations of moving experts at run time; a runner takes the settings of one only.
void CheckExpertPlacement(const ServeCommand& command, Reporter& report) {
  const nlohmann::json placement =
      command.Json("additional-config").value("eplb_config", nlohmann::json());
  const int line = command.LineOf("additional-config");
  const bool gated = IsSet(command, "DYNAMIC_EPLB") || IsSet(command, "EXPERT_MAP_RECORD");
  if (command.IsOn("enable-eplb") && (!placement.is_null() || gated)) {
    report.Error("eplb-mixed", command.LineOf("enable-eplb"),
                 "--enable-eplb belongs to the new model runner, eplb_config and the variables "
                 "DYNAMIC_EPLB and EXPERT_MAP_RECORD to the old one: mixing them is refused",
                 "keep one of the two");
    return;
  }
  if (!placement.is_object()) return;
  const bool known_environment = !command.file.empty();
  if (placement.value("dynamic_eplb", nlohmann::json()) == true && known_environment && !gated) {
    report.Warn("eplb-gate", line,
                "dynamic_eplb has no effect unless DYNAMIC_EPLB is true in the environment",
                "write `export DYNAMIC_EPLB=true` before the command");
  }
  const nlohmann::json policy = placement.value("eplb_policy_type", nlohmann::json(0));
  constexpr int64_t kLastPolicy = 3;
  if (!policy.is_number_integer() || policy.get<int64_t>() < 0 ||
      policy.get<int64_t>() > kLastPolicy) {
    report.Error("eplb-policy", line,
                 fmt::format("eplb_policy_type is {}, not 0 to {}", policy.dump(), kLastPolicy),
                 "write 2, the default");
  }
  const nlohmann::json path = placement.value("expert_map_path", nlohmann::json());
  if (path.is_string() && !path.get<std::string>().ends_with(".json")) {
    report.Error("eplb-map", line,
                 fmt::format("expert_map_path {} does not end in .json", path.dump()),
                 "name the file that expert_map_record_path wrote");
  }
}

void CheckExpertExchange(const ServeCommand& command, Reporter& report) {
  const int line = command.LineOf("additional-config");
  const bool fused =
      IsSet(command, "VLLM_ASCEND_ENABLE_FUSED_MC2") ||
      command.Json("additional-config").value("enable_fused_mc2", nlohmann::json(0)) != 0;
  if (fused && ExtraIsOn(command, "multistream_overlap_shared_expert")) {
    report.Warn("fused-mc2-with-multistream", line,
                "fused MC2 switches multistream_overlap_shared_expert off",
                "keep the one that you measured to be faster");
  }
  if (fused && ExtraIsOn(command, "enable_mc2_hierarchy_comm")) {
    report.Error("fused-mc2-with-hierarchy", line,
                 "enable_mc2_hierarchy_comm and fused MC2 exclude each other",
                 "remove one of them");
  }
  constexpr int64_t kTokensPerRank = 512;
  const auto tokens = command.Number("max-num-batched-tokens");
  const auto ranks = KnownSize(command, "tensor-parallel-size");
  if (ExtraIsOn(command, "enable_prefill_mc2") && tokens && ranks &&
      *tokens > kTokensPerRank * *ranks) {
    report.Warn("prefill-mc2-budget", command.LineOf("max-num-batched-tokens"),
                fmt::format("enable_prefill_mc2 moves at most {} tokens a rank: steps of {} tokens "
                            "over {} ranks are too large for it",
                            kTokensPerRank, *tokens, *ranks),
                fmt::format("write --max-num-batched-tokens {}", kTokensPerRank * *ranks));
  }
}

void CheckDevices(const ServeCommand& command, Reporter& report) {
  if (!command.num_devices) return;
  const auto tp = KnownSize(command, "tensor-parallel-size");
  const bool one_rank = command.Has("data-parallel-rank");
  const auto local = command.Has("data-parallel-size-local")
                         ? KnownSize(command, "data-parallel-size-local")
                         : KnownSize(command, "data-parallel-size");
  if (!tp || (!one_rank && !local)) return;
  const int64_t needed = *tp * (one_rank ? 1 : *local);
  if (needed <= *command.num_devices) return;
  report.Error("too-few-devices", command.LineOf("tensor-parallel-size"),
               fmt::format("{} devices are needed (tensor x data parallel) and {} are visible",
                           needed, *command.num_devices),
               "pass more --device /dev/davinciN, or lower the sizes");
}

void CheckFrontEnd(const ServeCommand& command, Reporter& report) {
  if (command.IsOn("data-parallel-hybrid-lb") && command.IsOn("data-parallel-external-lb")) {
    report.Error("two-balancers", command.LineOf("data-parallel-hybrid-lb"),
                 "hybrid and external load balancing exclude each other", "keep one");
  }
  if (command.IsOn("headless") && command.Number("api-server-count").value_or(0) > 0) {
    report.Error("headless-with-api", command.LineOf("headless"),
                 "--headless starts no API server, --api-server-count asks for some",
                 "remove one of them");
  }
}

void CheckEnvironment(const ServeCommand& command, Reporter& report) {
  static const std::pair<const char*, const char*> kDeprecated[] = {
      {"VLLM_ASCEND_ENABLE_FLASHCOMM1", "\"enable_flashcomm1\": true"},
      {"VLLM_ASCEND_ENABLE_FUSED_MC2", "\"enable_fused_mc2\": 1"},
      {"VLLM_ASCEND_BALANCE_SCHEDULING", "\"scheduler_config\""}};
  for (const auto& [name, key] : kDeprecated) {
    if (!IsSet(command, name)) continue;
    report.Warn("deprecated-variable", LineOfVariable(command, name),
                fmt::format("{} is deprecated; where the configuration says something else, the "
                            "configuration wins",
                            name),
                fmt::format("write {} in --additional-config", key));
  }
  if (IsSet(command, "ASCEND_LAUNCH_BLOCKING") && !command.IsOn("enforce-eager")) {
    report.Error("blocking-launch-with-graphs", LineOfVariable(command, "ASCEND_LAUNCH_BLOCKING"),
                 "ASCEND_LAUNCH_BLOCKING does not work with graphs",
                 "remove it, or add --enforce-eager while debugging");
  }
  if (const auto timeout = command.Variable("VLLM_RPC_TIMEOUT")) {
    constexpr int64_t kShortestMs = 10'000;  // vLLM's own default
    const auto ms = command.count(*timeout);
    if (ms && *ms < kShortestMs) {
      report.Warn("rpc-timeout-unit", LineOfVariable(command, "VLLM_RPC_TIMEOUT"),
                  fmt::format("VLLM_RPC_TIMEOUT is in milliseconds: {} is {:.1f} s", *ms,
                              static_cast<double>(*ms) / 1000),
                  "write 3600000 for an hour");
    }
  }
  for (const char* name : {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"}) {
    if (!IsSet(command, name)) continue;
    report.Warn("http-proxy", LineOfVariable(command, name),
                fmt::format("{} is set: requests between the nodes may go to that proxy", name),
                fmt::format("write `unset {}` before the command", name));
  }
}

}  // namespace

void CheckParallel(const ServeCommand& command, Findings& findings) {
  Reporter report(command, findings);
  CheckSharding(command, report);
  CheckExpertPlacement(command, report);
  CheckExpertExchange(command, report);
  CheckDevices(command, report);
  CheckFrontEnd(command, report);
  CheckEnvironment(command, report);
}

}  // namespace fulgur::deploy
