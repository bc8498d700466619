// Manifold-constrained hyper-connections (arXiv:2512.24880) as DeepSeek-V4 uses them.
//
// The mixes of a row are 16 floats or fewer per kind: one register each, Sinkhorn included. That
// holds for four streams, which is what the architecture has; other counts take the scalar ops.
#include "kernels/avx512/avx512_ops.h"
#include "kernels/avx512/rows.h"
#include "kernels/packed_layout.h"
#include "kernels/scalar/scalar_ops.h"
#include "kernels/scratch.h"

namespace fulgur::kernels::avx512 {
namespace {

constexpr int kStreams = 4;
constexpr int64_t kMixes = kStreams * (2 + kStreams);  // 24: one panel of 32 channels
constexpr int kTileRows = 3;                           // x 4 streams x 2 groups: 24 accumulators

// streams[q] = post_q o + sum_j comb[j][q] streams[j], for channels [begin, end) of one row.
void MixStreams(const HcPostArgs& args, int64_t row, int64_t begin, int64_t end) {
  float* streams = args.streams + row * kStreams * args.hidden;
  const float* o = args.o + row * args.hidden;
  const float* post = args.post_comb + row * (kStreams + kStreams * kStreams);
  const float* comb = post + kStreams;
  for (int64_t i = begin; i < end; i += 16) {
    __m512 old[kStreams];
#pragma GCC unroll 4
    for (int j = 0; j < kStreams; ++j) old[j] = LoadLanes(streams + j * args.hidden, i, end);
    const __m512 added = LoadLanes(o, i, end);
#pragma GCC unroll 4
    for (int q = 0; q < kStreams; ++q) {
      __m512 sum = _mm512_mul_ps(_mm512_set1_ps(post[q]), added);
#pragma GCC unroll 4
      for (int j = 0; j < kStreams; ++j) {
        sum = _mm512_fmadd_ps(_mm512_set1_ps(comb[j * kStreams + q]), old[j], sum);
      }
      StoreLanes(streams + q * args.hidden, i, end, sum);
    }
  }
}

// The products of fn with channels [begin, end) of R rows' streams, and their squares. Each stream
// has its own sums, which are added at the end.
template <int R>
void SliceTile(const HcPostArgs& args, int64_t row, int64_t begin, int64_t end, float* partials,
               int64_t partials_stride) {
  const int64_t hidden = args.hidden;
  const float* x = args.streams + row * kStreams * hidden;
  const float* w = PanelF32(*args.fn, 0, 0);
  __m512 sum[R][kStreams][2];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kStreams; ++j) sum[r][j][0] = sum[r][j][1] = _mm512_setzero_ps();
  }
  for (int64_t i = begin; i < end; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kStreams; ++j) {
      const float* weights = w + (j * hidden + i) * 32;
      const __m512 first = _mm512_load_ps(weights);
      const __m512 second = _mm512_load_ps(weights + 16);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m512 value = _mm512_set1_ps(x[(r * kStreams + j) * hidden + i]);
        sum[r][j][0] = _mm512_fmadd_ps(first, value, sum[r][j][0]);
        sum[r][j][1] = _mm512_fmadd_ps(second, value, sum[r][j][1]);
      }
    }
  }
  const int64_t mixes = args.fn->out;
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    float* out = partials + r * partials_stride;
#pragma GCC unroll 2
    for (int g = 0; g < 2; ++g) {
      const __m512 total = _mm512_add_ps(_mm512_add_ps(sum[r][0][g], sum[r][1][g]),
                                         _mm512_add_ps(sum[r][2][g], sum[r][3][g]));
      _mm512_mask_storeu_ps(out + g * 16, Lanes(mixes - g * 16), total);
    }
    float squares = 0.0F;
    for (int j = 0; j < kStreams; ++j) {
      squares += SumOfSquares(x + (r * kStreams + j) * hidden + begin, end - begin);
    }
    out[mixes] = squares;
  }
}

