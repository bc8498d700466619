#include "bench/results/lint.h"

#include <fstream>
#include <memory>
#include <sstream>

#include "bench/results/error_groups.h"
#include "bench/results/fixture_files.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Json = nlohmann::json;

using FoundFinding = std::shared_ptr<const LintFinding>;

FoundFinding Find(const std::vector<LintFinding>& findings, const std::string& rule,
                  Severity severity) {
  for (const LintFinding& finding : findings) {
    if (finding.rule == rule && finding.severity == severity) {
      return std::make_shared<const LintFinding>(finding);
    }
  }
  return nullptr;
}

std::vector<std::string> Fired(const Result& result) {
  std::vector<std::string> rules;
  for (const LintFinding& finding : Lint(result, {})) {
    if (finding.severity != Severity::kPass) rules.push_back(finding.rule);
  }
  return rules;
}

// Errors, answers of another length, a short run and an error inside a stream are in this run;
// everything else is in order.
TEST(LintTest, OnlyWhatIsWrongFires) {
  const Result result = ReadOne(kTestData / "real/mixed/profile_export_aiperf.json");
  EXPECT_THAT(Fired(result), UnorderedElementsAre("A1", "L9", "L10", "L12", "L17"));
}

TEST(LintTest, NumbersOfRealFilesAgreeWithEachOther) {
  for (const char* folder : {"mixed", "warmup_gpu", "cancel", "aiperf_0_11"}) {
    const Result result = ReadOne(kTestData / "real" / folder / "profile_export_aiperf.json");
    for (const LintFinding& finding : Lint(result, {})) {
      if (finding.severity != Severity::kFail) continue;
      EXPECT_EQ(finding.rule, "L9") << finding.text;
    }
  }
}

TEST(LintTest, TwoSpansOfACancelledRunAreTold) {
  const Result result = ReadOne(kTestData / "real/cancel/profile_export_aiperf.json");
  const FoundFinding finding = Find(Lint(result, {}), "L5", Severity::kWarn);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->text, HasSubstr("0.865 s and benchmark_duration 0.616 s"));
}

TEST(LintTest, CountsAnswersWithoutUsage) {
  const Result result = ReadOne(kTestData / "real/mixed/profile_export_aiperf.json");
  const FoundFinding finding = Find(Lint(result, {}), "L17", Severity::kWarn);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->text, HasSubstr("2 of 16 answers"));
}

TEST(LintTest, AnOldChatClientIsNamed) {
  const Result result = ReadOne(kTestData / "worked_example/vllm_bench_result.json");
  EXPECT_NE(Find(Lint(result, {}), "P3", Severity::kWarn), nullptr);
}

TEST(LintTest, EmptyAnswersOfEvalscopeAreTold) {
  const Result result = ReadOne(kTestData / "real/evalscope_1_14/chat/benchmark_summary.json");
  EXPECT_NE(Find(Lint(result, {}), "P9", Severity::kWarn), nullptr);
}

// A file as aiperf 0.11 writes it for the published coding cell: 31 requests, 19 errors.
std::string CodingCell(int errors) {
  Json json = {{"schema_version", "1.3"},
               {"aiperf_version", "0.11.0"},
               {"request_count", {{"unit", "requests"}, {"avg", 50 - errors}}},
               {"request_latency", {{"unit", "ms"}, {"avg", 56641.6}, {"count", 50 - errors}}},
               {"benchmark_duration", {{"unit", "sec"}, {"avg", 1755.9}}},
               {"input_config",
                {{"endpoint",
                  {{"type", "chat"},
                   {"streaming", true},
                   {"extra", {{"ignore_eos", true}, {"min_tokens", 4096}}}}},
                 {"datasets",
                  {{{"name", "main"},
                    {"prompts",
                     {{"isl", {{"mean", 550}}},
                      {"sequence_distribution",
                       {{{"isl", {{"mean", 16384}, {"stddev", 1024}}},
                         {"osl", {{"mean", 4096}, {"stddev", 256}}},
                         {"probability", 1.0}}}}}}}}},
                 {"phases",
                  {{{"name", "profiling"},
                    {"type", "concurrency"},
                    {"requests", 50},
                    {"concurrency", 1}}}}}},
               {"run_info", {{"random_seed", 42}, {"trial", 0}}}};
  if (errors > 0) {
    json["error_request_count"] = {{"unit", "requests"}, {"avg", errors}};
    for (int i = 0; i < errors; ++i) {
      const std::string body =
          "{\"error\": {\"message\": \"min_tokens must be less than or equal to max_tokens=" +
          std::to_string(3700 + i) + ", got 4096.\", \"code\": 400}}";
      json["error_summary"].push_back(
          {{"error_details", {{"code", 400}, {"type", "Bad Request"}, {"message", body}}},
           {"count", 1}});
    }
  }
  return json.dump();
}

