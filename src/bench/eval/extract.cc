#include "bench/eval/extract.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "bench/eval/pattern.h"

namespace fulgur::bench {
namespace {

constexpr std::string_view kThinkStart = "<think>";
constexpr std::string_view kThinkEnd = "</think>";
constexpr size_t kNearAnswer = 160;  // characters behind the word "answer"

// The full-width colon of Chinese answers, as bytes.
constexpr std::string_view kColon = "(?::|\xEF\xBC\x9A)";

std::string WithoutCommas(std::string_view number) {
  return absl::StrReplaceAll(std::string(number), {{",", ""}});
}

std::optional<Extracted> LastMatch(const Pattern& pattern, std::string_view text, int tier) {
  const auto match = pattern.Last(text);
  if (!match) return std::nullopt;
  return Extracted{std::string(match->text), tier};
}

// What the braces that open at `open` enclose.
std::optional<std::string_view> Enclosed(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return text.substr(open + 1, i - open - 1);
  }
  return std::nullopt;
}

std::string_view LastLine(std::string_view text) {
  while (!text.empty() && absl::ascii_isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  const size_t start = text.rfind('\n');
  return start == std::string_view::npos ? text : text.substr(start + 1);
}

struct Fence {
  std::string_view code;
};

// The contents of ``` blocks; one that never ends goes to the end of the text.
std::vector<Fence> Fences(std::string_view text) {
  std::vector<Fence> fences;
  constexpr std::string_view kTicks = "```";
  for (size_t at = text.find(kTicks); at != std::string_view::npos;) {
    const size_t line = text.find('\n', at);
    if (line == std::string_view::npos) break;
    const size_t end = std::min(text.find(kTicks, line), text.size());
    fences.push_back({text.substr(line + 1, end - line - 1)});
    at = end >= text.size() ? std::string_view::npos : text.find(kTicks, end + kTicks.size());
  }
  return fences;
}

std::string Normalized(std::string_view number) {
  std::string digits = WithoutCommas(number);
  if (!digits.empty() && digits.back() == '.') digits.pop_back();
  return digits;
}

}  // namespace

std::optional<std::string_view> VisibleAnswer(std::string_view text) {
  const size_t end = text.rfind(kThinkEnd);
  if (end != std::string_view::npos) return text.substr(end + kThinkEnd.size());
  if (text.find(kThinkStart) != std::string_view::npos) return std::nullopt;
  return text;
}

std::optional<Extracted> ExtractNumber(std::string_view text) {
  static const Pattern kAnswer(
      absl::StrCat("(?i)answer\\s*", std::string(kColon), "\\s*\\**\\$?(-?[\\d,]*\\.?\\d+)"));
  static const Pattern kNumber("-?\\d[\\d,]*\\.\\d+|-?\\d[\\d,]*");
  if (auto found = LastMatch(kAnswer, text, 1)) {
    found->answer = Normalized(found->answer);
    return found;
  }
  if (auto boxed = ExtractBoxed(text)) {
    if (const auto number = kNumber.First(boxed->answer)) {
      return Extracted{Normalized(number->text), 2};
    }
  }
  // Some models go on with a question of their own.
  auto found = LastMatch(kNumber, text.substr(0, text.find("Question:")), 3);
  if (found) found->answer = Normalized(found->answer);
  return found;
}

std::optional<Extracted> ExtractLetter(std::string_view text) {
  static const Pattern kAnswer(absl::StrCat("(?i:answer)\\s*(?:(?i:is)|", std::string(kColon),
                                            ")*\\s*\\**\\(?([A-J])\\)?(?![A-Za-z0-9])"));
  static const Pattern kBoxed("\\\\boxed\\{(?:\\\\text\\{)?\\(?([A-J])\\)?\\}");
  static const Pattern kOnly("^\\s*\\**\\(?([A-J])\\)?[.)]?\\**\\s*$");
  static const Pattern kAlone("(?<![A-Za-z0-9])([A-J])(?![A-Za-z0-9'])");
  if (auto found = LastMatch(kAnswer, text, 1)) return found;
  if (auto found = LastMatch(kBoxed, text, 2)) return found;
  if (auto found = LastMatch(kOnly, LastLine(text), 3)) return found;
  return LastMatch(kAlone, text, 4);
}

std::optional<Extracted> ExtractInteger(std::string_view text) {
  static const Pattern kInteger("-?\\d+");
  static const Pattern kWord("(?i)answer");
  if (auto boxed = ExtractBoxed(text)) {
    if (auto found = LastMatch(kInteger, WithoutCommas(boxed->answer), 1)) return found;
  }
  if (const auto word = kWord.Last(text)) {
    const std::string_view near = text.substr(word->end, kNearAnswer);
    if (auto found = LastMatch(kInteger, near, 2)) return found;
  }
  return LastMatch(kInteger, text, 3);
}

std::optional<Extracted> ExtractBoxed(std::string_view text) {
  constexpr std::string_view kBoxed = "\\boxed{";
  const size_t at = text.rfind(kBoxed);
  if (at == std::string_view::npos) return std::nullopt;
  const auto inside = Enclosed(text, at + kBoxed.size() - 1);
  if (!inside) return std::nullopt;
  return Extracted{std::string(*inside), 1};
}

Extracted ExtractCode(std::string_view text, std::string_view entry_point) {
  const std::vector<Fence> fences = Fences(text);
  const std::string definition = absl::StrCat("def ", std::string(entry_point));
  for (const Fence& fence : fences) {
    if (fence.code.find(definition) != std::string_view::npos) {
      return {std::string(fence.code), 1};
    }
  }
  const auto longest = std::max_element(
      fences.begin(), fences.end(),
      [](const Fence& a, const Fence& b) { return a.code.size() < b.code.size(); });
  if (longest != fences.end()) return {std::string(longest->code), 2};
  return {std::string(text), 3};
}

}  // namespace fulgur::bench
