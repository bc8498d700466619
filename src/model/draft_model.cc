#include "model/draft_model.h"

#include <algorithm>

#include "base/check.h"
#include "model/dspark_drafter.h"
#include "model/mtp_drafter.h"

namespace fulgur::model {

Drafter::Drafter(const ModelParts& parts)
    : parts_(parts), config_(parts.config), scratch_(parts.scratch) {
  for (const Layer& layer : weights().layers) formats_.push_back(FormatsOfLayer(layer));
  tokens_.reserve(static_cast<size_t>(parts.limits.max_tokens));
  sequences_.reserve(static_cast<size_t>(parts.limits.max_sequences));
  drafting_.reserve(static_cast<size_t>(parts.limits.max_sequences));
  waiting_.reserve(static_cast<size_t>(parts.limits.max_sequences));
}

void Drafter::BeginStep(const StepBatch& batch) {
  tokens_.assign(batch.tokens.begin(), batch.tokens.end());
  sequences_.assign(batch.sequences.begin(), batch.sequences.end());
}

void Drafter::Propose(std::span<const DraftRows> rows, DraftChooser& chooser, Drafts& out) {
  Arrange(rows, out);
  for (const DraftRows& row : rows) {
    if (row.num_drafts == 0) Keep(row);
  }
  if (drafting_.empty()) return;
  if (AnyWaits(rows)) {
    PrepareForWaiting(rows);
    for (const DraftRows& row : rows) {
      if (row.num_drafts > 0) CollectWaiting(row);
    }
    if (!waiting_.empty()) FlushWaiting();
  }
  RunContext(rows);
  const auto width = static_cast<size_t>(config_.vocab_size);
  for (int32_t slot = 0; !drafting(slot).empty(); ++slot) {
    RunSlot(slot);
    for (size_t i = 0; i < drafting(slot).size(); ++i) {
      Drafting& request = drafting_[i];
      const int32_t token = chooser.Choose(request.request, slot, {Logits(i, slot), width});
      CHECK_GE(token, 0);
      CHECK_LT(token, config_.vocab_size);
      const auto result = static_cast<size_t>(request.first_result + slot);
      out.tokens[result] = token;
      out.confidence[result] = Confidence(i, slot, token);
      request.previous = token;
    }
  }
}

void Drafter::Arrange(std::span<const DraftRows> rows, Drafts& out) {
  const int64_t most = MaxDrafts(config_, parts_.limits);
  drafting_.clear();
  int64_t results = 0;
  for (const DraftRows& row : rows) {
    CHECK_LT(static_cast<size_t>(row.sequence), sequences_.size());
    CHECK_GT(row.num_accepted, 0);
    CHECK_LE(row.num_accepted, SequenceOf(row).num_rows);
    CHECK_LE(row.num_drafts, most);
    const auto request = static_cast<int32_t>(&row - rows.data());
    if (row.num_drafts > 0) {
      drafting_.push_back({request, row.num_drafts, results, row.next_token});
    }
    results += row.num_drafts;
  }
  std::sort(drafting_.begin(), drafting_.end(), [](const Drafting& a, const Drafting& b) {
    return a.num_drafts != b.num_drafts ? a.num_drafts > b.num_drafts : a.request < b.request;
  });
  out.tokens.resize(static_cast<size_t>(results));
  out.confidence.resize(static_cast<size_t>(results));
}

std::span<const Drafter::Drafting> Drafter::drafting(int32_t slot) const {
  const auto end = std::find_if(drafting_.begin(), drafting_.end(),
                                [slot](const Drafting& d) { return d.num_drafts <= slot; });
  return {drafting_.begin(), end};
}

SequenceRows Drafter::MakeRows(const SequenceRows& sequence, int64_t first_position,
                               int64_t first_row, int64_t num_rows) {
  SequenceRows rows;
  rows.slot = sequence.slot;
  rows.first_position = first_position;
  rows.first_row = static_cast<int32_t>(first_row);
  rows.num_rows = static_cast<int32_t>(num_rows);
  return rows;
}

int32_t Drafter::TokenBehind(const DraftRows& rows, int64_t row) const {
  if (row + 1 == rows.num_accepted) return rows.next_token;
  return tokens_[static_cast<size_t>(SequenceOf(rows).first_row + row + 1)];
}

PendingRows Drafter::PendingOf(const DraftRows& rows) const {
  std::byte* slot = parts_.store.slot(SequenceOf(rows).slot);
  return PendingRows::At(slot + parts_.store.layout().draft_offset(), config_);
}

void Drafter::Keep(const DraftRows& rows) const {
  const PendingRows pending = PendingOf(rows);
  pending.Expect(SequenceOf(rows).first_position);
  const int64_t end = NextPosition(rows);
  int64_t row = FirstInWindow(rows);
  while (row < rows.num_accepted) {
    const int64_t position = SequenceOf(rows).first_position + row;
    const int64_t count = pending.SpanEnd(position, end) - position;
    std::copy_n(Inputs(rows, row), count * DraftInputs(config_), pending.inputs(position));
    for (int64_t i = 0; i < count; ++i) *pending.token(position + i) = TokenBehind(rows, row + i);
    row += count;
  }
  pending.Advance(rows.num_accepted);
}

// Looks at all of them, since rows of another sequence must be forgotten.
bool Drafter::AnyWaits(std::span<const DraftRows> rows) const {
  bool any = false;
  for (const DraftRows& request : rows) {
    if (request.num_drafts == 0) continue;
    const PendingRows pending = PendingOf(request);
    pending.Expect(SequenceOf(request).first_position);
    any = any || pending.count() > 0;
  }
  return any;
}

// The rows before the batch's that wait and whose keys may still be read.
void Drafter::CollectWaiting(const DraftRows& rows) {
  const int64_t most = KeyRows(config_, parts_.limits);
  const PendingRows pending = PendingOf(rows);
  const int64_t end = SequenceOf(rows).first_position;
  int64_t position = std::max(pending.end_position() - pending.count(),
                              NextPosition(rows) - config_.sliding_window);
  while (position < end) {
    const int64_t count = std::min(pending.SpanEnd(position, end) - position, most - num_waiting_);
    waiting_.push_back({.sequence = &SequenceOf(rows),
                        .position = position,
                        .count = count,
                        .inputs = pending.inputs(position),
                        .tokens = pending.token(position)});
    num_waiting_ += count;
    position += count;
    const bool full = static_cast<int64_t>(waiting_.size()) == parts_.limits.max_sequences;
    if (full || num_waiting_ == most) FlushWaiting();
  }
  pending.Clear();
}

void Drafter::FlushWaiting() {
  WriteWaiting(waiting_);
  waiting_.clear();
  num_waiting_ = 0;
}

StepContext Drafter::MakeStep(const SequenceViews& views) const {
  return {.config = config_,
          .ops = parts_.ops,
          .scratch = scratch_,
          .views = views,
          .precision = parts_.precision,
          .frequencies = parts_.frequencies,
          .compressed_frequencies = {},
          .tokens = {}};
}

const Embedding& Drafter::embedding() const {
  return weights().embed.empty() ? parts_.weights.embed : weights().embed;
}

const kernels::PackedLinear& Drafter::head() const {
  return weights().head.out == 0 ? parts_.weights.head : weights().head;
}

std::unique_ptr<Drafter> MakeDrafter(const ModelParts& parts) {
  switch (parts.config.drafter) {
    case DrafterKind::kMtp:
      return std::make_unique<MtpDrafter>(parts);
    case DrafterKind::kDspark:
      return std::make_unique<DsparkDrafter>(parts);
    case DrafterKind::kNone:
      break;
  }
  return nullptr;
}

}  // namespace fulgur::model
