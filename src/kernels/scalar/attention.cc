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
  const int64_t out_row = row * job.heads + head;
  TransformHead(job.transform, job.x + out_row * job.dim, job.dim, row, values);
  StoreRow(values, job.dim, out_row, job.out);
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
  float q[kMaxDim];
  float k_buffer[kMaxDim];
  double sums[kMaxDim] = {};
  MakeQuery(args, row, head, q);
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

void TransformHead(const HeadTransform& transform, const float* x, int64_t dim, int64_t row,
                   float* values) {
  std::copy_n(x, dim, values);
  if (transform.normalize) {
    ScaleRow(values, dim, RmsScale(values, dim, transform.eps), transform.weight);
  }
  Rotate(values, dim, transform.rope + row * transform.rope_dim, transform.rope_dim);
  if (transform.hadamard) Hadamard(values, dim);
}

void MakeQuery(const AttentionArgs& args, int64_t row, int64_t head, float* values) {
  TransformHead(args.query, args.q + (row * args.heads + head) * args.dim, args.dim, row, values);
  if (args.format == RowFormat::kF32) return;
  std::transform(values, values + args.dim, values,
                 [](float value) { return tensor::ToFloat(tensor::ToBFloat16(value)); });
}

void WriteAttended(const AttentionArgs& args, int64_t row, int64_t head, float* values) {
  const HeadTransform& query = args.query;
  Rotate(values, args.dim, query.rope + row * query.rope_dim, query.rope_dim, -1.0F);
  RowsOut rows;
  rows.f32 = args.out_f32;
  rows.bf16 = args.out_bf16;
  StoreRow(values, args.dim, row * args.heads + head, rows);
}

void SparseAttention(const AttentionArgs& args, const base::WorkerRank& worker) {
  CHECK_LE(args.dim, kMaxDim);
  const auto heads = [&](int64_t /*keys*/) { return args.heads; };
  ForEachAttended(args, worker, heads, [&](const AttendedRow& r) {
    const AttentionKeys keys(args, r.sequence, r.row);
    for (int64_t head = r.begin; head < r.end; ++head) AttendHead(args, keys, r.row, head);
  });
}

}  // namespace fulgur::kernels::scalar