Result Parse(const std::string& text) {
  auto results = ParseResults(text, "coding-c1/profile_export_aiperf.json");
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? results->front() : Result();
}

TEST(LintTest, ExplainsThePublishedCodingCells) {
  const auto findings = Lint(Parse(CodingCell(19)), {});
  const FoundFinding cause = Find(findings, "P11", Severity::kFail);
  ASSERT_NE(cause, nullptr);
  EXPECT_THAT(cause->text,
              HasSubstr("exactly 19 of 50 requests ask for fewer tokens than min_tokens"));
  EXPECT_THAT(cause->text, HasSubstr("19 is the very number of errors with code 400"));
  EXPECT_THAT(cause->text, HasSubstr("no option of the server"));
  const FoundFinding errors = Find(findings, "L18", Severity::kPass);
  ASSERT_NE(errors, nullptr);
  EXPECT_THAT(
      errors->text,
      HasSubstr("19 x 400 (min_tokens must be less than or equal to max_tokens=#, got #.)"));
}

TEST(LintTest, ExplainsThemFromThePublishedNumbersAlone) {
  int explained = 0;
  for (const Result& result : ReadAll(kTestData / "published/dspark.json")) {
    const auto findings = Lint(result, {});
    const FoundFinding cause = Find(findings, "P11", Severity::kFail);
    EXPECT_EQ(cause != nullptr, result.cell.scenario == "coding") << result.cell.scenario;
    if (cause == nullptr) continue;
    EXPECT_THAT(cause->text, HasSubstr("at most 31 of 50 requests can be measured"));
    ++explained;
  }
  EXPECT_EQ(explained, 4);
}

