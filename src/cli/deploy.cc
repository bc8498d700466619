// `fulgur deploy`: writes the folder for a deployment, and checks one before it is started.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "cli/flag_help.h"
#include "cli/flag_parser.h"
#include "cli/flag_table.h"
#include "cli/subcommands.h"
#include "cli/words.h"
#include "deploy/check.h"
#include "deploy/render.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace fulgur::cli {
namespace {

using deploy::Finding;
using deploy::Severity;

constexpr FlagSpec kRenderFlags[] = {
    {.name = "target",
     .help = {"a3 (16 dies a node) or a2 (8)", "a3（每节点 16 个 die）或 a2（8 个）"},
     .choices = "a3|a2"},
    {.name = "recipe", .help = {"what to deploy; see the list below", "部署方案；见下方列表"}},
    {.name = "output",
     .help = {"folder to write; must be empty or new", "输出目录；须为空或不存在"}},
    {.name = "model-path", .help = {"folder of the weights on the hosts", "主机上的权重目录"}},
    {.name = "served-name",
     .help = {"model name for clients (default: the folder's name)",
              "客户端使用的模型名（默认：目录名）"}},
    {.name = "image",
     .help = {"container image (default: the recipe's)", "容器镜像（默认：方案自带）"}},
    {.name = "container",
     .default_value = "fulgur-deploy",
     .help = {"name of the container", "容器名"}},
    {.name = "port",
     .type = FlagType::kInt,
     .default_value = "6697",
     .help = {"port of a single node's server", "单机服务端口"},
     .range = {.min = 1024, .max = 65535}},
    {.name = "host",
     .default_value = "127.0.0.1",
     .help = {"single node: its address for clients", "单机：客户端访问的地址"}},
    {.name = "nic",
     .help = {"disaggregated: network card between the nodes", "PD 分离：节点间的网卡"}},
    {.name = "prefill-hosts",
     .type = FlagType::kTextList,
     .help = {"addresses of the prefill nodes", "预填充节点的地址"}},
    {.name = "decode-hosts",
     .type = FlagType::kTextList,
     .help = {"addresses of the decode nodes", "解码节点的地址"}},
    {.name = "proxy-host",
     .help = {"where the proxy runs (default: the first prefill node)",
              "代理所在主机（默认：第一个预填充节点）"}},
    {.name = "proxy-port",
     .type = FlagType::kInt,
     .default_value = "8000",
     .help = {"port of the proxy", "代理端口"},
     .range = {.min = 1024, .max = 65535}},
    {.name = "speculation",
     .help = {"none, mtp or dspark (default: the recipe's)",
              "none、mtp 或 dspark（默认：方案自带）"},
     .choices = "none|mtp|dspark"},
    {.name = "draft-tokens",
     .type = FlagType::kInt,
     .help = {"drafts a step: 5 to 7 for DSpark, 1 to 3 for MTP",
              "每步草稿数：DSpark 5 至 7，MTP 1 至 3"},
     .range = {.min = 0, .max = 7}},
    {.name = "max-model-len",
     .type = FlagType::kCount,
     .help = {"longest context (default: the recipe's)", "最大上下文（默认：方案自带）"},
     .range = {.min = 1024}},
};

constexpr FlagSpec kCheckFlags[] = {
    {.name = "image",
     .help = {"image the command will run in, where the input does not say",
              "命令运行的镜像（输入中未写明时）"}},
    {.name = "json", .type = FlagType::kBool, .help = {"findings as JSON", "以 JSON 输出"}},
    {.name = "strict", .type = FlagType::kBool, .help = {"warnings fail, too", "警告也算失败"}},
};

constexpr std::string_view kUsage =
    "deploy render --target a3|a2 --recipe NAME --model-path DIR --output DIR [flags]\n"
    "       fulgur deploy check SCRIPT|FOLDER [flags]\n"
    "       fulgur deploy check [flags] -- vllm serve MODEL ...";

const FlagTable& RenderTable() {
  static const FlagTable table({{"render", {"render", "render"}, kRenderFlags}});
  return table;
}

const FlagTable& CheckTable() {
  static const FlagTable table({{"check", {"check", "check"}, kCheckFlags}});
  return table;
}

int Fail(const absl::Status& error) { return ReportFailure("deploy", error); }

int Mistake(const Invocation& invocation, const std::string& sentence) {
  return ReportMistake(invocation, std::string(kUsage), sentence);
}

void PrintHelp(const Invocation& invocation) {
  std::cout << "usage: " << invocation.program << " " << kUsage
            << "\n\nrender writes the scripts of a deployment of DeepSeek-V4-Flash with "
               "vLLM-Ascend;\ncheck finds what would stop or spoil one, without running "
               "anything.\n\nRecipes:\n";
  for (const deploy::RecipeInfo& info : deploy::Recipes()) {
    std::cout << fmt::format("  {:<15}{:<7}{}\n", info.name, info.targets, info.en);
  }
  std::cout << "\n" << HelpForUsedFlags(RenderTable()) << "\n" << HelpForUsedFlags(CheckTable());
}

deploy::Parameters ParametersOf(const FlagValues& values) {
  deploy::Parameters p;
  p.target = values.String("target");
  p.recipe = values.String("recipe");
  p.model_path = values.String("model-path");
  p.served_name = values.String("served-name");
  p.image = values.String("image");
  p.container = values.String("container");
  p.port = static_cast<int>(values.Int("port"));
  p.host = values.String("host");
  p.nic = values.String("nic");
  p.prefill_hosts = values.List("prefill-hosts");
  p.decode_hosts = values.List("decode-hosts");
  p.proxy_host = values.String("proxy-host");
  p.proxy_port = static_cast<int>(values.Int("proxy-port"));
  p.speculation = values.String("speculation");
  if (values.Given("draft-tokens")) p.depth = values.Int("draft-tokens");
  if (values.Given("max-model-len")) p.max_model_len = values.Int("max-model-len");
  return p;
}

int RunRender(const Invocation& invocation) {
  const auto command = ParseCommand(RenderTable(), invocation.args);
  if (!command.ok()) return Mistake(invocation, Message(command.status()));
  if (!command->positionals.empty()) {
    return Mistake(invocation, fmt::format("unexpected argument '{}'", command->positionals[0]));
  }
  for (const char* needed : {"target", "recipe", "model-path", "output"}) {
    if (!command->values.Given(needed)) {
      return Mistake(invocation, fmt::format("--{} is missing", needed));
    }
  }
  const auto plan = deploy::MakePlan(ParametersOf(command->values));
  if (!plan.ok()) return Mistake(invocation, Message(plan.status()));
  const deploy::RenderedFiles files = deploy::Render(*plan);
  const std::string folder = command->values.String("output");
  if (const auto status = deploy::WriteFiles(files, folder); !status.ok()) return Fail(status);
  for (const auto& [path, text] : files) std::cout << folder << "/" << path.string() << "\n";
  std::cout << "read " << folder << "/README.md (README.zh.md) next" << std::endl;
  return 0;
}

// The serve flags' syntax for the checks, from the table that `fulgur serve` itself uses.
deploy::FlagSyntax ServeSyntax() {
  deploy::FlagSyntax syntax;
  syntax.count = [](std::string_view text) { return ParseCount(text); };
  syntax.check_number = [](std::string_view spelling, const std::string& value) -> absl::Status {
    ASSIGN_OR_RETURN(const FlagOccurrence found, ResolveFlag(ServeFlags(), spelling));
    const FlagType type = found.flag->type;
    const bool is_number =
        type == FlagType::kInt || type == FlagType::kCount || type == FlagType::kFloat;
    return is_number ? ParseFlagData(*found.flag, spelling, {value}).status() : absl::OkStatus();
  };
  syntax.shape = [](std::string_view spelling) -> absl::StatusOr<deploy::FlagShape> {
    ASSIGN_OR_RETURN(const FlagOccurrence found, ResolveFlag(ServeFlags(), spelling));
    deploy::FlagShape shape;
    shape.name = std::string(found.flag->name);
    shape.path = found.path;
    shape.negated = found.negated;
    using Kind = deploy::FlagShape::Kind;
    const FlagType type = found.flag->type;
    if (type == FlagType::kBool) shape.kind = Kind::kBool;
    if (type == FlagType::kTextList) shape.kind = Kind::kList;
    if (type == FlagType::kJson) shape.kind = Kind::kJson;
    return shape;
  };
  return syntax;
}

const char* Name(Severity severity) { return severity == Severity::kError ? "error" : "warning"; }

void PrintText(const deploy::CheckReport& report) {
  for (const Finding& finding : report.findings) {
    std::string place = finding.file;
    if (finding.line > 0) place += fmt::format("{}{}", place.empty() ? "line " : ":", finding.line);
    std::cout << fmt::format("{}{}: {} [{}]\n    fix: {}\n", place.empty() ? "" : place + ": ",
                             Name(finding.severity), finding.why, finding.rule, finding.fix);
  }
  const auto errors =
      std::count_if(report.findings.begin(), report.findings.end(),
                    [](const Finding& f) { return f.severity == Severity::kError; });
  const auto warnings = static_cast<int64_t>(report.findings.size()) - errors;
  std::cout << fmt::format("{} serve command{}: {}", report.num_commands,
                           report.num_commands == 1 ? "" : "s",
                           report.findings.empty()
                               ? "no findings"
                               : fmt::format("{} errors, {} warnings", errors, warnings))
            << std::endl;
}

void PrintJson(const deploy::CheckReport& report) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const Finding& f : report.findings) {
    findings.push_back({{"severity", Name(f.severity)},
                        {"rule", f.rule},
                        {"file", f.file},
                        {"line", f.line},
                        {"why", f.why},
                        {"fix", f.fix}});
  }
  const nlohmann::ordered_json json = {{"commands", report.num_commands}, {"findings", findings}};
  std::cout << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
            << std::endl;
}

