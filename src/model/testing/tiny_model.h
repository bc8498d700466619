// A small DeepSeek-V4 model with weights computed from the tensors' names, in every storage format.
// For tests: the same numbers can be computed by any program in any language.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace fulgur::model::testing {

// Seven layers with every kind of attention and routing: ratios 0, 0, 4, 128, 4, 128, 4.
ModelConfig TinyConfig();

// The same with a drafter: an MTP block, or three DSpark stages of five positions.
ModelConfig TinyConfig(DrafterKind drafter);

enum class Storage {
  kF32,     // everything fp32
  kBf16,    // linears bf16
  kFp8Fp4,  // attention and shared experts FP8, routed experts FP4
  kInt8,    // attention inputs and experts int8
  kInt4,    // as kInt8, routed experts int4
};

// The weights of `config` and its drafter. `reference` packs every linear as fp32, keeping the
// values that the storage format stands for.
Weights MakeWeights(const ModelConfig& config, Storage storage, bool reference);

// token i of the standard input: (37 i + 11 + (i^2 mod 13)) mod V.
std::vector<int32_t> StandardTokens(const ModelConfig& config, int64_t count);

}  // namespace fulgur::model::testing
