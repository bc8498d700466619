#include "cli/serve_options.h"

#include <string>
#include <vector>

#include "cli/flag_parser.h"
#include "cli/words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fulgur::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

absl::StatusOr<ServeOptions> Build(const Words& words, const Environment& environment = {}) {
  const auto command = ParseCommand(ServeFlags(), words);
  if (!command.ok()) return command.status();
  base::Machine machine;
  machine.usable_cores = 6;
  return BuildServeOptions(*command, environment, machine);
}

TEST(ServeOptionsTest, HasDefaults) {
  const ServeOptions options = *Build({"/models/m"});
  EXPECT_EQ(options.model, "/models/m");
  EXPECT_EQ(options.tokenizer, "/models/m");
  EXPECT_EQ(options.max_model_len, std::nullopt);
  EXPECT_EQ(options.engine.seed, std::nullopt);
  EXPECT_EQ(options.engine.memory.kv_cache_bytes, std::nullopt);
  EXPECT_EQ(options.engine.limits.max_num_seqs, 64);
  EXPECT_TRUE(options.engine.limits.chunked_prefill);
  EXPECT_EQ(options.engine.limits.policy, sched::Policy::kFcfs);
  EXPECT_THAT(options.server.served_model_names, ElementsAre("/models/m"));
  EXPECT_EQ(options.server.listen.port, 8000);
  EXPECT_THAT(options.server.cors.allowed_origins, ElementsAre("*"));
  EXPECT_EQ(options.server.chat.reasoning_field, server::ReasoningField::kBoth);
  EXPECT_FALSE(options.server.chat.tool_parser);
  EXPECT_EQ(options.shutdown_timeout, absl::ZeroDuration());
  EXPECT_TRUE(options.server.access_log);
  EXPECT_EQ(options.server.max_log_len, -1);
}

TEST(ServeOptionsTest, TakesValuesFromFlags) {
  const ServeOptions options = *Build({"m",
                                       "--served-model-name",
                                       "a",
                                       "b",
                                       "--max-model-len",
                                       "auto",
                                       "--kv-cache-memory-bytes",
                                       "2G",
                                       "--scheduling-policy",
                                       "priority",
                                       "--seed",
                                       "7",
                                       "--load-format",
                                       "dummy",
                                       "--safetensors-load-strategy",
                                       "prefetch",
                                       "--precision",
                                       "reference",
                                       "--kernels",
                                       "scalar",
                                       "--threads",
                                       "3",
                                       "--api-key",
                                       "k1",
                                       "k2",
                                       "--shutdown-timeout",
                                       "2.5",
                                       "--disable-access-log-for-endpoints",
                                       "/health,/metrics",
                                       "--reasoning-effort-map",
                                       "{\"medium\": \"high\"}",
                                       "--override-generation-config",
                                       "{\"temperature\": 0.5, \"top_k\": 3}",
                                       "--skip-tokenizer-init"});
  EXPECT_THAT(options.server.served_model_names, ElementsAre("a", "b"));
  EXPECT_EQ(options.max_model_len, -1);
  EXPECT_EQ(options.engine.memory.kv_cache_bytes, int64_t{2} << 30);
  EXPECT_EQ(options.engine.limits.policy, sched::Policy::kPriority);
  EXPECT_EQ(options.engine.seed, 7U);
  EXPECT_TRUE(options.dummy_weights);
  EXPECT_EQ(options.load_strategy, model::LoadStrategy::kPrefetch);
  EXPECT_EQ(options.engine.precision, model::Precision::kReference);
  EXPECT_EQ(options.engine.ops, kernels::OpChoice::kScalar);
  EXPECT_EQ(options.engine.num_threads, 3);
  EXPECT_THAT(options.server.api_keys, ElementsAre("k1", "k2"));
  EXPECT_EQ(options.shutdown_timeout, absl::Milliseconds(2500));
  EXPECT_THAT(options.server.access_log_excluded_paths, ElementsAre("/health", "/metrics"));
  EXPECT_EQ(options.server.chat.effort_map.at("medium"), "high");
  EXPECT_EQ(options.generation_overrides.temperature, 0.5F);
  EXPECT_EQ(options.generation_overrides.top_k, 3);
  EXPECT_EQ(options.tokenizer, "");
}

TEST(ServeOptionsTest, TakesTheKeyFromTheEnvironment) {
  EXPECT_THAT(Build({"m"}, {{"VLLM_API_KEY", "k"}})->server.api_keys, ElementsAre("k"));
  EXPECT_THAT(Build({"m", "--api-key", "x"}, {{"VLLM_API_KEY", "k"}})->server.api_keys,
              ElementsAre("x"));
}

TEST(ServeOptionsTest, LoadsWithThreads) {
  EXPECT_EQ(Build({"m", "--model-loader-extra-config",
                   R"({"enable_multithread_load": true, "num_threads": 128})"})
                ->load_threads,
            128);
  EXPECT_EQ(
      Build({"m", "--model-loader-extra-config.enable_multithread_load", "true"})->load_threads, 8);
  EXPECT_EQ(Build({"m", "--model-loader-extra-config", "{}"})->load_threads, 6);
}

TEST(ServeOptionsTest, ScriptsDoWithATokenizer) {
  const ServeOptions options = *Build({"--scripted-output", "a.jsonl", "--tokenizer", "/t"});
  EXPECT_EQ(options.script, "a.jsonl");
  EXPECT_EQ(options.model, "/t");
}

