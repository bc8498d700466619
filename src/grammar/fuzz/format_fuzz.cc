// Formats as users write them, and a text to hold against each: first byte the kind, then the
// format up to a NUL, then the text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "grammar/matcher.h"
#include "grammar/output_format.h"

namespace {

using fulgur::grammar::Grammar;
using fulgur::grammar::Matcher;
using fulgur::grammar::MatchState;
using fulgur::grammar::OutputFormat;

OutputFormat FormatOf(uint8_t kind, std::string source) {
  constexpr OutputFormat::Kind kKinds[] = {
      OutputFormat::Kind::kJsonSchema, OutputFormat::Kind::kRegex, OutputFormat::Kind::kChoice,
      OutputFormat::Kind::kEbnf, OutputFormat::Kind::kToolCalls};
  OutputFormat format;
  format.kind = kKinds[kind % std::size(kKinds)];
  format.source = source;
  format.calls = {.tools = std::move(source), .hold_arguments = true};
  return format;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t end = std::min(rest.find('\0'), rest.size());
  const auto grammar = BuildGrammar(FormatOf(data[0], std::string(rest.substr(0, end))));
  if (!grammar.ok()) return 0;
  Matcher matcher(*grammar);
  MatchState state = matcher.Start(), next;
  for (const char byte : rest.substr(std::min(end + 1, rest.size()))) {
    matcher.Advance(state, static_cast<uint8_t>(byte), next);
    std::swap(state, next);
  }
  return 0;
}
