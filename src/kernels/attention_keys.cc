#include "kernels/attention_keys.h"

#include <algorithm>

#include "kernels/index_entries.h"

namespace fulgur::kernels {

void ForEachAttended(const AttentionArgs& args, const base::WorkerRank& worker, int64_t parts,
                     absl::FunctionRef<void(const AttendedRow&)> attend) {
  const auto [begin, end] = worker.Share((args.row_end - args.row_begin) * parts);
  for (const AttentionSequence& sequence : args.sequences) {
    const RowRange& range = sequence.range;
    const int64_t last = std::min(args.row_end, range.first_row + range.num_rows);
    for (int64_t row = std::max(args.row_begin, range.first_row); row < last; ++row) {
      const int64_t unit = (row - args.row_begin) * parts;
      const int64_t first_part = std::max(begin - unit, int64_t{0});
      const int64_t last_part = std::min(end - unit, parts);
      if (first_part < last_part) attend({sequence, row, first_part, last_part});
    }
  }
}

AttentionKeys::AttentionKeys(const AttentionArgs& args, const AttentionSequence& sequence,
                             int64_t row)
    : args_(args), sequence_(sequence) {
  const RowRange& range = sequence.range;
  const int64_t position = range.first_position + row - range.first_row;
  const int64_t begin =
      args.whole_range ? range.first_position - args.window : position - args.window + 1;
  const int64_t end = args.whole_range ? range.first_position + range.num_rows : position + 1;
  first_position_ = std::max(int64_t{0}, begin);
  num_window_ = end - first_position_;
  if (args.ratio == 0) return;
  num_compressed_ = (position + 1) / args.ratio;
  if (args.index == nullptr || num_compressed_ <= args.index->topk) return;
  selected_ = SelectEntries(*args.index, row, num_compressed_);
  num_compressed_ = args.index->topk;
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
