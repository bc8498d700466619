// Requests as lines of profile_export.jsonl: from records, and to JSON.
#pragma once

#include <string>

#include "bench/results/result.h"

namespace fulgur::bench {

// The JSON object of one line, without the line's end. `phase_index` counts the phases of the run.
std::string RequestLineToJson(const RequestLine& line, int phase_index);

}  // namespace fulgur::bench
