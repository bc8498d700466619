// Grammars in the EBNF that llama.cpp (GBNF) and XGrammar read.
//
//   root  ::= "yes" | "no" rest    # the answer is what `root` says
//   rest  ::= [^a-z\n]{1,10} ( "!" )*
//
// Rules end where the next one begins; a line may break anywhere. "..." and [...] know \n \t \r
// \\ \"
// \] \[ \- \xHH \uHHHH \UHHHHHHHH.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "grammar/grammar.h"

namespace fulgur::grammar {

// The rule called root. kInvalidArgument: what is wrong and at which byte, or which rule lacks.
absl::StatusOr<Symbol> ParseEbnf(std::string_view text, GrammarBuilder& builder);

}  // namespace fulgur::grammar
