// JSON schemas as rules of a grammar: every answer that the rules allow is valid against the
// schema.
//
// Of JSON Schema (draft 2020-12): type, enum, const, anyOf, oneOf, allOf of one, $ref inside the
// schema, properties, required, additionalProperties, items, prefixItems, minItems, maxItems,
// minLength, maxLength, pattern, format (date, time, date-time, uuid, ipv4, email), minimum,
// maximum, exclusiveMinimum, exclusiveMaximum. Words that only describe are skipped; words that
// limit and are not in this list are refused, not ignored. Members come in the order of
// `properties`; others only where additionalProperties says so, or where the schema names no
// properties at all.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "grammar/grammar.h"
#include "text/json.h"

namespace fulgur::grammar {

// Where white space may stand.
struct JsonSpacing {
  bool compact = false;                // only one blank behind each comma and colon
  std::optional<std::string> pattern;  // a regular expression of its own, in place of the rule
};

// `schema` is the whole of `root` or a part of it: $ref counts from the root. kInvalidArgument:
// what cannot be kept, and where in the schema.
absl::StatusOr<Symbol> AddJsonSchema(const text::JsonValue& root, const text::JsonValue& schema,
                                     const JsonSpacing& spacing, GrammarBuilder& builder);

// The strings that a schema of strings describes, without quotes and escapes. The same errors.
absl::StatusOr<Symbol> AddPlainString(const text::JsonValue& schema, GrammarBuilder& builder);

// Any JSON object.
absl::StatusOr<Symbol> AddJsonObject(const JsonSpacing& spacing, GrammarBuilder& builder);

}  // namespace fulgur::grammar
