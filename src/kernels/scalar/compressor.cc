#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/scalar/row_math.h"
#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels::scalar {
namespace {

constexpr int64_t kMaxDim = 1024;

// The blocks that the rows of a range complete: [begin, end).
struct Blocks {
  int64_t begin = 0;
  int64_t end = 0;
};

Blocks CompletedBlocks(const RowRange& range, int64_t ratio) {
  return {range.first_position / ratio, (range.first_position + range.num_rows) / ratio};
}

// One block of one sequence, and where the projections of its tokens lie.
class Block {
 public:
  Block(const CompressArgs& args, const CompressSequence& sequence, int64_t index)
      : args_(args),
        sequence_(sequence),
        first_token_((args.overlap && index > 0 ? index - 1 : index) * args.ratio),
        own_token_(index * args.ratio),
        end_token_((index + 1) * args.ratio) {}

  // The pooled value of channel d: softmax of the gates over the tokens, separately per channel.
  // Tokens of the block before contribute the first half of their channels, own ones the second.
  double Pool(int64_t d) const {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t t = first_token_; t < end_token_; ++t) largest = std::max(largest, Gate(t, d));
    double sum = 0.0;
    double weighted = 0.0;
    for (int64_t t = first_token_; t < end_token_; ++t) {
      const double weight = std::exp(Gate(t, d) - largest);
      sum += weight;
      weighted += weight * static_cast<double>(Row(t)[Channel(t, d)]);
    }
    return weighted / sum;
  }

  int64_t first_position() const { return own_token_; }

 private:
  int64_t Channel(int64_t token, int64_t d) const {
    return args_.overlap && token >= own_token_ ? args_.dim + d : d;
  }

  const float* Row(int64_t token) const {
    const RowRange& range = sequence_.range;
    if (token < range.first_position) {
      return reinterpret_cast<const float*>(sequence_.ring.Row(token));
    }
    const int64_t row = range.first_row + token - range.first_position;
    return args_.rows + row * 2 * Channels();
  }

  double Gate(int64_t token, int64_t d) const {
    const int64_t channel = Channel(token, d);
    const float gate = Row(token)[Channels() + channel];
    const float ape = args_.ape[token % args_.ratio * Channels() + channel];
    return static_cast<double>(gate) + static_cast<double>(ape);
  }

  int64_t Channels() const { return args_.overlap ? 2 * args_.dim : args_.dim; }

  const CompressArgs& args_;
  const CompressSequence& sequence_;
  const int64_t first_token_;
  const int64_t own_token_;
  const int64_t end_token_;
};

void WriteEntry(const CompressArgs& args, const CompressSequence& sequence, int64_t index) {
  const Block block(args, sequence, index);
  float entry[kMaxDim];
  for (int64_t d = 0; d < args.dim; ++d) entry[d] = static_cast<float>(block.Pool(d));
  ScaleRow(entry, args.dim, RmsScale(entry, args.dim, args.eps), args.norm_weight);
  float rotation[kMaxDim];
  for (int64_t i = 0; i < args.rope_dim / 2; ++i) {
    // The angle is an fp32 product, as for the rows themselves.
    const float angle = static_cast<float>(block.first_position()) * args.rope_freqs[i];
    rotation[2 * i] = static_cast<float>(std::cos(static_cast<double>(angle)));
    rotation[2 * i + 1] = static_cast<float>(std::sin(static_cast<double>(angle)));
  }
  Rotate(entry, args.dim, rotation, args.rope_dim);
  if (args.hadamard) Hadamard(entry, args.dim);
  StoreCacheRow(args.format, entry, args.dim, sequence.entries.Row(index));
}

}  // namespace

void Compress(const CompressArgs& args, const base::WorkerRank& worker) {
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

}  // namespace fulgur::kernels::scalar
