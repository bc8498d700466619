#include "deploy/plan.h"

#include <algorithm>
#include <filesystem>

#include "base/status_macros.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace fulgur::deploy {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFirstTransferPort = 30000;
constexpr int kTransferPortStep = 100;  // between instances; more than the ranks of any
constexpr int64_t kLongestContext = 1'048'576;

// One side of a deployment, before addresses.
struct Shape {
  std::string role = "mixed";
  int num_nodes = 1;
  int num_instances = 1;  // of num_nodes / num_instances nodes each
  int dp = 1;
  int tp = 1;
  int64_t max_model_len = 131072;
  int64_t batched_tokens = 8192;  // decode: computed from sequences and drafts
  int64_t sequences = 32;
  int64_t block = 128;
  bool prefix_cache = false;
  bool one_rank_per_command = false;
  bool int8_indexer = true;
  int hccl_buffer_mb = 1024;
};

struct Recipe {
  std::string_view name;
  std::string_view speculation;  // default
  Shape prefill;                 // or the mixed nodes
  Shape decode;                  // num_nodes 0: none
};

Shape NoShape() {
  Shape shape;
  shape.num_nodes = 0;
  shape.num_instances = 0;
  return shape;
}

Shape Mixed(int dp, int tp) {
  Shape shape;
  shape.dp = dp;
  shape.tp = tp;
  return shape;
}

Shape Side(std::string role, int num_instances, int nodes_each, int dp, int tp) {
  Shape shape;
  shape.role = std::move(role);
  shape.num_instances = num_instances;
  shape.num_nodes = num_instances * nodes_each;
  shape.dp = dp;
  shape.tp = tp;
  shape.one_rank_per_command = true;
  return shape;
}

Recipe SingleNode(std::string_view name, std::string_view speculation, Shape shape) {
  return {name, speculation, std::move(shape), NoShape()};
}

Recipe LongContext(std::string_view name) {
  Shape shape = Mixed(4, 4);
  shape.max_model_len = kLongestContext;
  shape.batched_tokens = 10240;
  shape.sequences = 64;
  shape.block = 32;
  shape.prefix_cache = true;
  return SingleNode(name, "dspark", shape);
}

Recipe PairOnA3() {
  Shape prefill = Side("prefill", 1, 1, 4, 4);
  prefill.max_model_len = kLongestContext;
  prefill.sequences = 16;
  prefill.block = 32;
  prefill.hccl_buffer_mb = 1800;
  prefill.prefix_cache = true;
  Shape decode = Side("decode", 1, 1, 16, 1);
  decode.max_model_len = kLongestContext;
  decode.sequences = 60;
  decode.block = 32;
  decode.hccl_buffer_mb = 2400;
  return {"pd-a3-1p1d", "dspark", prefill, decode};
}

Recipe FourOnA2() {
  Shape prefill = Side("prefill", 4, 1, 8, 1);
  prefill.max_model_len = 135000;
  prefill.batched_tokens = 4096;
  prefill.sequences = 16;
  prefill.prefix_cache = true;
  Shape decode = Side("decode", 1, 4, 32, 1);
  decode.max_model_len = 135000;
  decode.sequences = 30;
  return {"pd-a2-4p1d", "mtp", prefill, decode};
}

Recipe MillionOnA2() {
  Shape prefill = Side("prefill", 1, 4, 4, 8);
  prefill.max_model_len = kLongestContext;
  prefill.sequences = 16;
  prefill.prefix_cache = true;
  Shape decode = Side("decode", 1, 4, 4, 8);
  decode.max_model_len = kLongestContext;
  decode.sequences = 30;
  return {"pd-1m", "mtp", prefill, decode};
}

// The deployment that was measured against its baseline, kept as it was measured.
Shape MeasuredNode() {
  Shape shape = Mixed(4, 4);
  shape.int8_indexer = false;
  return shape;
}

Recipe RecipeOf(std::string_view name, Target target) {
  const bool a3 = target == Target::kA3;
  const Shape whole_node = a3 ? Mixed(4, 4) : Mixed(1, 8);
  if (name == "single-tp4dp4") return SingleNode(name, "none", MeasuredNode());
  if (name == "single-tp8") return SingleNode(name, "none", Mixed(1, 8));
  if (name == "dspark") return SingleNode(name, "dspark", a3 ? MeasuredNode() : whole_node);
  if (name == "mtp") return SingleNode(name, "mtp", whole_node);
  if (name == "1m") return LongContext(name);
  if (name == "pd-a3-1p1d") return PairOnA3();
  if (name == "pd-a2-4p1d") return FourOnA2();
  return MillionOnA2();
}

std::string DefaultImage(Target target) {
  return std::string("quay.io/ascend/vllm-ascend:DeepSeekV4-flash-0731") +
         (target == Target::kA3 ? "-a3" : "");
}

