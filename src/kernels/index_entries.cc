#include "kernels/index_entries.h"

#include <algorithm>
#include <numeric>

#include "kernels/scratch.h"

namespace fulgur::kernels {
namespace {

// Calls visit(sequence, row, entries) for the rows of the batch that need scores.
template <typename Visit>
void ForEachRow(const IndexArgs& args, Visit visit) {
  for (const IndexSequence& sequence : args.sequences) {
    const RowRange& range = sequence.range;
    const int64_t begin = std::max(args.row_begin, range.first_row);
    const int64_t end = std::min(args.row_end, range.first_row + range.num_rows);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t entries = (range.first_position + row - range.first_row + 1) / args.ratio;
      if (entries > args.topk) visit(sequence, row, entries);
    }
  }
}

}  // namespace

void ForEachScored(const IndexArgs& args, const base::WorkerRank& worker,
                   absl::FunctionRef<void(const EntryRange&)> score) {
  int64_t total = 0;
  ForEachRow(args, [&](const IndexSequence&, int64_t, int64_t entries) { total += entries; });
  const auto [begin, end] = worker.Share(total);
  int64_t passed = 0;
  ForEachRow(args, [&, begin = begin, end = end](const IndexSequence& sequence, int64_t row,
                                                 int64_t entries) {
    const int64_t first = std::max(begin - passed, int64_t{0});
    const int64_t last = std::min(end - passed, entries);
    passed += entries;
    if (first >= last) return;
    score({sequence, row, first, last, args.scores + (row - args.row_begin) * args.scores_stride});
  });
}

// A heap of indices with the worst on top, kept in the result itself.
const int32_t* SelectEntries(const IndexArgs& args, int64_t row, int64_t visible) {
  const float* scores = args.scores + (row - args.row_begin) * args.scores_stride;
  auto* selected = reinterpret_cast<int32_t*>(
      Scratch(ScratchUse::kSelected, args.topk * static_cast<int64_t>(sizeof(int32_t))));
  int32_t* end = selected + args.topk;
  const auto better = [scores](int32_t a, int32_t b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  };
  std::iota(selected, end, 0);
  std::make_heap(selected, end, better);
  for (auto entry = static_cast<int32_t>(args.topk); entry < visible; ++entry) {
    if (!better(entry, selected[0])) continue;
    std::pop_heap(selected, end, better);
    end[-1] = entry;
    std::push_heap(selected, end, better);
  }
  std::sort(selected, end);
  return selected;
}

}  // namespace fulgur::kernels
