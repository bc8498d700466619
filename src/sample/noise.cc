#include "sample/noise.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace fulgur::sample {

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = 0xD2511F53ULL * counter[0];
    const uint64_t b = 0xCD9E8D57ULL * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

double PositionNoise::GumbelFromBits(uint32_t bits) {
  // u is in (0, 1), and -log1p(-u) is a standard exponential variate; small u, the upper tail of
  // the result, keeps all its bits.
  const double u = (static_cast<double>(bits) + 0.5) * 0x1p-32;
  return -std::log(-std::log1p(-u));
}

double PositionNoise::GumbelBound(uint32_t bits) {
  // -log1p(-u) >= u >= 2^(bit_width - 33).
  return (33 - std::bit_width(bits)) * std::numbers::ln2;
}

}  // namespace fulgur::sample
