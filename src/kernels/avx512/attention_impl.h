// Sparse attention with bf16 queries and keys, for a family that says how two products are added.
// Included by one file per family, with that family's flags.
//
// One latent head serves all query heads, so lanes are heads: scores of 16 heads with one key are
// one register, and so is everything that softmax needs. Keys come in chunks of 64 of the row's
// list, a fixed place whatever the batch; each chunk rescales what was summed before.
#pragma once

#include "kernels/attention_keys.h"
#include "kernels/avx512/rows.h"
#include "kernels/packed_layout.h"
#include "kernels/scratch.h"

namespace fulgur::kernels::avx512 {
namespace {

constexpr int64_t kChunkKeys = 64;
constexpr int kScoreKeys = 12;  // keys at a time against 16 heads
constexpr int kSumHeads = 5;    // heads at a time x 64 values

// Memory for one row: its queries and sums, and one chunk of values.
struct AttentionScratch {
  std::byte* queries;  // [groups][dim / 2][16 heads][2] bf16
  float* sums;         // [groups][16 heads][dim], values in the order that InterleaveValues leaves
  float* largest;      // [groups][16 heads]
  float* totals;       // [groups][16 heads]
  std::byte* values;   // [key pairs][dim][2] bf16
  float* scores;       // [keys][16 heads]
  std::byte* weights;  // [key pairs][16 heads][2] bf16
  float* row;          // [dim]
  tensor::BFloat16* query;  // [dim]
};

AttentionScratch PlaceScratch(int64_t groups, int64_t dim) {
  const int64_t sizes[] = {
      groups * dim * 32, groups * dim * 64, groups * 64, groups * 64, kChunkKeys * dim * 2,
      kChunkKeys * 64,   kChunkKeys * 32,   dim * 4,     dim * 2};
  int64_t total = 0;
  for (int64_t size : sizes) total += RoundUp(size, 64);
  std::byte* at = Scratch(ScratchUse::kAttention, total);
  std::byte* part[9];
  for (int i = 0; i < 9; ++i) {
    part[i] = at;
    at += RoundUp(sizes[i], 64);
  }
  return {part[0],
          reinterpret_cast<float*>(part[1]),
          reinterpret_cast<float*>(part[2]),
          reinterpret_cast<float*>(part[3]),
          part[4],
          reinterpret_cast<float*>(part[5]),
          part[6],
          reinterpret_cast<float*>(part[7]),
          reinterpret_cast<tensor::BFloat16*>(part[8])};
}

// Queries of 16 heads, dimension pairs first; heads that do not exist are zeros.
void PackQueries(const AttentionArgs& args, int64_t row, int64_t group, const AttentionScratch& s) {
  std::byte* out = s.queries + group * args.dim * 32;
  for (int64_t h = 0; h < 16; ++h) {
    const int64_t head = group * 16 + h;
    const uint32_t exists = head < args.heads ? ~0U : 0U;
    if (head < args.heads) {
      TransformHead(args.query, args.q + (row * args.heads + head) * args.dim, args.dim, row,
                    s.row);
      ToBf16Row(s.row, args.dim, s.query);
    }
    for (int64_t pair = 0; pair < args.dim / 2; ++pair) {
      uint32_t word;
      __builtin_memcpy(&word, s.query + pair * 2, 4);
      word &= exists;
      __builtin_memcpy(out + pair * 64 + h * 4, &word, 4);
    }
  }
}

// scores[k][16 heads] of K keys.
template <typename Family, int K>
void ScoreTile(const std::byte* queries, int64_t pairs, const std::byte* const* keys,
               float* scores) {
  __m512 acc[K];
  const std::byte* key[K];
#pragma GCC unroll 12
  for (int k = 0; k < K; ++k) {
    acc[k] = _mm512_setzero_ps();
    key[k] = keys[k];
  }
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const __m512i word = LoadWord(queries + pair * 64);
#pragma GCC unroll 12
    for (int k = 0; k < K; ++k) {
      acc[k] = Family::MultiplyAdd(acc[k], word, Family::Pair(key[k] + pair * 4));
    }
  }
#pragma GCC unroll 12
  for (int k = 0; k < K; ++k) _mm512_store_ps(scores + k * 16, acc[k]);
}

template <typename Family>
void Scores(const std::byte* queries, int64_t pairs, const std::byte* const* keys, int64_t count,
            float* scores) {
  int64_t k = 0;
  for (; k + kScoreKeys <= count; k += kScoreKeys) {
    ScoreTile<Family, kScoreKeys>(queries, pairs, keys + k, scores + k * 16);
  }
  for (; k + 4 <= count; k += 4) {
    ScoreTile<Family, 4>(queries, pairs, keys + k, scores + k * 16);
  }
  for (; k < count; ++k) ScoreTile<Family, 1>(queries, pairs, keys + k, scores + k * 16);
}

// Softmax weights of a chunk as bf16 pairs; returns by how much earlier sums must shrink.
__m512 Weigh(float* scores, int64_t count, float scale, float* largest, float* totals,
             std::byte* weights) {
  const __m512 s = _mm512_set1_ps(scale);
  const __m512 before = _mm512_load_ps(largest);
  __m512 raised = before;
  for (int64_t k = 0; k < count; ++k) {
    const __m512 score = _mm512_mul_ps(_mm512_load_ps(scores + k * 16), s);
    _mm512_store_ps(scores + k * 16, score);
    raised = _mm512_max_ps(raised, score);
  }
  const __m512 shrink = Exp(_mm512_sub_ps(before, raised));
  __m512 total = _mm512_mul_ps(_mm512_load_ps(totals), shrink);
  for (int64_t k = 0; k < count; k += 2) {
    const __m512 first = Exp(_mm512_sub_ps(_mm512_load_ps(scores + k * 16), raised));
    total = _mm512_add_ps(total, first);
    __m512 second = _mm512_setzero_ps();
    if (k + 1 < count) {
      second = Exp(_mm512_sub_ps(_mm512_load_ps(scores + k * 16 + 16), raised));
      total = _mm512_add_ps(total, second);
    }
    const __m512i low = _mm512_cvtepu16_epi32(ToBf16(first));
    const __m512i high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(ToBf16(second)), 16);
    _mm512_store_si512(weights + k * 32, _mm512_or_si512(low, high));
  }
  _mm512_store_ps(largest, raised);
  _mm512_store_ps(totals, total);
  return shrink;
}

