// What is tried: a base configuration of a server, variants of it, and the load to judge them by.
//
// {"format": "fulgur-trial-plan/1", "url": "http://127.0.0.1:6697", "start": "exec bash serve.sh",
//  "base": {"MAX_NUM_SEQS": "256", "EXTRA": ""}, "run": ["--suite", "seed"],
//  "variants": [{"id": "seqs64", "change": "max-num-seqs 64", "set": {"MAX_NUM_SEQS": "64"}}]}
// and optionally "stop", "health", "start_limit_s", "stop_limit_s", "metric", "threshold_percent"
// and "rounds".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fulgur::bench {

inline constexpr std::string_view kTrialPlanFormat = "fulgur-trial-plan/1";

// Environment variables of the start and stop commands: a shell hands them on without touching
// their quotes, so JSON survives.
using Settings = std::map<std::string, std::string>;

// How the operator starts and stops the server. Both commands are for bash.
struct ServerCommands {
  std::string url;
  std::string health = "/health";  // a path that answers 200 when the server is ready
  std::string start;               // may stay in the foreground, or return when all is under way
  std::string stop;                // empty: what `start` left running gets SIGTERM
  double start_limit_s = 1800.0;
  double stop_limit_s = 120.0;
};

struct Variant {
  std::string id;      // names folders and logs
  std::string change;  // for people
  Settings set;        // each replaces one of the base
};

struct TrialPlan {
  ServerCommands server;
  Settings base;
  std::vector<Variant> variants;
  std::vector<std::string> run;  // flags of `fulgur bench run`
  std::string metric = "output_token_throughput_per_user";
  double threshold = 0.05;        // a smaller gain is not worth a change
  std::optional<int64_t> rounds;  // each measures every variant once; absent: Rounds()

  // As many rounds as let the base be measured at least four times: fewer say little of its noise.
  int64_t Rounds() const;

  // The base's settings with those of the variant; nullptr is the base.
  Settings SettingsOf(const Variant* variant) const;
};

// Errors name file and field, and say what is accepted.
absl::StatusOr<TrialPlan> ParseTrialPlan(std::string_view text, const std::string& source);
absl::StatusOr<TrialPlan> ReadTrialPlan(const std::string& file);

// Keeps the named variants only. An unknown name is an error.
absl::Status KeepVariants(const std::vector<std::string_view>& ids, TrialPlan& plan);

}  // namespace fulgur::bench
