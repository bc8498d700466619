// Scores of the index: int8 queries with int8 keys, lanes are heads. Keys are read as they lie in
// the cache, four bytes at a time; a worker packs the queries of a row once, 16 heads to a word.
#include "kernels/avx512/avx512_ops.h"
#include "kernels/avx512/rows.h"
#include "kernels/index_entries.h"
#include "kernels/packed_layout.h"
#include "kernels/scalar/scalar_ops.h"
#include "kernels/scratch.h"

namespace fulgur::kernels::avx512 {
namespace {

constexpr int kTileKeys = 6;  // x 4 groups of heads: 24 accumulators
constexpr int kMaxGroups = 4;

// The queries of one row: [dim / 4][groups][16 heads][4], the factors of the heads, and what the
// accumulators start with, since keys enter as k + 128.
struct PackedQuery {
  const std::byte* words;
  const float* factors;
  const int32_t* starts;
  int64_t steps;
  int64_t groups;
};

PackedQuery PackQuery(const IndexArgs& args, int64_t row) {
  const int64_t groups = CeilDiv(args.heads, 16);
  const int64_t words_bytes = args.dim / 4 * groups * 64;
  std::byte* words = Scratch(ScratchUse::kIndexQuery, words_bytes + groups * 128 + args.dim * 5);
  auto* factors = reinterpret_cast<float*>(words + words_bytes);
  auto* starts = reinterpret_cast<int32_t*>(factors + groups * 16);
  auto* head = reinterpret_cast<float*>(starts + groups * 16);
  auto* q = reinterpret_cast<int8_t*>(head + args.dim);
  __builtin_memset(words, 0, static_cast<size_t>(words_bytes + groups * 128));
  for (int64_t h = 0; h < args.heads; ++h) {
    TransformHead(args.query, args.q + (row * args.heads + h) * args.dim, args.dim, row, head);
    const float scale = ToInt8Row(head, args.dim, q);
    int32_t sum = 0;
    for (int64_t d = 0; d < args.dim; d += 4) {
      __builtin_memcpy(words + (d / 4 * groups + h / 16) * 64 + h % 16 * 4, q + d, 4);
      sum += q[d] + q[d + 1] + q[d + 2] + q[d + 3];
    }
    factors[h] = args.weights[row * args.heads + h] * args.weight_scale * scale;
    starts[h] = -128 * sum;
  }
  return {words, factors, starts, args.dim / 4, groups};
}

// scores[k] = key scale * sum over heads of factor max(0, q . key), for K keys.
template <int K, int G>
void ScoreKeys(const PackedQuery& query, int64_t first_group, const std::byte* const* keys,
               float* sums) {
  __m512i acc[K][G];
#pragma GCC unroll 4
  for (int g = 0; g < G; ++g) {
    const __m512i start = _mm512_loadu_si512(query.starts + (first_group + g) * 16);
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) acc[k][g] = start;
  }
  const std::byte* key[K];
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) key[k] = keys[k];
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  for (int64_t s = 0; s < query.steps; ++s) {
    const std::byte* words = query.words + (s * query.groups + first_group) * 64;
    __m512i word[G];
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) word[g] = LoadWord(words + g * 64);
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) {
      const __m512i value = _mm512_xor_si512(Broadcast4(key[k] + s * 4), sign);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) acc[k][g] = _mm512_dpbusd_epi32(acc[k][g], value, word[g]);
    }
  }
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) {
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      const __m512i positive = _mm512_max_epi32(acc[k][g], _mm512_setzero_si512());
      const __m512 factor = _mm512_loadu_ps(query.factors + (first_group + g) * 16);
      sums[k] += SumLanes(_mm512_mul_ps(_mm512_cvtepi32_ps(positive), factor));
    }
  }
}

template <int K>
void ScoreAllGroups(const PackedQuery& query, const std::byte* const* keys, float* sums) {
  int64_t group = 0;
  for (; group + kMaxGroups <= query.groups; group += kMaxGroups) {
    ScoreKeys<K, kMaxGroups>(query, group, keys, sums);
  }
  for (; group < query.groups; ++group) ScoreKeys<K, 1>(query, group, keys, sums);
}

void ScoreRange(const IndexArgs& args, const EntryRange& range) {
  const PackedQuery query = PackQuery(args, range.row);
  for (int64_t entry = range.begin; entry < range.end; entry += kTileKeys) {
    const int64_t count = MinInt(kTileKeys, range.end - entry);
    const std::byte* keys[kTileKeys];
    float sums[kTileKeys] = {};
    for (int64_t k = 0; k < count; ++k) keys[k] = range.sequence.keys.Row(entry + k);
    if (count == kTileKeys) {
      ScoreAllGroups<kTileKeys>(query, keys, sums);
    } else {
      for (int64_t k = 0; k < count; ++k) ScoreAllGroups<1>(query, keys + k, sums + k);
    }
    for (int64_t k = 0; k < count; ++k) {
      float scale;
      __builtin_memcpy(&scale, keys[k] + args.dim, sizeof(scale));
      range.scores[entry + k] = sums[k] * scale;
    }
  }
}

}  // namespace

void IndexScores(const IndexArgs& args, const base::WorkerRank& worker) {
  if (args.key_format != RowFormat::kInt8Scaled || args.dim % 4 != 0) {
    return scalar::IndexScores(args, worker);
  }
  Require(!args.query.hadamard || args.dim >= 16, "a Hadamard transform has 16 values or more");
  ForEachScored(args, worker, [&](const EntryRange& range) { ScoreRange(args, range); });
}

}  // namespace fulgur::kernels::avx512