int RunCheck(const Invocation& invocation) {
  const auto words = invocation.args;
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const auto command =
      ParseCommand(CheckTable(), words.first(static_cast<size_t>(dashes - words.begin())));
  if (!command.ok()) return Mistake(invocation, Message(command.status()));
  const bool has_line = dashes != words.end();
  if (command->positionals.size() != (has_line ? 0U : 1U)) {
    return Mistake(invocation, "name one script or folder, or write a command behind --");
  }
  const std::string image = command->values.String("image");
  absl::StatusOr<deploy::CheckReport> report;
  if (has_line) {
    report = deploy::CheckCommandLine(
        words.subspan(static_cast<size_t>(dashes - words.begin()) + 1), image, ServeSyntax());
  } else {
    report = deploy::CheckPath(command->positionals[0], image, ServeSyntax());
  }
  if (!report.ok()) return Fail(report.status());
  if (command->values.Bool("json")) {
    PrintJson(*report);
  } else {
    PrintText(*report);
  }
  const bool fails =
      std::any_of(report->findings.begin(), report->findings.end(), [&](const Finding& finding) {
        return finding.severity == Severity::kError || command->values.Bool("strict");
      });
  return fails ? 1 : 0;
}

}  // namespace

int RunDeploy(const Invocation& invocation) {
  const auto dashes = std::find(invocation.args.begin(), invocation.args.end(), "--");
  const bool help = std::any_of(invocation.args.begin(), dashes, [](const std::string& arg) {
    return arg == "--help" || arg == "-h";
  });
  if (help) {
    PrintHelp(invocation);
    return 0;
  }
  const std::string action = invocation.args.empty() ? "" : invocation.args.front();
  if (action != "render" && action != "check") {
    return Mistake(invocation,
                   action.empty()
                       ? "say render or check"
                       : fmt::format("unknown action '{}'; there are render and check", action));
  }
  const Invocation rest{invocation.program, invocation.args.subspan(1)};
  return action == "render" ? RunRender(rest) : RunCheck(rest);
}

}  // namespace fulgur::cli
