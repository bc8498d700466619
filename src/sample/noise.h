// Sampling noise as a pure function of (seed, position, token): the Gumbel-max trick with a
// counter-based generator (Philox4x32-10; Salmon et al., SC 2011).
//
// No state and no call order, so a token's noise is the same alone or in a batch, before and after
// a preemption, and for whoever else proposes a token at that position.
#pragma once

#include <array>
#include <cstdint>

namespace fulgur::sample {

// One block of four random words.
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// No noise is larger: the value for the smallest uniform variate, 2^-33.
inline constexpr double kMaxGumbel = 22.873857958;  // 33 ln 2

// The noise of all tokens at one position of one request.
class PositionNoise {
 public:
  PositionNoise(uint64_t seed, int64_t position)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        position_(static_cast<uint64_t>(position)) {}

  // Random words of the tokens 4 block .. 4 block + 3.
  std::array<uint32_t, 4> Block(uint32_t block) const {
    return Philox(
        {block, static_cast<uint32_t>(position_), static_cast<uint32_t>(position_ >> 32), 0}, key_);
  }

  // Gumbel(0, 1) noise of a token.
  double Gumbel(int32_t token) const {
    const auto id = static_cast<uint32_t>(token);
    return GumbelFromBits(Block(id / 4)[id % 4]);
  }

  static double GumbelFromBits(uint32_t bits);
  // An upper bound of GumbelFromBits without a logarithm.
  static double GumbelBound(uint32_t bits);

 private:
  std::array<uint32_t, 2> key_;
  uint64_t position_;
};

}  // namespace fulgur::sample