absl::Status Wrong(const std::string& sentence) { return absl::InvalidArgumentError(sentence); }

absl::StatusOr<Target> TargetOf(const Parameters& p) {
  if (p.target == "a3") return Target::kA3;
  if (p.target == "a2") return Target::kA2;
  return Wrong(fmt::format("--target '{}' is not accepted; write a3 or a2", p.target));
}

absl::Status CheckRecipe(const Parameters& p) {
  std::string names;
  for (const RecipeInfo& info : Recipes()) {
    names += (names.empty() ? "" : ", ") + std::string(info.name);
    if (info.name != p.recipe) continue;
    if (info.targets.find(p.target) != std::string_view::npos) return absl::OkStatus();
    return Wrong(fmt::format("recipe {} is for {}, not for {}", p.recipe, info.targets, p.target));
  }
  return Wrong(fmt::format("unknown recipe '{}'; there are {}", p.recipe, names));
}

absl::Status FillSpeculation(const Recipe& recipe, Parameters& p) {
  if (p.speculation.empty()) p.speculation = std::string(recipe.speculation);
  if (p.speculation != "none" && p.speculation != "mtp" && p.speculation != "dspark") {
    return Wrong(fmt::format("--speculation '{}' is not accepted; write none, mtp or dspark",
                             p.speculation));
  }
  const bool dspark = p.speculation == "dspark";
  if (!p.depth) p.depth = dspark ? (recipe.decode.num_nodes > 0 ? 5 : 7) : 1;
  if (p.speculation == "none") p.depth = 0;
  if (dspark && (*p.depth < 5 || *p.depth > 7)) {
    return Wrong(fmt::format("--draft-tokens {} does not fit DSpark; write 5 to 7", *p.depth));
  }
  if (p.speculation == "mtp" && (*p.depth < 1 || *p.depth > 3)) {
    return Wrong(fmt::format("--draft-tokens {} does not fit MTP; write 1 to 3", *p.depth));
  }
  const std::string model = std::filesystem::path(p.model_path).filename();
  if (p.speculation == "mtp" && model.find("0731") != std::string::npos) {
    return Wrong(
        fmt::format("{} has DSpark stages and no MTP head; use --speculation dspark", model));
  }
  if (dspark && model.ends_with("-mtp")) {
    return Wrong(
        fmt::format("{} has an MTP head and no DSpark stages; use --speculation mtp", model));
  }
  return absl::OkStatus();
}

absl::Status CheckNodes(const Recipe& recipe, const Parameters& p) {
  const auto compare = [&](const std::string& flag, size_t given, int needed) {
    if (given == static_cast<size_t>(needed)) return absl::OkStatus();
    return Wrong(fmt::format("recipe {} needs {} {}, {} given", recipe.name, needed, flag, given));
  };
  if (recipe.decode.num_nodes == 0) {
    RETURN_IF_ERROR(compare("--prefill-hosts", p.prefill_hosts.size(), 0));
    return compare("--decode-hosts", p.decode_hosts.size(), 0);
  }
  RETURN_IF_ERROR(compare("--prefill-hosts", p.prefill_hosts.size(), recipe.prefill.num_nodes));
  RETURN_IF_ERROR(compare("--decode-hosts", p.decode_hosts.size(), recipe.decode.num_nodes));
  if (p.nic.empty()) return Wrong("--nic is needed: the network card between the nodes");
  return absl::OkStatus();
}

// One recipe's flags, in the order in which the guides write them.
class FlagWriter {
 public:
  FlagWriter(const Recipe& recipe, const Shape& shape, const Parameters& p)
      : recipe_(recipe), shape_(shape), p_(p) {}

  std::vector<ServeFlag> Write(int transfer_port, int engine) {
    Add("--served-model-name", p_.served_name);
    Sizes();
    Formats();
    Cache();
    if (shape_.role == "prefill") {
      Add("--enforce-eager");
    } else {
      Compilation();
    }
    Speculation();
    AdditionalConfig();
    if (shape_.role != "mixed") Transfer(transfer_port, engine);
    return std::move(flags_);
  }

 private:
  void Add(std::string name, std::string value = "") {
    flags_.push_back({std::move(name), std::move(value)});
  }
  void AddNumber(std::string name, int64_t value) { Add(std::move(name), std::to_string(value)); }
  void AddJson(std::string name, const Json& value) { Add(std::move(name), value.dump()); }

  void Sizes() {
    Add("--host", "0.0.0.0");
    if (shape_.one_rank_per_command) {
      Add("--port", "$2");
      Add("--data-parallel-size", "$3");
      Add("--data-parallel-rank", "$4");
      Add("--data-parallel-address", "$5");
      Add("--data-parallel-rpc-port", "$6");
      Add("--tensor-parallel-size", "$7");
      AddNumber("--seed", 1024);
    } else {
      AddNumber("--port", p_.port);
      AddNumber("--tensor-parallel-size", shape_.tp);
      AddNumber("--data-parallel-size", shape_.dp);
    }
    Add("--enable-expert-parallel");
  }

