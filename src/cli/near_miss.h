// Finds the known word that a mistyped one was probably meant to be.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace fulgur::cli {

// Number of single-letter insertions, deletions, replacements and swaps of neighbours between two
// words (optimal string alignment distance).
int EditDistance(std::string_view a, std::string_view b);

// The closest of `known`, if it is close enough to be worth a suggestion.
std::optional<std::string_view> NearMiss(std::string_view word,
                                         std::span<const std::string_view> known);

}  // namespace fulgur::cli
