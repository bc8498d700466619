#include "bench/load/workload.h"

#include <gmock/gmock.h>

#include <set>

#include "bench/load/run_options.h"

namespace fulgur::bench {
namespace {

constexpr const char* kTinyTokenizer = "src/text/testdata/tiny_tokenizer.json";
constexpr const char* kDemoTokenizer = "models/demo/tokenizer.json";

text::Tokenizer Load(const char* path) { return *text::Tokenizer::Load(path); }

std::string Prompt(const PlannedSession& session) {
  const auto body = nlohmann::json::parse(session.turns.front().body);
  return body["messages"].back()["content"];
}

TEST(PromptText, HasExactlyTheLengthAskedFor) {
  for (const char* path : {kTinyTokenizer, kDemoTokenizer}) {
    const text::Tokenizer tokenizer = Load(path);
    for (const Corpus corpus : {Corpus::kWords, Corpus::kProse, Corpus::kCode}) {
      const PromptText text(tokenizer, corpus);
      RandomStream random(1, "prompts");
      for (const int64_t tokens : {1, 2, 16, 128, 1024}) {
        for (int i = 0; i < (tokens > 500 ? 3 : 20); ++i) {
          const SizedText made = text.Make(tokens, random);
          EXPECT_EQ(
              static_cast<int64_t>(tokenizer.CountTokens(made.text, {.match_added_tokens = false})),
              made.tokens);
          EXPECT_EQ(made.tokens, tokens) << path << " " << static_cast<int>(corpus);
        }
      }
    }
  }
}

TEST(Workload, PromptsDifferFromTheirFirstWordsOn) {
  WorkloadSpec spec;
  spec.lengths = {{.input = {.mean = 64.0}, .output = {.mean = 8.0}}};
  Workload workload(spec, {}, PromptText(Load(kDemoTokenizer), Corpus::kWords));
  std::set<std::string> openings;
  for (int64_t i = 0; i < 500; ++i) {
    openings.insert(Prompt(workload.Make(i, i % 2 == 0)).substr(0, 80));
  }
  EXPECT_EQ(openings.size(), 500U);
}

TEST(Workload, SameSeedSameBodies) {
  WorkloadSpec spec;
  spec.lengths = *ParseLengthMix("30|5,8|2:60;12,4:40");
  const auto make = [&](int64_t seed) {
    spec.seed = seed;
    Workload workload(spec, {}, PromptText(Load(kTinyTokenizer), Corpus::kProse));
    std::vector<std::string> bodies;
    for (int64_t i = 0; i < 20; ++i) bodies.push_back(workload.Make(i, false).turns[0].body);
    return bodies;
  };
  EXPECT_EQ(make(1), make(1));
  EXPECT_NE(make(1), make(2));
}

TEST(Workload, OutputsAreCutToTheModelsLimit) {
  WorkloadSpec spec;
  spec.lengths = {{.input = {.mean = 60.0}, .output = {.mean = 100.0}}};
  spec.max_model_len = 100;
  Workload workload(spec, {}, PromptText(Load(kTinyTokenizer), Corpus::kWords));
  EXPECT_EQ(workload.Make(0, false).turns[0].output_tokens, 40);
  EXPECT_EQ(workload.clipped(), 1);
}

TEST(Lengths, ReadsAllThreeNotations) {
  for (const char* text :
       {"128|16,256|8:60; 1024,128:40", "[(128|16,256|8):60,(1024,128):40]",
        R"({"pairs":[{"isl":128,"isl_stddev":16,"osl":256,"osl_stddev":8,"prob":60},
                     {"isl":1024,"osl":128,"prob":40}]})"}) {
    const auto mix = ParseLengthMix(text);
    ASSERT_TRUE(mix.ok()) << mix.status();
    ASSERT_EQ(mix->size(), 2U);
    EXPECT_EQ((*mix)[0].input.stddev, 16.0);
    EXPECT_EQ((*mix)[1].output.mean, 128.0);
    EXPECT_EQ((*mix)[1].weight, 40.0);
  }
  for (const char* text : {"", "1,2", "1,2:0", "a,b:1", "1|x,2:1", "0,5:1", "{}", "[(1,2)]"}) {
    EXPECT_FALSE(ParseLengthMix(text).ok()) << text;
  }
}

