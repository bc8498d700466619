// Scalar conversions between fp32 and the small formats of checkpoints: bf16, fp16, FP8 E4M3, E8M0,
// FP4 E2M1.
//
// E4M3 follows the OCP FP8 specification (E4M3FN: maximum 448, no infinity), E8M0 and E2M1 the OCP
// Microscaling (MX) specification. All roundings are to nearest, ties to even.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fulgur::tensor {

struct BFloat16 {
  uint16_t bits;
};

inline float ToFloat(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

inline BFloat16 ToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {0x7fc0};  // NaN stays NaN
  const uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  return {static_cast<uint16_t>(rounded >> 16)};
}

inline float RoundToBFloat16(float value) { return ToFloat(ToBFloat16(value)); }

// IEEE binary16 to fp32.
inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fU;
  const uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 0xffU : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

// FP8 E4M3FN to fp32. Codes 0x7f and 0xff are NaN.
inline float E4M3ToFloat(uint8_t code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                  : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  if (exponent == 15 && mantissa == 7) magnitude = std::numeric_limits<float>::quiet_NaN();
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// fp32 to the nearest E4M3FN value, as a float; magnitudes above 448 saturate.
inline float RoundToE4M3(float value) {
  const float magnitude = std::min(std::fabs(value), 448.0F);
  if (magnitude == 0.0F) return value;
  const int exponent = std::max(std::ilogb(magnitude), -6);
  const float step = std::ldexp(1.0F, exponent - 3);
  return std::copysign(std::min(std::nearbyint(magnitude / step) * step, 448.0F), value);
}

// E8M0 scale to fp32: 2^(code-127). Code 255 is NaN.
inline float E8M0ToFloat(uint8_t code) {
  if (code == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, static_cast<int>(code) - 127);
}

// Twice the value of an FP4 E2M1 code: an integer of at most 12.
inline int8_t TwiceE2M1(uint8_t code) {
  constexpr int8_t kTwice[8] = {0, 1, 2, 3, 4, 6, 8, 12};
  const int8_t magnitude = kTwice[code & 7];
  return (code & 8) != 0 ? static_cast<int8_t>(-magnitude) : magnitude;
}

inline float E2M1ToFloat(uint8_t code) { return 0.5F * static_cast<float>(TwiceE2M1(code)); }

// The smallest power of two that is at least `value` (> 0), exact on the fp32 bits.
inline float CeilToPowerOfTwo(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t exponent = (bits >> 23) + ((bits & 0x7fffffU) != 0 ? 1U : 0U);
  return std::bit_cast<float>(exponent << 23);
}

}  // namespace fulgur::tensor
