// Which keys a row attends to, and where they lie: its window by position, then the compressed rows
// that it sees, or those that the index selects, in ascending order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "base/team.h"
#include "kernels/layer_args.h"

namespace fulgur::kernels {

// Parts [begin, end) of one row's heads.
struct AttendedRow {
  const AttentionSequence& sequence;
  int64_t row;
  int64_t begin;
  int64_t end;
};

// Calls attend(row) for this worker's share of the rows, whose heads come in `parts` parts each.
void ForEachAttended(const AttentionArgs& args, const base::WorkerRank& worker, int64_t parts,
                     absl::FunctionRef<void(const AttendedRow&)> attend);

class AttentionKeys {
 public:
  // The keys of row `row` of the batch, which belongs to `sequence`. Selects by the index, which is
  // worth doing once for all heads; valid until the calling thread makes the keys of another row.
  AttentionKeys(const AttentionArgs& args, const AttentionSequence& sequence, int64_t row);

  int64_t size() const { return num_window_ + num_compressed_; }

  // The address of each of keys [first, first + count).
  void Fill(int64_t first, int64_t count, const std::byte** keys) const;

 private:
  const std::byte* Key(int64_t index) const;

  const AttentionArgs& args_;
  const AttentionSequence& sequence_;
  int64_t first_position_ = 0;
  int64_t num_window_ = 0;
  int64_t num_compressed_ = 0;
  const int32_t* selected_ = nullptr;  // null: the first of them
};

}  // namespace fulgur::kernels
