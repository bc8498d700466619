// Everything a workbook or a report says about a comparison: systems x scenarios x concurrencies.
//
// One model of facts for the workbook, both languages of the report, `--json FILE` and tests; none
// of them computes numbers of its own. Absent is absent: a number that was not measured is an empty
// optional, never 0.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/results/lint.h"
#include "bench/results/statistic.h"
#include "bench/results/utilisation.h"
#include "bench/stats/cell.h"
#include "bench/stats/metric.h"

namespace fulgur::bench {

// A file that numbers came from.
struct Provenance {
  std::string path;
  std::string kind;     // "aiperf", "vllm bench", "guidellm", "reference" ...
  std::string version;  // of the tool; empty if the file does not say
  std::string sha256;   // of the file's bytes, lower-case hexadecimal
};

enum class Role { kBaseline, kTreatment, kReference };

struct SystemFacts {
  std::string id;     // as on the command line: "baseline"
  std::string label;  // for people: "Baseline (no spec)"
  Role role = Role::kReference;
  std::optional<int64_t> devices;  // dies or GPUs, for rates per device
  std::map<std::string, std::string> environment;
  std::optional<UtilisationSummary> utilisation;  // over the whole log
  std::vector<LintFinding> lint;                  // of the system as a whole: time against the log
  std::string source;  // of a reference file: where its constants are from
};

struct ScenarioFacts {
  std::string id;                            // "chat"
  std::map<std::string, std::string> label;  // language ("en", "zh") -> "Chat (128,256)"
};

// One system under one scenario at one concurrency. A combination that no file covers has no entry.
struct CellFacts {
  std::string system;
  std::string scenario;
  int64_t concurrency = 0;
  bool valid = true;                 // no lint rule failed and the run was complete
  std::vector<std::string> reasons;  // why it is not
  std::optional<int64_t> requests;   // that ended well
  std::optional<int64_t> errors;     // absent if the file does not say
  std::map<std::string, int64_t>
      errors_by_code;                    // "400", or the kind of failure if there is no code
  std::vector<ErrorGroup> error_groups;  // the same with messages, numbers masked
  MetricMap metrics;                     // over repetitions: the mean of each statistic
  int32_t repetitions = 1;
  std::map<std::string, double> repetition_std;   // tag -> std (n - 1) of the averages, if repeated
  std::vector<PhaseWindow> phases;                // wall clock, of the first repetition
  std::optional<UtilisationSummary> utilisation;  // inside the profiling window
  std::vector<LintFinding> lint;
  std::vector<Provenance> provenance;
};

enum class Verdict { kImproved, kNeutral, kRegression, kNoise, kNotAvailable };

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

// Treatment against baseline in one cell by one metric.
struct Contrast {
  std::string scenario;
  int64_t concurrency = 0;
  std::string tag;                // "output_token_throughput_per_user" is the headline
  std::string statistic = "avg";  // or "p50", "p99"
  bool larger_is_better = true;
  std::optional<double> baseline;
  std::optional<double> treatment;
  std::optional<double> speedup;  // above 1 is better, whichever way the metric points
  std::optional<double> delta_percent;
  std::optional<Interval> interval;  // of the speed-up, 95 %
  Verdict verdict = Verdict::kNotAvailable;
  std::string note;  // "no variance": no records and no repetitions to judge by
};

// A geometric mean of headline speed-ups.
struct SpeedupMean {
  std::string scenario;  // empty: over all cells
  double mean = 0.0;
  int32_t cells = 0;
};

// A property in which baseline and treatment differ besides what was to be compared.
struct Confounder {
  std::string key;
  std::string baseline;  // empty: not known
  std::string treatment;
};

// One factor changed on top of the base configuration.
struct Trial {
  std::string id;
  std::string change;
  std::string tag;
  std::optional<double> delta_percent;
  std::optional<int64_t> errors;
  std::string decision;  // "accepted", "rejected", "undecided"
  std::string reason;
};

struct Comparison {
  std::string baseline;  // ids of systems; empty if there is none
  std::string treatment;
  double threshold = 0.05;               // of the verdicts
  std::vector<SystemFacts> systems;      // baseline, treatment, then references
  std::vector<ScenarioFacts> scenarios;  // chat, sum, coding, then others by name
  std::vector<int64_t> concurrencies;    // ascending, over all cells
  std::vector<CellFacts> cells;
  std::vector<Contrast> contrasts;  // for every scenario and concurrency, empty ones too
  std::vector<SpeedupMean> means;
  std::vector<Confounder> confounders;
  std::vector<Trial> trials;
  std::vector<std::string> problems;  // one sentence for everything skipped or missing

  const SystemFacts* FindSystem(std::string_view id) const;
  const CellFacts* FindCell(std::string_view system, std::string_view scenario,
                            int64_t concurrency) const;
  const Contrast* FindContrast(std::string_view scenario, int64_t concurrency, std::string_view tag,
                               std::string_view statistic) const;
};

// The headline metric: what one user sees per second.
inline constexpr std::string_view kHeadlineTag = "output_token_throughput_per_user";

// A statistic (statistic.h) of a metric of a cell; absent if the cell or the metric is.
std::optional<double> Statistic(const CellFacts* cell, std::string_view tag, std::string_view name);

// "improved", "neutral", "REGRESSION", "noise?", "n/a".
std::string VerdictName(Verdict verdict);

// The concurrency of open-loop cells that let any number of requests be under way.
inline constexpr int64_t kUnlimited = 0;

// "C16"; "C∞" without a limit.
std::string ConcurrencyName(int64_t concurrency);

}  // namespace fulgur::bench
