// Checks of the JSON flags whose keys are published, whether they have an effect here or not.
#pragma once

#include "absl/status/status.h"
#include "cli/flag_values.h"

namespace fulgur::cli {

// --model-loader-extra-config, --kv-transfer-config, --additional-config.
// Errors name flag and key, what was found and what is accepted.
absl::Status CheckJsonFlags(const FlagValues& values);

}  // namespace fulgur::cli
