#include <algorithm>
#include <numeric>

#include "kernels/packed_layout.h"
#include "kernels/scalar/product.h"
#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels::scalar {
namespace {

void LinearBlock(const LinearJob& job, int64_t block) {
  const int64_t out = job.weight->out;
  const int64_t first = block * kBlockChannels;
  const int64_t count = std::min(kBlockChannels, out - first);
  const int64_t y_stride = job.y_stride != 0 ? job.y_stride : out;
  float tile[kMaxProductRows * kBlockChannels];
  int32_t rows[kMaxProductRows];
  for (int64_t t = 0; t < job.x.rows; t += kMaxProductRows) {
    const int64_t n = std::min(kMaxProductRows, job.x.rows - t);
    std::iota(rows, rows + n, static_cast<int32_t>(t));
    BlockProduct(*job.weight, block, job.x, job.x_stride, {rows, static_cast<size_t>(n)}, tile);
    for (int64_t r = 0; r < n; ++r) {
      std::copy_n(tile + r * kBlockChannels, count, job.y + (t + r) * y_stride + first);
    }
  }
}

}  // namespace

void Linear(std::span<const LinearJob> jobs, const base::WorkerRank& worker) {
  for (const LinearJob& job : jobs) {
    const auto [begin, end] = worker.Share(CeilDiv(job.weight->out, kBlockChannels));
    for (int64_t block = begin; block < end; ++block) LinearBlock(job, block);
  }
}

}  // namespace fulgur::kernels::scalar
