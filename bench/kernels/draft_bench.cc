// What drafting costs: a plain decode step, keeping a drafter's context beside it, proposing drafts
// and verifying them, by the number of sequences.
//
// The parts are measured in turn within each round, so that their ratios mean something on a shared
// machine.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/machine.h"
#include "base/status_macros.h"
#include "fmt/format.h"
#include "model/checkpoint.h"
#include "model/drafter_source.h"
#include "model/dummy_weights.h"
#include "model/model.h"
#include "model/weight_loader.h"

namespace fulgur::bench_kernels {
namespace {

struct Options {
  std::string folder;
  bool dummy = false;
  int threads = 1;
  int64_t context = 64;
  int64_t drafts = 0;
  std::vector<int64_t> sequences = {1, 2, 4, 8};
  int rounds = 15;
};

struct Loaded {
  model::ModelConfig config;
  model::Weights weights;
};

// Random weights for the drafter that the config describes.
absl::StatusOr<Loaded> MakeDummy(const Options& options) {
  ASSIGN_OR_RETURN(model::ModelConfig config, model::LoadConfig(options.folder));
  const auto stages = static_cast<int64_t>(config.dspark.target_layers.size());
  config.drafter = stages > 0 ? model::DrafterKind::kDspark : model::DrafterKind::kMtp;
  config.num_draft_blocks = std::max<int64_t>(stages, 1);
  ASSIGN_OR_RETURN(model::Weights weights,
                   model::MakeDummyWeights(config, {.num_threads = options.threads}));
  return Loaded{std::move(config), std::move(weights)};
}

absl::StatusOr<Loaded> Load(const Options& options) {
  if (options.dummy) return MakeDummy(options);
  ASSIGN_OR_RETURN(const model::Checkpoint checkpoint, model::Checkpoint::Open(options.folder));
  ASSIGN_OR_RETURN(model::ModelConfig config, model::UseDrafter(checkpoint.config(), checkpoint));
  model::LoadOptions load;
  load.num_threads = options.threads;
  load.drafter = &checkpoint;
  ASSIGN_OR_RETURN(model::Weights weights, model::LoadWeights(checkpoint, load));
  return Loaded{std::move(config), std::move(weights)};
}

class FirstToken : public model::DraftChooser {
 public:
  int32_t Choose(int32_t /*request*/, int32_t /*slot*/, std::span<const float> logits) override {
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double MedianMs(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<int64_t>(seconds.size()) / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle * 1e3;
}

class Bench {
 public:
  static absl::StatusOr<std::unique_ptr<Bench>> Create(const Options& options) {
    ASSIGN_OR_RETURN(Loaded loaded, Load(options));
    auto bench = std::make_unique<Bench>(options);
    RETURN_IF_ERROR(bench->MakeModel(std::move(loaded)));
    return bench;
  }

  explicit Bench(const Options& options)
      : options_(options),
        team_(options.threads),
        most_(*std::max_element(options.sequences.begin(), options.sequences.end())) {}

  void Run() {
    fmt::print("times in ms; {} drafts, context of {} tokens\n", drafts_, options_.context);
    fmt::print("{:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "sequences", "plain", "context", "1 draft",
               "drafts", "verify");
    Fill();
    for (const int64_t count : options_.sequences) Measure(count);
  }

 private:
  absl::Status MakeModel(Loaded loaded) {
    const int64_t trained = model::TrainedDrafts(loaded.config);
    drafts_ = options_.drafts > 0 ? options_.drafts : trained;
    if (loaded.config.drafter == model::DrafterKind::kDspark) drafts_ = std::min(drafts_, trained);
    const int64_t position = options_.context + 1 + drafts_;
    const int64_t pages = kv::Layout::PagesFor(position);
    ASSIGN_OR_RETURN(
        auto store,
        kv::Store::Create(model::CacheLayout(loaded.config, model::Precision::kNative, drafts_),
                          pages * most_, most_));
    store_ = std::make_unique<kv::Store>(std::move(store));
    for (int64_t i = 0; i < pages * most_; ++i) pages_.push_back(static_cast<int32_t>(i));
    const model::StepLimits limits = {
        .max_tokens = std::max(options_.context, most_ * (1 + drafts_)),
        .max_sequences = most_,
        .max_logit_rows = most_ * (1 + drafts_),
        .max_position = position,
        .max_drafts = drafts_};
    logits_.resize(static_cast<size_t>(limits.max_logit_rows * loaded.config.vocab_size));
    const auto& ops = kernels::SelectOps(base::DetectMachine(), kernels::OpChoice::kAuto);
    ASSIGN_OR_RETURN(model_,
                     model::Model::Create(loaded.config, std::move(loaded.weights),
                                          model::Precision::kNative, limits, ops, team_, *store_));
    return absl::OkStatus();
  }

  // Every sequence's rows [position, position + rows), all with logits. Returns seconds.
  double Step(int64_t first, int64_t count, int64_t position, int64_t rows) {
    std::mt19937 random(7);
    std::vector<model::SequenceRows> sequences(static_cast<size_t>(count));
    const int64_t pages = static_cast<int64_t>(pages_.size()) / most_;
    for (int64_t s = 0; s < count; ++s) {
      model::SequenceRows& sequence = sequences[static_cast<size_t>(s)];
      sequence.slot = static_cast<int32_t>(first + s);
      sequence.pages = std::span(pages_).subspan(static_cast<size_t>((first + s) * pages),
                                                 static_cast<size_t>(pages));
      sequence.first_position = position;
      sequence.first_row = static_cast<int32_t>(s * rows);
      sequence.num_rows = static_cast<int32_t>(rows);
      sequence.num_logit_rows = rows > 1 + drafts_ ? 0 : sequence.num_rows;
    }
    std::vector<int32_t> tokens(static_cast<size_t>(count * rows));
    const auto vocabulary = static_cast<uint64_t>(model_->config().vocab_size);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % vocabulary);
    const int64_t wanted = sequences[0].num_logit_rows * count * model_->config().vocab_size;
    const double start = Now();
    model_->Forward({tokens, sequences}, std::span(logits_).first(static_cast<size_t>(wanted)));
    return Now() - start;
  }

  double Propose(int64_t count, int64_t accepted, int64_t num_drafts) {
    std::vector<model::DraftRows> rows;
    for (int32_t s = 0; s < count; ++s) {
      rows.push_back({s, static_cast<int32_t>(accepted), 1, static_cast<int32_t>(num_drafts)});
    }
    FirstToken chooser;
    const double start = Now();
    model_->Propose(rows, chooser, results_);
    return Now() - start;
  }

  void Fill() {
    for (int64_t s = 0; s < most_; ++s) {
      Step(s, 1, 0, options_.context);
      Propose(1, options_.context, 0);
    }
  }

  void Measure(int64_t count) {
    std::vector<double> plain, context, one, all, verify;
    for (int round = 0; round <= options_.rounds; ++round) {
      const double step = Step(0, count, options_.context, 1);
      const double times[] = {step, Propose(count, 1, 0), Propose(count, 1, 1),
                              Propose(count, 1, drafts_),
                              Step(0, count, options_.context, 1 + drafts_)};
      if (round == 0) continue;  // page faults
      plain.push_back(times[0]);
      context.push_back(times[1]);
      one.push_back(times[2]);
      all.push_back(times[3]);
      verify.push_back(times[4]);
    }
    fmt::print("{:>9} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f}\n", count, MedianMs(plain),
               MedianMs(context), MedianMs(one), MedianMs(all), MedianMs(verify));
  }

  const Options options_;
  base::WorkerTeam team_;
  const int64_t most_;
  int64_t drafts_ = 0;
  std::unique_ptr<kv::Store> store_;
  std::unique_ptr<model::Model> model_;
  std::vector<int32_t> pages_;
  std::vector<float> logits_;
  model::Drafts results_;
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Cost of drafting");
  app.add_option("checkpoint", options.folder, "or a folder with a config.json, with --dummy")
      ->required();
  app.add_flag("--dummy", options.dummy, "random weights");
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber);
  app.add_option("--context", options.context)->check(CLI::PositiveNumber);
  app.add_option("--drafts", options.drafts, "of a sequence; as trained if left out");
  app.add_option("--sequences", options.sequences)->delimiter(',')->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const auto bench = Bench::Create(options);
  if (!bench.ok()) {
    std::cerr << bench.status().message() << "\n";
    return 1;
  }
  (*bench)->Run();
  return 0;
}

}  // namespace
}  // namespace fulgur::bench_kernels

int main(int argc, char** argv) { return fulgur::bench_kernels::Main(argc, argv); }
