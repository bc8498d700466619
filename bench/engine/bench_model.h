// A model with its own memory, driven step by step: whole prompts and decoded tokens at any
// context, without computing what lies before.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/machine.h"
#include "base/team.h"
#include "kernels/op_table.h"
#include "kv/store.h"
#include "model/model.h"
#include "plan/model_shape.h"

namespace fulgur::bench_engine {

struct BenchModelOptions {
  int threads = 1;
  int64_t chunk = 2048;      // prompt tokens of a step
  int64_t sequences = 1;     // most of one step
  int64_t max_position = 0;  // most tokens of a sequence
  int64_t pages = 0;         // of all sequences
  kernels::OpChoice ops = kernels::OpChoice::kAuto;
  bool timed = false;  // with timed_ops.h
};

// Weights of a checkpoint, or random ones in the official formats where there is a config.json
// alone.
struct LoadedModel {
  plan::ModelShape shape;
  model::Weights weights;
  double seconds = 0.0;
  int64_t file_bytes = 0;  // 0: random weights
};
absl::StatusOr<LoadedModel> LoadModel(const std::string& folder, int threads);

// Of one run.
struct RunTime {
  double wall = 0.0;    // seconds
  double thread = 0.0;  // in time of the first worker's thread: without other programs' share, and
                        // without sleeping at barriers
};

class BenchModel {
 public:
  static absl::StatusOr<std::unique_ptr<BenchModel>> Create(const BenchModelOptions& options,
                                                            const model::ModelConfig& config,
                                                            model::Weights weights,
                                                            const base::Machine& machine);

  // Computes a prompt of random tokens from its beginning.
  RunTime RunPrompt(int64_t tokens);

  // One token of each sequence, which all have `context` tokens before it: whatever bytes the
  // memory is filled with.
  RunTime RunDecode(int64_t sequences, int64_t context);

  base::WorkerTeam& team() { return team_; }
  model::Model& model() { return *model_; }
  const kv::Store& store() const { return *store_; }

 private:
  BenchModel(const BenchModelOptions& options, const model::ModelConfig& config);

  void FillMemory();
  RunTime Forward(std::span<const int32_t> tokens, std::span<const model::SequenceRows> rows);

  const BenchModelOptions options_;
  const model::ModelConfig config_;
  base::WorkerTeam team_;
  std::unique_ptr<kv::Store> store_;
  std::unique_ptr<model::Model> model_;
  std::vector<model::PageId> pages_;
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
};

}  // namespace fulgur::bench_engine
