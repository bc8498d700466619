#include "cli/flag_parser.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/flag_table.h"
#include "cli/words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fulgur::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

absl::StatusOr<ParsedCommand> Parse(const Words& words) {
  return ParseCommand(ServeFlags(), words);
}

// Splits at spaces; for values without any.
ParsedCommand ParseLine(std::string_view line) {
  const auto words = SplitWords(line, ' ');
  auto command = Parse(Words(words.begin(), words.end()));
  EXPECT_TRUE(command.ok()) << line << ": " << command.status();
  return command.ok() ? *std::move(command) : ParsedCommand{FlagValues(ServeFlags()), {}, {}};
}

std::string ErrorOf(const Words& words) {
  const auto command = Parse(words);
  EXPECT_FALSE(command.ok()) << ::testing::PrintToString(words);
  return std::string(command.status().message());
}

std::string WriteConfig(std::string_view text) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = ::testing::TempDir() + "/" + test->name() + ".yaml";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(FlagParserTest, TakesSpellingsOfTheSameFlag) {
  for (std::string_view line :
       {"m --max-num-seqs 7", "m --max-num-seqs=7", "m --max_num_seqs 7", "--max-num-seqs 7 m"}) {
    const ParsedCommand command = ParseLine(line);
    EXPECT_EQ(command.values.Int("max-num-seqs"), 7) << line;
    EXPECT_THAT(command.positionals, ElementsAre("m")) << line;
  }
  EXPECT_EQ(ParseLine("m -tp 4").values.Int("tensor-parallel-size"), 4);
  EXPECT_EQ(ParseLine("m -tp=4").values.Int("tensor-parallel-size"), 4);
  EXPECT_EQ(ParseLine("m --device-memory-utilization 0.5").values.Float("gpu-memory-utilization"),
            0.5);
}

TEST(FlagParserTest, ReadsSwitches) {
  EXPECT_TRUE(ParseLine("m --enforce-eager").values.Bool("enforce-eager"));
  EXPECT_FALSE(ParseLine("m --no-enforce-eager").values.Bool("enforce-eager"));
  EXPECT_TRUE(ParseLine("m").values.Bool("enable-chunked-prefill"));
  EXPECT_FALSE(ParseLine("m --no-enable-chunked-prefill").values.Bool("enable-chunked-prefill"));
  EXPECT_FALSE(ParseLine("m --disable-chunked-prefill").values.Bool("enable-chunked-prefill"));
  EXPECT_FALSE(ParseLine("m --no-disable-hybrid-kv-cache-manager")
                   .values.Bool("disable-hybrid-kv-cache-manager"));
}

TEST(FlagParserTest, ReadsUnits) {
  struct Case {
    std::string text;
    int64_t value;
  };
  for (const auto& [text, value] : std::vector<Case>{{"1k", 1000},
                                                     {"1K", 1024},
                                                     {"128k", 128000},
                                                     {"128K", 131072},
                                                     {"25.6k", 25600},
                                                     {"1m", 1000000},
                                                     {"1M", 1048576},
                                                     {"2g", 2000000000},
                                                     {"1G", 1073741824},
                                                     {"1048576", 1048576},
                                                     {"auto", -1},
                                                     {"-1", -1}}) {
    EXPECT_EQ(ParseLine("m --max-model-len " + text).values.Int("max-model-len"), value) << text;
  }
  for (const std::string text :
       {"1.5K", "1.5", "k", "", " 5", "5 ", "+5", "0", "-2", "1kk", "1e3", "99999999999G"}) {
    EXPECT_THAT(ErrorOf({"m", "--max-model-len=" + text}), HasSubstr("--max-model-len: '" + text))
        << text;
  }
}

TEST(FlagParserTest, ListsTakeAllWordsUpToTheNextFlag) {
  const ParsedCommand command = ParseLine("m --served-model-name a b -tp 1");
  EXPECT_THAT(command.values.List("served-model-name"), ElementsAre("a", "b"));
  EXPECT_THAT(command.positionals, ElementsAre("m"));
}

TEST(FlagParserTest, MergesPiecesOfJson) {
  const auto json = ParseLine(
                        "m --compilation-config {\"a\":1} --compilation_config.b.c 2 "
                        "--compilation-config.d text --compilation-config.e+ 1,x "
                        "--compilation-config.e+ 3 -cc.f true")
                        .values.Json("compilation-config");
  EXPECT_EQ(json, nlohmann::json::parse(
                      R"({"a": 1, "b": {"c": 2}, "d": "text", "e": [1, "x", 3], "f": true})"));
}

TEST(FlagParserTest, TakesOptimisationLevels) {
  for (std::string_view line : {"m -O3", "m -O 3", "m -O=3"}) {
    EXPECT_EQ(ParseLine(line).values.Json("compilation-config")["level"], 3) << line;
  }
}

