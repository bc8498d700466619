#include "base/status_macros.h"
#include "fmt/format.h"
#include "parts.h"

namespace fulgur::bench_spec {
namespace {

constexpr int64_t kContext = 128;
constexpr int64_t kVocabulary = 4096;

struct Subject {
  std::string name;
  ModelSource source;
  int64_t window_tokens = 0;  // of each request
};

// Three engines: without a drafter; with one that no request wants; with one that the planner has
// switched off, since its drafts never stand.
absl::Status Measure(const Subject& subject, const std::vector<int64_t>& concurrency,
                     const BenchOptions& options, int rounds) {
  constexpr int kWarmUp = 4;
  const Shape shape = {
      .threads = options.threads,
      .max_num_seqs = concurrency.back(),
      .max_model_len = kContext + 64 + subject.window_tokens * (rounds + kWarmUp + 2),
      .thread_time = options.thread_time};
  ASSIGN_OR_RETURN(const auto plain,
                   Arm::Create(subject.source, {.name = "plain", .has_drafter = false}, shape));
  ASSIGN_OR_RETURN(const auto unwanted,
                   Arm::Create(subject.source, {.name = "unwanted", .max_drafts = 0}, shape));
  ASSIGN_OR_RETURN(const auto off, Arm::Create(subject.source, {.name = "off"}, shape));
  const std::vector<Arm*> arms = {plain.get(), unwanted.get(), off.get()};
  off->decree()->SetRates({1e-4});
  for (const int64_t requests : concurrency) {
    for (Arm* arm : arms) {
      RETURN_IF_ERROR(arm->Begin(RandomPrompts(requests, kContext, kVocabulary)));
    }
    const auto before = off->Stats();
    ASSIGN_OR_RETURN(const auto windows,
                     TakeTurns(arms, subject.window_tokens * requests, kWarmUp, rounds));
    fmt::print("| {} | {} | {:.0f} | {:.3f} | {:.3f} | {:.2f} % |\n", subject.name, requests,
               TokensPerSecond(windows[0]), SpeedUp(windows[1], windows[0]),
               SpeedUp(windows[2], windows[0]),
               100.0 * Between(before, off->Stats()).share_drafting);
    std::fflush(stdout);
    for (Arm* arm : arms) RETURN_IF_ERROR(arm->End());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Skipped(const BenchOptions& options) {
  fmt::print(
      "\n### A drafter that is not used\n\n| model | requests | plain, tok/s | requests want no "
      "drafts / plain | planner has drafting off / plain | steps with drafts, off "
      "|\n|---|---|---|---|---|---|\n");
  const std::vector<int64_t> concurrency =
      options.quick ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 8};
  const int rounds = options.quick ? 9 : 41;
  const std::vector<Subject> subjects = {{"demo, DSpark", RandomDspark(options), 64},
                                         {"demo, MTP", DemoMtp(options), 64},
                                         {"toy, DSpark", Toy(options), 16}};
  for (const Subject& subject : subjects) {
    const int few = subject.source.random_main ? rounds / 4 + 1 : rounds;
    RETURN_IF_ERROR(Measure(subject, concurrency, options, few));
  }
  return absl::OkStatus();
}

}  // namespace fulgur::bench_spec
