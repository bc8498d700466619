#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/status_macros.h"
#include "fmt/format.h"
#include "model/drafter_source.h"
#include "parts.h"
#include "sched/cost_model.h"
#include "text/chat_encoding.h"
#include "text/chat_request.h"
#include "text/tokenizer.h"

namespace fulgur::bench_spec {
namespace {

using nlohmann::json;

constexpr int64_t kMaxTokens = 160;
constexpr int64_t kMaxModelLen = 1024;

struct Prompt {
  std::string kind;
  std::vector<int32_t> tokens;
};

absl::StatusOr<std::vector<Prompt>> ReadPrompts(const BenchOptions& options) {
  ASSIGN_OR_RETURN(const text::Tokenizer tokenizer,
                   text::Tokenizer::Load(options.demo + "/tokenizer.json"));
  const json list =
      json::parse(std::ifstream(options.prompts), nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) {
    return absl::InvalidArgumentError(options.prompts + " is not a JSON list of prompts");
  }
  std::vector<Prompt> prompts;
  for (const json& item : list) {
    text::ChatOptions chat;
    chat.thinking = item.value("thinking", false);
    if (item.contains("tools")) chat.tools = item["tools"].dump();
    ASSIGN_OR_RETURN(auto messages, text::ParseMessages(item.at("messages").dump()));
    ASSIGN_OR_RETURN(const text::ChatPrompt prompt, text::RenderChat(std::move(messages), chat));
    prompts.push_back({item.at("kind"), text::EncodePrompt(tokenizer, prompt)});
  }
  return prompts;
}

// Of one kind of text.
struct Sums {
  std::vector<Window> plain, adaptive, fixed;
  int64_t rounds = 0;
  std::vector<double> stands;  // by draft: how many times
};

class Comparison {
 public:
  // `num_drafts` per round; 0: as many as the drafter was trained for.
  Comparison(std::string name, ModelSource source, int num_drafts, const BenchOptions& options)
      : name_(std::move(name)),
        source_(std::move(source)),
        num_drafts_(num_drafts),
        options_(options) {}

  absl::Status Run(const std::vector<Prompt>& prompts, int rounds) {
    const Shape shape = {.threads = options_.threads,
                         .max_num_seqs = 1,
                         .max_model_len = kMaxModelLen,
                         .thread_time = options_.thread_time};
    const ArmOptions common = {.num_drafts = num_drafts_, .decreed = false};
    ASSIGN_OR_RETURN(arms_, ThreeArms::Create(source_, common, shape));
    for (int round = -1; round < rounds; ++round) {
      for (const Prompt& prompt : prompts) RETURN_IF_ERROR(Say(prompt, round));
    }
    for (const auto& [kind, sums] : kinds_) Print(kind, sums);
    return absl::OkStatus();
  }

 private:
  // The first round is a warm-up.
  absl::Status Say(const Prompt& prompt, int round) {
    ASSIGN_OR_RETURN(const Window plain, arms_.plain->Answer(prompt.tokens, kMaxTokens));
    ASSIGN_OR_RETURN(const Window adaptive, arms_.adaptive->Answer(prompt.tokens, kMaxTokens));
    const auto before = arms_.fixed->Stats();
    ASSIGN_OR_RETURN(const Window fixed, arms_.fixed->Answer(prompt.tokens, kMaxTokens));
    if (plain.tokens != adaptive.tokens || plain.tokens != fixed.tokens) {
      return absl::InternalError("an answer has another length with drafts than without");
    }
    if (round < 0 || plain.tokens == 0) return absl::OkStatus();
    Sums& sums = kinds_[prompt.kind];
    sums.plain.push_back(plain);
    sums.adaptive.push_back(adaptive);
    sums.fixed.push_back(fixed);
    Count(before, arms_.fixed->Stats(), sums);
    return absl::OkStatus();
  }

  static void Count(const engine::SpeculationStats& before, const engine::SpeculationStats& after,
                    Sums& sums) {
    sums.rounds += after.rounds - before.rounds;
    sums.stands.resize(static_cast<size_t>(after.num_drafts));
    for (size_t k = 0; k < sums.stands.size(); ++k) {
      sums.stands[k] +=
          static_cast<double>(after.accepted_per_slot[k] - before.accepted_per_slot[k]);
    }
  }

  // The best number of drafts, by what stood and by the measured costs.
  double Ceiling(const Sums& sums) const {
    const sched::CostModel costs(arms_.adaptive->costs());
    const double plain = costs.Forward({.rows = 1});
    double tokens = 1.0;
    double best = 1.0;
    for (size_t k = 0; k < sums.stands.size(); ++k) {
      tokens += sums.stands[k] / static_cast<double>(sums.rounds);
      const auto drafts = static_cast<int32_t>(k) + 1;
      best = std::max(best, tokens * plain /
                                (costs.Forward({.rows = 1 + drafts, .drafts = drafts}) +
                                 costs.Draft(1, drafts)));
    }
    return best;
  }

  void Print(const std::string& kind, const Sums& sums) const {
    const sched::CostModel costs(arms_.adaptive->costs());
    const auto drafts = static_cast<int32_t>(sums.stands.size());
    double length = 1.0;
    for (const double count : sums.stands) length += count / static_cast<double>(sums.rounds);
    const double adaptive = SpeedUp(sums.adaptive, sums.plain);
    const double ceiling = Ceiling(sums);
    fmt::print(
        "| {} | {} | {:.2f} | {:.3f} | {:.3f} | {:.3f} | {:.0f} | {:.2f} | {:.2f} | {:.2f} | "
        "{:.0f} % |\n",
        name_, kind, length, costs.Forward({.rows = 1}),
        costs.Forward({.rows = 1 + drafts, .drafts = drafts}), costs.Draft(1, drafts),
        TokensPerSecond(sums.plain), SpeedUp(sums.fixed, sums.plain), adaptive, ceiling,
        100.0 * adaptive / ceiling);
  }

  const std::string name_;
  const ModelSource source_;
  const int num_drafts_;
  const BenchOptions& options_;
  ThreeArms arms_;
  std::map<std::string, Sums> kinds_;
};

}  // namespace

absl::Status Gain(const BenchOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<Prompt> prompts, ReadPrompts(options));
  const int rounds = options.quick ? 3 : 25;
  fmt::print(
      "\n### One request, text that can be predicted\n\n| drafter | text | tokens per round | "
      "plain "
      "step, ms | step with all drafts, ms | drafting, ms | plain, tok/s | always all drafts / "
      "plain | adaptive / plain | ceiling | reached "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  RETURN_IF_ERROR(Comparison("DSpark", DemoDspark(options), 0, options).Run(prompts, rounds));
  return Comparison("MTP", DemoMtp(options), options.mtp_drafts, options).Run(prompts, rounds);
}

}  // namespace fulgur::bench_spec
