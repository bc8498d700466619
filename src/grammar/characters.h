// Sets of Unicode characters, and the bytes that spell them in UTF-8.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "grammar/grammar.h"

namespace fulgur::grammar {

// Surrogates are no characters: they are left out of every set when it is spelt.
class CharacterSet {
 public:
  using Range = std::pair<uint32_t, uint32_t>;  // both ends inside
  static constexpr uint32_t kMax = 0x10FFFF;

  void Add(uint32_t first, uint32_t last) { ranges_.emplace_back(first, last); }
  void Add(uint32_t character) { Add(character, character); }
  void Add(const CharacterSet& other);
  // All characters that are not in the set.
  CharacterSet Complement() const;

  // Ascending and disjoint.
  std::vector<Range> Ranges() const;
  // One character of the set. An empty set can never match.
  Symbol Spell(GrammarBuilder& builder) const;

 private:
  std::vector<Range> ranges_;
};

}  // namespace fulgur::grammar
