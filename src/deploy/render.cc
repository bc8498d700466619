#include "deploy/render.h"

#include <fstream>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "deploy/shell_script.h"
#include "deploy/templates.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace fulgur::deploy {
namespace {

namespace fs = std::filesystem;
using Values = std::map<std::string, std::string>;

// "$2" stays for the shell; everything else is quoted against it.
std::string ShellValue(const std::string& value) {
  const bool positional =
      value.size() == 2 && value[0] == '$' && value[1] >= '1' && value[1] <= '9';
  return positional ? "\"" + value + "\"" : QuoteForShell(value);
}

std::string FlagLines(const std::vector<ServeFlag>& flags) {
  std::string lines;
  for (const ServeFlag& flag : flags) {
    if (!lines.empty()) lines += " \\\n";
    lines += "  " + flag.name + (flag.value.empty() ? "" : " " + ShellValue(flag.value));
  }
  return lines;
}

std::string ExportLines(const NodePlan& node) {
  std::string lines;
  for (const auto& [name, value] : node.environment) {
    lines += fmt::format("{}export {}={}", lines.empty() ? "" : "\n", name, QuoteForShell(value));
  }
  return lines;
}

std::string DeviceLines(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += fmt::format("{}  --device /dev/davinci{} \\", i == 0 ? "" : "\n", i);
  }
  return lines;
}

// The first `count` dies are used, unless a node's ranks share all of them.
int NumDies(const DeployPlan& plan, const NodePlan& node) {
  return plan.disaggregated ? DiesPerNode(plan.target) : node.dp_size * node.tp_size;
}

std::string Url(const DeployPlan& plan) {
  const Parameters& p = plan.parameters;
  return plan.disaggregated ? fmt::format("http://{}:{}", p.proxy_host, p.proxy_port)
                            : fmt::format("http://{}:{}", p.host, p.port);
}

Values CommonValues(const DeployPlan& plan) {
  const Parameters& p = plan.parameters;
  const nlohmann::ordered_json body = {{"model", p.served_name},
                                       {"prompt", "The capital of France is"},
                                       {"max_tokens", 16},
                                       {"temperature", 0}};
  return {{"IMAGE", p.image},
          {"MODEL", p.model_path},
          {"CONTAINER", p.container},
          {"RECIPE", p.recipe},
          {"SERVED", p.served_name},
          {"URL", Url(plan)},
          {"BODY", QuoteForShell(body.dump())}};
}

std::string RankArguments(const NodePlan& node) {
  return fmt::format(
      "bash /deploy/start_ranks.sh --dp-size {} --tp-size {} --dp-size-local {} --dp-rank-start {} "
      "--dp-address {} --dp-rpc-port {} --vllm-start-port {}",
      node.dp_size, node.tp_size, node.dp_size_local, node.dp_rank_start, node.dp_address, kRpcPort,
      kFirstEnginePort);
}

std::string EnginePorts(const DeployPlan& plan, const NodePlan& node) {
  if (!plan.disaggregated) return std::to_string(plan.parameters.port);
  std::string ports;
  for (int i = 0; i < node.dp_size_local; ++i) {
    ports += fmt::format("{}{}", i == 0 ? "" : " ", kFirstEnginePort + i);
  }
  return ports;
}

void RenderNode(const DeployPlan& plan, const NodePlan& node, RenderedFiles& files) {
  Values values = CommonValues(plan);
  values["EXPORTS"] = ExportLines(node);
  values["FLAGS"] = FlagLines(node.flags);
  values["DEVICES"] = DeviceLines(NumDies(plan, node));
  values["PORTS"] = EnginePorts(plan, node);
  values["COMMAND"] = plan.disaggregated ? RankArguments(node) : "bash /deploy/serve.sh";
  const fs::path folder = node.name;
  if (plan.disaggregated) {
    files[folder / "run_dp_template.sh"] = FillTemplate(kRankScript, values);
    files[folder / "start_ranks.sh"] = std::string(kStartRanks);
  } else {
    files[folder / "serve.sh"] = FillTemplate(kServeScript, values);
  }
  files[folder / "launch.sh"] = FillTemplate(kLaunchScript, values);
  files[folder / "health.sh"] = FillTemplate(kHealthScript, values);
  files[folder / "pull.sh"] = FillTemplate(kPullScript, values);
  files[folder / "stop.sh"] = FillTemplate(kStopScript, values);
  files[folder / "sample.sh"] = FillTemplate(kSampleScript, values);
}

