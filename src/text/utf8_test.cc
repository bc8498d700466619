#include "text/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace fulgur::text {
namespace {

TEST(Utf8Test, RepairsEveryMaximalInvalidPartOnce) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(RepairUtf8("plain"), "plain");
  EXPECT_EQ(RepairUtf8("\x80"), r);
  EXPECT_EQ(RepairUtf8("\xC0\xAF"), r + r);
  EXPECT_EQ(RepairUtf8("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(RepairUtf8("\xFF"), r);
  EXPECT_EQ(RepairUtf8("a\xE4\xBD"), "a" + r);
  EXPECT_EQ(RepairUtf8("\xE4\xBDz"), r + "z");
  EXPECT_EQ(RepairUtf8("\xF0\x9F\x98\xE4\xBD\xA0"), r + "你");
  EXPECT_EQ(RepairUtf8("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(RepairUtf8("😀"), "😀");
}

TEST(Utf8Test, EncodesWhatItDecodes) {
  for (uint32_t c = 0; c <= 0x10FFFF; c += (c < 0x3000 ? 1 : 97)) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string bytes;
    AppendUtf8(c, &bytes);
    const Utf8Step step = DecodeUtf8(bytes);
    ASSERT_EQ(step.kind, Utf8Step::Kind::kCharacter);
    ASSERT_EQ(step.code_point, c);
    ASSERT_EQ(step.length, bytes.size());
    ASSERT_TRUE(IsValidUtf8(bytes));
  }
}

TEST(Utf8Test, ThePiecesDoNotMatter) {
  const unsigned seed = 11;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  const std::string bytes_to_try("a\x7F\x80\xBF\xC2\xE0\xA0\xE4\xED\xF0\x90\xF4\x8F\xFF");
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(rng() % 12, ' ');
    for (char& byte : bytes) byte = bytes_to_try[rng() % bytes_to_try.size()];
    Utf8Assembler assembler;
    std::string out;
    size_t at = 0;
    while (at < bytes.size()) {
      const size_t length = 1 + rng() % 3;
      assembler.Push(std::string_view(bytes).substr(at, length), &out);
      ASSERT_TRUE(IsValidUtf8(out));
      at += length;
    }
    assembler.Finish(&out);
    ASSERT_EQ(out, RepairUtf8(bytes));
  }
}

}  // namespace
}  // namespace fulgur::text
