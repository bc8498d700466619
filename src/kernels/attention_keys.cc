#include "kernels/attention_keys.h"

#include <algorithm>

namespace fulgur::kernels {

AttentionKeys::AttentionKeys(const AttentionArgs& args, const AttentionSequence& sequence,
                             int64_t row)
    : args_(args), sequence_(sequence), row_(row) {
  const RowRange& range = sequence.range;
  const int64_t position = range.first_position + row - range.first_row;
  const int64_t begin =
      args.whole_range ? range.first_position - args.window : position - args.window + 1;
  const int64_t end = args.whole_range ? range.first_position + range.num_rows : position + 1;
  first_position_ = std::max(int64_t{0}, begin);
  num_window_ = end - first_position_;
  if (args.ratio == 0) return;
  num_compressed_ = args.selected == nullptr ? (position + 1) / args.ratio : args.counts[row];
}

void AttentionKeys::Fill(int64_t first, int64_t count, const std::byte** keys) const {
  for (int64_t i = 0; i < count; ++i) keys[i] = Key(first + i);
}

const std::byte* AttentionKeys::Key(int64_t index) const {
  if (index >= num_window_) {
    const int64_t entry = index - num_window_;
    return sequence_.compressed.Row(
        args_.selected == nullptr ? entry : args_.selected[row_ * args_.topk + entry]);
  }
  const int64_t position = first_position_ + index;
  const RowRange& range = sequence_.range;
  if (position < range.first_position) return sequence_.window.Row(position);
  const int64_t row = range.first_row + position - range.first_position;
  return args_.new_rows + row * RowBytes(args_.format, args_.dim);
}

}  // namespace fulgur::kernels
