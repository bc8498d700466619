// Sparse attention with bf16 queries and keys: four heads at a time share each key as it is
// widened. Keys come in chunks of 64 of the row's list, a fixed place whatever the batch; each
// chunk rescales what was summed before.
#include "kernels/attention_keys.h"
#include "kernels/avx2/avx2_ops.h"
#include "kernels/avx2/simd.h"
#include "kernels/packed_layout.h"
#include "kernels/scalar/scalar_ops.h"
#include "kernels/scratch.h"

namespace fulgur::kernels::avx2 {
namespace {

constexpr int64_t kChunkKeys = 64;
constexpr int kTileHeads = 4;

// Memory for four heads of one row.
struct TileScratch {
  float* queries;  // [heads][dim], even dimensions of every 16 before odd ones
  float* sums;     // [heads][dim], in the same order
  float* weights;  // [heads][keys]
  float* row;      // [dim] one head's query or result
};

TileScratch PlaceScratch(int64_t dim) {
  const int64_t rows = kTileHeads * dim;
  const int64_t weights = kTileHeads * kChunkKeys;
  std::byte* at = Scratch(ScratchUse::kAttention, (2 * rows + weights + dim) * 4);
  auto* floats = reinterpret_cast<float*>(at);
  return {floats, floats + rows, floats + 2 * rows, floats + 2 * rows + weights};
}

struct HeadState {
  float largest = -1e30F;
  float total = 0.0F;
  float shrink = 1.0F;  // of what was summed before this chunk
};

// 16 values as two registers: even dimensions, odd ones.
FULGUR_INLINE void LoadPairs(const std::byte* values, __m256& even, __m256& odd) {
  const __m256i pairs = LoadBytes(values);
  even = LowerBf16(pairs);
  odd = UpperBf16(pairs);
}

void LoadQueries(const AttentionArgs& args, int64_t row, int64_t first_head, const TileScratch& s) {
  for (int64_t h = 0; h < kTileHeads; ++h) {
    scalar::MakeQuery(args, row, MinInt(first_head + h, args.heads - 1), s.row);
    float* query = s.queries + h * args.dim;
    for (int64_t d = 0; d < args.dim; d += 16) {
      for (int64_t i = 0; i < 8; ++i) {
        query[d + i] = s.row[d + 2 * i];
        query[d + 8 + i] = s.row[d + 2 * i + 1];
      }
    }
  }
}

// weights[h][k] = scale q_h . key for one key.
void ScoreKey(const std::byte* key, int64_t dim, float scale, const float* queries,
              float* weights) {
  __m256 acc[kTileHeads];
#pragma GCC unroll 4
  for (int h = 0; h < kTileHeads; ++h) acc[h] = _mm256_setzero_ps();
  for (int64_t d = 0; d < dim; d += 16) {
    __m256 even, odd;
    LoadPairs(key + d * 2, even, odd);
#pragma GCC unroll 4
    for (int h = 0; h < kTileHeads; ++h) {
      acc[h] = _mm256_fmadd_ps(even, _mm256_loadu_ps(queries + h * dim + d), acc[h]);
      acc[h] = _mm256_fmadd_ps(odd, _mm256_loadu_ps(queries + h * dim + d + 8), acc[h]);
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < kTileHeads; ++h) weights[h * kChunkKeys] = SumLanes(acc[h]) * scale;
}

float LargestOf(const float* scores, int64_t count, float largest) {
  for (int64_t k = 0; k < count; ++k) largest = scores[k] > largest ? scores[k] : largest;
  return largest;
}

float ExpOf(float x) { return _mm256_cvtss_f32(Exp(_mm256_set1_ps(x))); }

// Scores of a chunk become softmax weights, relative to the largest score so far.
void Weigh(float* scores, int64_t count, HeadState& head) {
  const float largest = LargestOf(scores, count, head.largest);
  head.shrink = ExpOf(head.largest - largest);
  head.largest = largest;
  head.total *= head.shrink;
  for (int64_t k = 0; k < count; k += 8) {
    const __m256 weight = Exp(_mm256_sub_ps(_mm256_loadu_ps(scores + k), _mm256_set1_ps(largest)));
    _mm256_storeu_ps(scores + k, weight);
  }
  for (int64_t k = 0; k < count; ++k) head.total += scores[k];
}

// sums[h][16] = sums * shrink + weights . values for 16 dimensions at `d`.
void SumTile(const std::byte* const* keys, int64_t count, int64_t d, int64_t dim,
             const TileScratch& s, const HeadState* heads) {
  __m256 acc[kTileHeads][2];
#pragma GCC unroll 4
  for (int h = 0; h < kTileHeads; ++h) {
    const __m256 shrink = _mm256_set1_ps(heads[h].shrink);
    acc[h][0] = _mm256_mul_ps(_mm256_loadu_ps(s.sums + h * dim + d), shrink);
    acc[h][1] = _mm256_mul_ps(_mm256_loadu_ps(s.sums + h * dim + d + 8), shrink);
  }
  for (int64_t k = 0; k < count; ++k) {
    __m256 even, odd;
    LoadPairs(keys[k] + d * 2, even, odd);
#pragma GCC unroll 4
    for (int h = 0; h < kTileHeads; ++h) {
      const __m256 weight = _mm256_set1_ps(s.weights[h * kChunkKeys + k]);
      acc[h][0] = _mm256_fmadd_ps(weight, even, acc[h][0]);
      acc[h][1] = _mm256_fmadd_ps(weight, odd, acc[h][1]);
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < kTileHeads; ++h) {
    _mm256_storeu_ps(s.sums + h * dim + d, acc[h][0]);
    _mm256_storeu_ps(s.sums + h * dim + d + 8, acc[h][1]);
  }
}

void AttendChunk(const AttentionArgs& args, const std::byte* const* keys, int64_t count,
                 const TileScratch& s, HeadState* heads) {
  for (int64_t k = 0; k < count; ++k) {
    ScoreKey(keys[k], args.dim, args.scale, s.queries, s.weights + k);
  }
  for (int h = 0; h < kTileHeads; ++h) Weigh(s.weights + h * kChunkKeys, count, heads[h]);
  for (int64_t d = 0; d < args.dim; d += 16) SumTile(keys, count, d, args.dim, s, heads);
}

// The sink is one more score without a value. Then division, and dimensions back in order.
void FinishHead(const AttentionArgs& args, int64_t row, int64_t head, const float* sums,
                const HeadState& state, float* values) {
  const float sink = args.sink[head];
  const float largest = sink > state.largest ? sink : state.largest;
  const float shrink = ExpOf(state.largest - largest);
  const float factor = shrink / (state.total * shrink + ExpOf(sink - largest));
  for (int64_t d = 0; d < args.dim; d += 16) {
    for (int64_t i = 0; i < 8; ++i) {
      values[d + 2 * i] = sums[d + i] * factor;
      values[d + 2 * i + 1] = sums[d + 8 + i] * factor;
    }
  }
  scalar::WriteAttended(args, row, head, values);
}

void AttendHeads(const AttentionArgs& args, const AttentionKeys& keys, int64_t row,
                 int64_t first_head, const TileScratch& s) {
  LoadQueries(args, row, first_head, s);
  __builtin_memset(s.sums, 0, static_cast<size_t>(kTileHeads * args.dim) * sizeof(float));
  HeadState heads[kTileHeads];
  for (int64_t first = 0; first < keys.size(); first += kChunkKeys) {
    const std::byte* chunk[kChunkKeys];
    const int64_t count = MinInt(kChunkKeys, keys.size() - first);
    keys.Fill(first, count, chunk);
    AttendChunk(args, chunk, count, s, heads);
  }
  for (int64_t h = 0; h < kTileHeads && first_head + h < args.heads; ++h) {
    FinishHead(args, row, first_head + h, s.sums + h * args.dim, heads[h], s.row);
  }
}

bool CanAttend(const AttentionArgs& args) {
  return args.format == RowFormat::kBf16 && args.dim % 16 == 0;
}

}  // namespace

void SparseAttention(const AttentionArgs& args, const base::WorkerRank& worker) {
  if (!CanAttend(args)) return scalar::SparseAttention(args, worker);
  const TileScratch scratch = PlaceScratch(args.dim);
  const int64_t tiles = CeilDiv(args.heads, kTileHeads);
  const auto units = [tiles](int64_t /*keys*/) { return tiles; };
  ForEachAttended(args, worker, units, [&](const AttendedRow& r) {
    const AttentionKeys keys(args, r.sequence, r.row);
    for (int64_t tile = r.begin; tile < r.end; ++tile) {
      AttendHeads(args, keys, r.row, tile * kTileHeads, scratch);
    }
  });
}

}  // namespace fulgur::kernels::avx2