  void Formats() {
    Add("--quantization", "ascend");
    Add("--tokenizer-mode", "deepseek_v4");
    Add("--tool-call-parser", "deepseek_v4");
    Add("--enable-auto-tool-choice");
    Add("--reasoning-parser", "deepseek_v4");
    Add("--trust-remote-code");
    // Prefetching and loading by several threads exclude each other.
    Add("--safetensors-load-strategy", "prefetch");
  }

  void Cache() {
    const int64_t rows = 1 + *p_.depth;
    const bool decodes = shape_.role == "decode";
    AddNumber("--max-model-len", p_.max_model_len.value_or(shape_.max_model_len));
    AddNumber("--max-num-batched-tokens", decodes ? Sequences() * rows : shape_.batched_tokens);
    AddNumber("--max-num-seqs", Sequences());
    Add("--gpu-memory-utilization", decodes ? "0.95" : "0.9");
    AddNumber("--block-size", shape_.block);
    if (shape_.int8_indexer) Add("--attention_config.indexer_kv_dtype", "int8");
    if (!shape_.prefix_cache) Add("--no-enable-prefix-caching");
    if (shape_.role != "mixed") Add("--no-disable-hybrid-kv-cache-manager");
    if (shape_.role != "prefill") Add("--async-scheduling");
  }

  // Seven drafts a sequence leave memory for fewer of them on a decode die.
  int64_t Sequences() const {
    const bool many_drafts = shape_.role == "decode" && *p_.depth == 7;
    return many_drafts ? std::min<int64_t>(shape_.sequences, 32) : shape_.sequences;
  }

  void Compilation() { AddJson("--compilation-config", {{"cudagraph_mode", "FULL_DECODE_ONLY"}}); }

  void Speculation() {
    if (p_.speculation == "none") return;
    // MTP drafts one token while prefilling, whatever the decode side does.
    const bool one = p_.speculation == "mtp" && shape_.role == "prefill";
    AddJson("--speculative-config", {{"method", p_.speculation},
                                     {"num_speculative_tokens", one ? 1 : *p_.depth},
                                     {"enforce_eager", true}});
  }

  void AdditionalConfig() {
    Json config = {{"enable_cpu_binding", true}};
    if (shape_.role == "prefill") {
      if (shape_.tp > 1) config["enable_shared_expert_dp"] = true;
    } else {
      config["ascend_compilation_config"] = {{"enable_npugraph_ex", true},
                                             {"enable_static_kernel", false}};
      config["multistream_overlap_shared_expert"] = true;
    }
    if (shape_.role == "decode") config["recompute_scheduler_enable"] = true;
    AddJson("--additional-config", config);
  }

  void Transfer(int port, int engine) {
    const auto sizes = [](const Shape& shape) {
      return Json{{"dp_size", shape.dp}, {"tp_size", shape.tp}};
    };
    AddJson("--kv-transfer-config",
            {{"kv_connector", "MooncakeHybridConnector"},
             {"kv_role", shape_.role == "prefill" ? "kv_producer" : "kv_consumer"},
             {"kv_port", std::to_string(port)},
             {"engine_id", std::to_string(engine)},
             {"kv_connector_extra_config",
              {{"prefill", sizes(recipe_.prefill)}, {"decode", sizes(recipe_.decode)}}}});
  }

  const Recipe& recipe_;
  const Shape& shape_;
  const Parameters& p_;
  std::vector<ServeFlag> flags_;
};

std::vector<std::pair<std::string, std::string>> EnvironmentOf(const Shape& shape,
                                                               const Parameters& p,
                                                               const std::string& host) {
  std::vector<std::pair<std::string, std::string>> environment = {
      {"OMP_PROC_BIND", "false"},
      {"OMP_NUM_THREADS", "10"},
      {"PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True"},
      {"HCCL_BUFFSIZE", std::to_string(shape.hccl_buffer_mb)},
      {"TASK_QUEUE_ENABLE", "1"},
      {"HCCL_OP_EXPANSION_MODE", "AIV"}};
  if (p.speculation == "dspark" && shape.role == "mixed") {
    // Early images of the 0731 release ask for them; later ones do not look.
    environment.emplace_back("VLLM_ASCEND_ENABLE_DSPARK", "1");
    environment.emplace_back("VLLM_ASCEND_APPLY_DSV4_PATCH", "1");
  }
  if (shape.prefix_cache) {
    environment.emplace_back("VLLM_PREFIX_CACHE_RETENTION_INTERVAL",
                             std::to_string(128 * shape.block));
  }
  if (shape.role != "mixed") {
    environment.insert(environment.end(), {{"HCCL_IF_IP", host},
                                           {"GLOO_SOCKET_IFNAME", p.nic},
                                           {"TP_SOCKET_IFNAME", p.nic},
                                           {"HCCL_SOCKET_IFNAME", p.nic},
                                           {"VLLM_RPC_TIMEOUT", "3600000"},
                                           {"VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", "30000"},
                                           {"HCCL_EXEC_TIMEOUT", "204"},
                                           {"HCCL_CONNECT_TIMEOUT", "1200"}});
  }
  return environment;
}

