// Text of files: splitting, trimming, numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace fulgur::bench {

// Parts between any of the separators; empty parts are left out.
std::vector<std::string_view> Words(std::string_view text, std::string_view separators);

// Takes the next line off the front of `text`, without its end.
std::string_view TakeLine(std::string_view& text);

std::string_view Trimmed(std::string_view text);

// The whole text as a number; absent if it is none, or not finite.
std::optional<int64_t> ParseInteger(std::string_view text);
std::optional<double> ParseNumber(std::string_view text);

// The sentence in a status.
std::string Sentence(const absl::Status& status);

}  // namespace fulgur::bench
