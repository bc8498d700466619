#include "bench/eval/self_test.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fulgur::bench {
namespace {

constexpr int kChoices = 40;
constexpr int kSums = 60;
constexpr std::array<std::string_view, 10> kWords = {"river",  "table",  "garden", "window",
                                                     "copper", "yellow", "summer", "pocket",
                                                     "island", "thunder"};

struct ChoiceQuestion {
  std::string question;
  std::array<std::string, 4> options;  // the right one first
};

// Kinds of questions take turns; `i` fixes their numbers.
ChoiceQuestion MakeQuestion(int i) {
  const int a = 3 + i * 7 % 23;
  const int b = 2 + i * 5 % 17;
  const auto text = [](int value) { return absl::StrCat(value); };
  const std::string word(kWords[static_cast<size_t>(i) % kWords.size()]);
  switch (i % 4) {
    case 0:
      return {absl::StrFormat("What is %d plus %d?", a, b),
              {text(a + b), text(a + b + 1), text(a + b - 2), text(a + b + 10)}};
    case 1:
      return {absl::StrFormat("What is %d times %d?", a, b),
              {text(a * b), text(a * b + a), text(a * b - 1), text(a + b)}};
    case 2:
      return {absl::StrFormat("How many letters has the word \"%s\"?", word),
              {text(static_cast<int>(word.size())), text(static_cast<int>(word.size()) + 1),
               text(static_cast<int>(word.size()) - 1), text(static_cast<int>(word.size()) + 3)}};
    default:
      return {absl::StrFormat("Which letter does the word \"%s\" begin with?", word),
              {word.substr(0, 1), word.substr(1, 1), "q", "x"}};
  }
}

}  // namespace

void MakeChoiceItems(EvalData& data) {
  for (int i = 0; i < kChoices; ++i) {
    const ChoiceQuestion question = MakeQuestion(i);
    EvalItem item{.id = absl::StrCat("selftest-mc-", i), .question = question.question};
    const int right = (i + i / 4) % 4;
    for (int letter = 0; letter < 4; ++letter) {
      item.options.push_back(question.options[static_cast<size_t>((letter - right + 4) % 4)]);
    }
    item.gold = std::string(1, static_cast<char>('A' + right));
    data.items.push_back(std::move(item));
  }
}

void MakeSumItems(EvalData& data) {
  for (int i = 0; i < kSums; ++i) {
    const int had = 11 + i * 37 % 89;
    const int got = 3 + i * 13 % 41;
    const int gave = 1 + i * 29 % (had + got);
    data.items.push_back({.id = absl::StrCat("selftest-math-", i),
                          .question = absl::StrFormat(
                              "Ann had %d stamps. She got %d more and gave %d away. How many "
                              "stamps has she now?",
                              had, got, gave),
                          .gold = absl::StrCat(had + got - gave)});
  }
}

}  // namespace fulgur::bench
