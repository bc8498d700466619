#include "kernels/attention_keys.h"

#include <algorithm>
#include <atomic>

#include "kernels/index_entries.h"

namespace fulgur::kernels {

namespace {

// Calls visit(sequence, row, units) for the rows of the batch that args name.
template <typename Visit>
void ForEachRow(const AttentionArgs& args, absl::FunctionRef<int64_t(int64_t)> units, Visit visit) {
  for (const AttentionSequence& sequence : args.sequences) {
    const RowRange& range = sequence.range;
    const int64_t last = std::min(args.row_end, range.first_row + range.num_rows);
    for (int64_t row = std::max(args.row_begin, range.first_row); row < last; ++row) {
      visit(sequence, row, units(AttentionKeys::Count(args, sequence, row)));
    }
  }
}

}  // namespace

void ForEachAttended(const AttentionArgs& args, const base::WorkerRank& worker,
                     absl::FunctionRef<int64_t(int64_t keys)> units,
                     absl::FunctionRef<void(const AttendedRow&)> attend) {
  int64_t total = 0;
  ForEachRow(args, units,
             [&](const AttentionSequence&, int64_t, int64_t of_row) { total += of_row; });
  const auto [begin, end] = worker.Share(total);
  int64_t passed = 0;
  ForEachRow(args, units,
             [&, begin = begin, end = end](const AttentionSequence& sequence, int64_t row,
                                           int64_t of_row) {
               const int64_t first = std::max(begin - passed, int64_t{0});
               const int64_t last = std::min(end - passed, of_row);
               // The first whose share ends behind the row's first unit.
               const int64_t owner = CeilDiv((passed + 1) * worker.size(), total) - 1;
               passed += of_row;
               if (first < last) attend({sequence, row, first, last, of_row, owner});
             });
}

bool IsLastPart(int32_t* finished, int64_t parts) {
  const std::atomic_ref<int32_t> count(*finished);
  if (count.fetch_add(1, std::memory_order_acq_rel) + 1 < parts) return false;
  count.store(0, std::memory_order_relaxed);
  return true;
}

AttentionKeys::AttentionKeys(const AttentionArgs& args, const AttentionSequence& sequence,
                             int64_t row, NotSelected /*tag*/)
    : args_(args), sequence_(sequence) {
  const RowRange& range = sequence.range;
  const int64_t position = range.first_position + row - range.first_row;
  const int64_t begin =
      args.whole_range ? range.first_position - args.window : position - args.window + 1;
  const int64_t end = args.whole_range ? range.first_position + range.num_rows : position + 1;
  first_position_ = std::max(int64_t{0}, begin);
  num_window_ = end - first_position_;
  if (args.ratio == 0) return;
  num_visible_ = (position + 1) / args.ratio;
  num_compressed_ = chooses() ? args.index->topk : num_visible_;
}

AttentionKeys::AttentionKeys(const AttentionArgs& args, const AttentionSequence& sequence,
                             int64_t row)
    : AttentionKeys(args, sequence, row, NotSelected()) {
  if (chooses()) selected_ = SelectEntries(*args.index, row, num_visible_);
}

int64_t AttentionKeys::Count(const AttentionArgs& args, const AttentionSequence& sequence,
                             int64_t row) {
  return AttentionKeys(args, sequence, row, NotSelected()).size();
}

bool AttentionKeys::chooses() const {
  return args_.index != nullptr && num_visible_ > args_.index->topk;
}

void AttentionKeys::Fill(int64_t first, int64_t count, const std::byte** keys) const {
  for (int64_t i = 0; i < count; ++i) keys[i] = Key(first + i);
}

const std::byte* AttentionKeys::Key(int64_t index) const {
  if (index >= num_window_) {
    const int64_t entry = index - num_window_;
    return sequence_.compressed.Row(selected_ == nullptr ? entry : selected_[entry]);
  }
  const int64_t position = first_position_ + index;
  const RowRange& range = sequence_.range;
  if (position < range.first_position) return sequence_.window.Row(position);
  const int64_t row = range.first_row + position - range.first_position;
  return args_.new_rows + row * RowBytes(args_.format, args_.dim);
}

}  // namespace fulgur::kernels
