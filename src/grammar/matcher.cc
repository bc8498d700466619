#include "grammar/matcher.h"

#include <algorithm>

namespace fulgur::grammar {

Matcher::Matcher(const Grammar& grammar) : grammar_(grammar) {
  frames_.resize(2);  // the special stacks
  visited_.resize(2);
}

MatchState Matcher::Start() {
  MatchState state;
  ++expansion_;
  for (const uint32_t start : grammar_.Alternatives(grammar_.root())) {
    Expand({start, kFinished}, state);
  }
  Normalise(state);
  return state;
}

MatchState Matcher::StartAt(const StackTop& top) {
  StackId stack = top.whole ? kFinished : kLeft;
  for (auto position = top.positions.rbegin(); position != top.positions.rend(); ++position) {
    stack = Intern({*position, stack});
  }
  return {stack};
}

StackTop Matcher::TopOf(StackId stack, size_t depth) const {
  StackTop top;
  for (; stack != kFinished && stack != kLeft && top.positions.size() < depth;
       stack = frames_[stack].rest) {
    top.positions.push_back(frames_[stack].position);
  }
  top.whole = stack == kFinished;
  return top;
}

void Matcher::Advance(const MatchState& state, uint8_t byte, MatchState& next) {
  next.clear();
  ++expansion_;
  for (const StackId stack : state) {
    if (stack == kFinished || stack == kLeft) continue;
    const Frame frame = frames_[stack];
    if (!grammar_.Bytes(grammar_.At(frame.position).index)[byte]) continue;
    Expand({frame.position + 1, frame.rest}, next);
  }
  Normalise(next);
}

StackId Matcher::Intern(Frame frame) {
  const uint64_t key = (static_cast<uint64_t>(frame.position) << 32) | frame.rest;
  const auto [found, added] = ids_.try_emplace(key, static_cast<StackId>(frames_.size()));
  if (added) {
    frames_.push_back(frame);
    visited_.push_back(0);
  }
  return found->second;
}

void Matcher::Visit(Frame frame) {
  const StackId stack = Intern(frame);
  if (visited_[stack] == expansion_) return;
  visited_[stack] = expansion_;
  pending_.push_back(stack);
}

void Matcher::Expand(Frame start, MatchState& state) {
  Visit(start);
  while (!pending_.empty() && !overflowed_) {
    const StackId stack = pending_.back();
    pending_.pop_back();
    const Frame frame = frames_[stack];
    const Symbol symbol = grammar_.At(frame.position);
    if (symbol.kind == Symbol::Kind::kBytes) {
      state.push_back(stack);
    } else if (symbol.kind == Symbol::Kind::kRule) {
      // A rule in last place takes over what its own rule would go on with: repetitions do not
      // grow the stack.
      const bool last = grammar_.At(frame.position + 1).kind == Symbol::Kind::kEnd;
      const StackId rest = last ? frame.rest : Intern({frame.position + 1, frame.rest});
      for (const uint32_t alternative : grammar_.Alternatives(symbol.index)) {
        Visit({alternative, rest});
      }
    } else if (frame.rest == kFinished || frame.rest == kLeft) {
      state.push_back(frame.rest);
    } else {
      Visit(frames_[frame.rest]);
    }
    overflowed_ = state.size() > kMaxStacks || frames_.size() > kMaxFrames;
  }
  pending_.clear();
}

void Matcher::Normalise(MatchState& state) {
  if (overflowed_) state.clear();
  std::sort(state.begin(), state.end());
  state.erase(std::unique(state.begin(), state.end()), state.end());
}

}  // namespace fulgur::grammar
