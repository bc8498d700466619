// Scores of the index: int8 queries with int8 keys, exact in int32; heads are added in order.
#include "kernels/avx2/avx2_ops.h"
#include "kernels/avx2/simd.h"
#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels::avx2 {
namespace {

int32_t Dot(const int8_t* q, const int8_t* key, int64_t dim) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sum = _mm256_setzero_si256();
  for (int64_t d = 0; d < dim; d += 32) {
    const __m256i k = LoadBytes(key + d);
    const __m256i pairs = PairProducts(_mm256_abs_epi8(k), k, LoadBytes(q + d));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
  }
  const __m128i halves =
      _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  const __m128i pairs = _mm_add_epi32(halves, _mm_shuffle_epi32(halves, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(pairs, _mm_shuffle_epi32(pairs, 0xb1)));
}

float ScoreInt8(const scalar::IndexQuery& query, const std::byte* key) {
  float k_scale;
  __builtin_memcpy(&k_scale, key + query.dim, sizeof(k_scale));
  float score = 0.0F;
  for (int64_t h = 0; h < query.heads; ++h) {
    const int32_t dot =
        Dot(query.int8 + h * query.dim, reinterpret_cast<const int8_t*>(key), query.dim);
    if (dot > 0) score += query.factors[h] * static_cast<float>(dot);
  }
  return score * k_scale;
}

}  // namespace

void IndexScores(const IndexArgs& args, const base::WorkerRank& worker) {
  if (args.key_format != RowFormat::kInt8Scaled || args.dim % 32 != 0)
    return scalar::IndexScores(args, worker);
  scalar::ScoreKeys(args, ScoreInt8, worker);
}

}  // namespace fulgur::kernels::avx2
