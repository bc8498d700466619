// One way of decoding in a comparison: a model of its own with an engine on top. Arms take turns in
// short windows, so that their ratios mean something on a machine that is not quite still.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "decreed_runner.h"
#include "engine/engine_core.h"
#include "model_source.h"

namespace fulgur::bench_spec {

struct ArmOptions {
  std::string name = {};
  bool has_drafter = true;
  bool adaptive = true;
  int32_t num_drafts = 0;                            // 0: as trained
  std::optional<int32_t> max_drafts = std::nullopt;  // what requests ask for
  bool decreed = true;  // text by decree (decreed_runner.h), else the model's own
};

struct Shape {
  int threads = 1;
  int64_t max_num_seqs = 1;
  int64_t max_model_len = 0;
  bool thread_time = false;  // measure the calling thread's own time: one worker, busy machine
};

// What happened in a while.
struct Window {
  int64_t tokens = 0;
  double ms = 0.0;
  double ms_per_token() const { return ms / static_cast<double>(tokens); }
};

class Arm {
 public:
  // Measures costs at start, as a server does.
  static absl::StatusOr<std::unique_ptr<Arm>> Create(const ModelSource& source, ArmOptions options,
                                                     const Shape& shape);

  // Adds a request for each prompt, which never ends, and computes the prompts.
  absl::Status Begin(const std::vector<std::vector<int32_t>>& prompts);
  // Decodes until there are that many more tokens.
  absl::StatusOr<Window> Run(int64_t tokens);
  // Ends what Begin began.
  absl::Status End();

  // One request to its end; the time is that of decoding.
  absl::StatusOr<Window> Answer(const std::vector<int32_t>& prompt, int64_t max_tokens);

  const std::string& name() const { return options_.name; }
  engine::SpeculationStats Stats() const { return core_->Stats().speculation; }
  const sched::CostTable& costs() const { return core_->options().speculation.costs; }
  DecreedRunner* decree() { return decree_; }

 private:
  explicit Arm(ArmOptions options) : options_(std::move(options)) {}
  absl::Status Start(const ModelSource& source, const Shape& shape);
  double Now() const;  // milliseconds
  engine::Request MakeRequest(const std::vector<int32_t>& prompt, int64_t max_tokens) const;
  void Add(engine::Request request);

  const ArmOptions options_;
  std::unique_ptr<engine::ModelRunner> runner_;
  DecreedRunner* decree_ = nullptr;
  std::unique_ptr<engine::EngineCore> core_;
  int64_t max_model_len_ = 0;
  bool thread_time_ = false;
  engine::RequestId next_id_ = 1;
  std::vector<engine::RequestId> running_;
  int64_t said_ = 0;
  int64_t num_started_ = 0;  // requests with a first token
  bool ended_ = false;       // the latest request
};

// What a comparison compares: no drafter, the planner's choice, always all drafts.
struct ThreeArms {
  std::unique_ptr<Arm> plain;
  std::unique_ptr<Arm> adaptive;
  std::unique_ptr<Arm> fixed;

  // `common`: what holds for all of them.
  static absl::StatusOr<ThreeArms> Create(const ModelSource& source, const ArmOptions& common,
                                          const Shape& shape);
  std::vector<Arm*> all() const { return {plain.get(), adaptive.get(), fixed.get()}; }
};

// What happened between two readings.
struct DraftCounts {
  double accept_length = 1.0;   // tokens per round
  double share_on = 0.0;        // of the steps: drafting is on
  double share_drafting = 0.0;  // on, or for finding out
};
DraftCounts Between(const engine::SpeculationStats& before, const engine::SpeculationStats& after);

// Lets all arms decode `tokens` in turn, `rounds` times after `warm_up`; the order changes from
// round to round. windows[arm][round].
absl::StatusOr<std::vector<std::vector<Window>>> TakeTurns(const std::vector<Arm*>& arms,
                                                           int64_t tokens, int warm_up, int rounds);

// The most tokens that one of `requests` prompts of this length may get while others are still
// read: room that a context needs besides what is measured.
int64_t SaidBeforeAllHaveStarted(int64_t requests, int64_t prompt, int64_t num_drafts);

double Median(std::vector<double> values);
// The median over rounds of how much faster an arm was than another.
double SpeedUp(const std::vector<Window>& arm, const std::vector<Window>& base);
double TokensPerSecond(const std::vector<Window>& windows);

// Prompts of random tokens.
std::vector<std::vector<int32_t>> RandomPrompts(int64_t count, int64_t length, int64_t vocabulary);

}  // namespace fulgur::bench_spec