// Values of keys in pairs. In each 32 values the first register gets those of 4 out of every 8.
void InterleaveValues(const std::byte* const* keys, int64_t count, int64_t dim, std::byte* out) {
  for (int64_t k = 0; k < count; k += 2, out += dim * 4) {
    for (int64_t d = 0; d < dim; d += 32) {
      const __m512i a = _mm512_loadu_si512(keys[k] + d * 2);
      const __m512i b =
          k + 1 < count ? _mm512_loadu_si512(keys[k + 1] + d * 2) : _mm512_setzero_si512();
      _mm512_store_si512(out + d * 4, _mm512_unpacklo_epi16(a, b));
      _mm512_store_si512(out + d * 4 + 64, _mm512_unpackhi_epi16(a, b));
    }
  }
}

// sums[h][V x 16] = sums * shrink + weights . values, for R heads.
template <typename Family, int R, int V>
void SumTile(const std::byte* weights, const std::byte* values, int64_t pairs, int64_t dim,
             const float* shrink, float* sums) {
  __m512 acc[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const __m512 factor = _mm512_set1_ps(shrink[r]);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      acc[r][v] = _mm512_mul_ps(_mm512_load_ps(sums + r * dim + v * 16), factor);
    }
  }
  for (int64_t pair = 0; pair < pairs; ++pair) {
    __m512i word[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) word[v] = LoadWord(values + pair * dim * 4 + v * 64);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const auto weight = Family::Pair(weights + pair * 64 + r * 4);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = Family::MultiplyAdd(acc[r][v], word[v], weight);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) _mm512_store_ps(sums + r * dim + v * 16, acc[r][v]);
  }
}

template <typename Family, int R>
void SumHeads(const std::byte* weights, const std::byte* values, int64_t pairs, int64_t dim,
              const float* shrink, float* sums) {
  int64_t d = 0;
  for (; d + 64 <= dim; d += 64) {
    SumTile<Family, R, 4>(weights, values + d * 4, pairs, dim, shrink, sums + d);
  }
  if (d < dim) SumTile<Family, R, 2>(weights, values + d * 4, pairs, dim, shrink, sums + d);
}

template <typename Family>
void SumValues(const AttentionScratch& s, int64_t pairs, int64_t dim, int64_t heads, __m512 shrink,
               float* sums) {
  alignas(64) float factors[16];
  _mm512_store_ps(factors, shrink);
  int64_t h = 0;
  for (; h + kSumHeads <= heads; h += kSumHeads) {
    SumHeads<Family, kSumHeads>(s.weights + h * 4, s.values, pairs, dim, factors + h,
                                sums + h * dim);
  }
  for (; h < heads; ++h) {
    SumHeads<Family, 1>(s.weights + h * 4, s.values, pairs, dim, factors + h, sums + h * dim);
  }
}

