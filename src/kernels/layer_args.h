// Arguments of the stages of a layer that are not matrix products: hyper-connections, norms, RoPE,
// compression, index and attention.
//
// Plain views: kernels know rows, not tokens or sequences' owners. Legend: T rows of the batch, S
// residual streams, H hidden, N heads, D head dim, R rope dims, C compressor channels. RoPE tables
// hold (cos, sin) of each pair, interleaved: [T, R].
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cache_rows.h"
#include "kernels/linear.h"
#include "kernels/packed_layout.h"

namespace fulgur::kernels {

// The product of hyper-connection weights with the streams is summed in slices of this many hidden
// channels, so that workers may split it and the result stays the same. A slice is what one worker
// computes of o, so that it may go on with its own channels.
inline constexpr int64_t kHcSliceWidth = kBlockChannels;

constexpr int64_t HcSlices(int64_t hidden) { return (hidden + kHcSliceWidth - 1) / kHcSliceWidth; }

// streams[t,q] = post_q o[t] + sum_j comb[j][q] streams[t,j], then the partial products of the new
// streams with the next hyper-connection's fn. Without `o` the streams stay as they are.
struct HcPostArgs {
  float* streams = nullptr;  // [T, S, H]
  int64_t rows = 0;
  int64_t num_streams = 0;
  int64_t hidden = 0;
  const float* o = nullptr;          // [T, H]
  const float* post_comb = nullptr;  // [T, S + S S]: post, then comb row-major
  const PackedLinear* fn = nullptr;  // [M, S H] fp32, of the next hyper-connection
  float* partials = nullptr;         // [T, HcSlices(H), M + 1]: M products, then the sum of squares
};

// Finishes the products, computes pre, post and comb (Sinkhorn), collapses the streams into one row
// and applies RMSNorm with weight.
struct HcPreArgs {
  const float* streams = nullptr;        // [T, S, H]
  const int32_t* stream_rows = nullptr;  // row of streams and partials for each output; null: same
  int64_t rows = 0;                      // output rows
  int64_t num_streams = 0;
  int64_t hidden = 0;
  const float* partials = nullptr;
  std::span<const float> base = {};   // [M], M = S (2 + S); before the head S: only pre
  std::span<const float> scale = {};  // [3] or [1]
  int64_t sinkhorn_iters = 0;
  float hc_eps = 0.0F;
  float rms_eps = 0.0F;
  const float* norm_weight = nullptr;  // [H]
  float* post_comb = nullptr;          // [T, S + S S]; null before the head
  float* collapsed = nullptr;          // [rows, H] the rows before RMSNorm, if wanted
  RowsOut out = {};                    // [rows, H]
};

// RMSNorm with weight (no weight: no norm), and conversion of rows.
struct NormRowsJob {
  const float* x = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t x_stride = 0;  // if not cols
  const float* weight = nullptr;
  float eps = 0.0F;
  RowsOut out = {};
};

// What makes a query or key of a projected head: RMSNorm over the head (optional, weight optional),
// RoPE on its last dims, Hadamard (optional).
struct HeadTransform {
  bool normalize = false;
  const float* weight = nullptr;  // [D]; null: ones
  float eps = 0.0F;
  const float* rope = nullptr;  // [T, R]
  int64_t rope_dim = 0;
  bool hadamard = false;
};

// Each head of each row, transformed. An output row is one head: int8 scales are per row and head.
struct HeadRowsJob {
  const float* x = nullptr;  // [T, N D]
  int64_t rows = 0;
  int64_t heads = 0;
  int64_t dim = 0;
  HeadTransform transform = {};
  RowsOut out = {};  // [T N, D]
};

// Rows [first_row, first_row + num_rows) of the batch, at consecutive positions of one sequence.
struct RowRange {
  int64_t first_position = 0;
  int64_t first_row = 0;
  int64_t num_rows = 0;
};

// streams[t, j] = the embedding of token t, for every stream j.
struct EmbedArgs {
  const int32_t* tokens = nullptr;               // [T]
  const float* table_f32 = nullptr;              // [V, H], or
  const tensor::BFloat16* table_bf16 = nullptr;  // [V, H]
  float* streams = nullptr;                      // [T, S, H]
  int64_t rows = 0;
  int64_t num_streams = 0;
  int64_t hidden = 0;
};

struct RingSequence {
  RowRange range = {};
  RingRows ring = {};
};

// Keeps the last rows of each range in its ring, for the steps to come.
struct RingWriteJob {
  std::span<const RingSequence> sequences = {};
  const std::byte* rows = nullptr;  // [T], ring.row_bytes each
};

struct CompressSequence {
  RowRange range = {};
  RingRows ring = {};      // fp32 rows [kv C, gate C] of earlier positions
  PagedRows entries = {};  // written: the entries that these rows complete
};

// Pools the blocks that are completed by this batch's rows, normalises and rotates them.
struct CompressArgs {
  std::span<const CompressSequence> sequences = {};
  const float* rows = nullptr;  // [T, 2 C]: kv and gate projections, ape not yet added
  int64_t ratio = 0;
  int64_t dim = 0;                     // of an entry; C = 2 dim with overlap, else dim
  bool overlap = false;                // a block also pools the first halves of the block before it
  const float* ape = nullptr;          // [ratio, C]
  const float* norm_weight = nullptr;  // [dim]
  float eps = 0.0F;
  const float* rope_freqs = nullptr;  // [R / 2]
  int64_t rope_dim = 0;
  bool hadamard = false;
  RowFormat format = RowFormat::kBf16;
};

struct IndexSequence {
  RowRange range = {};
  PagedRows keys = {};
};

// The index: scores of the visible keys of each row, of which attention takes the top-k (ties:
// lower index). Queries are quantised as the keys are.
struct IndexArgs {
  std::span<const IndexSequence> sequences = {};
  int64_t row_begin = 0;  // only these rows of the batch
  int64_t row_end = 0;
  const float* q = nullptr;  // [T, heads, dim] as projected
  HeadTransform query = {};
  RowFormat key_format = RowFormat::kInt8Scaled;  // or kF32
  const float* weights = nullptr;                 // [T, heads]
  float weight_scale = 0.0F;
  int64_t heads = 0;
  int64_t dim = 0;
  int64_t ratio = 0;  // a row at position p sees entries below (p + 1) / ratio
  int64_t topk = 0;
  float* scores = nullptr;  // [row_end - row_begin, scores_stride]; rows that see <= topk: unused
  int64_t scores_stride = 0;
};

// A row's keys in parts that begin at fixed places of its list, so that several workers may share
// the row and the result stays the same: each part has a softmax of its own, and they are merged in
// order.
inline constexpr int64_t kMaxKeyParts = 16;

constexpr int64_t KeysOfPart(int64_t keys) {
  constexpr int64_t kGrain = 256;
  return kGrain * CeilDiv(keys, kGrain * kMaxKeyParts);
}

// Memory for rows that several workers share: one place for each worker. A part's state is that of
// 16 heads: sums [16, D], then the largest score and the total of each.
struct SharedRows {
  static constexpr int64_t HeadGroups(int64_t heads) { return CeilDiv(heads, int64_t{16}); }
  static constexpr int64_t StateFloats(int64_t dim) { return 16 * dim + 32; }

