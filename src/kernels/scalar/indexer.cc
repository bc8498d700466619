#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/scalar/row_math.h"
#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels::scalar {
namespace {

// sum over heads of weight_h max(0, q_h . key).
float ScoreF32(const IndexArgs& args, int64_t row, const std::byte* key) {
  const float* q = args.q_f32 + row * args.heads * args.dim;
  const float* weights = args.weights + row * args.heads;
  double score = 0.0;
  for (int64_t h = 0; h < args.heads; ++h) {
    const double dot = Dot(q + h * args.dim, reinterpret_cast<const float*>(key), args.dim);
    score += std::max(dot, 0.0) * static_cast<double>(weights[h] * args.weight_scale);
  }
  return static_cast<float>(score);
}

float ScoreInt8(const IndexArgs& args, int64_t row, const std::byte* key) {
  const int8_t* q = args.q_int8 + row * args.heads * args.dim;
  const float* weights = args.weights + row * args.heads;
  const float* q_scale = args.q_scale + row * args.heads;
  const auto* k = reinterpret_cast<const int8_t*>(key);
  float k_scale;
  std::memcpy(&k_scale, key + args.dim, sizeof(k_scale));
  double score = 0.0;
  for (int64_t h = 0; h < args.heads; ++h) {
    int32_t dot = 0;
    for (int64_t d = 0; d < args.dim; ++d) dot += q[h * args.dim + d] * k[d];
    const float weight = weights[h] * args.weight_scale * q_scale[h];
    score += static_cast<double>(weight) * std::max(dot, 0);
  }
  return static_cast<float>(score * static_cast<double>(k_scale));
}

int64_t Visible(const IndexArgs& args, int64_t position) { return (position + 1) / args.ratio; }

// Calls visit(sequence, row, position) for the rows of the batch that args name.
template <typename Visit>
void ForEachRow(const IndexArgs& args, Visit visit) {
  for (const IndexSequence& sequence : args.sequences) {
    const RowRange& range = sequence.range;
    const int64_t begin = std::max(args.row_begin, range.first_row);
    const int64_t end = std::min(args.row_end, range.first_row + range.num_rows);
    for (int64_t row = begin; row < end; ++row) {
      visit(sequence, row, range.first_position + row - range.first_row);
    }
  }
}

// The best `topk` of the scores, by score, ties to the lower index; ascending by index. A heap of
// indices with the worst on top, kept in the output itself.
void SelectBest(const float* scores, int64_t count, int64_t topk, int32_t* selected) {
  const auto better = [scores](int32_t a, int32_t b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  };
  std::iota(selected, selected + topk, 0);
  std::make_heap(selected, selected + topk, better);
  for (auto entry = static_cast<int32_t>(topk); entry < count; ++entry) {
    if (!better(entry, selected[0])) continue;
    std::pop_heap(selected, selected + topk, better);
    selected[topk - 1] = entry;
    std::push_heap(selected, selected + topk, better);
  }
  std::sort(selected, selected + topk);
}

}  // namespace

void ScoreKeys(const IndexArgs& args, ScoreKey score, const base::WorkerRank& worker) {
  ForEachRow(args, [&](const IndexSequence& sequence, int64_t row, int64_t position) {
    const int64_t visible = Visible(args, position);
    if (visible <= args.topk) return;
    float* scores = args.scores + (row - args.row_begin) * args.scores_stride;
    const auto [begin, end] = worker.Share(visible);
    for (int64_t entry = begin; entry < end; ++entry) {
      scores[entry] = score(args, row, sequence.keys.Row(entry));
    }
  });
}

void IndexScores(const IndexArgs& args, const base::WorkerRank& worker) {
  ScoreKeys(args, args.q_f32 != nullptr ? ScoreF32 : ScoreInt8, worker);
}

void IndexSelect(const IndexArgs& args, const base::WorkerRank& worker) {
  const auto [begin, end] = worker.Share(args.row_end - args.row_begin);
  ForEachRow(args,
             [&, begin = begin, end = end](const IndexSequence&, int64_t row, int64_t position) {
               const int64_t local = row - args.row_begin;
               if (local < begin || local >= end) return;
               int32_t* selected = args.selected + row * args.topk;
               const int64_t visible = Visible(args, position);
               args.counts[row] = static_cast<int32_t>(std::min(visible, args.topk));
               if (visible <= args.topk) {
                 std::iota(selected, selected + visible, 0);
               } else {
                 SelectBest(args.scores + local * args.scores_stride, visible, args.topk, selected);
               }
             });
}

}  // namespace fulgur::kernels::scalar
