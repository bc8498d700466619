#include "bench/results/aggregate.h"

#include <cmath>
#include <fstream>
#include <random>

#include "bench/results/comparison_json.h"
#include "bench/results/contrast.h"
#include "bench/results/fixture_files.h"
#include "bench/results/result_folder.h"
#include "bench/results/scenarios.h"
#include "bench/results/text_file.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SystemInput System(const std::string& id, const fs::path& path) {
  SystemInput input;
  input.id = id;
  input.path = path;
  return input;
}

Comparison Compare(const AggregateOptions& options) {
  auto comparison = Aggregate(options);
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  return comparison.ok() ? *std::move(comparison) : Comparison();
}

Comparison OfOne(const fs::path& path) {
  AggregateOptions options;
  options.systems = {System("one", path)};
  return Compare(options);
}

Comparison Published() {
  AggregateOptions options;
  for (const char* id : {"baseline", "dspark", "qwen"}) {
    options.systems.push_back(System(id, kTestData / "published" / (std::string(id) + ".json")));
  }
  options.trials = kTestData / "published/trials.json";
  return Compare(options);
}

Contrast Headline(const Comparison& comparison, const char* scenario, int64_t concurrency) {
  const Contrast* contrast = comparison.FindContrast(scenario, concurrency, kHeadlineTag, "avg");
  EXPECT_NE(contrast, nullptr) << scenario << concurrency;
  return contrast == nullptr ? Contrast() : *contrast;
}

std::map<Verdict, int> Verdicts(const Comparison& comparison) {
  std::map<Verdict, int> counts;
  for (const Contrast& contrast : comparison.contrasts) {
    if (contrast.tag == kHeadlineTag && contrast.statistic == "avg") ++counts[contrast.verdict];
  }
  return counts;
}

TEST(PublishedTest, NineImprovedOneNeutralTwoRegressions) {
  const Comparison comparison = Published();
  auto verdicts = Verdicts(comparison);
  EXPECT_EQ(verdicts[Verdict::kImproved], 9);
  EXPECT_EQ(verdicts[Verdict::kNeutral], 1);
  EXPECT_EQ(verdicts[Verdict::kRegression], 2);
  EXPECT_EQ(Headline(comparison, "chat", 16).verdict, Verdict::kNeutral);
  EXPECT_EQ(Headline(comparison, "sum", 8).verdict, Verdict::kRegression);
  EXPECT_EQ(Headline(comparison, "sum", 16).verdict, Verdict::kRegression);
  EXPECT_EQ(Headline(comparison, "sum", 16).note, "no variance");
  EXPECT_TRUE(comparison.problems.empty()) << comparison.problems.front();
}

using TextsByScenario = std::map<std::string, std::vector<std::string>>;

TEST(PublishedTest, SpeedupsAreThoseOfTheTables) {
  const Comparison comparison = Published();
  const TextsByScenario expected = {{"chat", {"1.96x", "1.70x", "1.42x", "1.02x"}},
                                    {"coding", {"2.91x", "2.15x", "2.13x", "1.81x"}},
                                    {"sum", {"2.06x", "1.36x", "0.91x", "0.62x"}}};
  EXPECT_THAT(comparison.concurrencies, ElementsAre(1, 4, 8, 16));
  for (const auto& [scenario, texts] : expected) {
    for (size_t i = 0; i < texts.size(); ++i) {
      const Contrast& contrast =
          Headline(comparison, scenario.c_str(), comparison.concurrencies[i]);
      EXPECT_EQ(fmt::format("{:.2f}x", contrast.speedup.value_or(0)), texts[i]) << scenario << i;
    }
  }
}

TEST(PublishedTest, RatiosToTheReferenceAreThoseOfTheTables) {
  const Comparison comparison = Published();
  const TextsByScenario expected = {{"chat", {"0.40x", "0.38x", "0.35x", "0.31x"}},
                                    {"coding", {"0.59x", "0.50x", "0.47x", "0.44x"}},
                                    {"sum", {"0.43x", "0.30x", "0.21x", "0.18x"}}};
  for (const auto& [scenario, texts] : expected) {
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto rate = [&](const char* system) {
        const CellFacts* cell = comparison.FindCell(system, scenario, comparison.concurrencies[i]);
        return Statistic(cell, kHeadlineTag, "avg").value_or(0);
      };
      EXPECT_EQ(fmt::format("{:.2f}x", rate("dspark") / rate("qwen")), texts[i]) << scenario << i;
    }
  }
}