// Rows [row, row + count) of one slice.
void SliceRows(const HcPostArgs& args, int64_t row, int64_t count, int64_t slice) {
  const int64_t begin = slice * kHcSliceWidth;
  const int64_t end = MinInt(begin + kHcSliceWidth, args.hidden);
  if (args.o != nullptr) {
    for (int64_t r = row; r < row + count; ++r) MixStreams(args, r, begin, end);
  }
  if (args.fn == nullptr) return;
  const int64_t stride = HcSlices(args.hidden) * (args.fn->out + 1);
  float* partials = args.partials + row * stride + slice * (args.fn->out + 1);
  switch (count) {
    case 1:
      return SliceTile<1>(args, row, begin, end, partials, stride);
    case 2:
      return SliceTile<2>(args, row, begin, end, partials, stride);
    default:
      return SliceTile<kTileRows>(args, row, begin, end, partials, stride);
  }
}

// The mixes of a row: products over all slices times 1 / rms of the streams, then scale and base.
struct Mixes {
  __m512 first;   // pre in lanes 0..3, post in 4..7
  __m512 second;  // comb, row-major
};

Mixes FinishMixes(const HcPreArgs& args, int64_t row) {
  const auto mixes = static_cast<int64_t>(args.base.size());
  const int64_t slices = HcSlices(args.hidden);
  const float* partials = args.partials + row * slices * (mixes + 1);
  __m512 first = _mm512_setzero_ps();
  __m512 second = _mm512_setzero_ps();
  float squares = 0.0F;
  for (int64_t slice = 0; slice < slices; ++slice, partials += mixes + 1) {
    first = _mm512_add_ps(first, _mm512_maskz_loadu_ps(Lanes(MinInt(mixes, 8)), partials));
    second = _mm512_add_ps(second, _mm512_maskz_loadu_ps(Lanes(mixes - 8), partials + 8));
    squares += partials[mixes];
  }
  const auto count = static_cast<float>(kStreams * args.hidden);
  const __m512 rms = _mm512_set1_ps(1.0F / __builtin_sqrtf(squares / count + args.rms_eps));
  const float* base = args.base.data();
  const float* scale = args.scale.data();
  const __m512 first_scale = _mm512_mask_blend_ps(
      0x00f0, _mm512_set1_ps(scale[0]), _mm512_set1_ps(scale[args.scale.size() > 1 ? 1 : 0]));
  first = _mm512_fmadd_ps(_mm512_mul_ps(first, rms), first_scale,
                          _mm512_maskz_loadu_ps(Lanes(MinInt(mixes, 8)), base));
  if (args.scale.size() > 2) {
    second = _mm512_fmadd_ps(_mm512_mul_ps(second, rms), _mm512_set1_ps(scale[2]),
                             _mm512_loadu_ps(base + 8));
  }
  return {first, second};
}

// In every lane the sum (or largest) of its row or column of the 4 x 4 matrix.
FULGUR_INLINE __m512 RowSums(__m512 m) {
  m = _mm512_add_ps(m, _mm512_permute_ps(m, 0xb1));
  return _mm512_add_ps(m, _mm512_permute_ps(m, 0x4e));
}
FULGUR_INLINE __m512 RowLargest(__m512 m) {
  m = _mm512_max_ps(m, _mm512_permute_ps(m, 0xb1));
  return _mm512_max_ps(m, _mm512_permute_ps(m, 0x4e));
}
FULGUR_INLINE __m512 ColumnSums(__m512 m) {
  m = _mm512_add_ps(m, _mm512_shuffle_f32x4(m, m, 0xb1));
  return _mm512_add_ps(m, _mm512_shuffle_f32x4(m, m, 0x4e));
}

