#include "model/testing/test_model.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/machine.h"

namespace fulgur::model::testing {

TestModel::TestModel(const ModelConfig& config, Weights weights, const TestModelOptions& options)
    : team_(options.num_workers) {
  const int64_t pages = kv::Layout::PagesFor(options.max_position);
  auto store = kv::Store::Create(CacheLayout(config, options.precision, options.lookahead),
                                 pages * options.max_sequences, options.max_sequences);
  CHECK(store.ok());
  store_ = std::make_unique<kv::Store>(*std::move(store));
  const StepLimits limits = {.max_tokens = options.max_tokens,
                             .max_sequences = options.max_sequences,
                             .max_logit_rows = options.max_tokens,
                             .max_position = options.max_position,
                             .max_drafts = options.lookahead};
  auto model =
      Model::Create(config, std::move(weights), options.precision, limits,
                    kernels::SelectOps(base::DetectMachine(), options.ops), team_, *store_);
  CHECK(model.ok());
  model_ = *std::move(model);
  // Neighbouring pages of a sequence lie apart, as they do after a server has run for a while.
  for (int64_t s = 0; s < options.max_sequences; ++s) {
    std::vector<PageId>& table = pages_.emplace_back();
    for (int64_t i = pages - 1; i >= 0; --i) {
      table.push_back(static_cast<PageId>(i * options.max_sequences + s));
    }
  }
}

std::vector<float> TestModel::Step(const std::vector<Rows>& parts) {
  std::vector<int32_t> tokens;
  std::vector<SequenceRows> sequences;
  for (const Rows& part : parts) {
    SequenceRows rows;
    rows.slot = part.sequence;
    rows.pages = pages(part.sequence);
    rows.first_position = part.first_position;
    rows.first_row = static_cast<int32_t>(tokens.size());
    rows.num_rows = static_cast<int32_t>(part.tokens.size());
    rows.num_logit_rows = rows.num_rows;
    sequences.push_back(rows);
    tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
  }
  std::vector<float> logits(tokens.size() * static_cast<size_t>(vocab_size()));
  model_->Forward({tokens, sequences}, logits);
  return logits;
}

namespace {

class GreedyChooser : public DraftChooser {
 public:
  GreedyChooser(std::span<const DraftRows> rows, std::span<const int32_t> forced,
                std::vector<float>& logits)
      : forced_(forced), logits_(logits) {
    for (const DraftRows& row : rows) {
      first_.push_back(total_);
      total_ += row.num_drafts;
    }
  }

  int32_t Choose(int32_t request, int32_t slot, std::span<const float> logits) override {
    logits_.resize(static_cast<size_t>(total_) * logits.size());
    const int32_t draft = first_[static_cast<size_t>(request)] + slot;
    std::copy(logits.begin(), logits.end(),
              logits_.begin() + draft * static_cast<int64_t>(logits.size()));
    if (!forced_.empty()) return forced_[next_++];
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }

 private:
  const std::span<const int32_t> forced_;
  std::vector<float>& logits_;
  std::vector<int32_t> first_;
  int32_t total_ = 0;
  size_t next_ = 0;
};

}  // namespace

TestModel::Proposal TestModel::Propose(std::span<const DraftRows> rows,
                                       std::span<const int32_t> forced) {
  Proposal proposal;
  GreedyChooser chooser(rows, forced, proposal.logits);
  model_->Propose(rows, chooser, proposal.drafts);
  return proposal;
}

std::vector<float> TestModel::Run(int32_t sequence, std::span<const int32_t> tokens,
                                  const std::vector<int64_t>& chunks) {
  std::vector<float> all;
  size_t step = 0;
  for (size_t begin = 0; begin < tokens.size(); ++step) {
    const auto chunk = static_cast<size_t>(chunks[std::min(step, chunks.size() - 1)]);
    const size_t count = std::min(chunk, tokens.size() - begin);
    const std::vector<float> logits =
        Step({{sequence, static_cast<int64_t>(begin), tokens.subspan(begin, count)}});
    all.insert(all.end(), logits.begin(), logits.end());
    begin += count;
  }
  return all;
}

}  // namespace fulgur::model::testing
