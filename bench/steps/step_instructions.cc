// Runs one step of the demo model's shape on random weights, for callgrind to count its
// instructions: a measure of work that does not depend on how busy the machine is.
//
// One worker and the AVX2 table, since valgrind knows no AVX-512.
#include <valgrind/callgrind.h>

#include <algorithm>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "base/machine.h"
#include "base/status_macros.h"
#include "kernels/op_table.h"
#include "model/config.h"
#include "model/dummy_weights.h"
#include "model/model.h"

namespace fulgur::bench_steps {
namespace {

constexpr int64_t kPromptTokens = 128;

struct Step {
  int64_t first_position;
  int64_t num_tokens;
};

// The sequence memory and the model of one sequence.
class Runner {
 public:
  static absl::StatusOr<Runner> Create(const std::string& model_folder) {
    ASSIGN_OR_RETURN(const model::ModelConfig config, model::LoadConfig(model_folder));
    ASSIGN_OR_RETURN(model::Weights weights, model::MakeDummyWeights(config, {}));
    Runner runner;
    const kv::Layout layout = model::CacheLayout(config, model::Precision::kNative, 0);
    ASSIGN_OR_RETURN(kv::Store store, kv::Store::Create(layout, 1, 1));
    runner.store_ = std::make_unique<kv::Store>(std::move(store));
    runner.logits_.resize(static_cast<size_t>(config.vocab_size));
    const model::StepLimits limits = {.max_tokens = kPromptTokens,
                                      .max_sequences = 1,
                                      .max_logit_rows = 1,
                                      .max_position = kv::kPageTokens};
    const kernels::OpTable& ops =
        kernels::SelectOps(base::DetectMachine(), kernels::OpChoice::kAvx2);
    ASSIGN_OR_RETURN(runner.model_,
                     model::Model::Create(config, std::move(weights), model::Precision::kNative,
                                          limits, ops, *runner.team_, *runner.store_));
    return runner;
  }

  void Run(const Step& step) {
    std::vector<int32_t> tokens(static_cast<size_t>(step.num_tokens));
    std::iota(tokens.begin(), tokens.end(), static_cast<int32_t>(step.first_position) + 100);
    const model::PageId page = 0;
    const model::SequenceRows rows = {.slot = 0,
                                      .pages = {&page, 1},
                                      .first_position = step.first_position,
                                      .num_rows = static_cast<int32_t>(step.num_tokens),
                                      .num_logit_rows = 1};
    model_->Forward({tokens, {&rows, 1}}, logits_);
  }

 private:
  std::unique_ptr<base::WorkerTeam> team_ = std::make_unique<base::WorkerTeam>(1);
  std::unique_ptr<kv::Store> store_;
  std::unique_ptr<model::Model> model_;
  std::vector<float> logits_;
};

int Main(const std::string& model_folder, const std::string& name) {
  auto runner = Runner::Create(model_folder);
  if (!runner.ok()) {
    std::cerr << runner.status().message() << "\n";
    return 1;
  }
  const Step prefill = {0, kPromptTokens};
  const Step decode = {kPromptTokens, 1};
  runner->Run(prefill);
  runner->Run(decode);  // both have been here: nothing is allocated any more
  CALLGRIND_START_INSTRUMENTATION;
  runner->Run(name == "prefill" ? prefill : decode);
  CALLGRIND_STOP_INSTRUMENTATION;
  return 0;
}

}  // namespace
}  // namespace fulgur::bench_steps

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: step_instructions MODEL_FOLDER prefill|decode\n";
    return 2;
  }
  return fulgur::bench_steps::Main(argv[1], argv[2]);
}
