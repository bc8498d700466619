// Sparse attention with bf16 queries and keys, for a family that says how two products are added.
// Included by one file per family, with that family's flags.
//
// One latent head serves all query heads, so lanes are heads: scores of 16 heads with one key are
// one register, and so is everything that softmax needs. A row's keys come in parts at fixed places
// of its list (flash-decoding), whoever attends to them, and a part's keys in chunks of 64, each of
// which rescales what was summed before. Parts are merged in order.
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

// What 16 heads have summed up over some keys.
struct GroupState {
  float* sums;     // [16 heads][dim], values in the order that InterleaveValues leaves
  float* largest;  // [16 heads]
  float* totals;   // [16 heads]
};

// The state of a group among those of parts [part][groups] at `base`.
GroupState StateAt(float* base, int64_t part, int64_t groups, int64_t group, int64_t dim) {
  float* sums = base + (part * groups + group) * SharedRows::StateFloats(dim);
  return {sums, sums + 16 * dim, sums + 16 * dim + 16};
}

// Memory for one row: its queries, its states, and one chunk of values.
struct AttentionScratch {
  std::byte* queries;       // [groups][dim / 2][16 heads][2] bf16
  float* states;            // [2][groups]: of the parts before, of the part at hand
  std::byte* values;        // [key pairs][dim][2] bf16
  float* scores;            // [keys][16 heads]
  std::byte* weights;       // [key pairs][16 heads][2] bf16
  float* row;               // [dim]
  tensor::BFloat16* query;  // [dim]
};

