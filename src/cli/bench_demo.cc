// `fulgur bench demo`: the whole way from two servers to a report, in a minute, without a model.
//
// Two servers replay a script, one token by token, one as a server with speculative decoding would:
// its steps take longer and bring several tokens. Every step is a command that can be typed as
// well; the demo prints each.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/status_macros.h"
#include "cli/background_program.h"
#include "cli/bench.h"
#include "cli/flag_help.h"
#include "cli/flag_parser.h"
#include "cli/result_folder.h"
#include "cli/words.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fulgur::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kUsage[] = "bench demo [flags]";

constexpr FlagSpec kFlags[] = {
    {.name = "out",
     .default_value = "fulgur-demo",
     .help = {"folder for everything that is written; must be new or empty",
              "所有输出的目录；须为新目录或空目录"}},
    {.name = "tokenizer",
     .help = {"a DeepSeek-V4 tokenizer.json (default: that of the demo model)",
              "DeepSeek-V4 的 tokenizer.json（默认：演示模型的）"}},
};

const FlagTable& DemoFlagTable() {
  static const FlagTable table({{"demo", {"Flags", "参数"}, kFlags}});
  return table;
}

struct DemoSystem {
  const char* id;
  const char* label;
  int delay_ms;                 // before each step
  const char* tokens_per_step;  // JSON
};

constexpr DemoSystem kSystems[] = {
    {"baseline", "Baseline (scripted)", 24, "1"},
    {"speculative", "Speculative (scripted)", 28, "[3, 1, 4, 2, 3, 2]"}};

constexpr char kAnswer[] =
    "The lighthouse keeper wrote down the wind, the tide and the ships that passed, every hour, "
    "for thirty years, and nobody ever asked to read it.";

// Beside the working folder, or where a build or an installation has it.
absl::StatusOr<std::string> FindTokenizer(const std::string& given) {
  if (!given.empty()) return given;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder : {fs::path("."), program / "../..", program / "../share/fulgur"}) {
    const fs::path file = folder / "models/demo/tokenizer.json";
    if (fs::exists(file, ignored)) return fs::weakly_canonical(file, ignored).string();
  }
  return absl::NotFoundError(
      "the demo model's tokenizer was not found; name a DeepSeek-V4 tokenizer.json with "
      "--tokenizer");
}

