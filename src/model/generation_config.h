// The sampling defaults and end tokens that a checkpoint recommends in generation_config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fulgur::model {

// Fields that the file does not have are empty.
struct GenerationConfig {
  std::vector<int32_t> eos_tokens;
  std::optional<bool> do_sample;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<int64_t> top_k;
  std::optional<float> repetition_penalty;
  std::optional<int64_t> max_new_tokens;
};

// Parses a generation_config.json. Errors name the field, its value and what is accepted.
absl::StatusOr<GenerationConfig> ParseGenerationConfig(std::string_view json);

// Reads <folder>/generation_config.json; all fields are empty if there is no such file.
absl::StatusOr<GenerationConfig> LoadGenerationConfig(const std::string& folder);

}  // namespace fulgur::model
