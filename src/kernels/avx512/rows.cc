// Ops on whole rows: norms, heads, embedding.
#include "kernels/avx512/rows.h"

#include "kernels/avx512/avx512_ops.h"
#include "kernels/scratch.h"

namespace fulgur::kernels::avx512 {
namespace {

void NormRow(const NormRowsJob& job, int64_t t, float* buffer) {
  const float* x = job.x + t * (job.x_stride != 0 ? job.x_stride : job.cols);
  if (job.weight == nullptr) return StoreRow(x, job.cols, t, job.out);
  float* values = job.out.f32 != nullptr ? job.out.f32 + t * job.cols : buffer;
  ScaleRow(x, job.cols, RmsScale(x, job.cols, job.eps), job.weight, values);
  StoreRow(values, job.cols, t, job.out);
}

void WriteHead(const HeadRowsJob& job, int64_t row, int64_t head, float* values) {
  const int64_t out_row = row * job.heads + head;
  TransformHead(job.transform, job.x + out_row * job.dim, job.dim, row, values);
  StoreRow(values, job.dim, out_row, job.out);
}

void EmbedRow(const EmbedArgs& args, int64_t row) {
  const int64_t hidden = args.hidden;
  float* streams = args.streams + row * args.num_streams * hidden;
  const int64_t offset = args.tokens[row] * hidden;
  for (int64_t i = 0; i < hidden; i += 16) {
    const __mmask16 lanes = Lanes(hidden - i);
    const __m512 value =
        args.table_f32 != nullptr
            ? _mm512_maskz_loadu_ps(lanes, args.table_f32 + offset + i)
            : FromBf16(_mm256_maskz_loadu_epi16(lanes, args.table_bf16 + offset + i));
    for (int64_t j = 0; j < args.num_streams; ++j) {
      _mm512_mask_storeu_ps(streams + j * hidden + i, lanes, value);
    }
  }
}

float* RowBuffer(int64_t cols) {
  return reinterpret_cast<float*>(Scratch(ScratchUse::kRow, cols * 4));
}

}  // namespace

void NormRows(std::span<const NormRowsJob> jobs, const base::WorkerRank& worker) {
  for (const NormRowsJob& job : jobs) {
    float* buffer = RowBuffer(job.cols);
    const auto [begin, end] = worker.Share(job.rows);
    for (int64_t t = begin; t < end; ++t) NormRow(job, t, buffer);
  }
}

void HeadRows(std::span<const HeadRowsJob> jobs, const base::WorkerRank& worker) {
  for (const HeadRowsJob& job : jobs) {
    Require(!job.transform.hadamard || job.dim >= 16, "a Hadamard transform has 16 values or more");
    float* buffer = RowBuffer(job.dim);
    const auto [begin, end] = worker.Share(job.rows * job.heads);
    for (int64_t unit = begin; unit < end; ++unit) {
      WriteHead(job, unit / job.heads, unit % job.heads, buffer);
    }
  }
}

void Embed(const EmbedArgs& args, const base::WorkerRank& worker) {
  const auto [begin, end] = worker.Share(args.rows);
  for (int64_t row = begin; row < end; ++row) EmbedRow(args, row);
}

}  // namespace fulgur::kernels::avx512
