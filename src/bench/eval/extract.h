// Finds the answer in what a model wrote. Each extractor is a list of rules, the surest first; the
// number of the rule that hit (its tier, from 1) says how far the answer can be trusted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fulgur::bench {

struct Extracted {
  std::string answer;
  int tier = 0;  // 1 is the surest
};

// The visible part of an answer, for servers without a reasoning parser: what follows the last
// "</think>". nullopt if a "<think>" was never closed: the answer was cut.
std::optional<std::string_view> VisibleAnswer(std::string_view text);

// A number, thousands separators removed: "answer: 42", then \boxed{42}, then the last number
// before a following "Question:".
std::optional<Extracted> ExtractNumber(std::string_view text);

// A letter A to J: "answer is (C)", then \boxed{C}, then a last line that is only a letter, then
// the last capital letter that stands alone.
std::optional<Extracted> ExtractLetter(std::string_view text);

// An integer: the last \boxed{...}, then the last one within 160 characters after the last
// "answer", then the last one.
std::optional<Extracted> ExtractInteger(std::string_view text);

// The content of the last \boxed{...} with balanced braces.
std::optional<Extracted> ExtractBoxed(std::string_view text);

// Python code: the first fenced block that defines `entry_point` (any, if that is empty), then the
// longest block, then the whole text.
Extracted ExtractCode(std::string_view text, std::string_view entry_point);

}  // namespace fulgur::bench
