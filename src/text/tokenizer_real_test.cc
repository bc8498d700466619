// The vectors of DeepSeek-V4's own tokenizer.json.
#include <gtest/gtest.h>

#include "text/detokenizer.h"
#include "text/testing/fixtures.h"
#include "text/tokenizer.h"

namespace fulgur::text {
namespace {

using Ids = std::vector<int32_t>;

std::vector<ByteRange> Ranges(const nlohmann::ordered_json& json) {
  std::vector<ByteRange> ranges;
  for (const auto& range : json) ranges.push_back({range[0], range[1]});
  return ranges;
}

TEST(RealTokenizerTest, Encode) {
  LOAD_REAL_TOKENIZER_OR_SKIP(tokenizer);
  for (const auto& c : testing::ReadCases("tokenizer_vectors.json", "encode")) {
    const auto text = c["text"].get<std::string>();
    EXPECT_EQ(tokenizer.Encode(text), c["ids"].get<Ids>()) << text;
    EXPECT_EQ(tokenizer.Decode(c["ids"].get<Ids>()), text);
  }
}

TEST(RealTokenizerTest, PlainText) {
  LOAD_REAL_TOKENIZER_OR_SKIP(tokenizer);
  for (const auto& c : testing::ReadCases("tokenizer_vectors.json", "plain_text")) {
    const auto ranges = Ranges(c["ranges"]);
    EXPECT_EQ(tokenizer.Encode(c["text"].get<std::string>(), {.plain_text = ranges}),
              c["ids"].get<Ids>())
        << c["text"];
  }
}

TEST(RealTokenizerTest, LongRepeats) {
  LOAD_REAL_TOKENIZER_OR_SKIP(tokenizer);
  for (const auto& c : testing::ReadCases("tokenizer_vectors.json", "repeat")) {
    std::string text = c["prefix"].get<std::string>();
    for (int i = 0; i < c["times"].get<int>(); ++i) text += c["unit"].get<std::string>();
    text += c["suffix"].get<std::string>();
    const Ids ids = tokenizer.Encode(text);
    EXPECT_EQ(ids.size(), c["count"].get<size_t>()) << c["unit"];
    EXPECT_EQ(tokenizer.Decode(ids), text);
    if (!c.contains("ids_rle")) continue;
    Ids expected;
    for (const auto& run : c["ids_rle"]) expected.insert(expected.end(), run[1], run[0]);
    EXPECT_EQ(ids, expected) << c["unit"];
  }
}

TEST(RealTokenizerTest, Decode) {
  LOAD_REAL_TOKENIZER_OR_SKIP(tokenizer);
  for (const auto& c : testing::ReadCases("tokenizer_vectors.json", "decode")) {
    const auto ids = c["ids"].get<Ids>();
    const auto text = c["text"].get<std::string>();
    EXPECT_EQ(tokenizer.Decode(ids), text);
    EXPECT_EQ(tokenizer.Decode(ids, true), c.value("text_skip_special", text));
  }
}

TEST(RealTokenizerTest, Stream) {
  LOAD_REAL_TOKENIZER_OR_SKIP(tokenizer);
  for (const auto& c : testing::ReadCases("tokenizer_vectors.json", "stream")) {
    Detokenizer detokenizer(tokenizer, false);
    std::vector<std::string> deltas;
    for (int32_t id : c["ids"].get<Ids>()) deltas.push_back(detokenizer.Push(id));
    EXPECT_EQ(deltas, c["deltas"].get<std::vector<std::string>>());
    EXPECT_EQ(detokenizer.Finish(), c.value("flush", ""));
  }
}

TEST(RealTokenizerTest, Facts) {
  LOAD_REAL_TOKENIZER_OR_SKIP(tokenizer);
  EXPECT_EQ(tokenizer.vocab_size(), 129280);
  EXPECT_EQ(tokenizer.FindAddedToken("<｜User｜>"), 128803);
  EXPECT_EQ(tokenizer.FindAddedToken("｜DSML｜"), 128825);
  EXPECT_TRUE(tokenizer.IsSpecial(1));
  EXPECT_FALSE(tokenizer.IsSpecial(128803));
}

}  // namespace
}  // namespace fulgur::text
