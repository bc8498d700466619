// `fulgur eval`: the accuracy of any server that speaks OpenAI's chat completions.
#include <unistd.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "bench/eval/accuracy.h"
#include "bench/eval/sandbox.h"
#include "bench/results/strings.h"
#include "cli/bench.h"
#include "cli/flag_help.h"
#include "cli/flag_parser.h"
#include "cli/shutdown_signal.h"
#include "cli/subcommands.h"
#include "cli/words.h"
#include "fmt/format.h"
#include "io/mapped_file.h"

namespace fulgur::cli {
namespace {

constexpr FlagSpec kQuestionFlags[] = {
    {.name = "dataset", .help = {"name of the data set", "数据集名称"}},
    {.name = "data", .help = {"its file, as published", "数据文件（发布时的格式）"}},
    {.name = "limit",
     .type = FlagType::kInt,
     .help = {"ask only the first so many questions", "只问前若干题"},
     .range = {.min = 1}},
    {.name = "prompt-template",
     .help = {"file with the wording; {question} and {options} are filled in",
              "提示词模板文件；其中的 {question} 与 {options} 会被替换"}},
    {.name = "rotation",
     .type = FlagType::kInt,
     .default_value = "0",
     .help = {"gpqa: moves the options by so many letters", "gpqa：选项移动的位数"},
     .range = {.min = 0, .max = 3}},
    {.name = "needle-words",
     .type = FlagType::kTextList,
     .default_value = "1000 4000 16000",
     .help = {"needle: lengths of the text, in words", "needle：文本长度（词数）"}},
    {.name = "needle-depths",
     .type = FlagType::kInt,
     .default_value = "5",
     .help = {"needle: places from the beginning to the end", "needle：从开头到结尾的位置数"},
     .range = {.min = 1, .max = 101}},
    {.name = "allow-code-execution",
     .type = FlagType::kBool,
     .help = {"run the code of answers, isolated (humaneval, mbpp, livecodebench)",
              "在隔离环境中运行答案里的代码（humaneval、mbpp、livecodebench）"}},
};

constexpr FlagSpec kServerFlags[] = {
    {.name = "url",
     .default_value = "http://127.0.0.1:8000",
     .help = {"the server", "服务器地址"},
     .aliases = "--base-url"},
    {.name = "model", .help = {"default: the server's first", "默认为服务器的第一个模型"}},
    {.name = "api-key", .help = {"sent as a bearer token", "作为 bearer token 发送"}},
    {.name = "concurrency",
     .type = FlagType::kInt,
     .default_value = "8",
     .help = {"questions on their way at once", "同时进行的提问数"},
     .range = {.min = 1, .max = 4096}},
    {.name = "n-samples",
     .type = FlagType::kInt,
     .default_value = "1",
     .help = {"answers per question; several give maj@k and pass@k",
              "每题的回答数；多于一个时给出 maj@k 与 pass@k"},
     .range = {.min = 1, .max = 1024}},
    {.name = "temperature",
     .type = FlagType::kFloat,
     .default_value = "0",
     .help = {"0 is greedy", "0 为贪心解码"},
     .range = {.min = 0, .max = 2}},
    {.name = "top-p",
     .type = FlagType::kFloat,
     .default_value = "1",
     .help = {"", ""},
     .range = {.min = 0, .max = 1, .above_min = true}},
    {.name = "max-tokens",
     .type = FlagType::kCount,
     .default_value = "4096",
     .help = {"of one answer", "单个回答的上限"},
     .range = {.min = 1}},
    {.name = "thinking",
     .default_value = "default",
     .help = {"on and off are sent as chat_template_kwargs.thinking",
              "on 与 off 通过 chat_template_kwargs.thinking 发送"},
     .choices = "on|off|default"},
    {.name = "seed",
     .type = FlagType::kInt,
     .help = {"of the first sample; the next ones count up", "第一个样本的种子；其后依次加一"}},
    {.name = "extra-body",
     .type = FlagType::kJson,
     .help = {"merged over every request", "合并进每个请求"}},
    {.name = "timeout",
     .type = FlagType::kInt,
     .default_value = "1800",
     .help = {"seconds for one answer", "单个回答的秒数上限"},
     .range = {.min = 1}},
};

constexpr FlagSpec kResultFlags[] = {
    {.name = "out", .help = {"folder for accuracy.json and items.jsonl", "结果目录"}},
    {.name = "regrade",
     .help = {"grade the stored answers of this folder again, without a server",
              "重新评分该目录中保存的回答，无需服务器"}},
    {.name = "compare",
     .help = {"folder of another evaluation to compare with", "用于比较的另一次评测的目录"}},
};

constexpr std::string_view kUsage = "eval --dataset NAME [--data FILE] [--url URL] [--out FOLDER]";

const FlagTable& EvalFlags() {
  static const FlagTable table({{"questions", {"Questions", "题目"}, kQuestionFlags},
                                {"server", {"Server", "服务器"}, kServerFlags},
                                {"result", {"Result", "结果"}, kResultFlags}});
  return table;
}

int Fail(const absl::Status& error) { return ReportFailure("eval", error); }

// Lengths that would not fit in any model's context are mistyped.
constexpr int64_t kMostNeedleWords = 10'000'000;

absl::StatusOr<bench::EvalDataOptions> DataOptionsOf(const FlagValues& values) {
  bench::EvalDataOptions options;
  options.rotation = values.Int("rotation");
  options.needle.depths = values.Int("needle-depths");
  options.needle.words.clear();
  for (const std::string& word : values.List("needle-words")) {
    const auto words = bench::ParseInteger(word);
    if (!words || *words < 1 || *words > kMostNeedleWords) {
      return absl::InvalidArgumentError(
          fmt::format("--needle-words '{}' is no number from 1 to {}", word, kMostNeedleWords));
    }
    options.needle.words.push_back(*words);
  }
  return options;
}

absl::StatusOr<bench::AskOptions> AskOptionsOf(const FlagValues& values) {
  bench::AskOptions ask;
  ask.url = values.String("url");
  ask.model = values.String("model");
  ask.api_key = values.String("api-key");
  ask.concurrency = values.Int("concurrency");
  ask.samples = values.Int("n-samples");
  ask.temperature = values.Float("temperature");
  ask.top_p = values.Float("top-p");
  ask.max_tokens = values.Int("max-tokens");
  ask.timeout_s = values.Int("timeout");
  if (values.String("thinking") != "default") ask.thinking = values.String("thinking") == "on";
  if (values.Given("seed")) ask.seed = values.Int("seed");
  if (values.Given("extra-body")) ask.extra = values.Json("extra-body");
  if (ask.samples > 1 && ask.temperature == 0.0) {
    return absl::InvalidArgumentError(
        "--n-samples above 1 needs --temperature above 0, or all samples are the same");
  }
  if (values.Given("prompt-template")) {
    ASSIGN_OR_RETURN(const io::MappedFile file,
                     io::MappedFile::Open(values.String("prompt-template")));
    ask.prompt_template = file.text();
  }
  return ask;
}

absl::StatusOr<bench::EvalData> DataOf(const FlagValues& values, const std::string& dataset,
                                       const std::string& path) {
  ASSIGN_OR_RETURN(const bench::EvalDataOptions options, DataOptionsOf(values));
  ASSIGN_OR_RETURN(bench::EvalData data, bench::ReadEvalData(dataset, path, options));
  if (data.skipped_rows > 0) {
    std::cerr << fmt::format("{} rows were left out; the first: {}\n", data.skipped_rows,
                             data.first_problem);
  }
  const auto limit = static_cast<size_t>(values.Int("limit"));
  if (values.Given("limit") && data.items.size() > limit) data.items.resize(limit);
  return data;
}

constexpr int64_t kStartSeconds = 2;  // of CPU, for the interpreter and its children

// Grades all answers; code only where it may be run.
absl::StatusOr<std::vector<bench::GradedAnswer>> GradeAll(const FlagValues& values,
                                                          const bench::EvalData& data,
                                                          std::vector<bench::Answer> answers) {
  std::optional<bench::Sandbox> sandbox;
  if (data.kind == bench::AnswerKind::kCode) {
    if (!values.Bool("allow-code-execution")) {
      return absl::FailedPreconditionError(
          "the answers of this data set are programs; they are only run, isolated, with "
          "--allow-code-execution");
    }
    ASSIGN_OR_RETURN(sandbox,
                     bench::Sandbox::Create({.wall = std::chrono::seconds(data.run_seconds),
                                             .cpu_seconds = data.run_seconds + kStartSeconds}));
  }
  std::vector<bench::GradedAnswer> graded;
  for (bench::Answer& answer : answers) {
    const bench::EvalItem& item = data.items[answer.item];
    bench::Grade grade = bench::GradeAnswer(data.kind, item, answer.text);
    if (sandbox && grade.parsed) {
      ASSIGN_OR_RETURN(grade.correct, sandbox->RunProgram(bench::TestProgram(item, grade.answer)));
    }
    graded.push_back({std::move(answer), std::move(grade)});
  }
  return graded;
}

void PrintAccuracy(const bench::Accuracy& accuracy) {
  std::cout << fmt::format("{}: {:.2f} % of {} questions", accuracy.dataset, 100 * accuracy.score,
                           accuracy.num_items);
  if (accuracy.samples > 1) std::cout << fmt::format(", {} samples each", accuracy.samples);
  std::cout << fmt::format("; 95 % interval {:.2f} to {:.2f}, standard error {:.2f}\n",
                           100 * accuracy.interval.low, 100 * accuracy.interval.high,
                           100 * accuracy.standard_error);
  if (accuracy.majority) {
    std::cout << fmt::format("majority of {}: {:.2f} %\n", accuracy.samples,
                             100 * *accuracy.majority);
  }
  for (const auto& [k, share] : accuracy.pass_at) {
    std::cout << fmt::format("pass@{}: {:.2f} %\n", k, 100 * share);
  }
  if (const auto published = bench::FindPublishedScore(accuracy.dataset)) {
    std::cout << fmt::format("expected of DeepSeek-V4-Flash: {:.2f} +/- {:.0f} ({})\n",
                             published->percent, published->tolerance, published->source);
  }
  for (const auto& [name, score] : accuracy.subsets) {
    std::cout << fmt::format("  {}: {} of {}\n", name, score.right, score.total);
  }
  for (const std::string& warning : accuracy.warnings) {
    std::cout << "not valid: " << warning << "\n";
  }
  std::cout << std::flush;
}

void PrintDifference(const bench::AccuracyDifference& d, const std::string& base) {
  std::cout << fmt::format(
      "against {}: {:.2f} % and {:.2f} % on {} common questions; difference {:+.2f} points, 95 % "
      "interval {:+.2f} to {:+.2f}, McNemar p = {:.3f}; {:.1f} % of the answers are byte-equal\n",
      base, 100 * d.first, 100 * d.second, d.items, 100 * (d.first - d.second),
      100 * d.interval.low, 100 * d.interval.high, d.p, 100 * d.equal_texts);
}

absl::Status Compare(const std::string& result, const std::string& base) {
  ASSIGN_OR_RETURN(const bench::StoredAnswers first, bench::ReadAnswers(result));
  ASSIGN_OR_RETURN(const bench::StoredAnswers second, bench::ReadAnswers(base));
  ASSIGN_OR_RETURN(const bench::AccuracyDifference difference,
                   bench::CompareAnswers(first, second));
  PrintDifference(difference, base);
  return absl::OkStatus();
}

void ShowProgress(int64_t done, int64_t failed, int64_t total) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (!terminal && done != total && done % std::max<int64_t>(1, total / 10) != 0) return;
  std::cerr << fmt::format("{}{} of {} answers, {} failed{}", terminal ? "\r" : "", done, total,
                           failed, terminal && done != total ? "" : "\n")
            << std::flush;
}

absl::StatusOr<std::vector<bench::Answer>> Ask(const bench::AskOptions& ask,
                                               const bench::EvalData& data) {
  ShutdownSignal signal;
  signal.Arm();
  const auto total = static_cast<int64_t>(data.items.size()) * ask.samples;
  const auto progress = [total](int64_t done, int64_t failed) {
    ShowProgress(done, failed, total);
  };
  const auto cancelled = [&signal] { return signal.WaitFor(absl::ZeroDuration()); };
  ASSIGN_OR_RETURN(auto answers, bench::AskAll(ask, data, progress, cancelled));
  if (static_cast<int64_t>(answers.size()) < total) {
    std::cerr << fmt::format("interrupted: {} of {} answers are kept\n", answers.size(), total);
  }
  return answers;
}

// Prints, writes and compares; the exit code says whether the score is valid.
int Finish(const FlagValues& values, const bench::EvalRun& run, const bench::EvalData& data,
           std::vector<bench::Answer> answers, std::string model, const std::string& folder) {
  const auto graded = GradeAll(values, data, std::move(answers));
  if (!graded.ok()) return Fail(graded.status());
  bench::Accuracy accuracy = bench::Summarise(data, *graded);
  accuracy.model = std::move(model);
  PrintAccuracy(accuracy);
  if (!folder.empty()) {
    const absl::Status written = bench::WriteAccuracy(folder, run, data, accuracy, *graded);
    if (!written.ok()) return Fail(written);
    std::cout << "written to " << folder << std::endl;
  }
  if (values.Given("compare")) {
    const absl::Status compared = Compare(folder, values.String("compare"));
    if (!compared.ok()) return Fail(compared);
  }
  return accuracy.valid() ? 0 : kExitPartial;
}

int RunAsk(const FlagValues& values, bench::AskOptions ask, const bench::EvalData& data) {
  if (ask.prompt_template.empty()) ask.prompt_template = bench::DefaultTemplate(data.kind);
  auto answers = Ask(ask, data);
  if (!answers.ok()) return Fail(answers.status());
  const bench::EvalRun run{.data_path = values.String("data"), .ask = ask};
  return Finish(values, run, data, *std::move(answers), ask.model, values.String("out"));
}

int RunRegrade(const FlagValues& values) {
  const std::string folder = values.String("regrade");
  const auto stored = bench::ReadAnswers(folder);
  if (!stored.ok()) return Fail(stored.status());
  const std::string path = values.Given("data") ? values.String("data") : stored->data_path;
  const auto data = DataOf(values, stored->dataset, path);
  if (!data.ok()) return Fail(data.status());
  bench::EvalRun run{.data_path = path};
  return Finish(values, run, *data, bench::AnswersOf(*stored, *data), stored->model,
                values.String("out"));
}

std::string Help(const std::string& program) {
  std::string text = fmt::format(
      "usage: {} {}\n       {} eval --regrade FOLDER | eval --compare BASE FOLDER\n\n"
      "Asks a server questions with known answers and says how many it gets right.\n\nData sets:\n",
      program, kUsage, program);
  for (const bench::DatasetHelp& known : bench::KnownDatasets()) {
    text += fmt::format("  {:<15}{}\n", known.name, known.help);
  }
  return text + "\n" + HelpForUsedFlags(EvalFlags());
}

absl::StatusOr<std::function<int()>> Prepare(const ParsedCommand& command) {
  const FlagValues& values = command.values;
  const auto& words = command.positionals;
  if (values.Given("compare") && words.size() == 1) {
    return [&values, folder = words[0]] {
      const absl::Status compared = Compare(folder, values.String("compare"));
      return compared.ok() ? 0 : Fail(compared);
    };
  }
  if (!words.empty()) {
    return absl::InvalidArgumentError(fmt::format("unexpected argument '{}'", words[0]));
  }
  if (values.Given("compare") && !values.Given("out")) {
    return absl::InvalidArgumentError("--compare needs --out FOLDER for this evaluation's answers");
  }
  if (values.Given("regrade")) return [&values] { return RunRegrade(values); };
  if (!values.Given("dataset")) {
    return absl::InvalidArgumentError("--dataset is missing; --help lists the data sets");
  }
  ASSIGN_OR_RETURN(bench::AskOptions ask, AskOptionsOf(values));
  ASSIGN_OR_RETURN(bench::EvalData data,
                   DataOf(values, values.String("dataset"), values.String("data")));
  return
      [&values, ask = std::move(ask), data = std::move(data)] { return RunAsk(values, ask, data); };
}

}  // namespace

int RunEval(const Invocation& invocation) {
  for (const std::string& arg : invocation.args) {
    if (arg != "--help" && arg != "-h") continue;
    std::cout << Help(invocation.program);
    return 0;
  }
  const auto command = ParseCommand(EvalFlags(), invocation.args);
  if (!command.ok()) {
    return ReportMistake(invocation, std::string(kUsage), Message(command.status()));
  }
  const auto run = Prepare(*command);
  if (!run.ok()) return ReportMistake(invocation, std::string(kUsage), Message(run.status()));
  return (*run)();
}

}  // namespace fulgur::cli
