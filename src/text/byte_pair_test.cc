#include "text/byte_pair.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

namespace fulgur::text {
namespace {

using MergeRule = BytePairEncoder::MergeRule;

// The definition, literally: merge the leftmost pair of lowest rank, again and again.
std::vector<int32_t> MergeNaively(std::string_view piece, const std::vector<MergeRule>& merges) {
  std::map<std::pair<int32_t, int32_t>, std::pair<size_t, int32_t>> ranks;
  for (size_t i = 0; i < merges.size(); ++i) {
    ranks[{merges[i].left, merges[i].right}] = {i, merges[i].merged};
  }
  std::vector<int32_t> ids;
  for (char byte : piece) ids.push_back(static_cast<uint8_t>(byte));
  while (true) {
    size_t best = 0;
    std::pair<size_t, int32_t> lowest{merges.size(), -1};
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto rank = ranks.find({ids[i], ids[i + 1]});
      if (rank == ranks.end() || rank->second.first >= lowest.first) continue;
      lowest = rank->second;
      best = i;
    }
    if (lowest.second < 0) return ids;
    ids[best] = lowest.second;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::array<int32_t, 256> IdentityBytes() {
  std::array<int32_t, 256> ids;
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// A vocabulary over a few letters with merges in random order. Tokens are strings, so a string that
// can be made in two ways has one id.
std::vector<MergeRule> RandomMerges(std::mt19937& rng) {
  std::vector<std::string> tokens = {"a", "b", "c"};
  std::map<std::string, int32_t> ids = {{"a", 'a'}, {"b", 'b'}, {"c", 'c'}};
  std::vector<MergeRule> merges;
  for (int i = 0; i < 40; ++i) {
    const std::string left = tokens[rng() % tokens.size()];
    const std::string right = tokens[rng() % tokens.size()];
    const auto [merged, is_new] =
        ids.try_emplace(left + right, 256 + static_cast<int32_t>(tokens.size()));
    if (is_new) tokens.push_back(left + right);
    merges.push_back({ids[left], ids[right], merged->second});
  }
  return merges;
}

TEST(BytePairTest, MergesByDefinition) {
  const unsigned seed = 29;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (int round = 0; round < 300; ++round) {
    const std::vector<MergeRule> merges = RandomMerges(rng);
    const BytePairEncoder encoder(IdentityBytes(), merges);
    for (int word = 0; word < 30; ++word) {
      std::string piece(rng() % 60, 'a');
      for (char& c : piece) c = static_cast<char>('a' + rng() % 4);
      std::vector<int32_t> ids;
      encoder.Encode(piece, &ids);
      ASSERT_EQ(ids, MergeNaively(piece, merges)) << piece;
    }
  }
}

TEST(BytePairTest, WholeWordsAreLookedUp) {
  BytePairEncoder encoder(IdentityBytes(), {});
  encoder.AddWholeWord("word", 300);
  std::vector<int32_t> ids = {7};
  encoder.Encode("word", &ids);
  encoder.Encode("wo", &ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{7, 300, 'w', 'o'}));
}

}  // namespace
}  // namespace fulgur::text
