// Manifold-constrained hyper-connections (arXiv:2512.24880) as DeepSeek-V4 uses them.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/packed_layout.h"
#include "kernels/scalar/row_math.h"
#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels::scalar {
namespace {

constexpr int64_t kMaxStreams = 8;
constexpr int64_t kMaxMixes = kMaxStreams * (2 + kMaxStreams);
constexpr int64_t kPanelChannels = 32;

// streams[q] = post_q o + sum_j comb[j][q] streams[j], for channels [begin, end) of one row.
void MixStreams(const HcPostArgs& args, int64_t row, int64_t begin, int64_t end) {
  const int64_t s = args.num_streams;
  float* streams = args.streams + row * s * args.hidden;
  const float* o = args.o + row * args.hidden;
  const float* post = args.post_comb + row * (s + s * s);
  const float* comb = post + s;
  for (int64_t i = begin; i < end; ++i) {
    float mixed[kMaxStreams];
    for (int64_t q = 0; q < s; ++q) {
      double sum = static_cast<double>(post[q]) * static_cast<double>(o[i]);
      for (int64_t j = 0; j < s; ++j) {
        sum += static_cast<double>(comb[j * s + q]) *
               static_cast<double>(streams[j * args.hidden + i]);
      }
      mixed[q] = static_cast<float>(sum);
    }
    for (int64_t q = 0; q < s; ++q) streams[q * args.hidden + i] = mixed[q];
  }
}

// Products of fn with one slice of a row's streams, then the slice's sum of squares.
void SliceProducts(const HcPostArgs& args, int64_t row, int64_t slice) {
  const int64_t mixes = args.fn->out;
  const int64_t begin = slice * kHcSliceWidth;
  const int64_t width = std::min(kHcSliceWidth, args.hidden - begin);
  double products[kMaxMixes] = {};
  double squares = 0.0;
  for (int64_t j = 0; j < args.num_streams; ++j) {
    const int64_t first = j * args.hidden + begin;
    const float* x = args.streams + row * args.num_streams * args.hidden + first;
    squares += Dot(x, x, width);
    for (int64_t panel = 0; panel * kPanelChannels < mixes; ++panel) {
      const int64_t channels = std::min(kPanelChannels, mixes - panel * kPanelChannels);
      double* out = products + panel * kPanelChannels;
      for (int64_t i = 0; i < width; ++i) {
        const float* weights = PanelF32(*args.fn, panel, first + i);
        for (int64_t m = 0; m < channels; ++m) {
          out[m] += static_cast<double>(weights[m]) * static_cast<double>(x[i]);
        }
      }
    }
  }
  float* partials = args.partials + (row * HcSlices(args.hidden) + slice) * (mixes + 1);
  for (int64_t m = 0; m < mixes; ++m) partials[m] = static_cast<float>(products[m]);
  partials[mixes] = static_cast<float>(squares);
}

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Products over all slices times 1 / rms of the streams.
void FinishProducts(const HcPreArgs& args, int64_t row, int64_t mixes, double* products) {
  const int64_t slices = HcSlices(args.hidden);
  const float* partials = args.partials + row * slices * (mixes + 1);
  double sums[kMaxMixes + 1] = {};
  for (int64_t slice = 0; slice < slices; ++slice) {
    for (int64_t m = 0; m <= mixes; ++m) {
      sums[m] += static_cast<double>(partials[slice * (mixes + 1) + m]);
    }
  }
  const auto count = static_cast<double>(args.num_streams * args.hidden);
  const double scale = 1.0 / std::sqrt(sums[mixes] / count + static_cast<double>(args.rms_eps));
  for (int64_t m = 0; m < mixes; ++m) products[m] = sums[m] * scale;
}

void NormalizeColumns(double* comb, int64_t s, double eps) {
  for (int64_t q = 0; q < s; ++q) {
    double sum = 0.0;
    for (int64_t j = 0; j < s; ++j) sum += comb[j * s + q];
    for (int64_t j = 0; j < s; ++j) comb[j * s + q] /= sum + eps;
  }
}

void NormalizeRows(double* comb, int64_t s, double eps) {
  for (int64_t j = 0; j < s; ++j) {
    double sum = 0.0;
    for (int64_t q = 0; q < s; ++q) sum += comb[j * s + q];
    for (int64_t q = 0; q < s; ++q) comb[j * s + q] /= sum + eps;
  }
}

// Softmax over rows, then alternating normalisation of columns and rows (Sinkhorn-Knopp), ending
// with columns.
void Sinkhorn(double* comb, int64_t s, int64_t iters, double eps) {
  for (int64_t j = 0; j < s; ++j) {
    double* row = comb + j * s;
    const double largest = *std::max_element(row, row + s);
    double sum = 0.0;
    for (int64_t q = 0; q < s; ++q) sum += row[q] = std::exp(row[q] - largest);
    for (int64_t q = 0; q < s; ++q) row[q] = row[q] / sum + eps;
  }
  NormalizeColumns(comb, s, eps);
  for (int64_t i = 1; i < iters; ++i) {
    NormalizeRows(comb, s, eps);
    NormalizeColumns(comb, s, eps);
  }
}

// post and comb of one row: m is the scaled product of each mix.
void WritePostComb(const HcPreArgs& args, const double* products, float* post_comb) {
  const int64_t s = args.num_streams;
  const auto mix = [&](int64_t m, size_t scale) {
    return products[m] * static_cast<double>(args.scale[scale]) +
           static_cast<double>(args.base[static_cast<size_t>(m)]);
  };
  for (int64_t j = 0; j < s; ++j) post_comb[j] = static_cast<float>(2.0 * Sigmoid(mix(s + j, 1)));
  double comb[kMaxStreams * kMaxStreams];
  for (int64_t i = 0; i < s * s; ++i) comb[i] = mix(2 * s + i, 2);
  Sinkhorn(comb, s, args.sinkhorn_iters, static_cast<double>(args.hc_eps));
  for (int64_t i = 0; i < s * s; ++i) post_comb[s + i] = static_cast<float>(comb[i]);
}

// sum_j pre_j streams[j] of channel i.
double Collapse(const HcPreArgs& args, const float* streams, const double* pre, int64_t i) {
  double sum = 0.0;
  for (int64_t j = 0; j < args.num_streams; ++j) {
    sum += pre[j] * static_cast<double>(streams[j * args.hidden + i]);
  }
  return sum;
}

// The collapsed row through RMSNorm, worked out in place in the fp32 output.
void WriteNormedRow(const HcPreArgs& args, int64_t source, int64_t row, const double* pre) {
  const float* streams = args.streams + source * args.num_streams * args.hidden;
  float* y = args.out.f32 + row * args.hidden;
  for (int64_t i = 0; i < args.hidden; ++i) {
    y[i] = static_cast<float>(Collapse(args, streams, pre, i));
  }
  if (args.collapsed != nullptr) std::copy_n(y, args.hidden, args.collapsed + row * args.hidden);
  ScaleRow(y, args.hidden, RmsScale(y, args.hidden, args.rms_eps), args.norm_weight);
  RowsOut others = args.out;
  others.f32 = nullptr;
  StoreRow(y, args.hidden, row, others);
}

}  // namespace