TEST(PublishedTest, LatencyFallsByTheStatedShares) {
  const Comparison comparison = Published();
  const struct {
    const char* scenario;
    int64_t concurrency;
    int percent;
  } kStated[] = {{"chat", 1, -48}, {"sum", 1, -51}, {"coding", 1, -62}, {"coding", 16, -41}};
  for (const auto& stated : kStated) {
    const Contrast* contrast =
        comparison.FindContrast(stated.scenario, stated.concurrency, "inter_token_latency", "avg");
    ASSERT_NE(contrast, nullptr);
    EXPECT_EQ(std::lround(*contrast->delta_percent), stated.percent);
    EXPECT_EQ(contrast->verdict, Verdict::kImproved);
  }
}

TEST(PublishedTest, GeometricMeans) {
  const Comparison comparison = Published();
  std::map<std::string, std::string> means;
  for (const SpeedupMean& mean : comparison.means) {
    means[mean.scenario] = fmt::format("{:.3f}", mean.mean);
  }
  EXPECT_EQ(means, (std::map<std::string, std::string>{
                       {"", "1.544"}, {"chat", "1.481"}, {"coding", "2.215"}, {"sum", "1.122"}}));
}

TEST(PublishedTest, TheEngineIsAConfounder) {
  const Comparison comparison = Published();
  ASSERT_FALSE(comparison.confounders.empty());
  EXPECT_EQ(comparison.confounders[0].key, "engine");
  EXPECT_THAT(comparison.confounders[0].baseline, HasSubstr("0.22.1rc1"));
  EXPECT_THAT(comparison.confounders[0].treatment, HasSubstr("0.25.1"));
  for (const Confounder& confounder : comparison.confounders) {
    EXPECT_NE(confounder.key, "speculative");
  }
}

TEST(PublishedTest, SystemsCarryLabelsUtilisationAndTrials) {
  const Comparison comparison = Published();
  ASSERT_EQ(comparison.systems.size(), 3U);
  EXPECT_EQ(comparison.systems[2].role, Role::kReference);
  EXPECT_NEAR(*comparison.systems[0].utilisation->busy_avg, 82.2, 1e-9);
  EXPECT_EQ(comparison.systems[1].devices, 16);
  EXPECT_EQ(comparison.scenarios[2].label.at("zh"), "代码智能体 (16384,4096)");
  ASSERT_EQ(comparison.trials.size(), 5U);
  EXPECT_EQ(comparison.trials[4].errors, 19);
  EXPECT_FALSE(comparison.trials[0].delta_percent.has_value());
}

// Nothing that was not published may turn up as a number.
TEST(PublishedTest, EmptyStaysEmpty) {
  const Comparison comparison = Published();
  const CellFacts* cell = comparison.FindCell("dspark", "chat", 4);
  ASSERT_NE(cell, nullptr);
  EXPECT_FALSE(Statistic(cell, "time_to_first_token", "avg").has_value());
  EXPECT_FALSE(cell->errors.has_value());
  EXPECT_FALSE(cell->requests.has_value());
  const Contrast* first = comparison.FindContrast("chat", 4, "time_to_first_token", "avg");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->verdict, Verdict::kNotAvailable);
  EXPECT_FALSE(first->speedup.has_value());
}

TEST(ComparisonJsonTest, IsReadBack) {
  const Comparison comparison = Published();
  const std::string text = ComparisonToJson(comparison);
  EXPECT_EQ(text.find("null"), std::string::npos);
  const auto again = ComparisonFromJson(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ComparisonToJson(*again), text);
  const Json json = Json::parse(text);
  ASSERT_EQ(json["cells"].size(), 36U);
  const Json& cell = json["cells"][0];
  for (const char* key :
       {"system", "scenario", "concurrency", "valid", "errors_by_code", "metrics"}) {
    EXPECT_TRUE(cell.contains(key)) << key;
  }
}

TEST(ComparisonJsonTest, RefusesOtherFiles) {
  for (const char* text : {"", "[]", "{}", R"({"format": "fulgur-comparison/2"})", "{\"format\""}) {
    EXPECT_FALSE(ComparisonFromJson(text).ok()) << text;
  }
}

