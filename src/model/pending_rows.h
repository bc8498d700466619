// Rows whose keys a drafter has not written yet, in a sequence's state slot.
//
// While no drafts of a sequence are wanted, what its keys are made of only piles up: the keys of
// several rows cost hardly more than those of one, since the weights are read once. The slot is
// where it lies, so whoever copies or moves a slot takes it along. Rows that do not end where the
// sequence's next step begins are another sequence's, which had the slot before.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/config.h"
#include "model/scratch.h"

namespace fulgur::model {

class PendingRows {
 public:
  // The most rows that wait, and the bytes that they take in a slot; none without a drafter.
  static int64_t Room(const ModelConfig& config) { return PendingRoom(config); }
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

  int64_t count() const { return header_->count; }
  int32_t* token(int64_t row) const { return tokens_ + row; }          // behind the row
  float* inputs(int64_t row) const { return inputs_ + row * width_; }  // what its key is made of

  // Forgets the rows if they do not end at `position`.
  void Expect(int64_t position) const {
    if (header_->end_position != position) header_->count = 0;
  }
  void Set(int64_t end_position, int64_t count) const { *header_ = {end_position, count}; }

 private:
  struct Header {
    int64_t end_position = 0;
    int64_t count = 0;
  };

  PendingRows(const ModelConfig& config, Arena& arena)
      : header_(arena.Take<Header>(1)),
        tokens_(arena.Take<int32_t>(Room(config))),
        width_(DraftInputs(config)),
        inputs_(arena.Take<float>(Room(config) * width_)) {}

  Header* header_;
  int32_t* tokens_;
  int64_t width_;
  float* inputs_;
};

}  // namespace fulgur::model
