// The pieces that JSON texts consist of, as rules of a grammar.
//
// Everything that a model could go on with for ever is bounded: white space to one blank or one
// line break with its indent, numbers to what a double holds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "grammar/characters.h"
#include "grammar/grammar.h"

namespace fulgur::grammar {

// One end of a range of numbers.
struct NumberBound {
  int64_t value = 0;
  bool exclusive = false;
};

struct NumberRange {
  std::optional<NumberBound> low;
  std::optional<NumberBound> high;

  bool open() const { return !low && !high; }
};

// Bounds of numbers are smaller than this in magnitude.
inline constexpr int64_t kLargestBound = 1'000'000'000'000'000;

class JsonText {
 public:
  // `blank`: what may stand behind `{`, `[`, `,` and `:` and before `]` and `}`; `separator_blank`
  // only behind `,` and `:`.
  JsonText(GrammarBuilder& builder, Symbol blank, Symbol separator_blank);

  // Nothing, a blank, or a line break and its indent.
  static Symbol AnyBlank(GrammarBuilder& builder);

  Symbol Value();   // of any type
  Symbol Object();  // with any members
  Symbol String();  // any string
  Symbol Boolean();
  Symbol Null() { return builder_.Literal("null"); }
  Symbol Integer(const NumberRange& range);
  Symbol Number(const NumberRange& range);
  // A string of so many characters.
  Symbol StringOfLength(int64_t least, int64_t most);
  // A string whose characters are what `content` matches, which is made of Character symbols.
  Symbol Quoted(Symbol content);
  // A string that is none of these.
  Symbol StringOtherThan(std::span<const std::string> names);
  // One character of a set inside a string, escaped if it must be.
  Symbol Character(const CharacterSet& set);
  Symbol AnyCharacter();

  // Opening, what is inside, closing, with blanks.
  Symbol Enclosed(std::string_view open, Symbol inside, std::string_view close);
  Symbol Comma();  // with the blanks behind it
  // So many items with commas between them; `most` may be GrammarBuilder::kUnbounded.
  Symbol List(Symbol item, int64_t least, int64_t most);
  Symbol Member(Symbol key, Symbol value);

 private:
  struct Magnitudes;

  Symbol Digit(char first, char last);
  Symbol Digits(int64_t least, int64_t most);
  Symbol Fraction();
  Symbol WholeBetween(int64_t low, int64_t high);
  Symbol DigitsBetween(std::string_view low, std::string_view high);
  void AddIntegers(int64_t low, int64_t high, std::vector<Symbol>& options);
  void AddMagnitudes(const Magnitudes& magnitudes, std::string_view sign,
                     std::vector<Symbol>& options);
  Symbol Escape();

  GrammarBuilder& builder_;
  const Symbol blank_;
  const Symbol separator_blank_;
  std::optional<Symbol> value_;
  std::optional<Symbol> string_;
  std::optional<Symbol> any_character_;
};

}  // namespace fulgur::grammar
