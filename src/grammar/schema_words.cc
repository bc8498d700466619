#include "grammar/schema_words.h"

#include <fmt/format.h>

#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "grammar/grammar.h"

namespace fulgur::grammar {
namespace {

// `otherwise` if the word is not there.
absl::StatusOr<int64_t> ReadCount(const text::JsonValue& schema, std::string_view word,
                                  int64_t otherwise, std::string_view place) {
  const text::JsonValue* value = schema.Find(word);
  if (value == nullptr) return otherwise;
  int64_t count = 0;
  const bool whole = value->type() == text::JsonValue::Type::kInteger &&
                     absl::SimpleAtoi(value->number_spelling(), &count);
  if (whole && count >= 0 && count <= GrammarBuilder::kMaxRepeats) return count;
  return RefuseSchema(
      place, fmt::format("`{}` is a whole number from 0 to {}", word, GrammarBuilder::kMaxRepeats));
}

}  // namespace

absl::Status RefuseSchema(std::string_view place, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("the JSON schema at {}: {}", place, problem));
}

absl::StatusOr<SchemaCounts> ReadCounts(const text::JsonValue& schema, std::string_view least_word,
                                        std::string_view most_word, std::string_view place) {
  SchemaCounts counts;
  ASSIGN_OR_RETURN(counts.least, ReadCount(schema, least_word, 0, place));
  ASSIGN_OR_RETURN(counts.most, ReadCount(schema, most_word, GrammarBuilder::kUnbounded, place));
  if (counts.most == GrammarBuilder::kUnbounded || counts.least <= counts.most) return counts;
  return RefuseSchema(place, fmt::format("`{}` is larger than `{}`", least_word, most_word));
}

}  // namespace fulgur::grammar
