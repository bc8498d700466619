// Context-free grammars over bytes: what an answer may look like.
//
// Parsers of regular expressions, EBNF and JSON schemas write rules through a GrammarBuilder; a
// Matcher follows the finished Grammar. Immutable once built.
#pragma once

#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace fulgur::grammar {

using ByteSet = std::bitset<256>;

// An added token, such as a marker, is spelt as this byte, which no text contains, and its content.
// So a grammar can ask for the token itself, and text that merely looks like it will not do.
inline constexpr uint8_t kAddedTokenMark = 0xFF;

// A step of a rule: a byte out of a set, another rule, or the rule's end.
struct Symbol {
  enum class Kind : uint8_t { kEnd, kBytes, kRule };
  Kind kind = Kind::kEnd;
  uint32_t index = 0;  // of the byte set or of the rule

  friend bool operator==(const Symbol&, const Symbol&) = default;
};

class Grammar {
 public:
  uint32_t root() const { return root_; }
  // Positions of the first symbols of a rule's alternatives.
  std::span<const uint32_t> Alternatives(uint32_t rule) const { return rules_[rule]; }
  // The symbols of an alternative lie at consecutive positions and end with kEnd.
  Symbol At(uint32_t position) const { return symbols_[position]; }
  const ByteSet& Bytes(uint32_t index) const { return byte_sets_[index]; }
  size_t size() const { return symbols_.size(); }

 private:
  friend class GrammarBuilder;

  std::vector<Symbol> symbols_;
  std::vector<std::vector<uint32_t>> rules_;
  std::vector<ByteSet> byte_sets_;
  uint32_t root_ = 0;
};

// Puts rules together from the inside out: every function returns a symbol that stands for what it
// built. A grammar that grows too large is reported by Build; until then nothing more is added.
class GrammarBuilder {
 public:
  // At most so many times may a part be asked to repeat.
  static constexpr int64_t kMaxRepeats = 1 << 16;
  static constexpr int64_t kUnbounded = -1;

  Symbol Bytes(const ByteSet& set);
  Symbol Byte(uint8_t byte) { return Bytes(ByteSet().set(byte)); }
  // Exactly this text; the empty text matches nothing at all, which is a match.
  Symbol Literal(std::string_view text);
  // The added token of this content.
  Symbol AddedToken(std::string_view content);
  Symbol Sequence(std::span<const Symbol> parts);
  Symbol Sequence(std::initializer_list<Symbol> parts) { return Sequence(std::span(parts)); }
  Symbol Choice(std::span<const Symbol> options);
  Symbol Choice(std::initializer_list<Symbol> options) { return Choice(std::span(options)); }
  Symbol Empty() { return Sequence({}); }
  Symbol Optional(Symbol part) { return Choice({part, Empty()}); }
  // `part` at least `least` times and at most `most` (kUnbounded: any number) times.
  Symbol Repeat(Symbol part, int64_t least, int64_t most);

  // For rules that refer to themselves: declared first, defined once later.
  Symbol Declare();
  void Define(Symbol rule, std::span<const Symbol> options);

  bool TooLarge() const { return grammar_.symbols_.size() > kMaxSymbols; }

  // The grammar of `root`. Errors: too large, or a rule that may begin with itself (left recursion
  // that a repetition would express).
  absl::StatusOr<Grammar> Build(Symbol root) &&;

 private:
  static constexpr size_t kMaxSymbols = 1 << 20;

  void AddAlternative(uint32_t rule, std::span<const Symbol> parts);
  std::vector<bool> NullableRules() const;
  absl::Status CheckLeftRecursion() const;

  Grammar grammar_;
  absl::flat_hash_map<std::string, uint32_t> byte_set_index_;  // by the set's digits
  std::optional<Symbol> empty_;
};

}  // namespace fulgur::grammar
