#include "bench/eval/grade.h"

#include <cmath>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/eval/extract.h"
#include "bench/eval/math_text.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

// Without white space, quotes, emphasis and a full stop around it.
std::string Bare(std::string_view text) {
  constexpr std::string_view kAround = " \t\r\n\"'`*.";
  const size_t first = text.find_first_not_of(kAround);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kAround) - first + 1));
}

std::optional<Extracted> Extract(AnswerKind kind, const EvalItem& item, std::string_view text) {
  switch (kind) {
    case AnswerKind::kNumber:
      return ExtractNumber(text);
    case AnswerKind::kInteger:
      return ExtractInteger(text);
    case AnswerKind::kLetter:
      return ExtractLetter(text);
    case AnswerKind::kMath:
      return ExtractBoxed(text);
    case AnswerKind::kCode:
      return ExtractCode(text, item.entry_point);
    case AnswerKind::kText:
      return Extracted{Bare(text), 1};
  }
  return std::nullopt;
}

bool SameNumber(const std::string& a, const std::string& b) {
  double x = 0.0;
  double y = 0.0;
  return absl::SimpleAtod(a, &x) && absl::SimpleAtod(b, &y) && std::fabs(x - y) < 1e-6;
}

bool IsRight(AnswerKind kind, const std::string& answer, const std::string& gold) {
  switch (kind) {
    case AnswerKind::kNumber:
    case AnswerKind::kInteger:
      return SameNumber(answer, gold);
    case AnswerKind::kMath:
      return SameMath(answer, gold);
    case AnswerKind::kLetter:
    case AnswerKind::kText:
      return answer == gold;
    case AnswerKind::kCode:
      return false;  // only a run can tell
  }
  return false;
}

}  // namespace

Grade GradeAnswer(AnswerKind kind, const EvalItem& item, const std::string& text) {
  const auto visible = VisibleAnswer(text);
  if (!visible) return {};
  auto extracted = Extract(kind, item, *visible);
  if (!extracted || extracted->answer.empty()) return {};
  Grade grade{.answer = std::move(extracted->answer), .tier = extracted->tier, .parsed = true};
  grade.correct = IsRight(kind, grade.answer, item.gold);
  return grade;
}

std::string TestProgram(const EvalItem& item, const std::string& code) {
  if (!item.code_runner.empty()) {
    // A text of JSON is a literal of Python; what is no UTF-8 becomes a question mark.
    const auto replace = nlohmann::json::error_handler_t::replace;
    return absl::StrCat("SOLUTION = ", nlohmann::json(code).dump(-1, ' ', false, replace), "\n",
                        item.code_runner);
  }
  const bool complete = item.entry_point.empty() ||
                        code.find(absl::StrCat("def ", item.entry_point)) != std::string::npos;
  return absl::StrCat(complete ? "" : item.code_head, code, "\n\n", item.code_tests);
}

}  // namespace fulgur::bench
