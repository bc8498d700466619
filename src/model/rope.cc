#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fulgur::model {
namespace {

// The pair that turns `turns` times within the original context (YaRN's correction dimension).
double PairOfTurns(const ModelConfig& config, double turns) {
  const auto context = static_cast<double>(config.rope_scaling.original_max_position);
  return static_cast<double>(config.rope_dim) * std::log(context / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(static_cast<double>(config.compress_rope_theta)));
}

// Slow pairs are interpolated by `factor`, fast ones kept, those between mixed linearly.
void ScaleFrequencies(const ModelConfig& config, std::vector<float>& frequencies) {
  const RopeScaling& yarn = config.rope_scaling;
  const double low = std::max(std::floor(PairOfTurns(config, yarn.beta_fast)), 0.0);
  const double high = std::min(std::ceil(PairOfTurns(config, yarn.beta_slow)),
                               static_cast<double>(config.rope_dim - 1));
  const auto width = static_cast<float>(high == low ? 0.001 : high - low);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float ramp = (static_cast<float>(i) - static_cast<float>(low)) / width;
    const float keep = 1.0F - std::clamp(ramp, 0.0F, 1.0F);
    frequencies[i] = frequencies[i] / yarn.factor * (1.0F - keep) + frequencies[i] * keep;
  }
}

}  // namespace

std::vector<float> RopeFrequencies(const ModelConfig& config, bool compressed) {
  const float base = compressed ? config.compress_rope_theta : config.rope_theta;
  std::vector<float> frequencies(static_cast<size_t>(config.rope_dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.rope_dim);
    const auto power = static_cast<float>(std::pow(static_cast<double>(base), exponent));
    frequencies[i] = 1.0F / power;
  }
  const bool scaled = config.rope_scaling.original_max_position > 0;
  if (compressed && scaled) ScaleFrequencies(config, frequencies);
  return frequencies;
}

void WriteRotation(int64_t position, std::span<const float> frequencies, float* rotation) {
  const auto place = static_cast<float>(position);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double angle = place * frequencies[i];  // rounded to fp32 before it is widened
    rotation[2 * i] = static_cast<float>(std::cos(angle));
    rotation[2 * i + 1] = static_cast<float>(std::sin(angle));
  }
}

}  // namespace fulgur::model
