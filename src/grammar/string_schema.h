// The strings that a JSON schema describes by minLength, maxLength, pattern and format.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "grammar/grammar.h"
#include "grammar/regex.h"
#include "text/json.h"

namespace fulgur::grammar {

// How characters are written: escaped inside JSON, or as they are.
struct CharacterStyle {
  CharacterSpeller one_of;
  Symbol any;
};

CharacterStyle PlainCharacters(GrammarBuilder& builder);

// The inside of a string. kInvalidArgument: what cannot be kept; `place` is where in the schema.
absl::StatusOr<Symbol> AddStringContent(const text::JsonValue& schema, const CharacterStyle& style,
                                        std::string_view place, GrammarBuilder& builder);

}  // namespace fulgur::grammar