  float* states = nullptr;      // [workers, kMaxKeyParts, head groups, StateFloats]
  int32_t* finished = nullptr;  // [workers, head groups] parts that are done; zeros between ops
};

struct AttentionSequence {
  RowRange range = {};
  RingRows window = {};       // keys before first_position
  PagedRows compressed = {};  // null base: none
};

// One latent key-value head for all query heads, a joint softmax over window and compressed rows
// with one sink logit per head, and the inverse rotation of the result. Queries are rounded as the
// keys are. Keys are taken in the order window by position, then compressed by index.
struct AttentionArgs {
  std::span<const AttentionSequence> sequences = {};
  int64_t row_begin = 0;  // only these rows of the batch
  int64_t row_end = 0;
  const float* q = nullptr;  // [T, N, D] as projected
  HeadTransform query = {};
  const std::byte* new_rows = nullptr;  // [T] keys of this batch's rows, in `format`
  RowFormat format = RowFormat::kBf16;  // or kF32
  int64_t heads = 0;
  int64_t dim = 0;
  int64_t window = 0;  // keys, the row itself included
  // Rows of a range see each other in both directions, and `window` keys before the range
  // (DSpark's blocks).
  bool whole_range = false;
  int64_t ratio = 0;                 // of compressed rows; 0: none
  const IndexArgs* index = nullptr;  // chooses among them, by its scores; null: all visible
  const float* sink = nullptr;       // [N]
  float scale = 0.0F;
  SharedRows shared = {};
  float* out_f32 = nullptr;              // [T, N D]
  tensor::BFloat16* out_bf16 = nullptr;  // either may be null
};

}  // namespace fulgur::kernels
