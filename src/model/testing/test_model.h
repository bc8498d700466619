// A model with its own memory, run over whole token sequences: what tests and small tools need
// instead of an engine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/team.h"
#include "kernels/op_table.h"
#include "kv/store.h"
#include "model/model.h"

namespace fulgur::model::testing {

struct TestModelOptions {
  Precision precision = Precision::kReference;
  kernels::OpChoice ops = kernels::OpChoice::kScalar;
  int num_workers = 1;
  int64_t max_tokens = 512;     // of a step
  int64_t max_position = 2048;  // of a sequence
  int64_t max_sequences = 8;
  int64_t lookahead = 0;  // also the most drafts of a sequence
};

// One sequence: its slot and pages are given out in order of creation, pages deliberately shuffled.
class TestModel {
 public:
  TestModel(const ModelConfig& config, Weights weights, const TestModelOptions& options);

  // The next rows of a sequence (0 .. max_sequences - 1) in a step.
  struct Rows {
    int32_t sequence = 0;
    int64_t first_position = 0;
    std::span<const int32_t> tokens;
  };

  // Runs one step and returns the logits of all its rows, [T, V].
  std::vector<float> Step(const std::vector<Rows>& parts);

  // Runs a sequence from position 0 in chunks of the given sizes (the last one repeats); returns
  // all logits, [T, V].
  std::vector<float> Run(int32_t sequence, std::span<const int32_t> tokens,
                         const std::vector<int64_t>& chunks);

  // Greedy drafts and their logits, [drafts, V]; `forced` tokens are taken instead of the best, in
  // the order in which they are chosen.
  struct Proposal {
    Drafts drafts;
    std::vector<float> logits;
  };
  Proposal Propose(std::span<const DraftRows> rows, std::span<const int32_t> forced = {});

  Model& model() { return *model_; }
  const base::WorkerTeam& team() const { return team_; }
  const kv::Store& store() const { return *store_; }
  int64_t vocab_size() const { return model_->config().vocab_size; }

  // The block table of a sequence.
  std::span<const PageId> pages(int32_t sequence) const {
    return pages_[static_cast<size_t>(sequence)];
  }

 private:
  base::WorkerTeam team_;
  std::unique_ptr<kv::Store> store_;
  std::unique_ptr<Model> model_;
  std::vector<std::vector<PageId>> pages_;
};

}  // namespace fulgur::model::testing