void HcPost(const HcPostArgs& args, const base::WorkerRank& worker) {
  CHECK_LE(args.num_streams, kMaxStreams);
  const auto [begin, end] = worker.Share(args.hidden, kHcSliceWidth);
  for (int64_t row = 0; row < args.rows; ++row) {
    if (args.o != nullptr) MixStreams(args, row, begin, end);
    if (args.fn == nullptr) continue;
    for (int64_t first = begin; first < end; first += kHcSliceWidth) {
      SliceProducts(args, row, first / kHcSliceWidth);
    }
  }
}

void HcPre(const HcPreArgs& args, const base::WorkerRank& worker) {
  CHECK(args.out.f32 != nullptr);
  const int64_t s = args.num_streams;
  const auto mixes = static_cast<int64_t>(args.base.size());
  const auto [begin, end] = worker.Share(args.rows);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t source = args.stream_rows == nullptr ? row : args.stream_rows[row];
    double products[kMaxMixes];
    FinishProducts(args, source, mixes, products);
    double pre[kMaxStreams];
    for (int64_t j = 0; j < s; ++j) {
      const double mix = products[j] * static_cast<double>(args.scale[0]) +
                         static_cast<double>(args.base[static_cast<size_t>(j)]);
      pre[j] = Sigmoid(mix) + static_cast<double>(args.hc_eps);
    }
    if (args.post_comb != nullptr) {
      WritePostComb(args, products, args.post_comb + row * (s + s * s));
    }
    WriteNormedRow(args, source, row, pre);
  }
}

}  // namespace fulgur::kernels::scalar
