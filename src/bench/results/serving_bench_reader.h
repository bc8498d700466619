// Reads the results of `vllm bench serve` and of SGLang's bench_serving, which grew from the same
// script: flat keys with the statistic in the name, and lists over the requests in detailed files.
//
// Their words differ from aiperf's: TPOT is the inter-token latency of a request, ITL are the gaps
// between messages (inter-chunk latency).
#pragma once

#include <filesystem>

#include "bench/results/json_fields.h"
#include "bench/results/result.h"

namespace fulgur::bench {

bool IsServingBench(const JsonObject& root);
Result ReadServingBench(const JsonObject& root, const std::filesystem::path& file);

}  // namespace fulgur::bench