struct Mistake {
  Words words;
  std::string sentence;
};

class ServeMistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(ServeMistakeTest, SaysWhatIsWrong) {
  const auto options = Build(GetParam().words);
  ASSERT_FALSE(options.ok());
  EXPECT_THAT(Message(options.status()), HasSubstr(GetParam().sentence));
}

INSTANTIATE_TEST_SUITE_P(
    Combinations, ServeMistakeTest,
    ::testing::Values(
        Mistake{{}, "No model specified!"},
        Mistake{{"--served-model-name", "x"}, "--served-model-name takes every word"},
        Mistake{{"a", "b"}, "unexpected argument 'b'"},
        Mistake{{"a", "--model", "b"}, "two models are given"},
        Mistake{{"m", "--tool-call-parser", "hermes"},
                "invalid tool call parser: hermes (chose from { deepseek_v4 })"},
        Mistake{{"m", "--reasoning-parser", "r1"},
                "invalid reasoning parser: r1 (chose from { deepseek_v4 })"},
        Mistake{{"m", "--enable-auto-tool-choice"},
                "--enable-auto-tool-choice requires --tool-call-parser"},
        Mistake{{"m", "--enable-log-outputs"}, "requires --enable-log-requests"},
        Mistake{{"m", "--data-parallel-hybrid-lb", "--data-parallel-external-lb"},
                "exclude each other"},
        Mistake{{"m", "--fingerprint-mode", "custom"}, "requires --fingerprint-value"},
        Mistake{{"m", "--ssl-keyfile", "k"}, "go together"},
        Mistake{{"m", "--max-num-batched-tokens", "8", "--max-num-seqs", "16"},
                "--max-num-batched-tokens 8 is below --max-num-seqs 16"},
        Mistake{{"m", "--no-enable-chunked-prefill", "--max-num-batched-tokens", "1000",
                 "--max-model-len", "2000"},
                "--max-num-batched-tokens 1000 is below --max-model-len 2000"},
        Mistake{{"m", "--model-loader-extra-config", R"({"enable_multithread_load": "true"})"},
                "enable_multithread_load must be a bool"},
        Mistake{{"m", "--model-loader-extra-config", R"({"num_threads": 0})"},
                "num_threads must be a positive integer, not 0"},
        Mistake{{"m", "--model-loader-extra-config", R"({"num_thread": 1})"},
                "unexpected key 'num_thread', did you mean 'num_threads'?"},
        Mistake{{"m", "--model-loader-extra-config", R"({"enable_multithread_load": true})",
                 "--safetensors-load-strategy", "prefetch"},
                "conflicts with --safetensors-load-strategy prefetch"},
        Mistake{{"m", "--speculative-config", R"({"num_speculative_tokens": -1})"},
                "num_speculative_tokens must be a positive integer, not -1"},
        Mistake{{"m", "--speculative-config", R"({"num_speculative_tokens": "5"})"},
                "must be a positive integer"},
        Mistake{{"m", "--kv-transfer-config", R"({"kv_role": "producer"})"},
                "kv_role must be one of kv_producer, kv_consumer, kv_both"},
        Mistake{{"m", "--kv-transfer-config", R"({"kv_connector": "X"})"}, "needs a kv_role"},
        Mistake{{"m", "--kv-transfer-config", R"({"kv_conector": "X"})"},
                "did you mean 'kv_connector'?"},
        Mistake{{"m", "--additional-config", R"({"enable_cpu_binding": "true"})"},
                "enable_cpu_binding must be a bool"},
        Mistake{{"m", "--override-generation-config", R"({"temperature": "hot"})"},
                "--override-generation-config: "},
        Mistake{{"m", "--reasoning-effort-map", R"({"medium": 1})"}, "must be a text"}));

TEST(RefusedFlagsTest, NamesWhatIsAskedForInVain) {
  const auto refused = [](const Words& words) {
    return RefusedFlags(ParseCommand(ServeFlags(), words)->values);
  };
  EXPECT_THAT(refused({"m", "-tp", "1", "-dp", "1", "--no-enable-lora", "--kv-transfer-config",
                       "{}", "--tool-parser-plugin", "", "--no-disable-hybrid-kv-cache-manager"}),
              ElementsAre());
  EXPECT_THAT(refused({"m", "-tp", "8", "--disable-hybrid-kv-cache-manager"}),
              ElementsAre(HasSubstr("--disable-hybrid-kv-cache-manager: "),
                          HasSubstr("--tensor-parallel-size 8: one process")));
}

// The table says "used" of exactly those flags that something is done with.
TEST(ServeOptionsTest, LooksAtEveryUsedFlag) {
  const auto command = ParseCommand(ServeFlags(), Words{"m"});
  ASSERT_TRUE(BuildServeOptions(*command, {}, {}).ok());
  std::set<std::string_view> handled = command->values.reads();
  handled.insert({"config", "dry-run"});  // looked at before
  for (const FlagGroup& group : ServeFlags().groups()) {
    for (const FlagSpec& flag : group.flags) {
      if (flag.effect == FlagEffect::kUsed) {
        EXPECT_TRUE(handled.contains(flag.name)) << flag.name;
      }
    }
  }
}

}  // namespace
}  // namespace fulgur::cli
