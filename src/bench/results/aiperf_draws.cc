#include "bench/results/aiperf_draws.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>

#include "bench/results/sha256.h"

namespace fulgur::bench {
namespace {

// Python's random.Random: MT19937 (Matsumoto and Nishimura, 1998) seeded from an integer's 32-bit
// words.
class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed) {
    std::vector<uint32_t> key = {static_cast<uint32_t>(seed)};
    if (seed >> 32 != 0) key.push_back(static_cast<uint32_t>(seed >> 32));
    SeedWith(key);
  }

  // 53 random bits in [0, 1).
  double Uniform() {
    const uint32_t high = Next() >> 5;
    const uint32_t low = Next() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

  // Box and Muller's pair; the second value waits for the next call.
  double Gauss(double mean, double stddev) {
    if (spare_) {
      const double value = *spare_;
      spare_.reset();
      return mean + value * stddev;
    }
    const double angle = Uniform() * 2.0 * std::numbers::pi;
    const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
    spare_ = std::sin(angle) * radius;
    return mean + std::cos(angle) * radius * stddev;
  }

 private:
  static constexpr size_t kSize = 624;

  void SeedWith(const std::vector<uint32_t>& key) {
    state_[0] = 19650218U;
    for (uint32_t i = 1; i < kSize; ++i) state_[i] = Mixed(i, 1812433253U) + i;
    size_t i = 1;
    size_t j = 0;
    for (size_t k = std::max(kSize, key.size()); k > 0; --k) {
      state_[i] = (state_[i] ^ Mixed(i, 1664525U)) + key[j] + static_cast<uint32_t>(j);
      Advance(i);
      j = (j + 1) % key.size();
    }
    for (size_t k = kSize - 1; k > 0; --k) {
      state_[i] = (state_[i] ^ Mixed(i, 1566083941U)) - static_cast<uint32_t>(i);
      Advance(i);
    }
    state_[0] = 0x80000000U;
  }

  uint32_t Mixed(size_t i, uint32_t factor) const {
    const uint32_t before = state_[i - 1];
    return (before ^ (before >> 30)) * factor;
  }

  void Advance(size_t& i) {
    if (++i < kSize) return;
    state_[0] = state_[kSize - 1];
    i = 1;
  }

  void Refill() {
    for (size_t i = 0; i < kSize; ++i) {
      const uint32_t y = (state_[i] & 0x80000000U) | (state_[(i + 1) % kSize] & 0x7fffffffU);
      state_[i] = state_[(i + 397) % kSize] ^ (y >> 1) ^ ((y & 1U) != 0 ? 0x9908b0dfU : 0U);
    }
    position_ = 0;
  }

  uint32_t Next() {
    if (position_ == kSize) Refill();
    uint32_t y = state_[position_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680U;
    y ^= (y << 15) & 0xefc60000U;
    return y ^ (y >> 18);
  }

  std::array<uint32_t, kSize> state_ = {};
  size_t position_ = kSize;
  std::optional<double> spare_;
};

uint64_t ChildSeed(int64_t seed) {
  const std::string digest = Sha256(std::to_string(seed) + ":models.sequence.distribution");
  uint64_t child = 0;
  for (size_t i = 0; i < 8; ++i) child = child << 8 | static_cast<unsigned char>(digest[i]);
  return child;
}

// aiperf gives up on a mean that far below zero after as many tries and takes the mean.
constexpr int kMaxTries = 10000;

int64_t DrawLength(const LengthSpec& length, PythonRandom& random) {
  if (length.stddev <= 0) return std::max<int64_t>(1, std::llround(length.mean));
  for (int i = 0; i < kMaxTries; ++i) {
    const double value = random.Gauss(length.mean, length.stddev);
    if (value >= 0) return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(value)));
  }
  return std::max<int64_t>(1, std::llround(length.mean));
}

bool IsDrawable(const LengthSpec& length) {
  return length.mean >= 0 && length.mean < 9e15 && length.stddev >= 0 && length.stddev < 1e14;
}

const LengthPair& Pick(const std::vector<LengthPair>& distribution, double total, double uniform) {
  double cumulative = 0.0;
  for (const LengthPair& pair : distribution) {
    cumulative += pair.probability / total;
    if (uniform < cumulative) return pair;
  }
  return distribution.back();
}

}  // namespace

std::vector<LengthDraw> AiperfLengthDraws(const std::vector<LengthPair>& distribution, int64_t seed,
                                          int64_t count) {
  double total = 0.0;
  for (const LengthPair& pair : distribution) {
    if (!(pair.probability >= 0) || !IsDrawable(pair.input) || !IsDrawable(pair.output)) return {};
    total += pair.probability;
  }
  if (!(total > 0) || !std::isfinite(total)) return {};
  PythonRandom random(ChildSeed(seed));
  std::vector<LengthDraw> draws;
  for (int64_t i = 0; i < count; ++i) {
    const LengthPair& pair = Pick(distribution, total, random.Uniform());
    LengthDraw draw;
    draw.input = DrawLength(pair.input, random);
    draw.output = DrawLength(pair.output, random);
    draws.push_back(draw);
  }
  return draws;
}

}  // namespace fulgur::bench
