#include "bench/eval/math_text.h"

#include <cmath>
#include <cstdlib>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "bench/eval/pattern.h"

namespace fulgur::bench {
namespace {

// Replaces every first group of the matches by `make` of it.
template <typename Make>
std::string ReplaceAll(const Pattern& pattern, std::string_view text, std::string_view head,
                       Make make) {
  std::string out;
  size_t done = 0;
  while (const auto match = pattern.First(text, done)) {
    const auto group = static_cast<size_t>(match->text.data() - text.data());
    const size_t start = text.rfind(head, group);
    if (start == std::string_view::npos || start < done) break;
    out.append(text.substr(done, start - done));
    out += make(match->text);
    if (match->end <= done) break;
    done = match->end;
  }
  return out.append(text.substr(done));
}

std::string UnwrapText(std::string_view text) {
  static const Pattern kText("\\\\(?:text|mathrm|mbox)\\{([^{}]*)\\}");
  return ReplaceAll(kText, text, "\\", [](std::string_view inside) { return std::string(inside); });
}

// \frac12 and \frac1{2} to \frac{1}{2}.
std::string BraceFractions(std::string_view text) {
  static const Pattern kShort("\\\\frac(\\d\\d)");
  return ReplaceAll(kShort, text, "\\", [](std::string_view digits) {
    return absl::StrCat("\\frac{", std::string(digits.substr(0, 1)), "}{",
                        std::string(digits.substr(1)), "}");
  });
}

std::string DropThousandsCommas(std::string_view text) {
  static const Pattern kGroups("^-?\\d{1,3}(?:,\\d{3})+(?:\\.\\d+)?$");
  if (!kGroups.First(text)) return std::string(text);
  return absl::StrReplaceAll(std::string(text), {{",", ""}});
}

std::optional<double> ToNumber(const std::string& text) {
  double value = 0.0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) return std::nullopt;
  return value;
}

// A number, a/b or \frac{a}{b}.
std::optional<double> ToValue(const std::string& text) {
  static const Pattern kFraction("^-?\\\\frac\\{(-?[\\d.]+)\\}\\{-?[\\d.]+\\}$");
  static const Pattern kDenominator("\\}\\{(-?[\\d.]+)\\}$");
  if (const auto number = ToNumber(text)) return number;
  if (const auto top = kFraction.First(text)) {
    const auto bottom = kDenominator.First(text);
    const auto a = ToNumber(std::string(top->text));
    const auto b = ToNumber(std::string(bottom->text));
    if (!a || !b || *b == 0.0) return std::nullopt;
    return text.front() == '-' ? -*a / *b : *a / *b;
  }
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto a = ToNumber(text.substr(0, slash));
  const auto b = ToNumber(text.substr(slash + 1));
  if (!a || !b || *b == 0.0) return std::nullopt;
  return *a / *b;
}

}  // namespace

std::string NormalizeMath(std::string_view text) {
  static const Pattern kAssignment("^[a-zA-Z]=");
  std::string out = absl::StrReplaceAll(UnwrapText(text), {{"\\left", ""},
                                                           {"\\right", ""},
                                                           {"\\!", ""},
                                                           {"\\,", ""},
                                                           {"\\;", ""},
                                                           {"\\dfrac", "\\frac"},
                                                           {"\\tfrac", "\\frac"},
                                                           {"^\\circ", ""},
                                                           {"^{\\circ}", ""},
                                                           {"\\%", ""},
                                                           {"%", ""},
                                                           {"\\$", ""},
                                                           {"$", ""},
                                                           {" ", ""},
                                                           {"\n", ""},
                                                           {"\t", ""}});
  if (absl::EndsWith(out, ".")) out.pop_back();
  if (const auto assignment = kAssignment.First(out)) out = out.substr(assignment->end);
  return DropThousandsCommas(BraceFractions(out));
}

bool SameMath(std::string_view a, std::string_view b) {
  const std::string left = NormalizeMath(a);
  const std::string right = NormalizeMath(b);
  if (left == right) return true;
  const auto x = ToValue(left);
  const auto y = ToValue(right);
  return x && y && std::fabs(*x - *y) <= 1e-9 * std::max(1.0, std::fabs(*y));
}

}  // namespace fulgur::bench
