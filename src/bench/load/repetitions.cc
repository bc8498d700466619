#include "bench/load/repetitions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "bench/load/run_cell.h"
#include "bench/results/result_reader.h"
#include "bench/results/text_file.h"
#include "boost/math/distributions/students_t.hpp"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Values of one statistic of one metric, run by run.
struct Series {
  std::string unit;
  std::vector<double> values;
};

// By "<tag>_<statistic>", as aiperf calls them.
std::map<std::string, Series> Collect(const std::vector<Cell>& runs) {
  std::map<std::string, Series> all;
  for (const Cell& run : runs) {
    for (const auto& [tag, block] : run.metrics) {
      const auto add = [&, &name = tag, &unit = block.unit](const std::string& statistic,
                                                            std::optional<double> value) {
        if (!value || !std::isfinite(*value)) return;
        Series& series = all[fmt::format("{}_{}", name, statistic)];
        series.unit = unit;
        series.values.push_back(*value);
      };
      add("avg", block.avg);
      add("min", block.min);
      add("max", block.max);
      add("sum", block.sum);
      add("std", block.std);
      for (const auto& [q, value] : block.percentiles) add(fmt::format("p{}", q), value);
    }
  }
  return all;
}

Json Summary(const Series& series, double level) {
  const auto n = static_cast<double>(series.values.size());
  double mean = 0.0;
  for (const double value : series.values) mean += value / n;
  Json json{{"mean", mean}, {"std", 0.0}};
  json["min"] = *std::min_element(series.values.begin(), series.values.end());
  json["max"] = *std::max_element(series.values.begin(), series.values.end());
  if (series.values.size() >= 2) {
    double squares = 0.0;
    for (const double value : series.values) squares += std::pow(value - mean, 2);
    const double deviation = std::sqrt(squares / (n - 1));
    const double error = deviation / std::sqrt(n);
    const double t = boost::math::quantile(boost::math::students_t(n - 1), (1 + level) / 2);
    json["std"] = deviation;
    if (mean != 0.0) json["cv"] = deviation / mean;
    json["se"] = error;
    json["ci_low"] = mean - t * error;
    json["ci_high"] = mean + t * error;
    json["t_critical"] = t;
  }
  json["unit"] = series.unit;
  return json;
}

}  // namespace

fs::path RunFolder(const fs::path& cell, int32_t repetition) {
  return cell / fmt::format("profile_runs/run_{:04}", repetition + 1);
}

absl::Status WriteRepetitions(const RunOptions& options, const fs::path& cell) {
  std::vector<Cell> runs;
  Json labels = Json::array();
  Json failed = Json::array();
  for (int32_t repetition = 0; repetition < options.repetitions; ++repetition) {
    const std::string label = fmt::format("run_{:04}", repetition + 1);
    labels.push_back(label);
    auto results = ReadResultFile(SummaryFile(options, RunFolder(cell, repetition)));
    if (!results.ok() || results->empty()) {
      failed.push_back({{"label", label}, {"error", std::string(results.status().message())}});
    } else if (results->front().cell.was_cancelled) {
      failed.push_back({{"label", label}, {"error", "interrupted"}});
    } else {
      runs.push_back(std::move(results->front().cell));
    }
  }
  if (runs.empty()) return absl::OkStatus();
  Json json{{"schema_version", "1.0"}};
  json["metadata"] = {{"aggregation_type", "confidence"},
                      {"num_profile_runs", options.repetitions},
                      {"num_successful_runs", runs.size()},
                      {"failed_runs", failed},
                      {"confidence_level", options.confidence_level},
                      {"cooldown_seconds", options.cooldown_s},
                      {"run_labels", labels}};
  json["metrics"] = Json::object();
  for (const auto& [name, series] : Collect(runs)) {
    json["metrics"][name] = Summary(series, options.confidence_level);
  }
  const fs::path folder = cell / "aggregate";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return absl::UnavailableError(
        fmt::format("the folder {} could not be made: {}", folder.string(), error.message()));
  }
  return WriteTextFile(folder / "profile_export_aiperf_aggregate.json",
                       json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace fulgur::bench