// The means of rates and the mean latencies were published together; they agree.
TEST(LintTest, ThePublishedMeansAgree) {
  int checked = 0;
  for (const char* file : {"baseline.json", "dspark.json"}) {
    for (const Result& result : ReadAll(kTestData / "published" / file)) {
      if (!result.cell.metrics.contains("inter_token_latency")) continue;
      EXPECT_NE(Find(Lint(result, {}), "L6", Severity::kPass), nullptr) << file;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 8);
}

TEST(LintTest, AnotherSeedIsCountedToo) {
  std::string text = CodingCell(0);
  text.replace(text.find("\"random_seed\":42"), 16, "\"random_seed\":43");
  const FoundFinding cause = Find(Lint(Parse(text), {}), "P11", Severity::kFail);
  ASSERT_NE(cause, nullptr);
  EXPECT_THAT(cause->text, HasSubstr("with seed 43"));
}

TEST(LintTest, MinTokensThatFollowTheLengthAreFine) {
  std::string text = CodingCell(0);
  text.replace(text.find("\"min_tokens\":4096"), 17, "\"min_tokens\":\"osl\"");
  EXPECT_EQ(Find(Lint(Parse(text), {}), "P11", Severity::kFail), nullptr);
}

struct Breach {
  std::string rule;
  std::string from, to;  // in the worked example's text
};

void PrintTo(const Breach& breach, std::ostream* out) { *out << breach.rule << " " << breach.to; }

class BreachTest : public ::testing::TestWithParam<Breach> {};

std::string WorkedExample() {
  std::ostringstream text;
  text << std::ifstream(kTestData / "worked_example/profile_export_aiperf.json").rdbuf();
  return text.str();
}

// One number changed in a file that is in order: its rule fires.
TEST_P(BreachTest, Fires) {
  std::string text = WorkedExample();
  EXPECT_EQ(Find(Lint(Parse(text), {}), GetParam().rule, Severity::kFail), nullptr);
  const size_t at = text.find(GetParam().from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, GetParam().from.size(), GetParam().to);
  EXPECT_NE(Find(Lint(Parse(text), {}), GetParam().rule, Severity::kFail), nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    Lint, BreachTest,
    ::testing::Values(Breach{"L1", "\"p99\": 398.5", "\"p99\": 98.5"},
                      Breach{"L2", "\"sum\": 1305.0", "\"sum\": 1405.0"},
                      Breach{"L3",
                             "\"request_count\": {\n    \"unit\": \"requests\",\n    \"avg\": 4",
                             "\"request_count\": {\n    \"unit\": \"requests\",\n    \"avg\": 5"},
                      Breach{"L4", "\"total_osl\": {\n    \"unit\": \"tokens\",\n    \"avg\": 36",
                             "\"total_osl\": {\n    \"unit\": \"tokens\",\n    \"avg\": 39"},
                      Breach{"L5", "\"avg\": 50.99", "\"avg\": 60.99"},
                      Breach{"L6", "\"avg\": 109.72", "\"avg\": 79.72"},
                      Breach{"L7", "\"concurrency\": 2", "\"concurrency\": 1"},
                      Breach{"L14", "\"was_cancelled\": false", "\"was_cancelled\": true"},
                      Breach{"L14", "\"is_complete\": true", "\"is_complete\": false"},
                      Breach{"T1", "\"avg\": 250.0", "\"avg\": 2500.0"}));

Result ClosedLoop(int64_t concurrency, double step_ms) {
  Result result;
  result.cell.concurrency = concurrency;
  for (int64_t i = 0; i < 10 * concurrency; ++i) {
    RequestLine line;
    line.session = i;
    line.start_ns = 1'000'000 * (i + 1);
    line.end_ns = line.start_ns + 1'000'000'000;
    const double first = 100.0 + step_ms * static_cast<double>(i % concurrency);
    line.metrics.values = {{"time_to_first_token", first},
                           {"request_latency", first + 90},
                           {"output_sequence_length", 10},
                           {"inter_token_latency", 10}};
    result.requests.push_back(line);
  }
  return result;
}

TEST(LintTest, LockStepIsSeen) {
  EXPECT_NE(Find(Lint(ClosedLoop(8, 20), {}), "P14", Severity::kWarn), nullptr);
  EXPECT_NE(Find(Lint(ClosedLoop(8, 1), {}), "P14", Severity::kPass), nullptr);
}

TEST(LintTest, LatenciesThatDoNotAddUpFail) {
  Result result = ClosedLoop(2, 0);
  EXPECT_NE(Find(Lint(result, {}), "L8", Severity::kPass), nullptr);
  result.requests[3].metrics.values["inter_token_latency"] = 11;
  EXPECT_NE(Find(Lint(result, {}), "L8", Severity::kFail), nullptr);
}

// The last request's first message carries four tokens: 90 ms over the other six.
TEST(LintTest, FirstChunksAreLeftOutWhereThePlanSaysSo) {
  Result result = ClosedLoop(2, 0);
  result.plan.per_chunk_usage = true;
  EXPECT_NE(Find(Lint(result, {}), "L8", Severity::kPass), nullptr);
  result.requests.back().metrics.values["inter_token_latency"] = 15;
  EXPECT_NE(Find(Lint(result, {}), "L8", Severity::kPass), nullptr);
  result.requests.back().metrics.values["inter_token_latency"] = 13;
  EXPECT_NE(Find(Lint(result, {}), "L8", Severity::kFail), nullptr);
}

TEST(LintTest, ClocksThatJumpFail) {
  Result result = ClosedLoop(2, 0);
  result.requests[0].end_ns = result.requests[0].start_ns - 5;
  EXPECT_NE(Find(Lint(result, {}), "T2", Severity::kFail), nullptr);
}

TEST(LintTest, ARunWithoutASuccessFails) {
  Result result;
  result.cell.metrics["request_count"] = Scalar(0, "requests");
  result.cell.metrics["error_request_count"] = Scalar(20, "requests");
  const FoundFinding finding = Find(Lint(result, {}), "L9", Severity::kFail);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->text, HasSubstr("20 of 20 requests failed"));
}

TEST(LintTest, NothingKnownIsNoFinding) {
  const auto findings = Lint(Result(), {});
  for (const LintFinding& finding : findings) EXPECT_EQ(finding.severity, Severity::kPass);
}

TEST(ErrorGroupsTest, MessagesThatDifferInNumbersAreOneGroup) {
  const auto groups = GroupForPeople({{400, "Bad Request", "length 12 is above 5", 1},
                                      {503, "Service Unavailable", "busy", 5},
                                      {400, "Bad Request", "length 7777 is above 5", 2}});
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].count, 5);
  EXPECT_EQ(groups[1].message, "length # is above #");
  EXPECT_EQ(groups[1].count, 3);
}

