// Regular expressions as rules of a grammar. The whole answer must match.
//
// What PCRE and ECMAScript have in common: characters, . [] () (?:) | * + ? {m,n}, \d \w \s and
// their opposites, \n \t \r \f \v \0, \xHH, \uHHHH, \u{H...}, escaped punctuation. ^ may stand at
// the beginning and $ at the end; lazy repetitions match what greedy ones do. Look-around,
// back-references and \b are refused: no context-free rule says them.
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "grammar/characters.h"
#include "grammar/grammar.h"

namespace fulgur::grammar {

// How one character of a set is written.
using CharacterSpeller = std::function<Symbol(const CharacterSet&)>;

// kInvalidArgument: what is wrong and at which byte.
absl::StatusOr<Symbol> ParseRegex(std::string_view pattern, const CharacterSpeller& spell,
                                  GrammarBuilder& builder);

}  // namespace fulgur::grammar