// Restores the order of 32 values that InterleaveValues split.
FULGUR_INLINE void StoreInOrder(const float* sums, __m512 factor, float* out) {
  const __m512 first = _mm512_mul_ps(_mm512_load_ps(sums), factor);
  const __m512 second = _mm512_mul_ps(_mm512_load_ps(sums + 16), factor);
  const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  _mm512_storeu_ps(out, _mm512_permutex2var_ps(first, low, second));
  _mm512_storeu_ps(out + 16, _mm512_permutex2var_ps(first, high, second));
}

// The sink is one more score without a value. Then division, rotation, output.
void FinishGroup(const AttentionArgs& args, int64_t row, int64_t group, const AttentionScratch& s) {
  const int64_t heads = MinInt(16, args.heads - group * 16);
  const __m512 largest = _mm512_load_ps(s.largest + group * 16);
  const __m512 sink = _mm512_maskz_loadu_ps(Lanes(heads), args.sink + group * 16);
  const __m512 raised = _mm512_max_ps(largest, sink);
  const __m512 shrink = Exp(_mm512_sub_ps(largest, raised));
  const __m512 total = _mm512_fmadd_ps(_mm512_load_ps(s.totals + group * 16), shrink,
                                       Exp(_mm512_sub_ps(sink, raised)));
  alignas(64) float factors[16];
  _mm512_store_ps(factors, _mm512_div_ps(shrink, total));
  RowsOut out;
  out.f32 = args.out_f32;
  out.bf16 = args.out_bf16;
  for (int64_t h = 0; h < heads; ++h) {
    const float* sums = s.sums + (group * 16 + h) * args.dim;
    for (int64_t d = 0; d < args.dim; d += 32) {
      StoreInOrder(sums + d, _mm512_set1_ps(factors[h]), s.row + d);
    }
    const HeadTransform& query = args.query;
    Rotate<true>(s.row, args.dim, query.rope + row * query.rope_dim, query.rope_dim);
    StoreRow(s.row, args.dim, row * args.heads + group * 16 + h, out);
  }
}

template <typename Family>
void AttendRow(const AttentionArgs& args, const AttentionSequence& sequence, int64_t row,
               int64_t group_begin, int64_t group_end, const AttentionScratch& s) {
  const AttentionKeys keys(args, sequence, row);
  for (int64_t g = group_begin; g < group_end; ++g) {
    PackQueries(args, row, g, s);
    _mm512_store_ps(s.largest + g * 16, _mm512_set1_ps(-1e30F));
    _mm512_store_ps(s.totals + g * 16, _mm512_setzero_ps());
    __builtin_memset(s.sums + g * 16 * args.dim, 0, static_cast<size_t>(args.dim) * 64);
  }
  for (int64_t first = 0; first < keys.size(); first += kChunkKeys) {
    const std::byte* chunk[kChunkKeys];
    const int64_t count = MinInt(kChunkKeys, keys.size() - first);
    keys.Fill(first, count, chunk);
    InterleaveValues(chunk, count, args.dim, s.values);
    for (int64_t g = group_begin; g < group_end; ++g) {
      Scores<Family>(s.queries + g * args.dim * 32, args.dim / 2, chunk, count, s.scores);
      const __m512 shrink =
          Weigh(s.scores, count, args.scale, s.largest + g * 16, s.totals + g * 16, s.weights);
      SumValues<Family>(s, CeilDiv(count, 2), args.dim, MinInt(16, args.heads - g * 16), shrink,
                        s.sums + g * 16 * args.dim);
    }
  }
  for (int64_t g = group_begin; g < group_end; ++g) FinishGroup(args, row, g, s);
}

bool CanAttend(const AttentionArgs& args) {
  return args.format == RowFormat::kBf16 && args.dim % 32 == 0;
}

// Units of work are (row, group of 16 heads); a worker's units of one row share its values.
template <typename Family>
void Attend(const AttentionArgs& args, const base::WorkerRank& worker) {
  const int64_t groups = CeilDiv(args.heads, 16);
  const AttentionScratch scratch = PlaceScratch(groups, args.dim);
  ForEachAttended(args, worker, groups, [&](const AttendedRow& r) {
    AttendRow<Family>(args, r.sequence, r.row, r.begin, r.end, scratch);
  });
}

}  // namespace
}  // namespace fulgur::kernels::avx512
