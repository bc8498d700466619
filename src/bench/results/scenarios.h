// The scenarios that deployments of DeepSeek-V4 are measured by, and how to recognise them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

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

// Its place in the list above; behind them all if it is another one.
size_t ScenarioRank(std::string_view id);

// Labels by language; the id itself for scenarios that are not in the list.
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