// Hosts and ports of all ranks of a role, host by host.
std::pair<std::string, std::string> RankEntries(const DeployPlan& plan, std::string_view role) {
  std::string hosts, ports;
  for (const NodePlan& node : plan.nodes) {
    if (node.role != role) continue;
    for (int i = 0; i < node.dp_size_local; ++i) {
      hosts += (hosts.empty() ? "" : " ") + node.host;
      ports += fmt::format("{}{}", ports.empty() ? "" : " ", kFirstEnginePort + i);
    }
  }
  return {hosts, ports};
}

std::string NodeTable(const DeployPlan& plan, bool english) {
  if (!plan.disaggregated) return "";
  std::string text = english ? "| folder | host | role | ranks | kv_port |\n"
                             : "| 目录 | 主机 | 角色 | rank | kv_port |\n";
  text += "| --- | --- | --- | --- | --- |\n";
  for (const NodePlan& node : plan.nodes) {
    std::string port;
    for (const ServeFlag& flag : node.flags) {
      if (flag.name != "--kv-transfer-config") continue;
      port = nlohmann::json::parse(flag.value)["kv_port"].get<std::string>();
    }
    text += fmt::format("| `{}` | {} | {} | {} to {} of {}, TP{} | {} |\n", node.name, node.host,
                        node.role, node.dp_rank_start, node.dp_rank_start + node.dp_size_local - 1,
                        node.dp_size, node.tp_size, port);
  }
  return text;
}

std::string Readme(const DeployPlan& plan, bool english) {
  const Parameters& p = plan.parameters;
  Values values = CommonValues(plan);
  for (const RecipeInfo& info : Recipes()) {
    if (info.name == p.recipe) values["WHAT"] = std::string(english ? info.en : info.zh);
  }
  std::string& what = values["WHAT"];
  if (what[0] >= 'a' && what[0] <= 'z') what[0] = static_cast<char>(what[0] - 'a' + 'A');
  values["TARGET"] = plan.target == Target::kA3 ? "Atlas 800 A3" : "Atlas 800 A2";
  values["SPECULATION"] =
      p.speculation == "none"
          ? (english ? "none" : "无")
          : fmt::format(fmt::runtime(english ? "{}, {} draft tokens" : "{}，{} 个草稿 token"),
                        p.speculation, *p.depth);
  values["NODES"] = NodeTable(plan, english);
  const std::string_view start = plan.disaggregated
                                     ? (english ? kStartNodesEnglish : kStartNodesChinese)
                                     : (english ? kStartNodeEnglish : kStartNodeChinese);
  values["START"] = std::string(start);
  return FillTemplate(english ? kReadmeEnglish : kReadmeChinese, values);
}

}  // namespace

std::string FillTemplate(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string filled;
  while (true) {
    const size_t start = text.find('@');
    const size_t end = start == std::string_view::npos
                           ? start
                           : text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", start + 1);
    if (start == std::string_view::npos) return filled += text;
    filled += text.substr(0, start);
    if (end == std::string_view::npos || text[end] != '@' || end == start + 1) {
      filled += '@';  // as in "$@"
      text.remove_prefix(start + 1);
      continue;
    }
    const auto value = values.find(std::string(text.substr(start + 1, end - start - 1)));
    CHECK(value != values.end());
    filled += value->second;
    text.remove_prefix(end + 1);
  }
}

RenderedFiles Render(const DeployPlan& plan) {
  RenderedFiles files;
  for (const NodePlan& node : plan.nodes) RenderNode(plan, node, files);
  Values values = CommonValues(plan);
  if (plan.disaggregated) {
    values["PROXY_PORT"] = std::to_string(plan.parameters.proxy_port);
    std::tie(values["PREFILL_HOSTS"], values["PREFILL_PORTS"]) = RankEntries(plan, "prefill");
    std::tie(values["DECODE_HOSTS"], values["DECODE_PORTS"]) = RankEntries(plan, "decode");
    files["proxy.sh"] = FillTemplate(kProxyScript, values);
  }
  files["bench.sh"] = FillTemplate(kBenchScript, values);
  files["verify.sh"] = FillTemplate(kVerifyScript, values);
  files["README.md"] = Readme(plan, true);
  files["README.zh.md"] = Readme(plan, false);
  return files;
}

absl::Status WriteFiles(const RenderedFiles& files, const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
    return absl::AlreadyExistsError(
        fmt::format("{} is not empty; choose another folder or move it away", folder.string()));
  }
  for (const auto& [path, text] : files) {
    const fs::path target = folder / path;
    fs::create_directories(target.parent_path(), error);
    std::ofstream file(target, std::ios::binary);
    file << text << std::flush;
    if (!file) return absl::PermissionDeniedError("cannot write " + target.string());
    file.close();
    if (path.extension() == ".sh") {
      fs::permissions(target,
                      fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                      fs::perm_options::add, error);
    }
  }
  return absl::OkStatus();
}

}  // namespace fulgur::deploy
