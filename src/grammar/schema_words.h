// Reading the words of a JSON schema: counts, and what is said where something is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/json.h"

namespace fulgur::grammar {

// kInvalidArgument; `place` is where in the schema.
absl::Status RefuseSchema(std::string_view place, std::string_view problem);

struct SchemaCounts {
  int64_t least = 0;
  int64_t most = 0;  // may be GrammarBuilder::kUnbounded
};

// Two words that count something, such as minItems and maxItems; absent ones do not limit.
absl::StatusOr<SchemaCounts> ReadCounts(const text::JsonValue& schema, std::string_view least_word,
                                        std::string_view most_word, std::string_view place);

}  // namespace fulgur::grammar
