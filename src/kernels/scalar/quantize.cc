#include "kernels/quantize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels::scalar {
namespace {

double InverseRms(const float* x, int64_t n, float eps) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return 1.0 / std::sqrt(sum / static_cast<double>(n) + eps);
}

void NormRow(const NormRowsJob& job, int64_t t, float* values) {
  const float* x = job.x + t * (job.x_stride != 0 ? job.x_stride : job.cols);
  if (job.weight == nullptr) {
    std::copy_n(x, job.cols, values);
    return;
  }
  const double inverse = InverseRms(x, job.cols, job.eps);
  for (int64_t i = 0; i < job.cols; ++i) {
    values[i] = static_cast<float>(x[i] * inverse * job.weight[i]);
  }
}

}  // namespace

void NormRows(std::span<const NormRowsJob> jobs, const base::WorkerRank& worker) {
  thread_local std::vector<float> values;
  for (const NormRowsJob& job : jobs) {
    values.resize(std::max(values.size(), static_cast<size_t>(job.cols)));
    const auto [begin, end] = worker.Share(job.rows);
    for (int64_t t = begin; t < end; ++t) {
      NormRow(job, t, values.data());
      StoreRow(values.data(), job.cols, t, job.out);
    }
  }
}

}  // namespace fulgur::kernels::scalar