TEST(FlagParserTest, WarnsOfRepeatedFlags) {
  const ParsedCommand command = ParseLine("m --port 1 --port 2");
  EXPECT_EQ(command.values.Int("port"), 2);
  EXPECT_THAT(command.warnings, ElementsAre(HasSubstr("--port is given more than once")));
  EXPECT_FALSE(ServeFlags().Get("port").adds_up);
}

struct Mistake {
  Words words;
  std::string sentence;
};

class MistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, SaysWhatIsWrong) {
  EXPECT_THAT(ErrorOf(GetParam().words), HasSubstr(GetParam().sentence));
}

INSTANTIATE_TEST_SUITE_P(
    CommandLines, MistakeTest,
    ::testing::Values(
        Mistake{{"m", "--max-model-length", "5"}, "did you mean --max-model-len?"},
        Mistake{{"m", "--enable-prefix-cache"}, "did you mean --enable-prefix-caching?"},
        Mistake{{"m", "--no-enable-prefix-cacheing"}, "did you mean --no-enable-prefix-caching?"},
        Mistake{{"m", "--tensor-paralel-size", "2"}, "did you mean --tensor-parallel-size?"},
        Mistake{{"m", "--zzzzzzzzzzzz"}, "--help lists all flags"},
        Mistake{{"m", "--no-max-model-len"}, "unknown flag --no-max-model-len"},
        Mistake{{"m", "--enforce-eager=true"}, "--enforce-eager takes no value ('true' was given)"},
        Mistake{{"m", "--enforce-eager", "True"}, "takes no value ('True' was given)"},
        Mistake{{"m", "--enforce-eager", "false"}, "write --enforce-eager or --no-enforce-eager"},
        Mistake{{"m", "--port"}, "--port needs a value"},
        Mistake{{"m", "--port", "--host", "x"}, "--port needs a value"},
        Mistake{{"m", "--port", "http"}, "--port: 'http' is not accepted; give a whole number"},
        Mistake{{"m", "--port", "70000"}, "at least 0 and at most 65535"},
        Mistake{{"m", "--block-size", "0"}, "one of 32, 64, 128, 256"},
        Mistake{{"m", "--block-size", "-1"}, "one of 32, 64, 128, 256"},
        Mistake{{"m", "--block-size", "0.5"}, "one of 32, 64, 128, 256"},
        Mistake{{"m", "--block-size", "48"}, "one of 32, 64, 128, 256"},
        Mistake{{"m", "--block-size", ""}, "one of 32, 64, 128, 256"},
        Mistake{{"m", "--max-num-seqs", "0"}, "--max-num-seqs: '0'"},
        Mistake{{"m", "--max-num-batched-tokens", "0"}, "--max-num-batched-tokens: '0'"},
        Mistake{{"m", "--gpu-memory-utilization", "0"}, "above 0 and at most 1"},
        Mistake{{"m", "--gpu-memory-utilization", "1.5"}, "above 0 and at most 1"},
        Mistake{{"m", "--gpu-memory-utilization", "nan"}, "above 0 and at most 1"},
        Mistake{{"m", "--tensor-parallel-size", "0"}, "at least 1"},
        Mistake{{"m", "--max-logprobs", "-5"}, "at least -1"},
        Mistake{{"m", "--long-prefill-token-threshold", "-1"}, "at least 0"},
        Mistake{{"m", "--num-gpu-blocks-override", "0"}, "at least 1"},
        Mistake{{"m", "--load-format", "pt"}, "one of auto, safetensors, dummy"},
        Mistake{{"m", "--speculative-config", "{method:mtp}"}, "what arrived is <{method:mtp}>"},
        Mistake{{"m", "--speculative-config", "[1]"}, "is not a JSON object"},
        Mistake{{"m", "--port.x", "1"}, "only flags that take a JSON object"},
        Mistake{{"m", "--compilation-config.a..b", "1"}, "does not name a place"},
        Mistake{{"m", "--allowed-origins", "*"}, "the value is not JSON"},
        Mistake{{"m", "--allowed-origins", "[1]"}, "a JSON list of texts"},
        Mistake{{"m", "--config", ""}, "No config file specified!"},
        Mistake{{"m", "--config", "flags.txt"}, "Config file must be of a yaml/yml type."},
        Mistake{{"m", "--config", "/nowhere/flags.yaml"}, "cannot be read"}));

