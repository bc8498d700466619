// A recipe applied to an operator's parameters: which nodes run which command.
//
// Numbers follow the vLLM-Ascend guides for DeepSeek-V4-Flash; where the guides contradict the
// rules of the preflight check, the rules win (no enable_dsa_cp with DSpark, decode budget =
// sequences x (1 + drafts)).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/parameters.h"

namespace fulgur::deploy {

struct ServeFlag {
  std::string name;   // with dashes
  std::string value;  // empty: none. "$2" and the like stay for the shell
};

// One node's command. In a disaggregated deployment the command is one rank's, with $1 to $7 as
// launch_online_dp.py passes them.
struct NodePlan {
  std::string name;  // folder; empty for a single node
  std::string host;
  std::string role;  // "mixed", "prefill" or "decode"
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<ServeFlag> flags;
  int dp_size = 1;
  int tp_size = 1;
  int dp_size_local = 1;
  int dp_rank_start = 0;
  std::string dp_address;
};

struct DeployPlan {
  Parameters parameters;  // with every default filled in
  Target target = Target::kA3;
  bool disaggregated = false;
  std::vector<NodePlan> nodes;
};

inline constexpr int kFirstEnginePort = 7100;
inline constexpr int kRpcPort = 12321;

// Names of the recipes, and what each is in English and Chinese.
struct RecipeInfo {
  std::string_view name;
  std::string_view targets;  // "a3", "a2" or "a3 a2"
  std::string_view en;
  std::string_view zh;
};
const std::vector<RecipeInfo>& Recipes();

// Errors: unknown names, a recipe that does not fit target, nodes or checkpoint.
absl::StatusOr<DeployPlan> MakePlan(Parameters parameters);

}  // namespace fulgur::deploy