TEST(ComparisonJsonTest, TextsOfOthersDoNotBreakIt) {
  Comparison comparison;
  CellFacts cell;
  cell.system = "a\"b\\c\n\x01";
  cell.error_groups.push_back({500, "=HYPERLINK(1)", std::string("\0\x0b", 2) + "\xff\xfe", 3});
  comparison.cells.push_back(cell);
  const std::string text = ComparisonToJson(comparison);
  EXPECT_TRUE(Json::accept(text));
  const auto again = ComparisonFromJson(text);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->cells[0].system, cell.system);
}

// Two systems on disk, in the layouts that load generators leave.
class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) /
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    ASSERT_TRUE(WriteTextFile(root_ / file, text).ok());
  }

  // Requests with rates around `rate`, spread by 10 %.
  void WriteCell(const fs::path& folder, double rate, int requests, uint32_t seed) {
    std::mt19937 random(seed);
    std::string lines;
    std::vector<double> rates;
    for (int i = 0; i < requests; ++i) {
      rates.push_back(rate * (0.9 + 0.2 * (static_cast<double>(random() % 1000) / 1000)));
      const int64_t start = 1'786'000'000'000'000'000 + int64_t{i} * 100'000'000;
      lines += Json({{"metadata",
                      {{"session_num", i},
                       {"benchmark_phase", "profiling"},
                       {"request_start_ns", start},
                       {"request_end_ns", start + 90'000'000},
                       {"was_cancelled", false}}},
                     {"metrics",
                      {{"output_token_throughput_per_user",
                        {{"value", rates.back()}, {"unit", "tokens/sec/user"}}}}}})
                   .dump() +
               "\n";
    }
    const MetricBlock block = Summarize(rates, "tokens/sec/user");
    Write(folder / "profile_export.jsonl", lines);
    Write(folder / "profile_export_aiperf.json",
          Json({{"request_count", {{"unit", "requests"}, {"avg", requests}}},
                {"benchmark_duration", {{"unit", "sec"}, {"avg", 100}}},
                {"total_osl", {{"unit", "tokens"}, {"avg", 100 * rate}}},
                {"output_token_throughput_per_user",
                 {{"unit", "tokens/sec/user"},
                  {"avg", *block.avg},
                  {"p50", block.percentiles.at(50)},
                  {"count", requests}}}})
              .dump());
  }

  AggregateOptions Options() {
    AggregateOptions options;
    options.systems = {System("old", root_ / "old"), System("new", root_ / "new")};
    return options;
  }

  fs::path root_;
};

TEST_F(FolderTest, IntervalsDecideTheVerdict) {
  WriteCell("old/chat-c1", 30, 60, 1);
  WriteCell("new/chat-c1", 45, 60, 2);
  WriteCell("old/chat-c4", 30, 60, 3);
  WriteCell("new/chat-c4", 24, 60, 4);
  WriteCell("old/run-1-chat-c8", 30, 4, 5);
  WriteCell("new/run-1-chat-c8", 30, 60, 6);
  const Comparison comparison = Compare(Options());
  EXPECT_TRUE(comparison.problems.empty()) << comparison.problems.front();
  const Contrast& faster = Headline(comparison, "chat", 1);
  EXPECT_EQ(faster.verdict, Verdict::kImproved);
  ASSERT_TRUE(faster.interval.has_value());
  EXPECT_LT(faster.interval->low, *faster.speedup);
  EXPECT_GT(faster.interval->high, *faster.speedup);
  EXPECT_GT(faster.interval->low, 1.4);
  EXPECT_EQ(Headline(comparison, "chat", 4).verdict, Verdict::kRegression);
  EXPECT_TRUE(comparison.FindCell("new", "chat", 8)->valid);
}

TEST_F(FolderTest, EqualInputsGiveEqualFiles) {
  WriteCell("old/chat-c1", 30, 20, 1);
  WriteCell("new/chat-c1", 31, 20, 2);
  EXPECT_EQ(ComparisonToJson(Compare(Options())), ComparisonToJson(Compare(Options())));
}

TEST_F(FolderTest, AMissingCellIsEmptyAndTold) {
  for (const int c : {1, 4}) WriteCell(fmt::format("old/sum-c{}", c), 30, 20, 1);
  WriteCell("new/sum-c1", 40, 20, 2);
  const Comparison comparison = Compare(Options());
  const Contrast& gap = Headline(comparison, "sum", 4);
  EXPECT_EQ(gap.verdict, Verdict::kNotAvailable);
  EXPECT_FALSE(gap.treatment.has_value());
  EXPECT_FALSE(gap.speedup.has_value());
  EXPECT_EQ(comparison.FindCell("new", "sum", 4), nullptr);
  EXPECT_THAT(comparison.problems, ElementsAre("new: sum has no result at concurrency 4"));
}

