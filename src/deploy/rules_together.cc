#include <algorithm>

#include "deploy/rules.h"
#include "fmt/format.h"

namespace fulgur::deploy {
namespace {

using Json = nlohmann::json;

constexpr char kTransfer[] = "kv-transfer-config";

// A number that deployments also write as text: "kv_port": "30000".
std::optional<int64_t> LooseNumber(const Json& value, const ServeCommand& command) {
  if (value.is_number_integer()) return value.get<int64_t>();
  return value.is_string() ? command.count(value.get<std::string>()) : std::nullopt;
}

std::string LooseText(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

// The ports an instance listens on for its peers: one for each rank.
struct PortRange {
  int64_t first = 0;
  int64_t count = 0;
};

std::optional<PortRange> PortsOf(const ServeCommand& command) {
  const auto first = LooseNumber(command.Json(kTransfer).value("kv_port", Json()), command);
  const auto tp = KnownSize(command, "tensor-parallel-size");
  const auto dp = KnownSize(command, "data-parallel-size");
  if (!first) return std::nullopt;
  return PortRange{*first, tp && dp ? *tp * *dp : 1};
}

// Nodes of one data-parallel group share the engine id and the first port: each of their ranks adds
// its own number.
bool AreOneGroup(const ServeCommand& a, const ServeCommand& b) {
  const auto address = a.Text("data-parallel-address");
  const auto rank = a.Text("data-parallel-rank");
  return address && rank && address == b.Text("data-parallel-address") &&
         rank != b.Text("data-parallel-rank");
}

void CheckInstances(const ServeCommand& a, const ServeCommand& b, Findings& findings) {
  if (AreOneGroup(a, b)) return;
  Reporter report(b, findings);
  const int line = b.LineOf(kTransfer);
  const auto address = a.Text("data-parallel-address");
  const auto rank = a.Text("data-parallel-rank");
  if (address && rank && address == b.Text("data-parallel-address")) {
    report.Error(
        "rank-twice", b.line,
        fmt::format("rank {} of the group at {} is also started by {}", *rank, *address, a.file),
        "count --dp-rank-start on from node to node");
    return;
  }
  const std::string id_a = LooseText(a.Json(kTransfer).value("engine_id", Json()));
  const std::string id_b = LooseText(b.Json(kTransfer).value("engine_id", Json()));
  if (!id_a.empty() && id_a == id_b) {
    report.Error(
        "engine-id-twice", line,
        fmt::format("engine_id \"{}\" is also that of {}: their caches get mixed up", id_b, a.file),
        "count engine_id up, one for each instance");
  }
  const auto ports_a = PortsOf(a);
  const auto ports_b = PortsOf(b);
  if (!ports_a || !ports_b) return;
  const bool apart = ports_a->first + ports_a->count <= ports_b->first ||
                     ports_b->first + ports_b->count <= ports_a->first;
  if (apart) return;
  report.Error("kv-ports-overlap", line,
               fmt::format("ports {} to {} overlap with {} to {} of {}", ports_b->first,
                           ports_b->first + ports_b->count - 1, ports_a->first,
                           ports_a->first + ports_a->count - 1, a.file),
               "leave at least data-parallel x tensor-parallel ports between two kv_port");
}

void CheckSame(const ServeCommand& prefill, const ServeCommand& decode, Findings& findings) {
  Reporter report(decode, findings);
  for (const char* flag : {"block-size", "quantization", "tokenizer-mode", "kv-cache-dtype"}) {
    const auto p = prefill.Text(flag);
    const auto d = decode.Text(flag);
    if (p == d) continue;
    report.Error("prefill-decode-differ", decode.LineOf(flag),
                 fmt::format("--{} is {} here and {} on the prefill node {}", flag,
                             d.value_or("not given"), p.value_or("not given"), prefill.file),
                 "make them equal: caches of different layout do not fit each other");
  }
  if (prefill.Json("attention-config") != decode.Json("attention-config")) {
    report.Error(
        "prefill-decode-differ", decode.LineOf("attention-config"),
        fmt::format("--attention-config differs from that of the prefill node {}", prefill.file),
        "make them equal: caches of different layout do not fit each other");
  }
  if (!prefill.image.empty() && !decode.image.empty() && prefill.image != decode.image) {
    report.Warn("images-differ", decode.image_line,
                fmt::format("the container is {} here and {} on the prefill node {}: versions may "
                            "lay caches out differently",
                            decode.image, prefill.image, prefill.file),
                "use the same release on both sides");
  }
  const Json sizes_p = prefill.Json(kTransfer).value("kv_connector_extra_config", Json::object());
  const Json sizes_d = decode.Json(kTransfer).value("kv_connector_extra_config", Json::object());
  for (const char* side : {"prefill", "decode"}) {
    if (sizes_p.value(side, Json()) == sizes_d.value(side, Json())) continue;
    report.Error(
        "sizes-differ", decode.LineOf(kTransfer),
        fmt::format("the sizes of the {} side differ from those in {}", side, prefill.file),
        "write the same prefill and decode sizes on both sides");
  }
  const Speculation p = SpeculationOf(prefill);
  const Speculation d = SpeculationOf(decode);
  const int line = decode.LineOf("speculative-config");
  if (p.method != d.method) {
    report.Error("draft-method-differs", line,
                 fmt::format("drafts by {} here, by {} on the prefill node {}: the draft layers' "
                             "caches do not fit",
                             d.method.empty() ? "none" : d.method,
                             p.method.empty() ? "none" : p.method, prefill.file),
                 "use the same method on both sides");
  } else if (d.method == "dspark" && p.depth && d.depth && *p.depth != *d.depth) {
    report.Error("dspark-depth-differs", line,
                 fmt::format("DSpark drafts {} tokens here and {} on the prefill node {}", *d.depth,
                             *p.depth, prefill.file),
                 "write the same num_speculative_tokens on both sides");
  }
  const auto hash_p = prefill.Variable("PYTHONHASHSEED");
  const auto hash_d = decode.Variable("PYTHONHASHSEED");
  if (hash_p != hash_d) {
    report.Error("hash-seed-differs", decode.line,
                 "PYTHONHASHSEED differs between the nodes: a shared KV pool never hits",
                 "export the same PYTHONHASHSEED on all nodes");
  }
}

}  // namespace

void CheckTogether(const std::vector<ServeCommand>& commands, Findings& findings) {
  std::vector<const ServeCommand*> instances;
  for (const ServeCommand& command : commands) {
    const std::string role = RoleOf(command);
    if (role == kProducer || role == kConsumer) instances.push_back(&command);
  }
  for (size_t i = 0; i < instances.size(); ++i) {
    for (size_t j = i + 1; j < instances.size(); ++j) {
      CheckInstances(*instances[i], *instances[j], findings);
    }
  }
  const auto with_role = [&](std::string_view role) -> const ServeCommand* {
    const auto found = std::find_if(instances.begin(), instances.end(),
                                    [&](const auto* c) { return RoleOf(*c) == role; });
    return found == instances.end() ? nullptr : *found;
  };
  const ServeCommand* prefill = with_role(kProducer);
  if (prefill == nullptr) return;
  for (const ServeCommand* command : instances) {
    if (RoleOf(*command) == kConsumer) CheckSame(*prefill, *command, findings);
  }
}

Speculation SpeculationOf(const ServeCommand& command) {
  const Json& config = command.Json("speculative-config");
  Speculation speculation;
  const Json method = config.value("method", Json());
  if (method.is_string()) speculation.method = method.get<std::string>();
  const Json depth = config.value("num_speculative_tokens", Json());
  if (depth.is_number_integer()) speculation.depth = depth.get<int64_t>();
  return speculation;
}

std::string RoleOf(const ServeCommand& command) {
  const Json role = command.Json(kTransfer).value("kv_role", Json());
  return role.is_string() ? role.get<std::string>() : "";
}

int64_t TensorParallel(const ServeCommand& command, int64_t if_unknown) {
  return KnownSize(command, "tensor-parallel-size").value_or(if_unknown);
}

std::optional<int64_t> KnownSize(const ServeCommand& command, const std::string& flag) {
  if (!command.Has(flag)) return 1;  // vLLM's default
  return command.Number(flag);
}

}  // namespace fulgur::deploy
