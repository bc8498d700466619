// Rotary position embedding: frequencies per layer kind, and cos/sin tables of positions.
//
// The angle is the fp32 product of position and fp32 frequency, as the model was trained: near a
// million tokens a more exact angle would be a different one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"

namespace fulgur::model {

// Frequencies f_i of the rope_dim / 2 interleaved pairs. Layers without compression use rope_theta
// unscaled; compressed layers use compress_rope_theta with YaRN (arXiv:2309.00071), no magnitude
// scaling. Powers and reciprocals are rounded to fp32 one by one, as the published code does.
std::vector<float> RopeFrequencies(const ModelConfig& config, bool compressed);

// Writes cos f_0 p, sin f_0 p, cos f_1 p, ... [2 * frequencies].
void WriteRotation(int64_t position, std::span<const float> frequencies, float* rotation);

}  // namespace fulgur::model
