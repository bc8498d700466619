#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/attention_keys.h"
#include "kernels/scalar/row_math.h"
#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels::scalar {
namespace {

constexpr int64_t kMaxDim = 1024;

void WriteHead(const HeadRowsJob& job, int64_t row, int64_t head) {
  float values[kMaxDim];
  std::copy_n(job.x + (row * job.heads + head) * job.dim, job.dim, values);
  if (job.normalize) {
    ScaleRow(values, job.dim, RmsScale(values, job.dim, job.eps), job.weight);
  }
  Rotate(values, job.dim, job.rope + row * job.rope_dim, job.rope_dim);
  if (job.hadamard) Hadamard(values, job.dim);
  StoreRow(values, job.dim, row * job.heads + head, job.out);
}

// A softmax over keys that arrive one by one; the sum keeps the scale of the largest score so far.
class Softmax {
 public:
  // Returns by how much everything summed before must shrink.
  double Raise(double score) {
    if (score <= largest_) return 1.0;
    const double shrink = std::exp(largest_ - score);
    largest_ = score;
    sum_ *= shrink;
    return shrink;
  }
  double Add(double score) {
    const double weight = std::exp(score - largest_);
    sum_ += weight;
    return weight;
  }
  double sum() const { return sum_; }

 private:
  double largest_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0.0;
};

void AttendHead(const AttentionArgs& args, const AttentionKeys& keys, int64_t row, int64_t head) {
  float q_buffer[kMaxDim];
  float k_buffer[kMaxDim];
  double sums[kMaxDim] = {};
  const int64_t offset = (row * args.heads + head) * args.dim;
  const float* q =
      args.q_f32 != nullptr
          ? args.q_f32 + offset
          : LoadCacheRow(RowFormat::kBf16, reinterpret_cast<const std::byte*>(args.q_bf16 + offset),
                         args.dim, q_buffer);
  Softmax softmax;
  for (int64_t i = 0; i < keys.size(); ++i) {
    const std::byte* cached;
    keys.Fill(i, 1, &cached);
    const float* key = LoadCacheRow(args.format, cached, args.dim, k_buffer);
    const double score = Dot(q, key, args.dim) * static_cast<double>(args.scale);
    const double shrink = softmax.Raise(score);
    const double weight = softmax.Add(score);
    for (int64_t d = 0; d < args.dim; ++d) {
      sums[d] = sums[d] * shrink + weight * static_cast<double>(key[d]);
    }
  }
  // The sink is one more score without a value.
  const auto sink = static_cast<double>(args.sink[head]);
  const double shrink = softmax.Raise(sink);
  softmax.Add(sink);
  float out[kMaxDim];
  for (int64_t d = 0; d < args.dim; ++d) {
    out[d] = static_cast<float>(sums[d] * shrink / softmax.sum());
  }
  WriteAttended(args, row, head, out);
}

}  // namespace

void HeadRows(std::span<const HeadRowsJob> jobs, const base::WorkerRank& worker) {
  for (const HeadRowsJob& job : jobs) {
    CHECK_LE(job.dim, kMaxDim);
    const auto [begin, end] = worker.Share(job.rows * job.heads);
    for (int64_t unit = begin; unit < end; ++unit) {
      WriteHead(job, unit / job.heads, unit % job.heads);
    }
  }
}

void WriteAttended(const AttentionArgs& args, int64_t row, int64_t head, float* values) {
  Rotate(values, args.dim, args.rope + row * args.rope_dim, args.rope_dim, -1.0F);
  RowsOut rows;
  rows.f32 = args.out_f32;
  rows.bf16 = args.out_bf16;
  StoreRow(values, args.dim, row * args.heads + head, rows);
}

void SparseAttention(const AttentionArgs& args, const base::WorkerRank& worker) {
  CHECK_LE(args.dim, kMaxDim);
  for (const AttentionSequence& sequence : args.sequences) {
    const auto [begin, end] = worker.Share(sequence.range.num_rows * args.heads);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t row = sequence.range.first_row + unit / args.heads;
      AttendHead(args, AttentionKeys(args, sequence, row), row, unit % args.heads);
    }
  }
}

}  // namespace fulgur::kernels::scalar