// Softmax over rows, then alternating normalisation of columns and rows (Sinkhorn-Knopp), ending
// with columns.
__m512 Sinkhorn(__m512 m, int64_t iters, float eps) {
  const __m512 e = _mm512_set1_ps(eps);
  m = Exp(_mm512_sub_ps(m, RowLargest(m)));
  m = _mm512_add_ps(_mm512_div_ps(m, RowSums(m)), e);
  m = _mm512_div_ps(m, _mm512_add_ps(ColumnSums(m), e));
  for (int64_t i = 1; i < iters; ++i) {
    m = _mm512_div_ps(m, _mm512_add_ps(RowSums(m), e));
    m = _mm512_div_ps(m, _mm512_add_ps(ColumnSums(m), e));
  }
  return m;
}

// y = sum_j pre_j streams[j], through RMSNorm with weight.
void CollapseRow(const HcPreArgs& args, int64_t source, int64_t row, const float* pre) {
  const int64_t hidden = args.hidden;
  const float* streams = args.streams + source * kStreams * hidden;
  float* y = args.out.f32 != nullptr
                 ? args.out.f32 + row * hidden
                 : reinterpret_cast<float*>(Scratch(ScratchUse::kRow, hidden * 4));
  for (int64_t i = 0; i < hidden; i += 16) {
    __m512 sum = _mm512_mul_ps(_mm512_set1_ps(pre[0]), LoadLanes(streams, i, hidden));
#pragma GCC unroll 3
    for (int j = 1; j < kStreams; ++j) {
      sum =
          _mm512_fmadd_ps(_mm512_set1_ps(pre[j]), LoadLanes(streams + j * hidden, i, hidden), sum);
    }
    StoreLanes(y, i, hidden, sum);
  }
  if (args.collapsed != nullptr) {
    __builtin_memcpy(args.collapsed + row * hidden, y, static_cast<size_t>(hidden) * 4);
  }
  ScaleRow(y, hidden, RmsScale(y, hidden, args.rms_eps), args.norm_weight, y);
  StoreRow(y, hidden, row, args.out);
}

void PreRow(const HcPreArgs& args, int64_t row) {
  const int64_t source = args.stream_rows == nullptr ? row : args.stream_rows[row];
  const Mixes mixes = FinishMixes(args, source);
  const __m512 gates = Sigmoid(mixes.first);
  alignas(64) float pre[16];
  _mm512_store_ps(pre, _mm512_add_ps(gates, _mm512_set1_ps(args.hc_eps)));
  if (args.post_comb != nullptr) {
    float* post_comb = args.post_comb + row * (kStreams + kStreams * kStreams);
    const __m512 post = _mm512_add_ps(gates, gates);
    _mm512_mask_compressstoreu_ps(post_comb, 0x00f0, post);
    _mm512_storeu_ps(post_comb + kStreams,
                     Sinkhorn(mixes.second, args.sinkhorn_iters, args.hc_eps));
  }
  CollapseRow(args, source, row, pre);
}

}  // namespace

void HcPost(const HcPostArgs& args, const base::WorkerRank& worker) {
  if (args.num_streams != kStreams) return scalar::HcPost(args, worker);
  Require(args.fn == nullptr || args.fn->out <= kMixes, "four streams have 24 mixes or fewer");
  // Tiles of one slice lie side by side, so that its weights stay in the cache.
  const auto [begin, end] = worker.Share(args.hidden, kHcSliceWidth);
  for (int64_t first = begin; first < end; first += kHcSliceWidth) {
    for (int64_t row = 0; row < args.rows; row += kTileRows) {
      SliceRows(args, row, MinInt(kTileRows, args.rows - row), first / kHcSliceWidth);
    }
  }
}

void HcPre(const HcPreArgs& args, const base::WorkerRank& worker) {
  if (args.num_streams != kStreams) return scalar::HcPre(args, worker);
  const auto [begin, end] = worker.Share(args.rows);
  for (int64_t row = begin; row < end; ++row) PreRow(args, row);
}

}  // namespace fulgur::kernels::avx512
