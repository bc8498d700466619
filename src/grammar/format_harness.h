// For tests: whether a whole text has a format.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "grammar/matcher.h"
#include "grammar/output_format.h"

namespace fulgur::grammar {

inline OutputFormat FormatOf(OutputFormat::Kind kind, std::string source) {
  return {.kind = kind, .source = std::move(source), .spacing = {}};
}

// The format must be valid.
inline bool HasFormat(std::string_view text, const OutputFormat& format) {
  const absl::StatusOr<Grammar> grammar = BuildGrammar(format);
  if (!grammar.ok()) throw std::runtime_error(std::string(grammar.status().message()));
  Matcher matcher(*grammar);
  MatchState state = matcher.Start(), next;
  for (const char byte : text) {
    matcher.Advance(state, static_cast<uint8_t>(byte), next);
    std::swap(state, next);
  }
  return !state.empty() && state.front() == kFinished;
}

inline std::string ErrorOf(const OutputFormat& format) {
  return std::string(BuildGrammar(format).status().message());
}

}  // namespace fulgur::grammar
