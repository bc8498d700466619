#include "bench/load/random.h"

#include <openssl/sha.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <string>

#include "fmt/format.h"

namespace fulgur::bench {
namespace {

uint64_t SplitMix(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

uint64_t RotateLeft(uint64_t value, int bits) { return (value << bits) | (value >> (64 - bits)); }

}  // namespace

RandomStream::RandomStream(int64_t seed, std::string_view purpose) {
  const std::string key = fmt::format("{}/{}", seed, purpose);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  uint64_t mixer = 0;
  for (size_t i = 0; i < 8; ++i) mixer = (mixer << 8) | digest[i];
  for (uint64_t& word : state_) word = SplitMix(mixer);
}

uint64_t RandomStream::Next() {
  const uint64_t result = RotateLeft(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = RotateLeft(state_[3], 45);
  return result;
}

double RandomStream::Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

uint64_t RandomStream::Below(uint64_t limit) {
  return static_cast<uint64_t>(Uniform() * static_cast<double>(limit));
}

double RandomStream::Exponential() { return -std::log1p(-Uniform()); }

double RandomStream::Normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log1p(-Uniform()));
  const double angle = 2.0 * std::numbers::pi * Uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
double RandomStream::Gamma(double shape) {
  if (shape < 1.0) {
    const double boosted = Gamma(shape + 1.0);
    return boosted * std::pow(1.0 - Uniform(), 1.0 / shape);
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = Normal();
    const double v = std::pow(1.0 + c * x, 3.0);
    if (v <= 0.0) continue;
    if (std::log1p(-Uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace fulgur::bench
