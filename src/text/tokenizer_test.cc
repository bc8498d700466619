#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "text/detokenizer.h"
#include "text/testing/fixtures.h"
#include "text/utf8.h"

namespace fulgur::text {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;
using testing::ReadFixture;
using testing::TinyTokenizer;

TEST(TokenizerTest, EncodesAsTheReference) {
  for (const auto& c : testing::ReadJsonFixture("tiny_tokenizer_vectors.json")) {
    const auto text = c["text"].get<std::string>();
    const auto ids = c["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(TinyTokenizer().Encode(text), ids) << text;
    EXPECT_EQ(TinyTokenizer().CountTokens(text), ids.size());
    EXPECT_EQ(TinyTokenizer().Decode(ids), text);
  }
}

TEST(TokenizerTest, AddedTokensCanBeKeptAsText) {
  const std::string text = "<｜User｜>hi<think>";
  const std::vector<int32_t> markup = TinyTokenizer().Encode(text);
  EXPECT_EQ(markup.front(), TinyTokenizer().FindAddedToken("<｜User｜>"));
  EXPECT_EQ(markup.back(), TinyTokenizer().FindAddedToken("<think>"));
  for (int32_t id : TinyTokenizer().Encode(text, {.match_added_tokens = false})) {
    EXPECT_FALSE(TinyTokenizer().IsAdded(id));
  }
}

TEST(TokenizerTest, PlainRangesHoldNoAddedTokens) {
  const std::string user = "<｜User｜>";
  const std::string text = user + user + "x" + user;
  const int32_t id = *TinyTokenizer().FindAddedToken(user);
  const auto count = [&](std::vector<ByteRange> plain) {
    const auto ids = TinyTokenizer().Encode(text, {.plain_text = plain});
    EXPECT_EQ(TinyTokenizer().Decode(ids), text);
    return std::count(ids.begin(), ids.end(), id);
  };
  EXPECT_EQ(count({}), 3);
  EXPECT_EQ(count({{user.size(), 2 * user.size() + 1}}), 2);
  EXPECT_EQ(count({{0, text.size()}}), 0);
  // Touching a token in one byte is enough.
  EXPECT_EQ(count({{user.size() - 1, user.size()}}), 2);
  EXPECT_EQ(count({{user.size(), user.size() + 1}}), 2);
  EXPECT_EQ(count({{0, 3}, {3, user.size()}, {text.size() - 1, text.size()}}), 1);
}

TEST(TokenizerTest, StopsEarlyWhenThereIsNoPoint) {
  const std::string text(100'000, '.');
  const auto ids = TinyTokenizer().Encode("a b c d e f g h i j " + text, {.max_tokens = 5});
  EXPECT_GT(ids.size(), 5u);
  EXPECT_LT(ids.size(), 20u);
}

TEST(TokenizerTest, InvalidUtf8IsEncodedByteByByte) {
  for (const std::string text :
       {"\xFF", "a\xC3", "\xE4\xBDz", "x\x80\x80y", "\xF0\x9F\x98 1\xED\xA0\x80"}) {
    std::string back;
    for (int32_t id : TinyTokenizer().Encode(text)) back += TinyTokenizer().TokenBytes(id);
    EXPECT_EQ(back, text);
  }
}

TEST(TokenizerTest, LongWordsTakeNoQuadraticTime) {
  std::string text;
  for (const char* unit : {"a", "ab", "=", "哈", "\u0301", "x1", "<", "<｜", "the"}) {
    text.clear();
    while (text.size() < 1 << 20) text += unit;
    EXPECT_EQ(TinyTokenizer().Decode(TinyTokenizer().Encode(text)), text);
  }
}

TEST(TokenizerTest, KnowsItsTokens) {
  const Tokenizer& tokenizer = TinyTokenizer();
  const int32_t eos = *tokenizer.FindAddedToken("<｜end▁of▁sentence｜>");
  EXPECT_EQ(eos, 1);
  EXPECT_TRUE(tokenizer.IsSpecial(eos));
  EXPECT_EQ(tokenizer.TokenBytes(eos), "<｜end▁of▁sentence｜>");
  const int32_t think = *tokenizer.FindAddedToken("<think>");
  EXPECT_TRUE(tokenizer.IsAdded(think));
  EXPECT_FALSE(tokenizer.IsSpecial(think));
  EXPECT_FALSE(tokenizer.FindAddedToken("the").has_value());
  const auto space = tokenizer.Encode(" ");
  ASSERT_EQ(space.size(), 1u);
  EXPECT_EQ(tokenizer.TokenSpelling(space[0]), "Ġ");
  EXPECT_EQ(tokenizer.TokenSpelling(think), "<think>");
  EXPECT_EQ(tokenizer.TokenBytes(-1), "");
  EXPECT_EQ(tokenizer.TokenBytes(tokenizer.vocab_size()), "");
  EXPECT_EQ(tokenizer.Decode(std::vector<int32_t>{1'000'000, space[0]}), " ");
  EXPECT_EQ(tokenizer.Decode(std::vector<int32_t>{space[0], eos, think}, true), " <think>");
  EXPECT_GE(tokenizer.longest_token_bytes(), std::string("<｜begin▁of▁sentence｜>").size());
}

TEST(TokenizerTest, OneTokenizerServesManyThreads) {
  const std::string text = "The ferry leaves at dawn 你好 " + std::string(1000, 'q');
  const auto expected = TinyTokenizer().Encode(text);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const Tokenizer copy = TinyTokenizer();
      for (int round = 0; round < 200; ++round) ASSERT_EQ(copy.Encode(text), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(DetokenizerTest, PiecesEqualTheWholeForAnyIds) {
  const unsigned seed = 17;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (int round = 0; round < 5000; ++round) {
    const bool skip = round % 2 == 0;
    Detokenizer detokenizer(TinyTokenizer(), skip);
    std::vector<int32_t> ids;
    std::string text;
    for (size_t n = rng() % 20; n > 0; --n) {
      // Single bytes come first in the vocabulary: many of these are no characters.
      ids.push_back(static_cast<int32_t>(
          rng() % (rng() % 2 == 0 ? 260u : static_cast<unsigned>(TinyTokenizer().vocab_size()))));
      const std::string piece = detokenizer.Push(ids.back());
      ASSERT_TRUE(IsValidUtf8(piece));
      text += piece;
    }
    text += detokenizer.Finish();
    ASSERT_EQ(text, TinyTokenizer().Decode(ids, skip));
  }
}

// --- tokenizer.json that cannot be used ---

absl::Status LoadEdited(const std::function<void(ordered_json&)>& edit) {
  ordered_json json = ordered_json::parse(ReadFixture("tiny_tokenizer.json"));
  edit(json);
  return Tokenizer::FromJson(json.dump()).status();
}

TEST(TokenizerJsonTest, NamesWhatItDoesNotSupport) {
  const std::vector<std::pair<std::function<void(ordered_json&)>, std::string>> edits = {
      {[](auto& j) {
         j["normalizer"] = {{"type", "NFC"}};
       },
       "normalizer NFC"},
      {[](auto& j) {
         j["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}};
       },
       "normalizer Lowercase"},
      {[](auto& j) { j["decoder"]["type"] = "WordPiece"; }, "decoder WordPiece"},
      {[](auto& j) {
         j["post_processor"] = {{"type", "TemplateProcessing"}};
       },
       "post_processor TemplateProcessing"},
      {[](auto& j) { j["model"]["type"] = "Unigram"; }, "model Unigram"},
      {[](auto& j) { j["model"]["dropout"] = 0.1; }, "dropout"},
      {[](auto& j) { j["model"]["unk_token"] = "<unk>"; }, "unk_token"},
      {[](auto& j) { j["model"]["byte_fallback"] = true; }, "byte_fallback"},
      {[](auto& j) { j["model"]["ignore_merges"] = true; }, "ignore_merges"},
      {[](auto& j) { j["model"]["end_of_word_suffix"] = "</w>"; }, "end_of_word_suffix"},
      {[](auto& j) { j["added_tokens"][0]["lstrip"] = true; }, "lstrip"},
      {[](auto& j) { j["pre_tokenizer"] = nullptr; }, "ByteLevel as the last"},
      {[](auto& j) { j["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }, "Isolated"},
      {[](auto& j) {
         j["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"String", "x"}};
       },
       "Regex"},
      {[](auto& j) { j["pre_tokenizer"]["pretokenizers"][0]["type"] = "Whitespace"; },
       "pre-tokenizer Whitespace"},
  };
  for (const auto& [edit, part] : edits) {
    const absl::Status status = LoadEdited(edit);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << part << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

TEST(TokenizerJsonTest, NamesWhatIsMalformed) {
  const std::vector<std::pair<std::function<void(ordered_json&)>, std::string>> edits = {
      {[](auto& j) { j.erase("model"); }, "\"model\" must be an object"},
      {[](auto& j) { j["model"].erase("vocab"); }, "\"vocab\" must be an object"},
      {[](auto& j) { j["model"]["vocab"]["the"] = "7"; }, "must be an integer"},
      {[](auto& j) { j["model"]["vocab"]["new"] = -1; }, "has the id -1"},
      {[](auto& j) { j["model"]["vocab"]["new"] = 1LL << 40; }, "has the id 1099511627776"},
      {[](auto& j) { j["model"]["vocab"]["new"] = 5; }, "id 5 to two tokens"},
      {[](auto& j) { j["model"]["vocab"].erase("Ā"); }, "no token for the byte 0"},
      {[](auto& j) { j["model"]["merges"].push_back("nospace"); }, "must be a pair"},
      {[](auto& j) {
         j["model"]["merges"].push_back({"a", 1});
       },
       "must be a pair"},
      {[](auto& j) {
         j["model"]["merges"].push_back({"zz", "qq"});
       },
       "not in \"vocab\""},
      {[](auto& j) { j["added_tokens"] = "x"; }, "\"added_tokens\" must be a list"},
      {[](auto& j) { j["added_tokens"][0]["content"] = ""; }, "has 0 bytes"},
      {[](auto& j) { j["added_tokens"][0]["id"] = 7; }, "but \"vocab\" says 0"},
      {[](auto& j) { j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "("; },
       "not a regular expression"},
  };
  for (const auto& [edit, part] : edits) {
    const absl::Status status = LoadEdited(edit);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << part << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

TEST(TokenizerJsonTest, SurvivesAnyText) {
  const std::string json = ReadFixture("tiny_tokenizer.json");
  for (const std::string text : {"", "null", "[]", "{", "{}", "\xFF", "{\"model\":1}", "[[[[[["}) {
    EXPECT_FALSE(Tokenizer::FromJson(text).ok());
  }
  EXPECT_FALSE(Tokenizer::FromJson(std::string(100'000, '[')).ok());
  for (size_t length = 0; length < json.size() - 1; length += 101) {
    EXPECT_FALSE(Tokenizer::FromJson(json.substr(0, length)).ok());
  }
}

TEST(TokenizerJsonTest, AcceptsBothWaysToWriteMerges) {
  ordered_json json = ordered_json::parse(ReadFixture("tiny_tokenizer.json"));
  for (auto& merge : json["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const auto tokenizer = Tokenizer::FromJson(json.dump());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->Encode("What is the weather"),
            TinyTokenizer().Encode("What is the weather"));
}

TEST(TokenizerJsonTest, AMissingFileIsNamed) {
  const absl::Status status = Tokenizer::Load("/nonexistent/tokenizer.json").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/tokenizer.json"));
}

}  // namespace
}  // namespace fulgur::text
