// Pools blocks of tokens into compressed rows; lanes are channels.
#include <cmath>

#include "kernels/avx512/avx512_ops.h"
#include "kernels/avx512/rows.h"
#include "kernels/packed_layout.h"
#include "kernels/scratch.h"

namespace fulgur::kernels::avx512 {
namespace {

// The projections of a token: kv [C], then gate [C].
const float* TokenRow(const CompressArgs& args, const CompressSequence& sequence, int64_t token) {
  const RowRange& range = sequence.range;
  if (token < range.first_position) {
    return reinterpret_cast<const float*>(sequence.ring.Row(token));
  }
  const int64_t channels = args.overlap ? 2 * args.dim : args.dim;
  return args.rows + (range.first_row + token - range.first_position) * 2 * channels;
}

// Pools tokens one after the other: a softmax whose sums keep the scale of the largest gate so far.
struct Pooled {
  __m512 largest;
  __m512 sum;
  __m512 weighted;

  FULGUR_INLINE void Add(__m512 gate, __m512 value) {
    const __m512 raised = _mm512_max_ps(largest, gate);
    const __m512 shrink = Exp(_mm512_sub_ps(largest, raised));
    const __m512 weight = Exp(_mm512_sub_ps(gate, raised));
    largest = raised;
    sum = _mm512_fmadd_ps(sum, shrink, weight);
    weighted = _mm512_fmadd_ps(weighted, shrink, _mm512_mul_ps(weight, value));
  }
};

// Tokens of the block before contribute the first half of their channels, own ones the second.
void PoolBlock(const CompressArgs& args, const CompressSequence& sequence, int64_t index,
               float* entry) {
  const int64_t channels = args.overlap ? 2 * args.dim : args.dim;
  const int64_t own = index * args.ratio;
  const int64_t first = args.overlap && index > 0 ? own - args.ratio : own;
  auto* pooled = reinterpret_cast<Pooled*>(
      Scratch(ScratchUse::kTile, CeilDiv(args.dim, 16) * static_cast<int64_t>(sizeof(Pooled))));
  for (int64_t i = 0; i < args.dim; i += 16) {
    pooled[i / 16] = {_mm512_set1_ps(-1e30F), _mm512_setzero_ps(), _mm512_setzero_ps()};
  }
  for (int64_t token = first; token < own + args.ratio; ++token) {
    const int64_t half = args.overlap && token >= own ? args.dim : 0;
    const float* row = TokenRow(args, sequence, token) + half;
    const float* ape = args.ape + token % args.ratio * channels + half;
    for (int64_t i = 0; i < args.dim; i += 16) {
      const __m512 gate =
          _mm512_add_ps(LoadLanes(row + channels, i, args.dim), LoadLanes(ape, i, args.dim));
      pooled[i / 16].Add(gate, LoadLanes(row, i, args.dim));
    }
  }
  for (int64_t i = 0; i < args.dim; i += 16) {
    const Pooled& p = pooled[i / 16];
    StoreLanes(entry, i, args.dim, _mm512_div_ps(p.weighted, p.sum));
  }
}

// (cos, sin) of the angles at a position; each angle is an fp32 product.
void WriteRotation(const CompressArgs& args, int64_t position, float* rotation) {
  for (int64_t i = 0; i < args.rope_dim / 2; ++i) {
    const auto angle = static_cast<double>(static_cast<float>(position) * args.rope_freqs[i]);
    rotation[2 * i] = static_cast<float>(::cos(angle));
    rotation[2 * i + 1] = static_cast<float>(::sin(angle));
  }
}

void WriteEntry(const CompressArgs& args, const CompressSequence& sequence, int64_t index) {
  auto* entry = reinterpret_cast<float*>(Scratch(ScratchUse::kRow, 2 * args.dim * 4));
  float* rotation = entry + args.dim;
  PoolBlock(args, sequence, index, entry);
  ScaleRow(entry, args.dim, RmsScale(entry, args.dim, args.eps), args.norm_weight, entry);
  WriteRotation(args, index * args.ratio, rotation);
  Rotate<false>(entry, args.dim, rotation, args.rope_dim);
  if (args.hadamard) Hadamard(entry, args.dim);
  StoreCacheRow(args.format, entry, args.dim, sequence.entries.Row(index));
}

// The blocks that the rows of a range complete: [begin, end).
struct Blocks {
  int64_t begin, end;
};

Blocks CompletedBlocks(const RowRange& range, int64_t ratio) {
  return {range.first_position / ratio, (range.first_position + range.num_rows) / ratio};
}

}  // namespace

void Compress(const CompressArgs& args, const base::WorkerRank& worker) {
  Require(!args.hadamard || args.dim >= 16, "a Hadamard transform has 16 values or more");
  int64_t total = 0;
  for (const CompressSequence& sequence : args.sequences) {
    const Blocks blocks = CompletedBlocks(sequence.range, args.ratio);
    total += blocks.end - blocks.begin;
  }
  const auto [begin, end] = worker.Share(total);
  int64_t unit = 0;
  for (const CompressSequence& sequence : args.sequences) {
    const Blocks blocks = CompletedBlocks(sequence.range, args.ratio);
    for (int64_t index = blocks.begin; index < blocks.end; ++index, ++unit) {
      if (unit >= begin && unit < end) WriteEntry(args, sequence, index);
    }
  }
}

}  // namespace fulgur::kernels::avx512
