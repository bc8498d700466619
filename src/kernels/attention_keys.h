// Which keys a row attends to, and where they lie: its window by position, then the compressed rows
// that it sees, or those that the index selects, in ascending order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "base/team.h"
#include "kernels/layer_args.h"

namespace fulgur::kernels {

// A worker's part of one row: units [begin, end) of `units`, whatever a table splits a row into.
struct AttendedRow {
  const AttentionSequence& sequence;
  int64_t row;
  int64_t begin;
  int64_t end;
  int64_t units;
  int64_t first_worker;  // the lowest of those that share the row; first of no other such row

  bool whole() const { return begin == 0 && end == units; }
};

// Calls attend(row) for this worker's share of the rows, of which each has units(keys) units.
void ForEachAttended(const AttentionArgs& args, const base::WorkerRank& worker,
                     absl::FunctionRef<int64_t(int64_t keys)> units,
                     absl::FunctionRef<void(const AttendedRow&)> attend);

// Counts one more of `parts` that workers finish at any time: true for the last, to whom all that
// was written before the others' calls is visible. Then the count is zero again.
bool IsLastPart(int32_t* finished, int64_t parts);

class AttentionKeys {
 public:
  // The keys of row `row` of the batch, which belongs to `sequence`. Selects by the index, which is
  // worth doing once for all heads; valid until the calling thread makes the keys of another row.
  AttentionKeys(const AttentionArgs& args, const AttentionSequence& sequence, int64_t row);

  int64_t size() const { return num_window_ + num_compressed_; }
  // The same, without selecting.
  static int64_t Count(const AttentionArgs& args, const AttentionSequence& sequence, int64_t row);

  // The address of each of keys [first, first + count).
  void Fill(int64_t first, int64_t count, const std::byte** keys) const;

 private:
  struct NotSelected {};
  AttentionKeys(const AttentionArgs& args, const AttentionSequence& sequence, int64_t row,
                NotSelected);

  bool chooses() const;
  const std::byte* Key(int64_t index) const;

  const AttentionArgs& args_;
  const AttentionSequence& sequence_;
  int64_t first_position_ = 0;
  int64_t num_window_ = 0;
  int64_t num_visible_ = 0;  // compressed rows
  int64_t num_compressed_ = 0;
  const int32_t* selected_ = nullptr;  // null: the first of them
};

}  // namespace fulgur::kernels
