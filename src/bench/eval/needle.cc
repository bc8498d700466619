#include "bench/eval/needle.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/load/random.h"
#include "bench/load/sentences.h"

namespace fulgur::bench {
namespace {

constexpr int kKeysPerPlace = 2;
constexpr int64_t kSeed = 20;
constexpr std::string_view kNames[] = {"lighthouse", "observatory", "granary", "foundry",
                                       "aqueduct",   "chapel",      "arsenal", "orchard"};

int64_t WordsIn(const std::string& sentence) {
  return std::count(sentence.begin(), sentence.end(), ' ');  // there is one in front, too
}

struct Haystack {
  int64_t words = 0;
  int64_t needle_at = 0;  // in words
};

// The first sentence that ends behind the needle's place has the needle in front of it.
std::string TextWith(const std::string& needle, const Haystack& haystack, RandomStream& random) {
  std::string text;
  bool hidden = false;
  for (int64_t words = 0; words < haystack.words;) {
    const std::string sentence = ProseSentence(random);
    words += WordsIn(sentence);
    if (!hidden && words > haystack.needle_at) {
      absl::StrAppend(&text, " ", needle);
      hidden = true;
    }
    text += sentence;
  }
  if (!hidden) absl::StrAppend(&text, " ", needle);
  return text.substr(1);
}

EvalItem MakeItem(int64_t words, int64_t depth_percent, int key, RandomStream& random) {
  const std::string name(kNames[random.Below(std::size(kNames))]);
  const std::string gold = absl::StrFormat("%d", 100'000 + random.Below(900'000));
  const std::string needle = absl::StrCat("The number of the ", name, " is ", gold, ".");
  const std::string text = TextWith(needle, {words, words * depth_percent / 100}, random);
  return {.id = absl::StrFormat("needle-%d-%d-%d", words, depth_percent, key),
          .subset = absl::StrFormat("%7d words, depth %3d %%", words, depth_percent),
          .question = absl::StrCat(text, "\n\nWhat is the number of the ", name,
                                   "? Answer with the number alone."),
          .gold = gold};
}

}  // namespace

void MakeNeedleItems(const NeedleShape& shape, EvalData& data) {
  RandomStream random(kSeed, "needle");
  const int64_t steps = std::max<int64_t>(shape.depths - 1, 1);
  for (const int64_t words : shape.words) {
    for (int64_t depth = 0; depth < shape.depths; ++depth) {
      for (int key = 0; key < kKeysPerPlace; ++key) {
        data.items.push_back(MakeItem(words, 100 * depth / steps, key, random));
      }
    }
  }
}

}  // namespace fulgur::bench
