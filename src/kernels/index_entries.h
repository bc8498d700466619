// The entries that the index scores, shared among the workers, and those that it selects.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "base/team.h"
#include "kernels/layer_args.h"

namespace fulgur::kernels {

// Scores of entries [begin, end) of one row of the batch; scores[e] is that of entry e.
struct EntryRange {
  const IndexSequence& sequence;
  int64_t row;
  int64_t begin;
  int64_t end;
  float* scores;
};

// Calls score(range) for this worker's share of the entries to score: an equal part of those of all
// rows, one row after the other, so that a worker prepares the queries of few rows. Rows that see
// no more entries than are selected need no scores.
void ForEachScored(const IndexArgs& args, const base::WorkerRank& worker,
                   absl::FunctionRef<void(const EntryRange&)> score);

// The best `topk` of a row's `visible` scores, which are more, ascending by index; ties go to the
// lower index. In memory of the calling thread, until it selects again.
const int32_t* SelectEntries(const IndexArgs& args, int64_t row, int64_t visible);

}  // namespace fulgur::kernels
