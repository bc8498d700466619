// Follows a grammar byte by byte.
//
// Where a text stands in a grammar is a set of stacks: each says which byte set comes next and
// where to go on when its rules end. Stacks share their tails and every stack exists once, so a
// state is a short sorted list of numbers, cheap to keep, to copy and to compare.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "grammar/grammar.h"

namespace fulgur::grammar {

// Stacks, by number. Two numbers are special.
using StackId = uint32_t;
inline constexpr StackId kFinished = 0;  // nothing is left to match
// The rules that were followed are done; what comes behind them is not known here.
inline constexpr StackId kLeft = 1;

// A sorted set of stacks; empty: the text does not match.
using MatchState = std::vector<StackId>;

// The upper part of a stack: positions in the grammar, the next one to be matched first.
struct StackTop {
  std::vector<uint32_t> positions;
  bool whole = false;  // nothing lies below

  friend bool operator==(const StackTop&, const StackTop&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const StackTop& top) {
    return H::combine(std::move(h), top.positions, top.whole);
  }
};

// Owns the stacks of one text. The grammar must outlive it. One thread at a time.
class Matcher {
 public:
  explicit Matcher(const Grammar& grammar);

  // Before the first byte.
  MatchState Start();
  // With this stack only; what lies below its top is not known.
  MatchState StartAt(const StackTop& top);

  // The states that `byte` leads to. `next` is replaced; it must not be `state`.
  void Advance(const MatchState& state, uint8_t byte, MatchState& next);

  // At most `depth` positions of a stack, which is not a special one.
  StackTop TopOf(StackId stack, size_t depth) const;

  // Too many stacks at once, or in all: the grammar is too ambiguous to follow. Final.
  bool Overflowed() const { return overflowed_; }

 private:
  static constexpr size_t kMaxStacks = 1 << 12;  // of a state
  static constexpr size_t kMaxFrames = 1 << 22;

  struct Frame {
    uint32_t position;  // what to match next
    StackId rest;       // what to go on with when the rule of `position` ends
  };

  StackId Intern(Frame frame);
  // Adds to `state` all stacks that expect a byte when matching goes on at `frame`.
  void Expand(Frame frame, MatchState& state);
  void Visit(Frame frame);
  void Normalise(MatchState& state);

  const Grammar& grammar_;
  std::vector<Frame> frames_;
  absl::flat_hash_map<uint64_t, StackId> ids_;
  std::vector<uint32_t> visited_;  // by stack: the latest expansion that came past
  uint32_t expansion_ = 0;
  std::vector<StackId> pending_;
  bool overflowed_ = false;
};

}  // namespace fulgur::grammar
