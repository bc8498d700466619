// Which keys a row attends to, and where they lie: its window by position, then the compressed rows
// that it sees, or those that the index selected, in ascending order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/layer_args.h"

namespace fulgur::kernels {

class AttentionKeys {
 public:
  // The keys of row `row` of the batch, which belongs to `sequence`.
  AttentionKeys(const AttentionArgs& args, const AttentionSequence& sequence, int64_t row);

  int64_t size() const { return num_window_ + num_compressed_; }

  // The address of each of keys [first, first + count).
  void Fill(int64_t first, int64_t count, const std::byte** keys) const;

 private:
  const std::byte* Key(int64_t index) const;

  const AttentionArgs& args_;
  const AttentionSequence& sequence_;
  const int64_t row_;
  int64_t first_position_ = 0;
  int64_t num_window_ = 0;
  int64_t num_compressed_ = 0;
};

}  // namespace fulgur::kernels
