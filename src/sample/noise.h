// Sampling noise as a pure function of (seed, position, token): the Gumbel-max trick with a
// counter-based generator (Philox4x32-10; Salmon et al., SC 2011).
//
// No state and no call order, so a token's noise is the same alone or in a batch, before and after
// a preemption, and for whoever else proposes a token at that position.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <numbers>

namespace fulgur::sample {

// One block of four random words. Inline, since a row may need thousands of them.
inline std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter,
                                      std::array<uint32_t, 2> key) {
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

// No noise is larger: the smallest uniform variate is 2^-33.
inline constexpr double kMaxGumbel = 33 * std::numbers::ln2;

// Draws at one position that must not know of each other.
enum class NoiseStream : uint32_t {
  kSample,    // the token, and a draft that is to match it
  kDraft,     // a draft that is tested by rejection
  kAccept,    // that test
  kResidual,  // the token in place of a rejected draft
};

// The noise of all tokens at one position of one request.
class PositionNoise {
 public:
  PositionNoise(uint64_t seed, int64_t position, NoiseStream stream = NoiseStream::kSample)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        position_(static_cast<uint64_t>(position)),
        stream_(static_cast<uint32_t>(stream)) {}

  // Random words of the tokens 4 block .. 4 block + 3.
  std::array<uint32_t, 4> Block(uint32_t block) const {
    return Philox(
        {block, static_cast<uint32_t>(position_), static_cast<uint32_t>(position_ >> 32), stream_},
        key_);
  }

  // One number in (0, 1) for the whole position.
  double Uniform() const { return (static_cast<double>(Block(0)[0]) + 0.5) * 0x1p-32; }

  // Gumbel(0, 1) noise of a token.
  double Gumbel(int32_t token) const {
    const auto id = static_cast<uint32_t>(token);
    return GumbelFromBits(Block(id / 4)[id % 4]);
  }

  static double GumbelFromBits(uint32_t bits);
  // An upper bound of GumbelFromBits without a logarithm: -log1p(-u) >= u >= 2^(bit width - 33).
  static double GumbelBound(uint32_t bits) {
    return (33 - std::bit_width(bits)) * std::numbers::ln2;
  }

 private:
  std::array<uint32_t, 2> key_;
  uint64_t position_;
  uint32_t stream_;
};

}  // namespace fulgur::sample
