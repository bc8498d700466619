// The scenarios that deployments of DeepSeek-V4 are measured by, and how to recognise them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "bench/results/result.h"

namespace fulgur::bench {

struct Scenario {
  std::string_view id;
  std::string_view english;
  std::string_view chinese;
  double input_tokens;
  double output_tokens;
};

// chat, sum, coding, in this order.
inline constexpr Scenario kScenarios[] = {
    {"chat", "Chat (128,256)", "对话 (128,256)", 128, 256},
    {"sum", "Summarization (1024,128)", "摘要 (1024,128)", 1024, 128},
    {"coding", "Coding Agent (16384,4096)", "代码智能体 (16384,4096)", 16384, 4096}};

// An open-loop cell belongs to a scenario of its own for each rate: "chat-rate2.5".
struct ScenarioName {
  std::string base;            // "chat"
  std::optional<double> rate;  // requests per second; absent: a closed loop
};
ScenarioName SplitScenario(const std::string& id);
std::string JoinScenario(const ScenarioName& name);

// The order in which scenarios are shown: that of the list above, then by name, then by rate.
using ScenarioOrder = std::tuple<size_t, std::string, double, std::string>;
ScenarioOrder OrderOf(const std::string& id);

// Labels by language; the name itself for scenarios that are not in the list.
std::map<std::string, std::string> ScenarioLabels(const std::string& id);

// The scenario whose lengths lie within 5 % of the planned or measured means; "" if none does.
std::string ScenarioByLengths(const Result& result);

// What a path inside a folder of results says: "<anything>-<scenario>-c<C>/...",
// "<scenario>/c<C>.json", "concurrency_<C>/...", "parallel_<C>_number_<N>/...".
struct PathHints {
  std::string scenario;  // empty: nothing
  std::optional<int64_t> concurrency;
};

PathHints HintsOf(std::string_view relative_path);

}  // namespace fulgur::bench
