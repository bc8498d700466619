// What a report is made from, besides the comparison itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/results/aiperf_reader.h"
#include "bench/results/comparison.h"
#include "bench/results/result.h"

namespace fulgur::bench {

// The requests of a cell, for figures that need each of them.
struct CellRequests {
  std::string system;
  std::string scenario;
  int64_t concurrency = 0;
  std::vector<RequestLine> requests;
};

// What happened in each stretch of a cell's run.
struct CellSlices {
  std::string system;
  std::string scenario;
  int64_t concurrency = 0;
  std::vector<TimeSlice> slices;
};

// The score of a system on a data set, in percent.
struct AccuracyScore {
  std::string system;
  std::string dataset;
  double score = 0.0;
  std::optional<double> low;  // 95 % interval
  std::optional<double> high;
  std::optional<int64_t> items;
  std::optional<int64_t> truncated;
  std::optional<int64_t> unparsed;
};

struct ReportInput {
  const Comparison& comparison;
  std::vector<CellRequests> requests;
  std::vector<AccuracyScore> accuracy;
  std::vector<CellSlices> slices;
  std::string command;  // that made the report; empty: not told
};

}  // namespace fulgur::bench
