// Rows whose keys a drafter has not written yet, in a sequence's state slot.
//
// While no drafts of a sequence are wanted, what its keys are made of is only kept: a ring over the
// window, since older keys are never read. So a drafter that is not used costs a copy per token,
// and its keys are computed together when drafts are wanted again. The slot is where the ring lies,
// so whoever copies or moves a slot takes it along. Rows that do not end where the sequence's next
// step begins are another sequence's, which had the slot before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "model/config.h"
#include "model/scratch.h"

namespace fulgur::model {

class PendingRows {
 public:
  // What they take in a slot; none without a drafter.
  static int64_t Bytes(const ModelConfig& config) {
    if (config.drafter == DrafterKind::kNone) return 0;
    Arena arena(nullptr);
    const PendingRows measured(config, arena);
    return arena.peak();
  }

  // The rows at `base`, a place in a slot.
  static PendingRows At(std::byte* base, const ModelConfig& config) {
    Arena arena(base);
    return {config, arena};
  }

  // The rows are those of the positions [end - count, end).
  int64_t count() const { return header_->count; }
  int64_t end_position() const { return header_->end_position; }
  // The token behind a position, and what its key is made of.
  int32_t* token(int64_t position) const { return tokens_ + position % room_; }
  float* inputs(int64_t position) const { return inputs_ + position % room_ * width_; }
  // The end of the rows from `position` on that lie behind each other, or `end` if that is sooner.
  int64_t SpanEnd(int64_t position, int64_t end) const {
    return std::min(end, position - position % room_ + room_);
  }

  // Forgets the rows if they do not end at `position`.
  void Expect(int64_t position) const {
    if (header_->end_position != position) *header_ = {position, 0};
  }
  void Clear() const { header_->count = 0; }
  // `count` more rows, written to their places, follow.
  void Advance(int64_t count) const {
    *header_ = {header_->end_position + count, std::min(header_->count + count, room_)};
  }

 private:
  struct Header {
    int64_t end_position = 0;
    int64_t count = 0;
  };

  PendingRows(const ModelConfig& config, Arena& arena)
      : header_(arena.Take<Header>(1)),
        room_(config.sliding_window),
        tokens_(arena.Take<int32_t>(room_)),
        width_(DraftInputs(config)),
        inputs_(arena.Take<float>(room_ * width_)) {}

  Header* header_;
  int64_t room_;
  int32_t* tokens_;
  int64_t width_;
  float* inputs_;
};

}  // namespace fulgur::model
