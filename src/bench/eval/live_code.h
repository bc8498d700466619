// LiveCodeBench: programs that read standard input, and methods of a class (Jain et al., 2024).
#pragma once

#include <optional>

#include "bench/eval/eval_item.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {

// A row of the published JSON lines: question_content, starter_code, public_test_cases and
// private_test_cases (packed or plain). Absent if there is no question or no test.
std::optional<EvalItem> LiveCodeRow(const nlohmann::json& row);

}  // namespace fulgur::bench
