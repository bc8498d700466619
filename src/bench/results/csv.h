// A reader of comma-separated values (RFC 4180): quoted fields, doubled quotes, either line end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fulgur::bench {

// Rows of fields; empty lines are left out. An error if a quoted field does not end.
absl::StatusOr<std::vector<std::vector<std::string>>> ParseCsv(std::string_view text,
                                                               std::string_view source);

}  // namespace fulgur::bench