TEST_F(FolderTest, DuplicatesAreAMistakeUnlessTheLatestIsAskedFor) {
  WriteCell("old/chat-c1", 30, 20, 1);
  WriteCell("new/a-chat-c1", 30, 20, 2);
  WriteCell("new/b-chat-c1", 60, 20, 3);
  fs::last_write_time(root_ / "new/a-chat-c1/profile_export_aiperf.json",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  AggregateOptions options = Options();
  const Comparison twice = Compare(options);
  EXPECT_EQ(twice.FindCell("new", "chat", 1), nullptr);
  ASSERT_FALSE(twice.problems.empty());
  EXPECT_THAT(twice.problems[0], HasSubstr("has 2 results, which are no repetitions"));
  options.latest = true;
  EXPECT_NEAR(*Headline(Compare(options), "chat", 1).speedup, 2.0, 0.1);
}

TEST_F(FolderTest, RepetitionsAreAveraged) {
  for (int i = 1; i <= 3; ++i) {
    WriteCell(fmt::format("old/chat-c1/profile_runs/run_000{}", i), 30 + i, 20, 1);
    WriteCell(fmt::format("new/chat-c1/profile_runs/run_000{}", i), 60 + i, 20, 2);
  }
  const Comparison comparison = Compare(Options());
  const CellFacts* cell = comparison.FindCell("old", "chat", 1);
  ASSERT_NE(cell, nullptr);
  EXPECT_EQ(cell->repetitions, 3);
  EXPECT_EQ(cell->requests, 60);
  EXPECT_GT(cell->repetition_std.at(std::string(kHeadlineTag)), 0.5);
  EXPECT_EQ(cell->provenance.size(), 3U);
}

TEST_F(FolderTest, SummariesOfPhasesAreNotCells) {
  for (const char* system : {"old", "new"}) {
    fs::create_directories(root_ / system);
    fs::copy(kTestData / "real/warmup_gpu", root_ / system / "chat-c3",
             fs::copy_options::recursive);
  }
  const Comparison comparison = Compare(Options());
  EXPECT_EQ(comparison.cells.size(), 2U);
  EXPECT_TRUE(comparison.problems.empty()) << comparison.problems.front();
  const CellFacts* cell = comparison.FindCell("new", "chat", 3);
  ASSERT_NE(cell, nullptr);
  EXPECT_EQ(cell->requests, 5);
  EXPECT_EQ(cell->errors, 4);
  EXPECT_EQ(cell->errors_by_code.at("400"), 1);
  EXPECT_FALSE(cell->valid);
}

TEST_F(FolderTest, DamageIsToldAndTheRestIsMade) {
  WriteCell("old/chat-c1", 30, 20, 1);
  WriteCell("new/chat-c1", 40, 20, 2);
  Write("new/chat-c4/profile_export_aiperf.json", R"({"request_count": {"unit": "requests", "av)");
  Write("new/chat-c8/profile_export_aiperf.json", "");
  Write("new/package.json", R"({"name": "foreign"})");
  Write(
      "new/other/result.json",
      R"({"request_count": {"unit": "requests", "avg": 1}, "benchmark_duration": {"unit": "sec", "avg": 1}})");
  const Comparison comparison = Compare(Options());
  EXPECT_EQ(Headline(comparison, "chat", 1).verdict, Verdict::kImproved);
  ASSERT_EQ(comparison.problems.size(), 4U);
  EXPECT_THAT(comparison.problems[0],
              HasSubstr("chat-c4/profile_export_aiperf.json is not valid JSON"));
  EXPECT_THAT(comparison.problems[1], HasSubstr("is empty; it was skipped"));
  EXPECT_THAT(comparison.problems[2], HasSubstr("says neither a concurrency nor a request rate"));
  EXPECT_THAT(comparison.problems[3], HasSubstr("not a result file that is known here"));
}

TEST_F(FolderTest, OneSystemThatCannotBeReadLeavesTheOther) {
  WriteCell("old/chat-c1", 30, 20, 1);
  const Comparison comparison = Compare(Options());
  EXPECT_EQ(comparison.cells.size(), 1U);
  ASSERT_FALSE(comparison.problems.empty());
  EXPECT_THAT(comparison.problems[0], HasSubstr("neither a folder nor a file"));
}

TEST_F(FolderTest, AFolderMayBeTheCellItself) {
  WriteCell("old/night-c6", 30, 20, 1);
  WriteCell("new/night-c6", 45, 20, 2);
  AggregateOptions options;
  options.systems = {System("old", root_ / "old/night-c6/"), System("new", root_ / "new/night-c6")};
  EXPECT_EQ(Headline(Compare(options), "night", 6).verdict, Verdict::kImproved);
}

TEST_F(FolderTest, FlatFilesInFoldersOfScenarios) {
  const auto flat = [this](const char* system, double rate) {
    WriteCell(fs::path(system) / "draft", rate, 20, 1);
    fs::create_directories(root_ / system / "sum");
    fs::rename(root_ / system / "draft/profile_export_aiperf.json",
               root_ / system / "sum/c16.json");
    fs::rename(root_ / system / "draft/profile_export.jsonl", root_ / system / "sum/c16.jsonl");
  };
  flat("old", 30);
  flat("new", 20);
  const Contrast& contrast = Headline(Compare(Options()), "sum", 16);
  EXPECT_EQ(contrast.verdict, Verdict::kRegression);
  EXPECT_TRUE(contrast.interval.has_value());
}

TEST_F(FolderTest, AManifestOverridesGuessing) {
  WriteCell("data/x1", 30, 20, 1);
  WriteCell("data/x2", 60, 20, 2);
  Write("manifest.json", R"({"format": "fulgur-manifest/1", "results": [
    {"system": "old", "scenario": "night", "concurrency": 3, "path": "data/x1/profile_export_aiperf.json"},
    {"system": "new", "scenario": "night", "concurrency": 3, "path": "data/x2/profile_export_aiperf.json"}]})");
  AggregateOptions options;
  options.systems = {System("old", root_ / "manifest.json"),
                     System("new", root_ / "manifest.json")};
  EXPECT_NEAR(*Headline(Compare(options), "night", 3).speedup, 2.0, 0.1);
}

