// How fast text goes in and out. Run in the repository's root:
//   text_benchmark [--benchmark_filter=...]
// Encoding is measured with DeepSeek-V4's tokenizer.json if scripts/python_env.sh installed it.
#include <benchmark/benchmark.h>

#include "text/output_parser.h"
#include "text/testing/fixtures.h"
#include "text/tokenizer.h"

namespace fulgur::text {
namespace {

const char kEnglish[] =
    "The ferry leaves at dawn, whether or not the fog has lifted. She had counted on an hour of "
    "quiet before the others woke, but the harbour was already full of voices: fishermen arguing "
    "about prices, a dog that barked at every rope, somebody's radio playing an old waltz. \"You "
    "can't go out in this,\" the keeper said, and then, seeing her face, added that in 1987 he'd "
    "said exactly the same thing to her mother.\n\n";
const char kChinese[] =
    "渡船在黎明时分出发，不管雾是否已经散去。她本来指望在其他人醒来之前能有一个小时的安静，但是港口"
    "已经充满了各种声音：渔民在争论价格，一只狗对着每根绳子狂吠，有人的收音机正在播放一首古老的圆舞"
    "曲。“这样的天气你不能出海，”看守人说。\n";
const char kCode[] =
    "for (size_t i = 0; i < symbols.size(); ++i) {\n"
    "  const auto merged = merges_.find(PairKey(symbols[i].left, symbols[i].right));\n"
    "  if (merged != merges_.end() && merged->second.rank < best_rank) {\n"
    "    best_rank = merged->second.rank;  // lowest so far\n"
    "  }\n}\n\n";

const Tokenizer& BenchmarkTokenizer() {
  static const auto* tokenizer = [] {
    const auto path = testing::RealTokenizerPath();
    auto loaded = Tokenizer::Load(path.value_or("src/text/testdata/tiny_tokenizer.json"));
    return new Tokenizer(*std::move(loaded));
  }();
  return *tokenizer;
}

void Encode(benchmark::State& state, std::string_view paragraph) {
  std::string text;
  while (text.size() < 1 << 18) text += paragraph;
  size_t tokens = 0;
  for (auto _ : state) tokens += BenchmarkTokenizer().Encode(text).size();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(tokens), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(Encode, english, kEnglish);
BENCHMARK_CAPTURE(Encode, chinese, kChinese);
BENCHMARK_CAPTURE(Encode, code, kCode);
BENCHMARK_CAPTURE(Encode, one_word, "antidisestablishmentarianism");

void LoadTokenizer(benchmark::State& state) {
  const auto path = testing::RealTokenizerPath();
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        Tokenizer::Load(path.value_or("src/text/testdata/tiny_tokenizer.json")));
  }
}
BENCHMARK(LoadTokenizer)->Unit(benchmark::kMillisecond);

// A megabyte of arguments that arrives in pieces of four bytes, as tokens do.
void ParseArgument(benchmark::State& state, std::string_view paragraph) {
  std::string text =
      "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"write\">\n"
      "<｜DSML｜parameter name=\"content\" string=\"true\">";
  while (text.size() < 1 << 20) text += paragraph;
  OutputParserOptions options;
  options.parse_tools = true;
  for (auto _ : state) {
    OutputParser parser(options);
    for (size_t at = 0; at < text.size(); at += 4) {
      std::vector<OutputDelta> deltas;
      parser.PushText(std::string_view(text).substr(at, 4), &deltas);
      benchmark::DoNotOptimize(deltas);
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK_CAPTURE(ParseArgument, english, kEnglish);
BENCHMARK_CAPTURE(ParseArgument, chinese, kChinese);
BENCHMARK_CAPTURE(ParseArgument, code, kCode);

}  // namespace
}  // namespace fulgur::text

BENCHMARK_MAIN();
