// Small checkpoints in every storage format, written by scripts/make_test_checkpoints.sh. A test
// that reads them needs the CTest fixture "checkpoints".
#pragma once

#include <string>

namespace fulgur::model::testing {

// All have the configuration of TinyConfig(). Beside the folder <name> lie <name>.golden.json
// (logits) and <name>.values.safetensors (the fp32 values of the main model's tensors).
inline constexpr const char* kCheckpointNames[] = {
    "fp32",          "bf16",          "fp8fp4", "fp8fp4_resharded", "fp8fp4_dspark", "fp8base",
    "w8a8_recipe_a", "w8a8_recipe_b", "w4a8"};

// Path of a checkpoint folder, or with a suffix that of a file beside it.
std::string CheckpointPath(const std::string& name, const std::string& suffix = "");

}  // namespace fulgur::model::testing