TEST(ConfigFileTest, SetsFlagsOfAllKinds) {
  const std::string path = WriteConfig(
      "\xEF\xBB\xBFmodel: /models/m\r\n"
      "enable-chunked-prefill: false\r\n"
      "enforce_eager: true\r\n"
      "max-num-seqs: 4\r\n"
      "max-model-len: 128k\r\n"
      "served-model-name: [a, b]\r\n"
      "allowed-origins: ['http://x']\r\n"
      "revision: null\r\n"
      "seed: ~\r\n"
      "disable-log-requests: true\r\n"
      "speculative-config: {method: mtp, num_speculative_tokens: 2, deep: {x: [1, 'y', true]}}\r\n"
      "compilation-config.cudagraph_mode: FULL\r\n"
      "compilation-config.cudagraph_capture_sizes: [1, 2]\r\n"
      "hf-overrides: '{\"a\": 1}'\r\n");
  const ParsedCommand command = ParseLine("--config " + path);
  EXPECT_THAT(command.positionals, ElementsAre("/models/m"));
  EXPECT_FALSE(command.values.Bool("enable-chunked-prefill"));
  EXPECT_TRUE(command.values.Bool("enforce-eager"));
  EXPECT_EQ(command.values.Int("max-num-seqs"), 4);
  EXPECT_EQ(command.values.Int("max-model-len"), 128000);
  EXPECT_THAT(command.values.List("served-model-name"), ElementsAre("a", "b"));
  EXPECT_THAT(command.values.List("allowed-origins"), ElementsAre("http://x"));
  EXPECT_FALSE(command.values.Given("revision"));
  EXPECT_FALSE(command.values.Given("seed"));
  EXPECT_FALSE(command.values.Bool("enable-log-requests"));
  EXPECT_EQ(command.values.Json("speculative-config"),
            nlohmann::json::parse(R"({"method": "mtp", "num_speculative_tokens": 2,
                                      "deep": {"x": [1, "y", true]}})"));
  EXPECT_EQ(
      command.values.Json("compilation-config"),
      nlohmann::json::parse(R"({"cudagraph_mode": "FULL", "cudagraph_capture_sizes": [1, 2]})"));
  EXPECT_EQ(command.values.Json("hf-overrides")["a"], 1);
}

TEST(ConfigFileTest, CommandLineWins) {
  const std::string path = WriteConfig(
      "model: file\n"
      "tensor-parallel-size: 2\n"
      "enforce-eager: true\n"
      "host: x\n"
      "compilation-config: {a: 1, b: 1}\n"
      "additional-config.a: 1\n");
  const ParsedCommand command =
      *Parse({"line", "--config", path, "-tp", "1", "--no-enforce-eager", "--host", "",
              "--compilation-config.b", "2", "--additional-config", "{\"z\": 0}"});
  EXPECT_THAT(command.positionals, ElementsAre("line"));
  EXPECT_EQ(command.values.Int("tensor-parallel-size"), 1);
  EXPECT_FALSE(command.values.Bool("enforce-eager"));
  EXPECT_EQ(command.values.String("host"), "");
  EXPECT_EQ(command.values.Json("compilation-config"), nlohmann::json::parse(R"({"a":1,"b":2})"));
  EXPECT_EQ(command.values.Json("additional-config"), nlohmann::json::parse(R"({"z":0})"));
  EXPECT_TRUE(command.warnings.empty());
}

TEST(ConfigFileTest, SaysWhichKeyIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"max-model-length: 5\n", "did you mean --max-model-len?"},
      {"enforce-eager: maybe\n", "enforce-eager: write true or false"},
      {"enforce-eager: \"true\"\n", "enforce-eager: write true or false, without quotes"},
      {"max-num-seqs: [1, 2]\n", "max-num-seqs: give a whole number"},
      {"max-num-seqs: 1\nmax_num_seqs: 2\n", "max_num_seqs is given twice"},
      {"max-num-seqs: x\n", "--max-num-seqs: 'x'"},
      {"port:\n\t- 1\n", "line 2 is not YAML"},
      {"- a\n", "must be a map"},
      {"a: [\n", "is not YAML"},
      {"config: other.yaml\n", "cannot name another"},
  };
  for (const auto& [text, sentence] : cases) {
    EXPECT_THAT(ErrorOf({"--config", WriteConfig(text)}), HasSubstr(sentence)) << text;
  }
}

// Every flag has both languages, a reason where one is due, and a default of its own type.
TEST(FlagTableTest, IsComplete) {
  std::set<std::string> spellings;
  for (const FlagGroup& group : ServeFlags().groups()) {
    for (const FlagSpec& flag : group.flags) {
      EXPECT_TRUE(spellings.insert(std::string(flag.name)).second) << flag.name;
      for (std::string_view alias : SplitWords(flag.aliases, ' ')) {
        EXPECT_TRUE(spellings.insert(std::string(alias)).second) << alias;
      }
      EXPECT_FALSE(flag.help.en.empty()) << flag.name;
      EXPECT_FALSE(flag.help.zh.empty()) << flag.name;
      EXPECT_EQ(flag.effect == FlagEffect::kUsed, flag.reason.en.empty()) << flag.name;
      EXPECT_EQ(flag.effect == FlagEffect::kUsed, flag.reason.zh.empty()) << flag.name;
      if (flag.type != FlagType::kBool && !flag.default_value.empty()) {
        EXPECT_TRUE(ParseFlagData(flag, flag.name, {std::string(flag.default_value)}).ok())
            << flag.name;
      }
    }
  }
}

}  // namespace
}  // namespace fulgur::cli