std::string ReadFile(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

class Demo {
 public:
  Demo(fs::path folder, std::string tokenizer)
      : folder_(std::move(folder)), tokenizer_(std::move(tokenizer)) {}

  absl::Status Run() {
    for (const DemoSystem& system : kSystems) RETURN_IF_ERROR(Measure(system));
    RETURN_IF_ERROR(Compare());
    return Report();
  }

 private:
  fs::path LogOf(const std::string& name) const { return folder_ / "logs" / (name + ".log"); }

  static void Announce(const std::vector<std::string>& words) {
    std::vector<std::string> quoted;
    for (const std::string& word : words) {
      const bool plain = word.find_first_of(" ()'\"") == std::string::npos;
      quoted.push_back(plain ? word : fmt::format("'{}'", word));
    }
    std::cout << "  fulgur " << fmt::format("{}", fmt::join(quoted, " ")) << std::endl;
  }

  // Runs a command to its end; a result that is there but not whole is good enough.
  absl::Status Step(const std::string& name, const std::vector<std::string>& words) {
    Announce(words);
    ASSIGN_OR_RETURN(const auto program, BackgroundProgram::Start(words, LogOf(name)));
    const int code = program->Wait();
    if (code == 0 || code == kExitPartial) return absl::OkStatus();
    return Failed(name, code);
  }

  absl::Status Failed(const std::string& name, int code) const {
    const std::string log = ReadFile(LogOf(name));
    constexpr size_t kShown = 600;
    return absl::InternalError(fmt::format("the step '{}' ended with {}; {} ends with:\n{}", name,
                                           code, LogOf(name).string(),
                                           log.substr(log.size() - std::min(log.size(), kShown))));
  }

  absl::Status Measure(const DemoSystem& system) {
    std::cout << system.label << ":" << std::endl;
    ASSIGN_OR_RETURN(const auto server, StartServer(system));
    ASSIGN_OR_RETURN(const std::string url, WaitForServer(system, *server));
    const std::vector<std::string> sample = {"sample", system.id,  "--interval",
                                             "250ms",  "--folder", folder_.string()};
    Announce(sample);
    ASSIGN_OR_RETURN(const auto sampler,
                     BackgroundProgram::Start(sample, LogOf(fmt::format("{}-sample", system.id))));
    return Step(fmt::format("{}-run", system.id),
                {"bench", "run", "--suite", "smoke", "--concurrency", "1,2,4", "--url", url,
                 "--artifact-dir", (folder_ / system.id).string(), "--ui", "simple"});
  }

  absl::StatusOr<std::unique_ptr<BackgroundProgram>> StartServer(const DemoSystem& system) {
    const fs::path script = folder_ / fmt::format("{}.jsonl", system.id);
    std::ofstream(script) << fmt::format(
        "{{\"text\": \"{}\", \"delay_ms\": {}, \"tokens_per_step\": {}}}\n", kAnswer,
        system.delay_ms, system.tokens_per_step);
    const std::vector<std::string> words = {
        "serve",  "--scripted-output", script.string(), "--tokenizer", tokenizer_,
        "--host", "127.0.0.1",         "--port",        "0",           "--served-model-name",
        "demo"};
    Announce(words);
    return BackgroundProgram::Start(words, LogOf(fmt::format("{}-server", system.id)));
  }

  // The address that the server says it listens on.
  absl::StatusOr<std::string> WaitForServer(const DemoSystem& system, BackgroundProgram& server) {
    const std::string name = fmt::format("{}-server", system.id);
    constexpr auto kPatience = std::chrono::seconds(30);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      const std::string log = ReadFile(LogOf(name));
      const size_t at = log.find(" at http://");
      const size_t line_end = at == std::string::npos ? at : log.find('\n', at);
      if (line_end != std::string::npos) {
        const size_t start = log.find("http", at);
        return log.substr(start, log.find_first_of(" \n\r", start) - start);
      }
      if (!server.Running()) return Failed(name, server.Wait());
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return absl::DeadlineExceededError(fmt::format("the server did not start within {} s; see {}",
                                                   kPatience.count(), LogOf(name).string()));
  }

  absl::Status Compare() {
    std::cout << "Comparison:" << std::endl;
    std::vector<std::string> words = {"bench", "aggregate"};
    for (const DemoSystem& system : kSystems) {
      words.push_back("--system");
      words.push_back(
          fmt::format("{}={}:{}", system.id, (folder_ / system.id).string(), system.label));
      words.push_back("--util");
      words.push_back(fmt::format("{}={}", system.id,
                                  (folder_ / fmt::format("util-{}.jsonl", system.id)).string()));
    }
    words.push_back("--json");
    words.push_back((folder_ / "comparison.json").string());
    RETURN_IF_ERROR(Step("aggregate", words));
    std::cout << ReadFile(LogOf("aggregate"));
    return absl::OkStatus();
  }

  absl::Status Report() {
    std::cout << "Report:" << std::endl;
    RETURN_IF_ERROR(
        Step("report", {"bench", "report", folder_.string(), "--out", folder_.string()}));
    std::cout << ReadFile(LogOf("report"));
    return absl::OkStatus();
  }

  const fs::path folder_;
  const std::string tokenizer_;
};

absl::Status RunDemo(const FlagValues& values) {
  ASSIGN_OR_RETURN(const std::string tokenizer, FindTokenizer(values.String("tokenizer")));
  const fs::path folder = values.String("out");
  RETURN_IF_ERROR(PrepareResultFolder(folder));
  const auto start = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(Demo(folder, tokenizer).Run());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::cout << fmt::format("Done in {:.0f} s. Look at {}\n", taken.count(),
                           fs::absolute(folder / "report.html").lexically_normal().string());
  return absl::OkStatus();
}

}  // namespace

int RunBenchDemo(const Invocation& invocation) {
  for (const std::string& arg : invocation.args) {
    if (arg != "--help" && arg != "-h") continue;
    std::cout << "usage: " << invocation.program << " " << kUsage
              << "\n\nStarts two servers without a model, one with the pace of speculative "
                 "decoding, measures\nboth, compares them and writes workbook and report.\n\n"
              << HelpForUsedFlags(DemoFlagTable());
    return 0;
  }
  const auto command = ParseCommand(DemoFlagTable(), invocation.args);
  if (!command.ok()) return ReportMistake(invocation, kUsage, Message(command.status()));
  if (!command->positionals.empty()) {
    return ReportMistake(invocation, kUsage,
                         fmt::format("unexpected argument '{}'", command->positionals[0]));
  }
  const absl::Status status = RunDemo(command->values);
  if (status.ok()) return 0;
  std::cerr << invocation.program << ": error: " << Message(status) << std::endl;
  return 1;
}

}  // namespace fulgur::cli