TEST_F(FolderTest, UtilisationIsJoinedByTheClock) {
  WriteCell("old/chat-c1", 30, 20, 1);
  WriteCell("new/chat-c1", 40, 20, 2);
  std::string log = "# interval=1s\n";
  for (int i = -10; i < 20; ++i) {
    log += fmt::format("{} t {} 60000 5 100 1000\n", 1786000000 + i, i < 0 ? 0 : 80);
  }
  Write("util.log", log);
  AggregateOptions options = Options();
  options.systems[1].utilisation = root_ / "util.log";
  const Comparison comparison = Compare(options);
  const CellFacts* cell = comparison.FindCell("new", "chat", 1);
  ASSERT_TRUE(cell->utilisation.has_value());
  EXPECT_DOUBLE_EQ(*cell->utilisation->busy_avg, 80);
  EXPECT_LT(*comparison.systems[1].utilisation->busy_avg, 80);
  EXPECT_GT(*cell->utilisation->tokens_per_busy_device_second, 0);
  options.systems[1].clock_offset_s = -3600;
  EXPECT_THAT(Compare(options).problems.front(), HasSubstr("no sample inside the window"));
}

TEST_F(FolderTest, TheGateSaysWhy) {
  WriteCell("old/chat-c1", 30, 60, 1);
  WriteCell("new/chat-c1", 20, 60, 2);
  WriteCell("old/chat-c4", 30, 60, 1);
  WriteCell("new/chat-c4", 50, 60, 2);
  const Comparison comparison = Compare(Options());
  EXPECT_TRUE(ApplyGate(comparison, {}).passed);
  const GateResult regression = ApplyGate(comparison, {true, std::nullopt, std::nullopt});
  EXPECT_FALSE(regression.passed);
  ASSERT_EQ(regression.failures.size(), 1U);
  EXPECT_THAT(regression.failures[0], HasSubstr("chat at concurrency 1 is a regression"));
  const GateResult ratio = ApplyGate(comparison, {false, 0.95, std::nullopt});
  EXPECT_EQ(ratio.failures.size(), 1U);
  EXPECT_THAT(ratio.notices, ElementsAre(HasSubstr("the baseline is stale")));
}

