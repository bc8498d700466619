#include "arm.h"

#include <time.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "base/machine.h"
#include "base/status_macros.h"
#include "engine/cost_probe.h"
#include "engine/model_engine.h"
#include "kv/layout.h"
#include "model/drafter_source.h"

namespace fulgur::bench_spec {
namespace {

using engine::Clock;

constexpr int64_t kMaxStepTokens = 512;

double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Arm>> Arm::Create(const ModelSource& source, ArmOptions options,
                                                 const Shape& shape) {
  auto arm = std::unique_ptr<Arm>(new Arm(std::move(options)));
  RETURN_IF_ERROR(arm->Start(source, shape));
  return arm;
}

double Arm::Now() const {
  if (!thread_time_) return Milliseconds(Clock::now().time_since_epoch());
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

absl::Status Arm::Start(const ModelSource& source, const Shape& shape) {
  ASSIGN_OR_RETURN(LoadedModel loaded, LoadModel(source, options_.has_drafter, shape.threads));
  engine::ModelEngineOptions options;
  options.num_threads = shape.threads;
  if (options_.has_drafter) {
    options.max_drafts =
        options_.num_drafts > 0 ? options_.num_drafts : model::TrainedDrafts(loaded.config);
    options.speculation.num_drafts = static_cast<int32_t>(options.max_drafts);
    options.speculation.adaptive = options_.adaptive;
  }
  const int64_t rows = shape.max_num_seqs * (1 + options.max_drafts);
  options.limits = {.max_num_seqs = shape.max_num_seqs,
                    .max_num_batched_tokens = std::max(kMaxStepTokens, rows),
                    .max_model_len = shape.max_model_len,
                    .max_logit_rows = rows + 1};
  max_model_len_ = shape.max_model_len;
  thread_time_ = shape.thread_time;
  const engine::MemoryPlan plan = {
      .num_pages = shape.max_num_seqs * kv::Layout::PagesFor(shape.max_model_len),
      .num_slots = shape.max_num_seqs};
  const auto eos_tokens = loaded.config.eos_tokens;
  ASSIGN_OR_RETURN(
      runner_, engine::CreateModelRunner(options, std::move(loaded.config),
                                         std::move(loaded.weights), plan, base::DetectMachine()));
  if (options_.decreed) {
    auto decreed = std::make_unique<DecreedRunner>(std::move(runner_));
    decree_ = decreed.get();
    runner_ = std::move(decreed);
  }
  engine::CoreOptions core = {.limits = options.limits,
                              .num_pages = plan.num_pages,
                              .num_slots = plan.num_slots,
                              .eos_tokens = eos_tokens,
                              .seed = 1,
                              .speculation = options.speculation};
  if (core.speculation.enabled()) {
    ASSIGN_OR_RETURN(core.speculation.costs, engine::MeasureCosts(core, *runner_));
  }
  RETURN_IF_ERROR(engine::ValidateOptions(core, *runner_));
  core_ = std::make_unique<engine::EngineCore>(core, *runner_);
  return absl::OkStatus();
}

engine::Request Arm::MakeRequest(const std::vector<int32_t>& prompt, int64_t max_tokens) const {
  engine::Request request;
  request.prompt = prompt;
  request.params.temperature = 0.0F;
  request.params.max_tokens = max_tokens;
  request.max_drafts = options_.max_drafts;
  return request;
}

void Arm::Add(engine::Request request) {
  const engine::RequestId id = next_id_++;
  running_.push_back(id);
  core_->Add(
      id, std::move(request),
      [this, first = true](const engine::RequestEvent& event) mutable {
        said_ += static_cast<int64_t>(event.tokens.size());
        if (first && !event.tokens.empty()) {
          ++num_started_;
          first = false;
        }
        if (event.finish) ended_ = true;
      },
      Clock::now());
}

int64_t SaidBeforeAllHaveStarted(int64_t requests, int64_t prompt, int64_t num_drafts) {
  return (requests * prompt / kMaxStepTokens + requests) * (1 + num_drafts);
}

absl::Status Arm::Begin(const std::vector<std::vector<int32_t>>& prompts) {
  num_started_ = 0;
  for (const auto& prompt : prompts) {
    engine::Request request =
        MakeRequest(prompt, max_model_len_ - static_cast<int64_t>(prompt.size()));
    request.params.ignore_eos = true;
    Add(std::move(request));
  }
  while (num_started_ < static_cast<int64_t>(prompts.size())) RETURN_IF_ERROR(core_->Step());
  return absl::OkStatus();
}

absl::StatusOr<Window> Arm::Run(int64_t tokens) {
  const int64_t before = said_;
  const double start = Now();
  while (said_ < before + tokens) {
    if (!core_->HasWork()) return absl::InternalError("the requests ended before their time");
    RETURN_IF_ERROR(core_->Step());
  }
  return Window{.tokens = said_ - before, .ms = Now() - start};
}

absl::Status Arm::End() {
  for (const engine::RequestId id : running_) core_->Abort(id);
  running_.clear();
  while (core_->HasWork()) RETURN_IF_ERROR(core_->Step());
  return absl::OkStatus();
}

absl::StatusOr<Window> Arm::Answer(const std::vector<int32_t>& prompt, int64_t max_tokens) {
  num_started_ = 0;
  ended_ = false;
  Add(MakeRequest(prompt, max_tokens));
  while (num_started_ == 0) RETURN_IF_ERROR(core_->Step());
  const int64_t before = said_;
  const double start = Now();
  while (!ended_) RETURN_IF_ERROR(core_->Step());
  running_.clear();
  return Window{.tokens = said_ - before, .ms = Now() - start};
}

absl::StatusOr<ThreeArms> ThreeArms::Create(const ModelSource& source, const ArmOptions& common,
                                            const Shape& shape) {
  ThreeArms arms;
  ArmOptions plain = common, adaptive = common, fixed = common;
  plain.name = "plain";
  plain.has_drafter = false;
  adaptive.name = "adaptive";
  fixed.name = "fixed";
  fixed.adaptive = false;
  ASSIGN_OR_RETURN(arms.plain, Arm::Create(source, plain, shape));
  ASSIGN_OR_RETURN(arms.adaptive, Arm::Create(source, adaptive, shape));
  ASSIGN_OR_RETURN(arms.fixed, Arm::Create(source, fixed, shape));
  return arms;
}

DraftCounts Between(const engine::SpeculationStats& before, const engine::SpeculationStats& after) {
  DraftCounts counts;
  const auto rounds = static_cast<double>(after.rounds - before.rounds);
  if (rounds > 0) {
    counts.accept_length +=
        static_cast<double>(after.accepted_tokens - before.accepted_tokens) / rounds;
  }
  const auto total = [](const engine::SpeculationStats& stats) {
    return std::accumulate(stats.steps.begin(), stats.steps.end(), int64_t{0});
  };
  const auto on = static_cast<size_t>(engine::SpeculationStats::Mode::kOn);
  const auto steps = static_cast<double>(std::max<int64_t>(1, total(after) - total(before)));
  const auto off = static_cast<size_t>(engine::SpeculationStats::Mode::kOff);
  counts.share_on = static_cast<double>(after.steps[on] - before.steps[on]) / steps;
  counts.share_drafting = 1.0 - static_cast<double>(after.steps[off] - before.steps[off]) / steps;
  return counts;
}

absl::StatusOr<std::vector<std::vector<Window>>> TakeTurns(const std::vector<Arm*>& arms,
                                                           int64_t tokens, int warm_up,
                                                           int rounds) {
  std::vector<std::vector<Window>> windows(arms.size());
  for (int round = 0; round < warm_up + rounds; ++round) {
    for (size_t turn = 0; turn < arms.size(); ++turn) {
      const size_t i = (turn + static_cast<size_t>(round)) % arms.size();
      ASSIGN_OR_RETURN(const Window window, arms[i]->Run(tokens));
      if (round >= warm_up) windows[i].push_back(window);
    }
  }
  return windows;
}

double Median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<int64_t>(values.size()) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double SpeedUp(const std::vector<Window>& arm, const std::vector<Window>& base) {
  std::vector<double> ratios;
  for (size_t i = 0; i < arm.size(); ++i) {
    ratios.push_back(base[i].ms_per_token() / arm[i].ms_per_token());
  }
  return Median(std::move(ratios));
}

double TokensPerSecond(const std::vector<Window>& windows) {
  std::vector<double> rates;
  for (const Window& window : windows) rates.push_back(1e3 / window.ms_per_token());
  return Median(std::move(rates));
}

std::vector<std::vector<int32_t>> RandomPrompts(int64_t count, int64_t length, int64_t vocabulary) {
  std::mt19937 random(11);
  std::vector<std::vector<int32_t>> prompts(static_cast<size_t>(count));
  for (auto& prompt : prompts) {
    for (int64_t i = 0; i < length; ++i) {
      prompt.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocabulary)));
    }
  }
  return prompts;
}

}  // namespace fulgur::bench_spec