AttentionScratch PlaceScratch(int64_t groups, int64_t dim) {
  const int64_t sizes[] = {groups * dim * 32,
                           2 * groups * SharedRows::StateFloats(dim) * 4,
                           kChunkKeys * dim * 2,
                           kChunkKeys * 64,
                           kChunkKeys * 32,
                           dim * 4,
                           dim * 2};
  int64_t total = 0;
  for (int64_t size : sizes) total += RoundUp(size, 64);
  std::byte* at = Scratch(ScratchUse::kAttention, total);
  std::byte* part[7];
  for (int i = 0; i < 7; ++i) {
    part[i] = at;
    at += RoundUp(sizes[i], 64);
  }
  return {part[0],
          reinterpret_cast<float*>(part[1]),
          part[2],
          reinterpret_cast<float*>(part[3]),
          part[4],
          reinterpret_cast<float*>(part[5]),
          reinterpret_cast<tensor::BFloat16*>(part[6])};
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
void FinishGroup(const AttentionArgs& args, int64_t row, int64_t group, const GroupState& state,
                 const AttentionScratch& s) {
  const int64_t heads = MinInt(16, args.heads - group * 16);
  const __m512 largest = _mm512_load_ps(state.largest);
  const __m512 sink = _mm512_maskz_loadu_ps(Lanes(heads), args.sink + group * 16);
  const __m512 raised = _mm512_max_ps(largest, sink);
  const __m512 shrink = Exp(_mm512_sub_ps(largest, raised));
  const __m512 total =
      _mm512_fmadd_ps(_mm512_load_ps(state.totals), shrink, Exp(_mm512_sub_ps(sink, raised)));
  alignas(64) float factors[16];
  _mm512_store_ps(factors, _mm512_div_ps(shrink, total));
  RowsOut out;
  out.f32 = args.out_f32;
  out.bf16 = args.out_bf16;
  for (int64_t h = 0; h < heads; ++h) {
    const float* sums = state.sums + h * args.dim;
    for (int64_t d = 0; d < args.dim; d += 32) {
      StoreInOrder(sums + d, _mm512_set1_ps(factors[h]), s.row + d);
    }
    const HeadTransform& query = args.query;
    Rotate<true>(s.row, args.dim, query.rope + row * query.rope_dim, query.rope_dim);
    StoreRow(s.row, args.dim, row * args.heads + group * 16 + h, out);
  }
}

void Clear(const GroupState& state, int64_t dim) {
  __builtin_memset(state.sums, 0, static_cast<size_t>(dim) * 64);
  _mm512_store_ps(state.largest, _mm512_set1_ps(-1e30F));
  _mm512_store_ps(state.totals, _mm512_setzero_ps());
}

// Adds the state of the next part to that of all before.
void Merge(const GroupState& all, const GroupState& next, int64_t heads, int64_t dim) {
  const __m512 before = _mm512_load_ps(all.largest);
  const __m512 added = _mm512_load_ps(next.largest);
  const __m512 raised = _mm512_max_ps(before, added);
  alignas(64) float keep[16];
  alignas(64) float add[16];
  _mm512_store_ps(keep, Exp(_mm512_sub_ps(before, raised)));
  _mm512_store_ps(add, Exp(_mm512_sub_ps(added, raised)));
  _mm512_store_ps(all.largest, raised);
  _mm512_store_ps(all.totals,
                  _mm512_fmadd_ps(_mm512_load_ps(next.totals), _mm512_load_ps(add),
                                  _mm512_mul_ps(_mm512_load_ps(all.totals), _mm512_load_ps(keep))));
  for (int64_t h = 0; h < heads; ++h) {
    const __m512 kept = _mm512_set1_ps(keep[h]);
    const __m512 factor = _mm512_set1_ps(add[h]);
    float* sums = all.sums + h * dim;
    const float* more = next.sums + h * dim;
    for (int64_t d = 0; d < dim; d += 16) {
      const __m512 old = _mm512_mul_ps(_mm512_load_ps(sums + d), kept);
      _mm512_store_ps(sums + d, _mm512_fmadd_ps(_mm512_load_ps(more + d), factor, old));
    }
  }
}

// Groups [begin, end) of a row.
struct GroupRange {
  int64_t begin, end;
};

// The states of some groups over keys [first, last), into states [groups].
template <typename Family>
void AttendPart(const AttentionArgs& args, const AttentionKeys& keys, int64_t first, int64_t last,
                GroupRange groups, float* states, const AttentionScratch& s) {
  for (int64_t g = groups.begin; g < groups.end; ++g) {
    Clear(StateAt(states, 0, 0, g, args.dim), args.dim);
  }
  for (; first < last; first += kChunkKeys) {
    const std::byte* chunk[kChunkKeys];
    const int64_t count = MinInt(kChunkKeys, last - first);
    keys.Fill(first, count, chunk);
    InterleaveValues(chunk, count, args.dim, s.values);
    for (int64_t g = groups.begin; g < groups.end; ++g) {
      const GroupState state = StateAt(states, 0, 0, g, args.dim);
      Scores<Family>(s.queries + g * args.dim * 32, args.dim / 2, chunk, count, s.scores);
      const __m512 shrink =
          Weigh(s.scores, count, args.scale, state.largest, state.totals, s.weights);
      SumValues<Family>(s, CeilDiv(count, 2), args.dim, MinInt(16, args.heads - g * 16), shrink,
                        state.sums);
    }
  }
}

// A row that is this worker's own.
template <typename Family>
void AttendAlone(const AttentionArgs& args, const AttendedRow& r, const AttentionKeys& keys,
                 const AttentionScratch& s) {
  const int64_t groups = SharedRows::HeadGroups(args.heads);
  const int64_t step = KeysOfPart(keys.size());
  float* next = s.states + groups * SharedRows::StateFloats(args.dim);
  for (int64_t first = 0; first < keys.size(); first += step) {
    AttendPart<Family>(args, keys, first, MinInt(first + step, keys.size()), {0, groups},
                       first == 0 ? s.states : next, s);
    for (int64_t g = 0; g < groups && first > 0; ++g) {
      Merge(StateAt(s.states, 0, groups, g, args.dim), StateAt(s.states, 1, groups, g, args.dim),
            MinInt(16, args.heads - g * 16), args.dim);
    }
  }
  for (int64_t g = 0; g < groups; ++g) {
    FinishGroup(args, r.row, g, StateAt(s.states, 0, groups, g, args.dim), s);
  }
}

// Parts of a row that other workers share: whoever finishes a group's last part merges them.
template <typename Family>
void AttendTogether(const AttentionArgs& args, const AttendedRow& r, const AttentionKeys& keys,
                    const AttentionScratch& s) {
  const int64_t groups = SharedRows::HeadGroups(args.heads);
  const int64_t parts = r.units / groups;
  const int64_t step = KeysOfPart(keys.size());
  const int64_t state_floats = SharedRows::StateFloats(args.dim);
  float* states = args.shared.states + r.first_worker * kMaxKeyParts * groups * state_floats;
  for (int64_t part = r.begin / groups; part * groups < r.end; ++part) {
    const GroupRange range = {part * groups < r.begin ? r.begin % groups : 0,
                              MinInt(groups, r.end - part * groups)};
    AttendPart<Family>(args, keys, part * step, MinInt((part + 1) * step, keys.size()), range,
                       states + part * groups * state_floats, s);
    for (int64_t g = range.begin; g < range.end; ++g) {
      if (!IsLastPart(args.shared.finished + r.first_worker * groups + g, parts)) continue;
      const GroupState all = StateAt(states, 0, groups, g, args.dim);
      for (int64_t next = 1; next < parts; ++next) {
        Merge(all, StateAt(states, next, groups, g, args.dim), MinInt(16, args.heads - g * 16),
              args.dim);
      }
      FinishGroup(args, r.row, g, all, s);
    }
  }
}

template <typename Family>
void AttendRow(const AttentionArgs& args, const AttendedRow& r, const AttentionScratch& s) {
  const AttentionKeys keys(args, r.sequence, r.row);
  for (int64_t g = 0; g < SharedRows::HeadGroups(args.heads); ++g) PackQueries(args, r.row, g, s);
  r.whole() ? AttendAlone<Family>(args, r, keys, s) : AttendTogether<Family>(args, r, keys, s);
}

bool CanAttend(const AttentionArgs& args) {
  return args.format == RowFormat::kBf16 && args.dim % 32 == 0;
}

// Units of a row are its parts' groups of 16 heads; a worker's units of one part share its values.
template <typename Family>
void Attend(const AttentionArgs& args, const base::WorkerRank& worker) {
  Require(args.shared.states != nullptr, "there is memory for shared rows");
  const int64_t groups = SharedRows::HeadGroups(args.heads);
  const AttentionScratch scratch = PlaceScratch(groups, args.dim);
  const auto units = [groups](int64_t keys) { return groups * CeilDiv(keys, KeysOfPart(keys)); };
  ForEachAttended(args, worker, units,
                  [&](const AttendedRow& r) { AttendRow<Family>(args, r, scratch); });
}

}  // namespace
}  // namespace fulgur::kernels::avx512
