#include "engine_gaps.h"

#include <chrono>
#include <latch>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/local_engine.h"

namespace fulgur::bench_engine {
namespace {

using Time = std::chrono::steady_clock::time_point;

// One forward pass, and the last event of its step.
struct Step {
  Time begin, end, said;
  size_t rows = 0;
};

// The model of a BenchModel, and a record of what happened when. The engine's thread alone.
class RecordingRunner : public engine::ModelRunner {
 public:
  RecordingRunner(model::Model& model, std::vector<Step>& steps) : model_(model), steps_(steps) {}

  int64_t VocabSize() const override { return model_.config().vocab_size; }
  absl::Status Forward(const model::StepBatch& batch, std::span<float> logits) override {
    Step& step = steps_.emplace_back();
    step.rows = batch.tokens.size();
    step.begin = std::chrono::steady_clock::now();
    model_.Forward(batch, logits);
    step.said = step.end = std::chrono::steady_clock::now();
    return absl::OkStatus();
  }

 private:
  model::Model& model_;
  std::vector<Step>& steps_;
};

double Seconds(Time from, Time to) { return std::chrono::duration<double>(to - from).count(); }

// Of the steps in which every sequence decoded one token.
EngineTimes Summarize(const std::vector<Step>& steps, size_t sequences) {
  EngineTimes times;
  double total = 0.0;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.rows != sequences || steps[i + 1].rows != sequences) continue;
    ++times.steps;
    times.forward += Seconds(step.begin, step.end);
    times.sampling += Seconds(step.end, step.said);
    times.planning += Seconds(step.said, steps[i + 1].begin);
    total += Seconds(step.begin, steps[i + 1].begin);
  }
  if (times.steps == 0) return times;
  times.tokens_per_second =
      static_cast<double>(times.steps) * static_cast<double>(sequences) / total;
  times.forward /= total;
  times.sampling /= total;
  times.planning /= total;
  return times;
}

}  // namespace

absl::StatusOr<EngineTimes> MeasureEngine(BenchModel& model, int64_t sequences, int64_t prompt,
                                          int64_t output) {
  std::vector<Step> steps;
  steps.reserve(static_cast<size_t>(sequences + output + 16));
  engine::LocalEngineOptions options;
  options.core.limits.max_num_seqs = sequences;
  options.core.limits.max_num_batched_tokens = model.model().limits().max_tokens;
  options.core.limits.max_model_len = prompt + output + 1;
  options.core.limits.max_logit_rows = sequences + 1;
  options.core.num_pages = model.store().num_pages();
  options.core.num_slots = sequences;
  options.core.seed = 1;
  ASSIGN_OR_RETURN(
      std::unique_ptr<engine::Engine> engine,
      engine::CreateLocalEngine(options, std::make_unique<RecordingRunner>(model.model(), steps)));
  std::latch done(sequences);
  std::mt19937 random(3);
  for (int64_t s = 0; s < sequences; ++s) {
    engine::Request request;
    for (int64_t i = 0; i < prompt; ++i) {
      request.prompt.push_back(static_cast<int32_t>(
          random() % static_cast<uint64_t>(model.model().config().vocab_size)));
    }
    request.params.temperature = 0.0F;
    request.params.max_tokens = output;
    request.params.ignore_eos = true;
    const auto id = engine->Submit(std::move(request), [&](const engine::RequestEvent& event) {
      steps.back().said = std::chrono::steady_clock::now();
      if (event.finish) done.count_down();
    });
    RETURN_IF_ERROR(id.status());
  }
  done.wait();
  engine->Shutdown(/*drain=*/true);
  return Summarize(steps, static_cast<size_t>(sequences));
}

}  // namespace fulgur::bench_engine
