// Ops that only move rows.
#include <algorithm>
#include <cstring>

#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels::scalar {
namespace {

void EmbedRow(const EmbedArgs& args, int64_t row) {
  float* first = args.streams + row * args.num_streams * args.hidden;
  const int64_t offset = args.tokens[row] * args.hidden;
  if (args.table_f32 != nullptr) {
    std::copy_n(args.table_f32 + offset, args.hidden, first);
  } else {
    const tensor::BFloat16* source = args.table_bf16 + offset;
    std::transform(source, source + args.hidden, first, tensor::ToFloat);
  }
  for (int64_t j = 1; j < args.num_streams; ++j) {
    std::copy_n(first, args.hidden, first + j * args.hidden);
  }
}

}  // namespace

void Embed(const EmbedArgs& args, const base::WorkerRank& worker) {
  const auto [begin, end] = worker.Share(args.rows);
  for (int64_t row = begin; row < end; ++row) EmbedRow(args, row);
}

void WriteRings(std::span<const RingWriteJob> jobs, const base::WorkerRank& worker) {
  for (const RingWriteJob& job : jobs) {
    for (const RingSequence& sequence : job.sequences) {
      const RowRange& range = sequence.range;
      const RingRows& ring = sequence.ring;
      const int64_t kept = std::min(range.num_rows, ring.rows);
      const auto [begin, end] = worker.Share(kept);
      for (int64_t i = range.num_rows - kept + begin; i < range.num_rows - kept + end; ++i) {
        std::memcpy(ring.Row(range.first_position + i),
                    job.rows + (range.first_row + i) * ring.row_bytes,
                    static_cast<size_t>(ring.row_bytes));
      }
    }
  }
}

}  // namespace fulgur::kernels::scalar
