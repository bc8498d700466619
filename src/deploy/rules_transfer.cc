#include <algorithm>
#include <set>
#include <string_view>

#include "deploy/rules.h"
#include "fmt/format.h"

namespace fulgur::deploy {
namespace {

using Json = nlohmann::json;

constexpr char kTransfer[] = "kv-transfer-config";
constexpr char kOther[] = "kv_connector_extra_config";

const std::set<std::string>& KnownConnectors() {
  static const std::set<std::string> kNames = {
      "MooncakeHybridConnector", "MooncakeConnectorV1",    "MooncakeLayerwiseConnector",
      "AscendStoreConnector",    "MultiConnector",         "RecomputeCPUOffloadConnector",
      "MooncakeConnector",       "NixlConnector",          "LMCacheConnectorV1",
      "OffloadingConnector",     "SharedStorageConnector", "UCMConnector",
      "P2pNcclConnector"};
  return kNames;
}

void CheckKeys(const Json& transfer, int line, Reporter& report) {
  static const std::set<std::string> kKeys = {"kv_connector",
                                              "kv_role",
                                              "engine_id",
                                              "kv_port",
                                              "kv_ip",
                                              "kv_rank",
                                              "kv_parallel_size",
                                              "kv_buffer_device",
                                              "kv_buffer_size",
                                              kOther,
                                              "kv_load_failure_policy",
                                              "kv_connector_module_path",
                                              "enable_permute_local_kv"};
  for (const auto& [key, value] : transfer.items()) {
    if (kKeys.count(key) != 0) continue;
    report.Error("transfer-unknown-key", line,
                 fmt::format("--kv-transfer-config has no key '{}'", key),
                 fmt::format("settings of the connector itself belong in {}", kOther));
  }
}

void CheckConnector(const Json& transfer, int line, Reporter& report) {
  const std::string name = transfer.value("kv_connector", Json("")).is_string()
                               ? transfer.value("kv_connector", std::string())
                               : "";
  if (name.empty()) {
    report.Error("connector-missing", line, "kv_connector is missing",
                 "write \"kv_connector\": \"MooncakeHybridConnector\"");
  } else if (name == "MooncakeConnectorV1" || name == "MooncakeConnector") {
    report.Error("connector-without-hybrid", line,
                 fmt::format("{} moves one kind of cache only; V4 has several, and shapes will not "
                             "fit",
                             name),
                 "use MooncakeHybridConnector");
  } else if (KnownConnectors().count(name) == 0) {
    std::string names;
    for (const std::string& known : KnownConnectors()) {
      names += (names.empty() ? "" : ", ") + known;
    }
    report.Error("connector-unknown", line,
                 fmt::format("'{}' is no registered connector: unsupported connector type", name),
                 "use MooncakeHybridConnector; there are " + names);
  }
  const std::string role = transfer.value("kv_role", Json("")).is_string()
                               ? transfer.value("kv_role", std::string())
                               : "";
  if (role != kProducer && role != kConsumer && role != "kv_both") {
    report.Error("role", line, fmt::format("kv_role is '{}'", role),
                 "write kv_producer (prefill), kv_consumer (decode) or kv_both");
  }
}

// Connectors in a chain obey the same rules, each with its own configuration.
void CheckChain(const Json& transfer, int line, Reporter& report) {
  const Json extra = transfer.value(kOther, Json::object());
  if (!extra.is_object()) return;
  const Json chain = extra.value("connectors", Json::array());
  if (!chain.is_array()) return;
  for (const Json& link : chain) {
    if (link.is_object()) CheckConnector(link, line, report);
  }
}

bool Uses(const Json& transfer, std::string_view connector) {
  if (transfer.value("kv_connector", Json()) == connector) return true;
  const Json extra = transfer.value(kOther, Json::object());
  const Json chain = extra.is_object() ? extra.value("connectors", Json::array()) : Json::array();
  return chain.is_array() && std::any_of(chain.begin(), chain.end(), [&](const Json& link) {
           return link.is_object() && link.value("kv_connector", Json()) == connector;
         });
}

// Keys of the pool hold hashes of the prompt, which Python salts anew in each process.
void CheckPool(const ServeCommand& command, const Json& transfer, int line, Reporter& report) {
  const bool known_environment = !command.file.empty();
  const bool seeded = command.environment.count("PYTHONHASHSEED") != 0;
  if (!known_environment || seeded || !Uses(transfer, "AscendStoreConnector")) return;
  report.Warn("pool-hash-seed", line,
              "without PYTHONHASHSEED every process hashes prompts otherwise: the pool never hits",
              "write `export PYTHONHASHSEED=0` before the command, on all nodes");
}

void CheckPolicy(const Json& transfer, int line, Reporter& report) {
  const Json extra = transfer.value(kOther, Json::object());
  if (extra.is_object() && extra.contains("kv_load_failure_policy")) {
    report.Error("failure-policy-nested", line,
                 fmt::format("kv_load_failure_policy inside {} is silently unused", kOther),
                 "move it to the top level of --kv-transfer-config");
  }
  if (transfer.value("kv_load_failure_policy", Json()) == "recompute") {
    report.Error("failure-policy-recompute", line,
                 "kv_load_failure_policy recompute ends in an assertion for a model with several "
                 "kinds of cache, at the moment of the failure",
                 "write fail, or leave it out");
  }
}

// Decode nodes call this address; one that means "all interfaces here" leads each to itself.
void CheckMetaserver(const Json& transfer, int line, Reporter& report) {
  const Json extra = transfer.value(kOther, Json::object());
  const Json address = extra.is_object() ? extra.value("metaserver", Json()) : Json();
  if (address.is_null()) return;
  std::string_view host = address.is_string()
                              ? std::string_view(address.get_ref<const std::string&>())
                              : std::string_view();
  if (const size_t scheme = host.find("://"); scheme != std::string_view::npos) {
    host.remove_prefix(scheme + 3);
  }
  host = host.substr(0, host.find('/'));
  const size_t port = host.rfind(':');
  const bool bracketed = host.ends_with(']');
  if (port != std::string_view::npos && !bracketed) host = host.substr(0, port);
  if (IsCallable(host)) return;
  report.Error(
      "metaserver-address", line,
      fmt::format("the metaserver {} is no address that other nodes can call", address.dump()),
      "write http://ADDRESS:PORT/v1/metaserver with the proxy's own address");
}

struct Sizes {
  std::optional<int64_t> tp, dp;
};

Sizes SizesOf(const Json& transfer, const char* side) {
  const Json extra = transfer.value(kOther, Json::object());
  if (!extra.is_object()) return {};
  const Json object = extra.value(side, Json::object());
  const auto number = [&](const char* name) -> std::optional<int64_t> {
    if (!object.is_object() || !object.contains(name)) return std::nullopt;
    const Json& value = object[name];
    return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
  };
  return {number("tp_size"), number("dp_size")};
}

void CheckSizes(const ServeCommand& command, const Json& transfer, int line, Reporter& report) {
  const Sizes prefill = SizesOf(transfer, "prefill");
  const Sizes decode = SizesOf(transfer, "decode");
  const std::string role = RoleOf(command);
  const bool produces = role == kProducer;
  if (produces || role == kConsumer) {
    const Sizes& own = produces ? prefill : decode;
    const auto compare = [&](const std::optional<int64_t>& said, const std::string& flag) {
      const auto actual = KnownSize(command, flag);
      if (!said || !actual || *said == *actual) return;
      report.Error("own-size", line,
                   fmt::format("{} says {} for this node, --{} says {}",
                               produces ? "prefill" : "decode", *said, flag, *actual),
                   "make them equal");
    };
    compare(own.tp, "tensor-parallel-size");
    compare(own.dp, "data-parallel-size");
  }
  if (prefill.tp && decode.tp &&
      (*prefill.tp < *decode.tp || *decode.tp < 1 || *prefill.tp % *decode.tp != 0)) {
    report.Error("tensor-parallel-ratio", line,
                 fmt::format("the prefill side's tensor-parallel size {} is no multiple of the "
                             "decode side's {}",
                             *prefill.tp, *decode.tp),
                 "choose, for example, prefill 4 and decode 1");
  }
  if (role == kConsumer && command.Number("pipeline-parallel-size").value_or(1) != 1) {
    report.Error("decode-pipeline", command.LineOf("pipeline-parallel-size"),
                 "decode nodes cannot use pipeline parallelism with this connector",
                 "remove --pipeline-parallel-size");
  }
}

// Moves requests between the ranks of one node.
void CheckBalancer(const ServeCommand& command, const Json& scheduler, int line, Reporter& report) {
  if (!scheduler.is_object() || !scheduler.contains("dyntra_lb_config")) return;
  const auto ranks = KnownSize(command, "data-parallel-size");
  const auto local = command.Has("data-parallel-size-local")
                         ? KnownSize(command, "data-parallel-size-local")
                         : ranks;
  const bool several_nodes = (ranks && local && *local < *ranks) ||
                             command.Number("nnodes").value_or(1) > 1 || command.IsOn("headless");
  std::string why;
  if (RoleOf(command) != kConsumer) {
    why = "works on decode nodes only";
  } else if (ranks && *ranks < 2) {
    why = "needs a data-parallel size above 1";
  } else if (several_nodes) {
    why = "moves requests within one node, and this group spans several";
  }
  if (why.empty()) return;
  report.Error("dyntra-balancer", line, "the DyntraLB scheduler " + why, "remove dyntra_lb_config");
}

void CheckScheduler(const ServeCommand& command, Reporter& report) {
  const Json& extra = command.Json("additional-config");
  const Json scheduler = extra.value("scheduler_config", Json::object());
  const int line = command.LineOf("additional-config");
  const auto is_on = [&](const char* name) {
    return extra.value(name, Json()) == true ||
           (scheduler.is_object() && scheduler.value(name, Json()) == true);
  };
  const std::string role = RoleOf(command);
  if (is_on("recompute_scheduler_enable") && role == kProducer) {
    report.Warn("recompute-on-prefill", line,
                "the recompute scheduler is for decode nodes; here it is ignored",
                "remove recompute_scheduler_enable");
  }
  if (is_on("recompute_scheduler_enable") && role != kProducer && role != kConsumer) {
    report.Error("recompute-on-mixed", line, "the recompute scheduler works on decode nodes only",
                 "remove recompute_scheduler_enable");
  }
  const bool balance = is_on("enable_balance_scheduling") ||
                       command.Variable("VLLM_ASCEND_BALANCE_SCHEDULING").value_or("0") == "1";
  if (balance && command.Has(kTransfer)) {
    report.Error("balance-with-connector", line,
                 "balance scheduling does not work with a KV connector",
                 "remove enable_balance_scheduling");
  }
  const bool short_first =
      scheduler.is_object() && scheduler.contains("short_request_first_config");
  if (short_first && (role == kConsumer || command.Text("scheduling-policy") == "priority")) {
    report.Error("short-first", line,
                 "short-request-first works neither on decode nodes nor with the priority policy",
                 "remove short_request_first_config");
  }
  if (role == kConsumer && !command.IsOff("enable-prefix-caching")) {
    report.Warn("prefix-cache-on-decode", command.line,
                "prefix caching on a decode node works only in part: its hits differ between the "
                "kinds of cache",
                "add --no-enable-prefix-caching");
  }
  CheckBalancer(command, scheduler, line, report);
  if (extra.value("enable_kv_nz", Json()) == true && role != kConsumer) {
    report.Error("kv-nz", line, "enable_kv_nz is a cache format of decode nodes only",
                 "remove enable_kv_nz");
  }
  const bool fine = extra.value("finegrained_tp_config", Json::object()).is_object() &&
                    (extra.value("finegrained_tp_config", Json::object())
                         .contains("oproj_tensor_parallel_size") ||
                     extra.value("finegrained_tp_config", Json::object())
                         .contains("embedding_tensor_parallel_size"));
  if (fine && role == kConsumer && !is_on("recompute_scheduler_enable")) {
    report.Error("fine-grained-tp-needs-recompute", line,
                 "fine-grained tensor parallelism of o-proj or embedding needs the recompute "
                 "scheduler",
                 "add \"recompute_scheduler_enable\": true");
  }
}

}  // namespace

void CheckTransfer(const ServeCommand& command, Findings& findings) {
  Reporter report(command, findings);
  const auto setting = command.flags.find(kTransfer);
  if (setting != command.flags.end() && setting->second.value.is_object() &&
      !setting->second.value.empty()) {
    const Json& transfer = setting->second.value;
    CheckKeys(transfer, setting->second.line, report);
    CheckConnector(transfer, setting->second.line, report);
    CheckChain(transfer, setting->second.line, report);
    CheckPool(command, transfer, setting->second.line, report);
    CheckPolicy(transfer, setting->second.line, report);
    CheckMetaserver(transfer, setting->second.line, report);
    CheckSizes(command, transfer, setting->second.line, report);
  }
  CheckScheduler(command, report);
}

bool IsCallable(std::string_view host) {
  return !host.empty() && host != "0.0.0.0" && host != "::" && host != "[::]" && host != "*" &&
         host.find_first_of(" /@") == std::string_view::npos;
}

}  // namespace fulgur::deploy