TEST(Lengths, DrawsFollowTheirLaw) {
  RandomStream random(42, "lengths");
  double sum = 0.0;
  for (int i = 0; i < 100'000; ++i) {
    sum += static_cast<double>(DrawLength({.mean = 4096.0, .stddev = 256.0}, random));
  }
  EXPECT_NEAR(sum / 100'000, 4096.5, 4.0);  // rounded up
  for (int i = 0; i < 1000; ++i) {
    const int64_t length = DrawLength({.mean = 100.0, .range_ratio = 0.25}, random);
    EXPECT_GE(length, 75);
    EXPECT_LE(length, 125);
  }
}

TEST(RequestBody, MinTokensNeverExceedsTheOutput) {
  RequestShape shape{.model = "m"};
  ASSERT_TRUE(AddExtraInput("ignore_eos:true", shape.extra).ok());
  ASSERT_TRUE(AddExtraInput(R"({"min_tokens": 4096, "a": {"b": [1]}})", shape.extra).ok());
  RandomStream random(1, "lengths");
  for (int i = 0; i < 2000; ++i) {
    const int64_t output = DrawLength({.mean = 4096.0, .stddev = 256.0}, random);
    const auto body = nlohmann::json::parse(MakeBody(shape, {{"user", "x"}}, output));
    EXPECT_LE(body["min_tokens"].get<int64_t>(), output);
    EXPECT_EQ(body["ignore_eos"], true);
  }
  shape.clamp_min_tokens = false;
  EXPECT_EQ(nlohmann::json::parse(MakeBody(shape, {{"user", "x"}}, 7))["min_tokens"], 4096);
}

TEST(RequestBody, FieldsComeInOrder) {
  RequestShape shape{.model = "m", .per_chunk_usage = true};
  ASSERT_TRUE(AddExtraInput("min_tokens:osl", shape.extra).ok());
  EXPECT_EQ(MakeBody(shape, {{"user", "hi \"you\""}}, 5),
            R"({"messages":[{"role":"user","content":"hi \"you\""}],"model":"m","stream":true,)"
            R"("max_completion_tokens":5,"min_tokens":5,)"
            R"("stream_options":{"include_usage":true,"continuous_usage_stats":true}})");
  shape.endpoint = Endpoint::kCompletions;
  shape.streaming = false;
  EXPECT_EQ(MakeBody(shape, {{"user", "hi"}}, std::nullopt),
            R"({"prompt":"hi","model":"m","stream":false})");
}

TEST(Dataset, ReadsEveryForm) {
  const auto dataset = ParseDataset(
      "{\"text\": \"a\", \"output_length\": 3}\n"
      "nonsense\n"
      "{\"session_id\": \"s\", \"turns\": [{\"text\": \"b\"}, {\"text\": \"c\", \"delay\": "
      "1500}]}\n"
      "{\"turns\": [\"d\", \"e\"]}\n"
      "{\"messages\": [{\"role\": \"system\", \"content\": \"f\"}, {\"role\": \"user\", "
      "\"content\": \"g\"}]}\n"
      "{\"conversations\": [{\"from\": \"human\", \"value\": \"h\"}]}\n",
      "x.jsonl");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ASSERT_EQ(dataset->sessions.size(), 5U);
  EXPECT_EQ(dataset->skipped_lines, 1);
  EXPECT_THAT(dataset->first_problem, testing::StartsWith("x.jsonl:2"));
  EXPECT_EQ(dataset->sessions[0].turns[0].output_tokens, 3);
  EXPECT_EQ(dataset->sessions[1].turns[1].delay_ns, 1'500'000'000);
  EXPECT_EQ(dataset->sessions[3].turns[0].messages.size(), 2U);
  for (const char* bad : {"", "[]", "{}", "[1,2]", "{\"input_length\": -4}", "\xff"}) {
    EXPECT_FALSE(ParseDataset(bad, "x").ok()) << bad;
  }
}

TEST(Dataset, TraceIsCutShiftedAndSpedUp) {
  std::vector<TraceEntry> trace;
  for (const double time : {3000.0, 1000.0, 2000.0, 9000.0}) {
    trace.push_back({.timestamp_ms = time,
                     .has_timestamp = true,
                     .input_length = 10,
                     .output_length = 1,
                     .hash_ids = {}});
  }
  trace[2].input_length = 1000;
  TraceOptions options;
  options.speedup = 2.0;
  options.start_offset_ms = 1000.0;
  options.end_offset_ms = 5000.0;
  options.max_input = 100;
  const auto selected = SelectTrace(trace, options);
  ASSERT_EQ(selected.size(), 3U);
  EXPECT_EQ(selected[0].timestamp_ms, 0.0);
  EXPECT_EQ(selected[1].input_length, 100);
  EXPECT_EQ(selected[2].timestamp_ms, 1000.0);
}

TEST(Suite, ShippedOnesAreGoodAndBadOnesSayWhere) {
  for (const auto& [name, help] : ShippedSuites()) EXPECT_TRUE(LoadSuite(name).ok()) << name;
  const auto seed = *LoadSuite("seed");
  EXPECT_EQ(seed.scenarios.size(), 3U);
  EXPECT_EQ(seed.concurrency, (std::vector<int64_t>{1, 4, 8, 16}));
  EXPECT_THAT(std::string(LoadSuite("nowhere").status().message()),
              testing::HasSubstr("seed, smoke"));
  const auto bad = ParseSuite(
      R"({"format": "fulgur-suite/1", "scenarios": [{"id": "a", "isl": {"mean": -1}}]})", "s.json");
  EXPECT_THAT(std::string(bad.status().message()), testing::HasSubstr("s.json, scenario 1, isl"));
}

}  // namespace
}  // namespace fulgur::bench
