#include <algorithm>

#include "base/status_macros.h"
#include "fmt/format.h"
#include "parts.h"

namespace fulgur::bench_spec {
namespace {

constexpr int64_t kWindowTokens = 32;  // of each request
constexpr int64_t kShort = 64;
constexpr int64_t kDrafts = 5;  // of the demo model's stages
constexpr int64_t kLong = 2048;

struct Text {
  std::string name;
  std::vector<double> rates;
};

// How many drafts stand: decreed, so that it is the same on every machine.
std::vector<Text> Texts() {
  return {{"easy to guess", {0.97, 0.93, 0.89, 0.85, 0.81}},
          {"hard to guess", {0.40, 0.14, 0.05, 0.02, 0.01}},
          {"drafter of random weights", {}}};
}

struct Worst {
  double ratio = 1e9;
  std::string where;
};

class Comparison {
 public:
  explicit Comparison(const BenchOptions& options)
      : options_(options), rounds_(options.quick ? 5 : 15), warm_up_(options.quick ? 3 : 6) {}

  absl::Status Run() {
    Shape shape{.threads = options_.threads, .max_num_seqs = concurrency().back()};
    shape.thread_time = options_.thread_time;
    shape.max_model_len =
        contexts().back() + kWindowTokens * (rounds_ + warm_up_ + 2) +
        SaidBeforeAllHaveStarted(concurrency().back(), contexts().back(), kDrafts);
    const ModelSource source = RandomDspark(options_);
    ASSIGN_OR_RETURN(arms_, ThreeArms::Create(source, {}, shape));
    fmt::print(
        "\n### Never slower\n\n| drafts | context | requests | plain, tok/s | adaptive / plain | "
        "always 5 drafts / plain | tokens per round, always | steps with drafts, adaptive |\n"
        "|---|---|---|---|---|---|---|---|\n");
    for (const Text& text : Texts()) {
      for (const int64_t context : contexts()) {
        for (const int64_t requests : concurrency()) {
          RETURN_IF_ERROR(Cell(text, context, requests));
        }
      }
    }
    fmt::print("\nLowest adaptive / plain: {:.3f} ({}).\n", worst_.ratio, worst_.where);
    return absl::OkStatus();
  }

 private:
  std::vector<int64_t> concurrency() const {
    return options_.quick ? std::vector<int64_t>{1, 8} : std::vector<int64_t>{1, 2, 4, 8, 16, 32};
  }
  std::vector<int64_t> contexts() const {
    return options_.quick ? std::vector<int64_t>{kShort} : std::vector<int64_t>{kShort, kLong};
  }

  absl::Status Cell(const Text& text, int64_t context, int64_t requests) {
    const std::vector<Arm*> arms = arms_.all();
    const auto prompts = RandomPrompts(requests, context, kSmallestVocabulary);
    for (Arm* arm : arms) {
      arm->decree()->SetRates(text.rates);
      RETURN_IF_ERROR(arm->Begin(prompts));
    }
    const auto adaptive_before = arms_.adaptive->Stats();
    const auto fixed_before = arms_.fixed->Stats();
    ASSIGN_OR_RETURN(const auto windows,
                     TakeTurns(arms, kWindowTokens * requests, warm_up_, rounds_));
    const double ratio = SpeedUp(windows[1], windows[0]);
    fmt::print("| {} | {} | {} | {:.0f} | {:.3f} | {:.3f} | {:.2f} | {:.0f} % |\n", text.name,
               context, requests, TokensPerSecond(windows[0]), ratio,
               SpeedUp(windows[2], windows[0]),
               Between(fixed_before, arms_.fixed->Stats()).accept_length,
               100.0 * Between(adaptive_before, arms_.adaptive->Stats()).share_on);
    std::fflush(stdout);
    if (ratio < worst_.ratio) {
      worst_ = {ratio, fmt::format("{}, context {}, {} requests", text.name, context, requests)};
    }
    for (Arm* arm : arms) RETURN_IF_ERROR(arm->End());
    return absl::OkStatus();
  }

  static constexpr int64_t kSmallestVocabulary = 4096;

  const BenchOptions& options_;
  const int rounds_;
  const int warm_up_;
  ThreeArms arms_;
  Worst worst_;
};

}  // namespace

absl::Status NeverSlower(const BenchOptions& options) { return Comparison(options).Run(); }

}  // namespace fulgur::bench_spec
