#include "decreed_runner.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "sample/noise.h"

namespace fulgur::bench_spec {
namespace {

constexpr float kCertain = 1e9F;   // a logit above all others
constexpr double kSpread = 1.0;    // of the chances around a rate, in logarithms of odds
constexpr double kStretch = 1.18;  // of the rate's own, so that the chances' mean is the rate
constexpr uint32_t kTextStream = 1;
constexpr uint32_t kChanceStream = 2;

// Four words that belong to a position.
auto Words(model::StateSlot slot, int64_t position, uint32_t more, uint32_t stream) {
  return sample::Philox({static_cast<uint32_t>(slot), static_cast<uint32_t>(position), more, 0},
                        {stream, 7});
}

double Uniform(uint32_t word) { return (static_cast<double>(word) + 0.5) / 4294967296.0; }

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double Logit(double p) {
  p = std::clamp(p, 1e-4, 1.0 - 1e-4);
  return std::log(p / (1.0 - p));
}

}  // namespace

DecreedRunner::DecreedRunner(std::unique_ptr<engine::ModelRunner> model)
    : model_(std::move(model)), one_hot_(static_cast<size_t>(model_->VocabSize())) {}

int32_t DecreedRunner::TokenAt(model::StateSlot slot, int64_t position) const {
  const uint32_t word = Words(slot, position, 0, kTextStream)[0];
  return static_cast<int32_t>(word % static_cast<uint64_t>(VocabSize()));
}

// That the draft stands if those before it do.
double DecreedRunner::ChanceAt(model::StateSlot slot, int64_t position, int32_t draft) const {
  const auto k = static_cast<size_t>(draft);
  if (k >= rates_.size()) return 0.0;
  const double before = k == 0 ? 1.0 : rates_[k - 1];
  if (before <= 0.0) return 0.0;
  const auto words = Words(slot, position, static_cast<uint32_t>(draft), kChanceStream);
  const double normal = std::sqrt(-2.0 * std::log(Uniform(words[0]))) *
                        std::cos(2.0 * std::numbers::pi * Uniform(words[1]));
  return Sigmoid(kStretch * Logit(rates_[k] / before) + kSpread * normal);
}

absl::Status DecreedRunner::Forward(const model::StepBatch& batch, std::span<float> logits) {
  if (absl::Status status = model_->Forward(batch, logits); !status.ok()) return status;
  batch_.clear();
  auto row = logits.data();
  for (const model::SequenceRows& rows : batch.sequences) {
    batch_.push_back({rows.slot, rows.first_position});
    const int64_t end = rows.first_position + rows.num_rows;
    for (int64_t position = end - rows.num_logit_rows; position < end; ++position) {
      row[TokenAt(rows.slot, position + 1)] = kCertain;
      row += VocabSize();
    }
  }
  return absl::OkStatus();
}

class DecreedRunner::Chooser : public model::DraftChooser {
 public:
  Chooser(DecreedRunner& owner, std::span<const model::DraftRows> rows,
          model::DraftChooser& chooser)
      : owner_(owner), rows_(rows), chooser_(chooser) {}

  int32_t Choose(int32_t request, int32_t draft, std::span<const float> /*logits*/) override {
    const model::DraftRows& rows = rows_[static_cast<size_t>(request)];
    const Place& place = owner_.batch_[static_cast<size_t>(rows.sequence)];
    // The next token lies behind the rows that stand, and the drafts behind it.
    const int64_t position = place.position + rows.num_accepted + 1 + draft;
    const double chance = owner_.ChanceAt(place.slot, position, draft);
    const auto words = Words(place.slot, position, static_cast<uint32_t>(draft), kChanceStream);
    const int32_t right = owner_.TokenAt(place.slot, position);
    const auto vocabulary = static_cast<int32_t>(owner_.VocabSize());
    const int32_t token = Uniform(words[2]) < chance ? right : (right + 1) % vocabulary;
    // Without a confidence head, the distance to the second best is what tells of the chance.
    owner_.one_hot_[static_cast<size_t>(token)] = static_cast<float>(std::max(1e-3, Logit(chance)));
    const int32_t chosen = chooser_.Choose(request, draft, owner_.one_hot_);
    owner_.one_hot_[static_cast<size_t>(token)] = 0.0F;
    return chosen;
  }

 private:
  DecreedRunner& owner_;
  const std::span<const model::DraftRows> rows_;
  model::DraftChooser& chooser_;
};

absl::Status DecreedRunner::Propose(std::span<const model::DraftRows> rows,
                                    model::DraftChooser& chooser, model::Drafts& out) {
  if (rates_.empty()) return model_->Propose(rows, chooser, out);
  Chooser decreed(*this, rows, chooser);
  if (absl::Status status = model_->Propose(rows, decreed, out); !status.ok()) return status;
  size_t next = 0;
  for (const model::DraftRows& row : rows) {
    const Place& place = batch_[static_cast<size_t>(row.sequence)];
    for (int32_t draft = 0; draft < row.num_drafts; ++draft) {
      const int64_t position = place.position + row.num_accepted + 1 + draft;
      out.confidence[next++] = static_cast<float>(ChanceAt(place.slot, position, draft));
    }
  }
  return absl::OkStatus();
}

}  // namespace fulgur::bench_spec
