#include "text/response_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "text/testing/output_cases.h"
#include "text/utf8.h"

namespace fulgur::text {
namespace {

using testing::OutputCase;
using testing::OutputCases;
using testing::TinyTokenizer;

struct Decoded {
  ParsedOutput output;
  bool stopped;
  int reasoning_tokens;
};

Decoded Decode(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, ResponseOptions options,
               OutputEnd end) {
  ResponseDecoder decoder(tokenizer, std::move(options));
  ParsedOutput output;
  for (int32_t id : ids) {
    std::vector<OutputDelta> deltas;
    decoder.Push(id, &deltas);
    for (const OutputDelta& delta : deltas) EXPECT_TRUE(IsValidUtf8(delta.text));
    output.Append(deltas);
  }
  std::vector<OutputDelta> deltas;
  decoder.Finish(end, &deltas);
  output.Append(deltas);
  return {output, decoder.stopped(), decoder.reasoning_tokens()};
}

// A text as tokens, cut in random places so that tokens are not those of the whole text.
std::vector<int32_t> RandomTokens(const Tokenizer& tokenizer, const std::string& text,
                                  std::mt19937& rng) {
  std::vector<int32_t> ids;
  std::vector<size_t> ends;
  for (size_t at = 0; at < text.size();) {
    // Markers stay whole: cutting them would spell them out.
    size_t end = std::min(text.size(), at + 1 + rng() % 6);
    while (end < text.size() && !IsValidUtf8(std::string_view(text).substr(at, end - at))) ++end;
    const auto whole = tokenizer.Encode(std::string_view(text).substr(at));
    if (tokenizer.IsAdded(whole[0])) {
      ids.push_back(whole[0]);
      at += tokenizer.TokenBytes(whole[0]).size();
      continue;
    }
    for (int i = 0; i < kNumMarkers; ++i) {
      const size_t marker = text.find(MarkerText(static_cast<Marker>(i)), at);
      if (marker != text.npos) end = std::min(end, std::max(marker, at + 1));
    }
    for (int32_t id : tokenizer.Encode(std::string_view(text).substr(at, end - at))) {
      ids.push_back(id);
    }
    at = end;
  }
  return ids;
}

void CheckCases(const Tokenizer& tokenizer, int rounds) {
  const unsigned seed = 5;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (const OutputCase& c : OutputCases()) {
    ResponseOptions options;
    options.parser = c.options;
    EXPECT_EQ(Decode(tokenizer, tokenizer.Encode(c.text), options, c.end).output, c.expected)
        << c.id;
    // A stop string that never comes must not change anything.
    options.stop_strings = {"✿END✿", "<｜DSML｜tool_x", "</think>✿", "\n\n\n\n\n"};
    EXPECT_EQ(Decode(tokenizer, tokenizer.Encode(c.text), options, c.end).output, c.expected)
        << c.id;
    for (int round = 0; round < rounds; ++round) {
      const auto ids = RandomTokens(tokenizer, c.text, rng);
      ASSERT_EQ(tokenizer.Decode(ids), c.text);
      ASSERT_EQ(Decode(tokenizer, ids, options, c.end).output, c.expected) << c.id;
    }
  }
}

TEST(ResponseDecoderTest, CasesAsTokens) { CheckCases(TinyTokenizer(), 20); }

TEST(ResponseDecoderTest, CasesAsTokensOfTheRealTokenizer) {
  LOAD_REAL_TOKENIZER_OR_SKIP(tokenizer);
  CheckCases(tokenizer, 20);
}

TEST(ResponseDecoderTest, LookAlikesOfMarkersAreText) {
  ResponseOptions options;
  options.parser = OutputParserOptions{.start = OutputStart::kReasoning};
  const auto ids = TinyTokenizer().Encode("quote </think> here", {.match_added_tokens = false});
  EXPECT_EQ(Decode(TinyTokenizer(), ids, options, OutputEnd::kStop).output,
            (ParsedOutput{"quote </think> here", "", {}}));
}

TEST(ResponseDecoderTest, WithoutAParserTextIsRaw) {
  const auto ids = TinyTokenizer().Encode("a<think>b</think><｜end▁of▁sentence｜>");
  ResponseOptions options;
  EXPECT_EQ(Decode(TinyTokenizer(), ids, options, OutputEnd::kStop).output.content,
            "a<think>b</think>");
  options.skip_special_tokens = false;
  EXPECT_EQ(Decode(TinyTokenizer(), ids, options, OutputEnd::kStop).output.content,
            "a<think>b</think><｜end▁of▁sentence｜>");
}

TEST(ResponseDecoderTest, CountsReasoningTokens) {
  ResponseOptions options;
  options.parser = OutputParserOptions{.start = OutputStart::kReasoning};
  const auto reasoning = TinyTokenizer().Encode("I think of 你 and 😀");
  auto ids = reasoning;
  for (int32_t id : TinyTokenizer().Encode("</think>The answer<｜end▁of▁sentence｜>"))
    ids.push_back(id);
  for (const std::vector<std::string>& stops :
       {std::vector<std::string>{}, {"</think>The answer is"}, {"a", "and 😀</think>."}}) {
    options.stop_strings = stops;
    const Decoded decoded = Decode(TinyTokenizer(), ids, options, OutputEnd::kStop);
    if (!decoded.stopped) {
      EXPECT_EQ(decoded.reasoning_tokens, static_cast<int>(reasoning.size()));
    }
  }
}

TEST(ResponseDecoderTest, StopStringsCutTheGeneratedText) {
  ResponseOptions options;
  options.parser = OutputParserOptions{.start = OutputStart::kReasoning};
  options.stop_strings = {"nk>Y", "\nObservation:"};
  const auto ids = TinyTokenizer().Encode("because</think>Yes it is");
  const Decoded decoded = Decode(TinyTokenizer(), ids, options, OutputEnd::kLength);
  EXPECT_TRUE(decoded.stopped);
  // The marker was cut in two, so what is left of it is text.
  EXPECT_EQ(decoded.output, (ParsedOutput{"because</thi", "", {}}));
  options.stop_strings = {"Yes"};
  options.include_stop_string = true;
  EXPECT_EQ(Decode(TinyTokenizer(), ids, options, OutputEnd::kStop).output,
            (ParsedOutput{"because", "Yes", {}}));
}

TEST(ResponseDecoderTest, StopStringsWaitForMinTokens) {
  const std::string text = "a\nb\nc\nd";
  const auto ids = TinyTokenizer().Encode(text);
  ResponseOptions options;
  options.parser.emplace();
  options.stop_strings = {"\n"};
  std::vector<size_t> ends;  // number of tokens with which a stop string is complete
  for (size_t n = 1; n <= ids.size(); ++n) {
    if (TinyTokenizer().TokenBytes(ids[n - 1]).find('\n') != std::string_view::npos)
      ends.push_back(n);
  }
  ASSERT_EQ(ends.size(), 3u);
  for (size_t min_tokens = 0; min_tokens <= ids.size(); ++min_tokens) {
    options.min_tokens = static_cast<int64_t>(min_tokens);
    const Decoded decoded = Decode(TinyTokenizer(), ids, options, OutputEnd::kStop);
    const auto end = std::upper_bound(ends.begin(), ends.end(), min_tokens);
    EXPECT_EQ(decoded.stopped, end != ends.end()) << min_tokens;
    const std::string expected =
        end == ends.end() ? text : text.substr(0, 1 + 2 * static_cast<size_t>(end - ends.begin()));
    EXPECT_EQ(decoded.output.content, expected) << min_tokens;
  }
}

TEST(ResponseDecoderTest, HalfACharacterAtTheEndIsReplaced) {
  auto ids = TinyTokenizer().Encode("ab😀");
  while (TinyTokenizer().Decode(ids).ends_with("😀")) ids.pop_back();
  ResponseOptions options;
  options.parser.emplace();
  EXPECT_EQ(Decode(TinyTokenizer(), ids, options, OutputEnd::kLength).output.content,
            TinyTokenizer().Decode(ids));
}

}  // namespace
}  // namespace fulgur::text
