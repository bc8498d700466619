// Writes a cell in the form of `vllm bench serve --save-result`, for scripts that read it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/load/run_cell.h"
#include "bench/load/run_options.h"

namespace fulgur::bench {

struct VllmResultOptions {
  std::string folder;
  std::string name;  // empty: vLLM's scheme
  std::string label;
  std::string backend;
  bool detailed = false;              // one entry per request
  std::vector<std::string> metadata;  // KEY=VALUE
};

// The names mean what they mean there: "itl" are gaps between messages, "tpot" is the time per
// output token of one request.
absl::Status WriteVllmResult(const VllmResultOptions& file, const RunOptions& options,
                             const CellResult& result);

}  // namespace fulgur::bench
