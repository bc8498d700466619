// Judges answers: from what a model wrote to right or wrong.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "bench/eval/eval_item.h"

namespace fulgur::bench {

struct Grade {
  std::string answer = {};  // as extracted; empty if there is none
  int tier = 0;             // the extraction rule that hit, from 1; 0: none
  bool parsed = false;
  bool correct = false;
};

// `text`: the visible answer, or the whole one of a server without a reasoning parser. Code answers
// are extracted but not run: see RunProgram.
Grade GradeAnswer(AnswerKind kind, const EvalItem& item, const std::string& text);

// The program that decides about a code answer: the answer, completed by the item's head where it
// lacks the signature, then the tests; or the item's own runner with the answer as SOLUTION.
std::string TestProgram(const EvalItem& item, const std::string& code);

}  // namespace fulgur::bench
