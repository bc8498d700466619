// `fulgur serve`: from a command line to a running server, and back to an idle machine.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include "base/machine.h"
#include "base/status_macros.h"
#include "cli/dry_run.h"
#include "cli/flag_help.h"
#include "cli/flag_parser.h"
#include "cli/port_check.h"
#include "cli/serve_backend.h"
#include "cli/serve_files.h"
#include "cli/serve_loop.h"
#include "cli/serve_options.h"
#include "cli/shutdown_signal.h"
#include "cli/subcommands.h"
#include "cli/version.h"
#include "cli/words.h"
#include "fmt/format.h"
#include "server/server.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace fulgur::cli {
namespace {

constexpr std::string_view kUsage = "serve MODEL [flags]   (serve --help lists the flags)";

std::string Overview(const std::string& program) {
  return fmt::format(
      "usage: {} serve MODEL [flags]\n\n"
      "Serves the DeepSeek-V4 checkpoint in the folder MODEL behind the OpenAI API.\n"
      "All flags of `vllm serve` that deployments of this model use are understood; below are "
      "those "
      "with an effect here.\n--help=all lists all, --help=listgroup the groups, --help=NAME one "
      "flag or group; --dry-run explains a command line.\n\n",
      program);
}

// --help, -h or --help=TOPIC anywhere in the command.
std::optional<std::string> HelpTopic(std::span<const std::string> args) {
  constexpr std::string_view kTopic = "--help=";
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") return "";
    if (arg.starts_with(kTopic)) return arg.substr(kTopic.size());
  }
  return std::nullopt;
}

int PrintHelp(const Invocation& invocation, const std::string& topic) {
  if (topic.empty()) {
    std::cout << Overview(invocation.program) << HelpForUsedFlags(ServeFlags());
    return 0;
  }
  const auto help = HelpForTopic(ServeFlags(), topic);
  if (!help.ok()) return ReportMistake(invocation, std::string(kUsage), Message(help.status()));
  std::cout << *help;
  return 0;
}

Environment ReadEnvironment() {
  Environment environment;
  for (const EnvironmentVariable& variable : ServeEnvironment()) {
    const std::string name(variable.name);
    if (const char* value = std::getenv(name.c_str())) environment[name] = value;
  }
  return environment;
}

void SetUpLog(const std::string& level) {
  const auto logger = spdlog::stderr_color_mt("fulgur");
  logger->set_pattern("%^%l%$ %m-%d %H:%M:%S %v");
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
}

// vLLM's default, which surprises those who meet it first.
void LogMissingParsers(const server::ChatOptions& chat) {
  if (chat.reasoning_parser && chat.tool_parser) return;
  spdlog::info(
      "answers keep {} in their text: --reasoning-parser deepseek_v4 --tool-call-parser "
      "deepseek_v4 "
      "--enable-auto-tool-choice take them out",
      chat.reasoning_parser ? "tool calls"
      : chat.tool_parser    ? "reasoning"
                            : "reasoning and tool calls");
}

// One line for every flag without effect.
void LogCommand(const ParsedCommand& command) {
  for (const std::string& warning : command.warnings) spdlog::warn("{}", warning);
  for (const auto& [name, value] : command.values.given()) {
    const FlagSpec& flag = command.values.table().Get(name);
    if (flag.effect != FlagEffect::kExplained) continue;
    spdlog::info("--{} has no effect: {}", name, flag.reason.en);
  }
}

int ReportRefused(const Invocation& invocation, const std::vector<std::string>& refused) {
  return ReportMistake(invocation, std::string(kUsage),
                       refused.size() == 1
                           ? refused.front()
                           : fmt::format("{} flags ask for what is not there:\n  {}",
                                         refused.size(), fmt::join(refused, "\n  ")));
}

// Addresses as users type them.
std::string AddressOf(const server::ListenOptions& listen, int port) {
  if (!listen.uds.empty()) return fmt::format("unix:{}", listen.uds);
  const bool everywhere = listen.host.empty() || listen.host == "0.0.0.0" || listen.host == "::";
  const std::string host =
      listen.host.find(':') == std::string::npos ? listen.host : fmt::format("[{}]", listen.host);
  return fmt::format("{}://{}:{}", listen.ssl_certfile.empty() ? "http" : "https",
                     everywhere ? "127.0.0.1" : host, port);
}

absl::Status Serve(ServeOptions options, const base::Machine& machine, ShutdownSignal& signal) {
  RETURN_IF_ERROR(CheckFiles(options));
  RETURN_IF_ERROR(CheckPort(options.server.listen));
  spdlog::info("fulgur {} on {}", Version(), base::DescribeMachine(machine));

  std::optional<text::Tokenizer> tokenizer;
  if (!options.tokenizer.empty()) {
    ASSIGN_OR_RETURN(tokenizer, LoadTokenizer(options));
    LogMissingParsers(options.server.chat);
  }
  const text::Tokenizer* shared = tokenizer ? &*tokenizer : nullptr;
  ASSIGN_OR_RETURN(Backend backend, options.script.empty() ? StartModel(options, shared, machine)
                                                           : StartScript(options, *tokenizer));
  options.server.cache_config = backend.cache_config;
  const server::ListenOptions listen = options.server.listen;
  ASSIGN_OR_RETURN(const auto server, server::Server::Start(options.server, *backend.engine, shared,
                                                            {options.model, std::string(Version()),
                                                             backend.eos_tokens}));
  signal.Arm();
  spdlog::info("serving {} at {}", options.server.served_model_names.front(),
               AddressOf(listen, server->port()));
  return ServeUntilStopped(*server, *backend.engine, options.shutdown_timeout, signal);
}

// A mistake in what was given, rather than a failure while running.
bool IsMistake(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
         absl::IsResourceExhausted(status) || absl::IsFailedPrecondition(status) ||
         absl::IsOutOfRange(status);
}

int Finish(const absl::Status& status) {
  if (status.ok()) return 0;
  spdlog::error("{}", Message(status));
  return IsMistake(status) ? 2 : 1;
}

}  // namespace

int RunServe(const Invocation& invocation) {
  if (const auto topic = HelpTopic(invocation.args)) return PrintHelp(invocation, *topic);
  const auto command = ParseCommand(ServeFlags(), invocation.args);
  if (!command.ok()) {
    return ReportMistake(invocation, std::string(kUsage), Message(command.status()));
  }
  const Environment environment = ReadEnvironment();
  const base::Machine machine = base::DetectMachine();
  auto options = BuildServeOptions(*command, environment, machine);
  if (!options.ok()) {
    return ReportMistake(invocation, std::string(kUsage), Message(options.status()));
  }
  SetUpLog(command->values.Bool("dry-run") ? "error" : options->log_level);
  if (command->values.Bool("dry-run")) {
    std::cout << DescribeCommand(*command, environment, *std::move(options), machine);
    return 0;
  }
  const auto refused = RefusedFlags(command->values);
  if (!refused.empty()) return ReportRefused(invocation, refused);

  std::signal(SIGPIPE, SIG_IGN);
  ShutdownSignal signal;
  LogCommand(*command);
  return Finish(Serve(*std::move(options), machine, signal));
}

}  // namespace fulgur::cli
