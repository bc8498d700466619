// Questions with known answers, from the files in which data sets are published.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fulgur::bench {

// How an answer is found and judged.
enum class AnswerKind {
  kNumber,   // a decimal number
  kInteger,  // AIME: an integer in \boxed{}
  kLetter,   // multiple choice
  kMath,     // LaTeX in \boxed{}
  kCode,     // Python that passes the tests
  kText,     // the exact words
};

struct EvalItem {
  std::string id = {};
  std::string subset = {};                // MMLU's subject, needle's length; may be empty
  std::string question = {};              // what replaces {question} in the template
  std::vector<std::string> options = {};  // kLetter, in the order shown
  std::string gold = {};                  // kCode: not used
  std::string code_head = {};    // kCode: signature and docstring that the answer completes
  std::string code_tests = {};   // kCode: a program that fails if the answer is wrong
  std::string code_runner = {};  // kCode: instead of the two above, a program that runs SOLUTION
  std::string entry_point = {};  // kCode: the function's name; may be empty
};

struct EvalData {
  std::string name = {};  // of the data set
  AnswerKind kind = AnswerKind::kNumber;
  int64_t run_seconds = 3;  // kCode: for one answer, all tests together
  std::vector<EvalItem> items = {};
  int64_t skipped_rows = 0;        // without the fields that the data set needs
  std::string first_problem = {};  // of them, with the line number
};

// The data sets that ReadEvalData knows, with one line of help each.
struct DatasetHelp {
  std::string_view name;
  std::string_view help;
};
std::vector<DatasetHelp> KnownDatasets();

// Places at which a fact is hidden in text.
struct NeedleShape {
  std::vector<int64_t> words = {1000, 4000, 16000};  // of filler
  int64_t depths = 5;
};

struct EvalDataOptions {
  int64_t rotation = 0;  // moves the options of gpqa: samples see the right one at other letters
  NeedleShape needle = {};
};

// Reads a published file: JSON lines, a JSON array, or CSV (mmlu, gpqa). Sets that this program
// makes itself (needle, selftest-mc, selftest-math) need no path. Errors name file and line.
absl::StatusOr<EvalData> ReadEvalData(const std::string& dataset, const std::string& path,
                                      const EvalDataOptions& options = {});

// The prompt of an item: `prompt_template` with {question} and {options} filled in.
std::string RenderPrompt(const std::string& prompt_template, const EvalItem& item);

// This program's own wording. A published score needs the wording of its harness instead.
std::string DefaultTemplate(AnswerKind kind);

}  // namespace fulgur::bench
