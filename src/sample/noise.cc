#include "sample/noise.h"

#include <cmath>

namespace fulgur::sample {

double PositionNoise::GumbelFromBits(uint32_t bits) {
  // u is in (0, 1), and -log1p(-u) is a standard exponential variate; small u, the upper tail of
  // the result, keeps all its bits.
  const double u = (static_cast<double>(bits) + 0.5) * 0x1p-32;
  return -std::log(-std::log1p(-u));
}

}  // namespace fulgur::sample