TEST(AggregateTest, OptionsThatContradictAreRefused) {
  const auto error = [](AggregateOptions options) { return Sentence(Aggregate(options).status()); };
  AggregateOptions options;
  EXPECT_THAT(error(options), HasSubstr("--system NAME=PATH"));
  options.systems = {System("a", "x"), System("a", "y")};
  EXPECT_THAT(error(options), HasSubstr("given twice"));
  options.systems = {System("a", "x"), System("b", "y")};
  options.baseline = "c";
  EXPECT_THAT(error(options), HasSubstr("the systems are a, b"));
  options.baseline = options.treatment = "a";
  EXPECT_THAT(error(options), HasSubstr("at once"));
  options.treatment = "b";
  options.threshold = 5;
  EXPECT_THAT(error(options), HasSubstr("share between 0 and 1"));
  options.threshold = 0.05;
  EXPECT_THAT(error(options), HasSubstr("neither a folder nor a file"));
}

TEST(ContrastTest, VerdictsFollowSpeedupAndInterval) {
  EXPECT_EQ(Judge(1.06, std::nullopt, 0.05), Verdict::kImproved);
  EXPECT_EQ(Judge(1.04, std::nullopt, 0.05), Verdict::kNeutral);
  EXPECT_EQ(Judge(0.94, std::nullopt, 0.05), Verdict::kRegression);
  EXPECT_EQ(Judge(1.06, Interval{0.99, 1.2}, 0.05), Verdict::kNoise);
  EXPECT_EQ(Judge(1.06, Interval{1.01, 1.2}, 0.05), Verdict::kImproved);
  EXPECT_EQ(Judge(0.94, Interval{0.90, 1.01}, 0.05), Verdict::kNoise);
  EXPECT_EQ(Judge(0.94, Interval{0.90, 0.99}, 0.05), Verdict::kRegression);
  EXPECT_EQ(Judge(1.01, Interval{0.5, 2.0}, 0.05), Verdict::kNeutral);
}

TEST(ContrastTest, ZeroIsNeverARatio) {
  Contrast contrast;
  contrast.baseline = 0.0;
  contrast.treatment = 5.0;
  Complete(0.05, contrast);
  EXPECT_FALSE(contrast.speedup.has_value());
  EXPECT_FALSE(contrast.delta_percent.has_value());
  EXPECT_EQ(contrast.verdict, Verdict::kNotAvailable);
}

// Of intervals made from samples with a known ratio, about 95 % must hold it.
TEST(ContrastTest, TheBootstrapCoversTheTruth) {
  constexpr uint32_t kSeed = 20260801;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937_64 random(kSeed);
  const auto sample = [&random](double mean) {
    std::vector<Share> shares;
    for (int i = 0; i < 50; ++i) {
      double sum = 0;  // nearly normal, spread 0.1
      for (int k = 0; k < 12; ++k) sum += static_cast<double>(random() >> 11) / 9007199254740992.0;
      shares.push_back({mean * (1 + 0.1 * (sum - 6)), 1.0});
    }
    return shares;
  };
  int covered = 0;
  constexpr int kTrials = 200;
  for (int i = 0; i < kTrials; ++i) {
    const auto interval = BootstrapSpeedup(sample(1.0), sample(1.2), true, {400, 42});
    ASSERT_TRUE(interval.has_value());
    if (interval->low <= 1.2 && interval->high >= 1.2) ++covered;
  }
  EXPECT_GE(covered, 180);
  EXPECT_LE(covered, 199);
}

TEST(ContrastTest, RepetitionsGiveAWelchInterval) {
  // scipy: Welch's t on the logarithms of these, exponentiated.
  const std::vector<double> before = {30.0, 31.0, 29.5};
  const std::vector<double> after = {45.0, 47.0, 44.0};
  const auto interval = RepetitionSpeedup(before, after, true);
  ASSERT_TRUE(interval.has_value());
  EXPECT_NEAR(interval->low, 1.40185, 1e-4);
  EXPECT_NEAR(interval->high, 1.61042, 1e-4);
  EXPECT_FALSE(RepetitionSpeedup(before, {{45.0}}, true).has_value());
  EXPECT_FALSE(RepetitionSpeedup(before, {{45.0, 0.0}}, true).has_value());
}