// The nodes of one side. Instances count on from `first_instance` over both sides: each has its own
// engine id and ports.
void AddNodes(const Recipe& recipe, const Shape& shape, const std::vector<std::string>& hosts,
              int first_instance, DeployPlan& plan) {
  const int nodes_each = shape.num_nodes / std::max(shape.num_instances, 1);
  for (int node = 0; node < shape.num_nodes; ++node) {
    const int instance = node / nodes_each;
    const std::string& host = hosts[static_cast<size_t>(node)];
    NodePlan n;
    n.role = shape.role;
    n.name = shape.role == "mixed" ? "" : fmt::format("{}-{}", shape.role, node);
    n.host = host;
    n.environment = EnvironmentOf(shape, plan.parameters, host);
    const int engine = first_instance + instance;
    n.flags = FlagWriter(recipe, shape, plan.parameters)
                  .Write(kFirstTransferPort + kTransferPortStep * engine, engine);
    n.dp_size = shape.dp;
    n.tp_size = shape.tp;
    n.dp_size_local = shape.dp / nodes_each;
    n.dp_rank_start = node % nodes_each * n.dp_size_local;
    n.dp_address = hosts[static_cast<size_t>(instance) * static_cast<size_t>(nodes_each)];
    plan.nodes.push_back(std::move(n));
  }
}

}  // namespace

const std::vector<RecipeInfo>& Recipes() {
  static const std::vector<RecipeInfo> kRecipes = {
      {"single-tp4dp4", "a3", "one node, TP4 x DP4, no speculation: the baseline of a benchmark",
       "单机 TP4×DP4，无投机解码：基准测试的基线"},
      {"single-tp8", "a3 a2", "eight dies, TP8, no speculation", "八个 die，TP8，无投机解码"},
      {"dspark", "a3 a2", "one node with DSpark, 7 draft tokens", "单机 DSpark，7 个草稿 token"},
      {"mtp", "a3 a2", "one node with MTP, 1 draft token", "单机 MTP，1 个草稿 token"},
      {"1m", "a3", "one node, context of 1 M tokens, prefix cache", "单机 1M 上下文，前缀缓存"},
      {"pd-a3-1p1d", "a3", "two nodes: prefill DP4 TP4, decode DP16 TP1",
       "两节点：预填充 DP4 TP4，解码 DP16 TP1"},
      {"pd-a2-4p1d", "a2", "eight nodes: four prefill DP8 TP1, one decode DP32 over four",
       "八节点：四个预填充 DP8 TP1，一个跨四节点的解码 DP32"},
      {"pd-1m", "a2", "eight nodes for 1 M tokens: DP4 TP8 over four nodes on each side",
       "八节点 1M 上下文：两侧各为跨四节点的 DP4 TP8"},
  };
  return kRecipes;
}

absl::StatusOr<DeployPlan> MakePlan(Parameters parameters) {
  DeployPlan plan;
  ASSIGN_OR_RETURN(plan.target, TargetOf(parameters));
  RETURN_IF_ERROR(CheckRecipe(parameters));
  RETURN_IF_ERROR(CheckParameters(parameters));
  const Recipe recipe = RecipeOf(parameters.recipe, plan.target);
  RETURN_IF_ERROR(FillSpeculation(recipe, parameters));
  RETURN_IF_ERROR(CheckNodes(recipe, parameters));
  if (parameters.served_name.empty()) {
    parameters.served_name = std::filesystem::path(parameters.model_path).filename();
  }
  if (parameters.image.empty()) parameters.image = DefaultImage(plan.target);
  plan.disaggregated = recipe.decode.num_nodes > 0;
  if (plan.disaggregated && parameters.proxy_host.empty()) {
    parameters.proxy_host = parameters.prefill_hosts[0];
  }
  plan.parameters = std::move(parameters);
  const Parameters& p = plan.parameters;
  AddNodes(recipe, recipe.prefill,
           plan.disaggregated ? p.prefill_hosts : std::vector<std::string>{p.host}, 0, plan);
  AddNodes(recipe, recipe.decode, p.decode_hosts, recipe.prefill.num_instances, plan);
  return plan;
}

}  // namespace fulgur::deploy