TEST(ErrorGroupsTest, LongAndOddMessagesStayShort) {
  EXPECT_LT(MaskedMessage(std::string(40'000, 'x')).size(), 300U);
  EXPECT_EQ(MaskedMessage("{\"message\": \"a\"}"), "a");
  EXPECT_EQ(MaskedMessage("{broken"), "{broken");
}

// Acceptance rates by position and the length that a server tells beside them.
Result Drafting(std::vector<double> rates, double length) {
  Result result;
  for (size_t i = 0; i < rates.size(); ++i) {
    const std::string tag = "fulgur_acceptance_rate_position_" + std::to_string(i + 1);
    result.cell.metrics[tag] = Scalar(rates[i], "ratio");
  }
  result.cell.metrics["spec_decode_acceptance_length"] = Scalar(length, "tokens");
  return result;
}

TEST(LintTest, AcceptanceMustFitTheDrafts) {
  const auto severity = [](const Result& result) {
    for (const LintFinding& finding : Lint(result, {})) {
      if (finding.rule == "L15") return std::string(SeverityName(finding.severity));
    }
    return std::string("silent");
  };
  EXPECT_EQ(severity(Drafting({0.88, 0.74, 0.58, 0.49, 0.40}, 4.09)), "pass");
  EXPECT_EQ(severity(Drafting({0.88, 0.74, 0.58, 0.49, 0.40}, 3.09)), "warn");
  EXPECT_EQ(severity(Drafting({0.9, 0.8}, 3.5)), "fail");
  EXPECT_EQ(severity(Drafting({0.5, 0.6}, 2.1)), "fail");
  EXPECT_EQ(severity(Drafting({1.2}, 2.0)), "fail");
  EXPECT_EQ(severity(Drafting({}, 0.9)), "fail");
  EXPECT_EQ(severity(Drafting({}, 9.0)), "pass");
  Result counted = Drafting({}, 9.0);
  counted.cell.metrics["total_draft_tokens"] = Scalar(700, "tokens");
  counted.cell.metrics["total_spec_decode_steps"] = Scalar(100, "count");
  EXPECT_EQ(severity(counted), "fail");
  EXPECT_EQ(severity(Result()), "silent");
}

TEST(LintTest, TextThatWasHeldBackIsSeen) {
  Result result;
  result.cell.metrics["fulgur_first_chunk_tokens"] = Scalar(40, "tokens");
  const FoundFinding finding = Find(Lint(result, {}), "P6", Severity::kWarn);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->text, HasSubstr("40 tokens: something holds text back"));
}

}  // namespace
}  // namespace fulgur::bench