TEST(ScenariosTest, PathsTellScenarioAndConcurrency) {
  const struct {
    const char* path;
    const char* scenario;
    int64_t concurrency;
  } kPaths[] = {{"chat/c1.json", "chat", 1},
                {"dspark-sum-c16/profile_export_aiperf.json", "sum", 16},
                {"concurrency_8/profile_export_aiperf.json", "", 8},
                {"smoke-c2/profile_export_aiperf.json", "smoke", 2},
                {"Coding-C4/profile_export_aiperf.json", "coding", 4},
                {"20260101/model/parallel_32_number_64/benchmark_summary.json", "", 32},
                {"vllm-infqps-concurrency16-m-20260101-000000.json", "", 16}};
  for (const auto& expected : kPaths) {
    const PathHints hints = HintsOf(expected.path);
    EXPECT_EQ(hints.scenario, expected.scenario) << expected.path;
    EXPECT_EQ(hints.concurrency, expected.concurrency) << expected.path;
  }
  EXPECT_FALSE(HintsOf("results/cell.json").concurrency.has_value());
}

TEST(OpenLoopTest, CellsAreToldApartByTheirRate) {
  const fs::path folder = fs::path(testing::TempDir()) / "rates";
  for (const char* rate : {"16", "2", "4.5"}) {
    fs::create_directories(folder / ("chat-r" + std::string(rate)));
    const std::string text = fmt::format(
        R"({{"benchmark_duration": {{"unit": "sec", "avg": 60}}, "input_config": {{"phases": )"
        R"([{{"name": "profiling", "type": "poisson", "rate": {}}}]}}}})",
        rate);
    const auto written =
        WriteTextFile(folder / ("chat-r" + std::string(rate)) / "profile_export_aiperf.json", text);
    ASSERT_TRUE(written.ok()) << written;
  }
  const Comparison comparison = OfOne(folder);
  ASSERT_EQ(comparison.scenarios.size(), 3U);
  EXPECT_EQ(comparison.scenarios[0].id, "chat-rate2");
  EXPECT_EQ(comparison.scenarios[1].id, "chat-rate4.5");
  EXPECT_EQ(comparison.scenarios[1].label.at("en"), "Chat (128,256), 4.5/s");
  EXPECT_EQ(comparison.scenarios[2].id, "chat-rate16");
  EXPECT_THAT(comparison.concurrencies, ElementsAre(kUnlimited));
  EXPECT_TRUE(comparison.problems.empty()) << comparison.problems.front();
  const CellFacts* cell = comparison.FindCell("one", "chat-rate4.5", kUnlimited);
  EXPECT_EQ(Statistic(cell, "fulgur_offered_request_rate", "avg"), 4.5);
  EXPECT_EQ(ConcurrencyName(kUnlimited), "C∞");
}

TEST(TelemetryTest, DevicesBesideAResultStandInForALog) {
  const fs::path folder = fs::path(testing::TempDir()) / "telemetry" / "chat-c2";
  fs::create_directories(folder);
  for (const char* name :
       {"profile_export_aiperf.json", "profile_export.jsonl", "gpu_telemetry_export.jsonl"}) {
    fs::copy_file(kTestData / "real/warmup_gpu" / name, folder / name,
                  fs::copy_options::overwrite_existing);
  }
  const auto comparison = OfOne(folder.parent_path());
  ASSERT_EQ(comparison.cells.size(), 1U);
  const auto& cell = comparison.cells[0].utilisation;
  ASSERT_TRUE(cell.has_value());
  EXPECT_EQ(cell->devices, 2);
  EXPECT_NEAR(*cell->busy_avg, 73.2, 1.0);
  EXPECT_TRUE(cell->joules_per_output_token.has_value());
  const auto& whole = comparison.systems[0].utilisation;
  ASSERT_TRUE(whole.has_value());
  EXPECT_GT(whole->samples, cell->samples);  // the warm-up is in it too
  ASSERT_FALSE(whole->series.empty());
  EXPECT_NEAR(*whole->series[0].memory_mb, 60002, 2);
  // Without the lines the summary's means are used.
  fs::remove(folder / "gpu_telemetry_export.jsonl");
  const auto again = OfOne(folder.parent_path());
  ASSERT_TRUE(again.cells[0].utilisation.has_value());
  EXPECT_NEAR(*again.cells[0].utilisation->busy_avg, 73.17383333333333, 1e-9);
  EXPECT_FALSE(again.systems[0].utilisation.has_value());
}

}  // namespace
}  // namespace fulgur::bench
