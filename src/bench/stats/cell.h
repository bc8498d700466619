// One measured cell: a system under one scenario at one concurrency. Every reader produces it, the
// aggregator reads it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/stats/metric.h"

namespace fulgur::bench {

enum class ResultKind {
  kAiperf,
  kVllmBench,
  kSglang,
  kGuidellm,
  kEvalscope,
  kAisbench,
  kInferenceX,
  kDs4,
  kReference
};

struct ErrorGroup {
  std::optional<int> code;
  std::string type;
  std::string message;  // numbers may differ between the grouped ones
  int64_t count = 0;
};

struct PhaseWindow {
  std::string name;  // "warmup", "profiling"
  int64_t wall_start_ns = 0;
  int64_t wall_end_ns = 0;
};

struct Cell {
  std::string system;
  std::string scenario;  // "chat", "sum", "coding" ... or "custom"
  std::optional<int64_t> concurrency;
  int32_t repetition = 0;

  ResultKind kind = ResultKind::kAiperf;
  std::string source;        // file it was read from
  std::string tool_version;  // "0.11.0", "vllm 0.33" ... as far as known
  MetricMap metrics;         // under aiperf's tags and meanings, whatever the file called them
  MetricMap warmup_metrics;
  std::vector<ErrorGroup> errors;
  std::vector<PhaseWindow> phases;
  std::map<std::string, std::string> environment;  // what two systems must share to be compared
  bool was_cancelled = false;
  bool is_complete = true;
};

}  // namespace fulgur::bench
