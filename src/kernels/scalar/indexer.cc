#include <algorithm>
#include <cstring>

#include "kernels/index_entries.h"
#include "kernels/scalar/row_math.h"
#include "kernels/scalar/scalar_ops.h"
#include "kernels/scratch.h"

namespace fulgur::kernels::scalar {
namespace {

// sum over heads of factor_h max(0, q_h . key).
float ScoreF32(const IndexQuery& query, const std::byte* key) {
  double score = 0.0;
  for (int64_t h = 0; h < query.heads; ++h) {
    const double dot =
        Dot(query.f32 + h * query.dim, reinterpret_cast<const float*>(key), query.dim);
    score += std::max(dot, 0.0) * static_cast<double>(query.factors[h]);
  }
  return static_cast<float>(score);
}

float ScoreInt8(const IndexQuery& query, const std::byte* key) {
  const auto* k = reinterpret_cast<const int8_t*>(key);
  float k_scale;
  std::memcpy(&k_scale, key + query.dim, sizeof(k_scale));
  double score = 0.0;
  for (int64_t h = 0; h < query.heads; ++h) {
    int32_t dot = 0;
    for (int64_t d = 0; d < query.dim; ++d) dot += query.int8[h * query.dim + d] * k[d];
    score += static_cast<double>(query.factors[h]) * std::max(dot, 0);
  }
  return static_cast<float>(score * static_cast<double>(k_scale));
}

}  // namespace

IndexQuery MakeIndexQuery(const IndexArgs& args, int64_t row) {
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  const int64_t size = args.heads * args.dim;
  auto* values = reinterpret_cast<float*>(
      Scratch(ScratchUse::kIndexQuery, (size + args.heads) * kFloat + size));
  float* factors = values + size;
  auto* int8 = reinterpret_cast<int8_t*>(factors + args.heads);
  const bool quantised = args.key_format == RowFormat::kInt8Scaled;
  for (int64_t h = 0; h < args.heads; ++h) {
    float* head = values + h * args.dim;
    TransformHead(args.query, args.q + row * size + h * args.dim, args.dim, row, head);
    factors[h] = args.weights[row * args.heads + h] * args.weight_scale;
    if (quantised) factors[h] *= QuantizeInt8(head, args.dim, int8 + h * args.dim);
  }
  return {args.heads, args.dim, values, int8, factors};
}

void ScoreKeys(const IndexArgs& args, ScoreKey score, const base::WorkerRank& worker) {
  ForEachScored(args, worker, [&](const EntryRange& range) {
    const IndexQuery query = MakeIndexQuery(args, range.row);
    for (int64_t entry = range.begin; entry < range.end; ++entry) {
      range.scores[entry] = score(query, range.sequence.keys.Row(entry));
    }
  });
}

void IndexScores(const IndexArgs& args, const base::WorkerRank& worker) {
  ScoreKeys(args, args.key_format == RowFormat::kF32 ? ScoreF32 : ScoreInt8, worker);
}

}  // namespace fulgur::kernels::scalar
