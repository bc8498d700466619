#include "model/mtp_drafter.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fulgur::model {
namespace {

// The largest value but that of `token`. Eight at a time, since a single chain of comparisons
// would take longer than the head's product on a small model.
float LargestOther(const float* logits, int64_t size, int64_t token) {
  constexpr int64_t kLanes = 8;
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, -INFINITY);
  const auto scan = [&lanes](const float* values, int64_t count) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (int64_t j = 0; j < kLanes; ++j) lanes[j] = std::max(lanes[j], values[i + j]);
    }
    for (; i < count; ++i) lanes[0] = std::max(lanes[0], values[i]);
  };
  scan(logits, token);
  scan(logits + token + 1, size - token - 1);
  return *std::max_element(lanes, lanes + kLanes);
}

}  // namespace

MtpDrafter::MtpDrafter(const ModelParts& parts)
    : Drafter(parts),
      context_region_([this](const base::WorkerRank& worker) { RunContextStep(worker); }),
      slot_region_([this](const base::WorkerRank& worker) { RunSlotStep(worker); }),
      // A sequence's last row stands apart from those before it, which may lie in two pieces.
      views_(parts.store, parts.config.num_layers, 1, 3 * parts.limits.max_sequences),
      step_(MakeStep(views_)) {
  const auto rows = static_cast<size_t>(KeyRows(config_, parts.limits));
  const auto spans = static_cast<size_t>(3 * parts.limits.max_sequences);
  tokens_.reserve(rows);
  positions_.reserve(rows);
  sequences_.reserve(spans);
  streams_.reserve(spans);
}

void MtpDrafter::ClearRows() {
  tokens_.clear();
  positions_.clear();
  sequences_.clear();
  streams_.clear();
}

const float* MtpDrafter::Inputs(const DraftRows& rows, int64_t row) const {
  if (in_slots_) return PendingOf(rows).inputs(SequenceOf(rows).first_position + row);
  return scratch_.streams + (SequenceOf(rows).first_row + row) * DraftInputs(config_);
}

// The caller adds the tokens behind the rows.
void MtpDrafter::AddSpan(const float* streams, const SequenceRows& batch, int64_t position,
                         int64_t count) {
  kernels::NormRowsJob job;
  job.x = streams;
  job.rows = count * config_.hc_mult;
  streams_.push_back(job);
  sequences_.push_back(MakeRows(batch, position, static_cast<int64_t>(positions_.size()), count));
  for (int64_t i = 0; i < count; ++i) positions_.push_back(position + i);
}

// Rows [begin, end) of a sequence of the batch.
void MtpDrafter::AddContext(const DraftRows& rows, int64_t begin, int64_t end) {
  const SequenceRows& batch = SequenceOf(rows);
  while (begin < end) {
    const int64_t position = batch.first_position + begin;
    const int64_t last = batch.first_position + end;
    const int64_t next = in_slots_ ? PendingOf(rows).SpanEnd(position, last) : last;
    AddSpan(Inputs(rows, begin), batch, position, next - position);
    for (; begin < next - batch.first_position; ++begin)
      tokens_.push_back(TokenBehind(rows, begin));
  }
}

void MtpDrafter::FinishRows() {
  CHECK_LE(static_cast<int64_t>(positions_.size()), KeyRows(config_, parts_.limits));
  int64_t row = 0;
  for (kernels::NormRowsJob& streams : streams_) {
    streams.cols = config_.hidden_size;
    streams.weight = weights().hnorm.data();
    streams.eps = config_.rms_norm_eps;
    streams.out = scratch_.draft.inputs.Out(FormatsOf({&weights().h_proj}), row, streams.cols);
    row += streams.rows;
  }
  step_.tokens = tokens_;
  views_.Fill(sequences_);
}

// The main model's streams are overwritten by the first step of the block.
void MtpDrafter::PrepareForWaiting(std::span<const DraftRows> rows) {
  for (const DraftRows& request : rows) {
    if (request.num_drafts > 0) Keep(request);
  }
  in_slots_ = true;
}

void MtpDrafter::WriteWaiting(std::span<const WaitingRows> waiting) {
  ClearRows();
  for (const WaitingRows& rows : waiting) {
    AddSpan(rows.inputs, *rows.sequence, rows.position, rows.count);
    tokens_.insert(tokens_.end(), rows.tokens, rows.tokens + rows.count);
  }
  FinishRows();
  parts_.team.Run(context_region_);
}

// The last rows come first: only they go through the whole block.
void MtpDrafter::RunContext(std::span<const DraftRows> rows) {
  ClearRows();
  for (const Drafting& d : drafting(0)) {
    const DraftRows& request = rows[static_cast<size_t>(d.request)];
    AddContext(request, request.num_accepted - 1, request.num_accepted);
  }
  for (const DraftRows& request : rows) {
    if (request.num_drafts == 0) continue;
    AddContext(request, FirstInWindow(request), request.num_accepted - 1);
  }
  in_slots_ = false;
  FinishRows();
  parts_.team.Run(context_region_);
  const size_t count = drafting(0).size();
  tokens_.resize(count);
  positions_.resize(count);
  sequences_.resize(count);
}

// The rows of the requests that go on, one position further.
void MtpDrafter::FeedBack() {
  const std::span<const Drafting> requests = drafting(0).first(sequences_.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    tokens_[i] = requests[i].previous;
    ++positions_[i];
    ++sequences_[i].first_position;
  }
  kernels::NormRowsJob streams;
  streams.x = scratch_.streams;
  streams.rows = static_cast<int64_t>(requests.size()) * config_.hc_mult;
  streams_.assign(1, streams);
}

void MtpDrafter::RunSlot(int32_t slot) {
  const size_t count = drafting(slot).size();
  tokens_.resize(count);
  positions_.resize(count);
  sequences_.resize(count);
  feed_back_ = slot > 0;
  if (feed_back_) FeedBack();
  FinishRows();
  parts_.team.Run(slot_region_);
}

// streams[t, s] = e_proj norm(embedding of the token) + h_proj norm(main streams[t, s]), and the
// first hyper-connection of the block. The sum is that of a hyper-connection whose post is 1 and
// whose comb is the identity.
void MtpDrafter::MixInputs(const base::WorkerRank& worker) const {
  const kernels::OpTable& ops = parts_.ops;
  const DraftScratch& draft = scratch_.draft;
  const int64_t rows = step_.rows();
  const int64_t s = config_.hc_mult;
  WriteRotations(step_, positions_, worker);
  ops.norm_rows(streams_, worker);
  LookUp(step_, embedding(), config_.hidden_size, 1, draft.mixed, worker);
  worker.Barrier();

  kernels::NormRowsJob embedded;
  embedded.x = draft.mixed;
  embedded.rows = rows;
  embedded.cols = config_.hidden_size;
  embedded.weight = weights().enorm.data();
  embedded.eps = config_.rms_norm_eps;
  embedded.out = draft.mixed_rows.Out(FormatsOf({&weights().e_proj}));
  ops.norm_rows({&embedded, 1}, worker);
  const auto [begin, end] = worker.Share(rows);
  for (int64_t row = begin; row < end; ++row) {
    float* post = scratch_.post_comb + row * (s + s * s);
    std::fill_n(post, s, 1.0F);
    std::fill_n(post + s, s * s, 0.0F);
    for (int64_t j = 0; j < s; ++j) post[s + j * s + j] = 1.0F;
  }
  worker.Barrier();

  LinearJobs jobs(step_, worker);
  jobs.Add(weights().e_proj, draft.mixed_rows, scratch_.o);
  kernels::LinearJob streams;
  streams.weight = &weights().h_proj;
  streams.x = draft.inputs.View(rows * s, config_.hidden_size);
  streams.y = scratch_.streams;
  jobs.Add(streams);
  jobs.Run();
  worker.Barrier();
  EnterSublayer(step_, AttentionInput(layer(), formats_.front()), scratch_.o, worker);
}

void MtpDrafter::RunContextStep(const base::WorkerRank& worker) const {
  MixInputs(worker);
  const KeyJob keys = {.attention = &layer().attention,
                       .rings = views_.layer(0).window_rings,
                       .projected = scratch_.draft.keys,
                       .rows = scratch_.draft.key_rows};
  WriteKeys(step_, {&keys, 1}, scratch_.x, worker);
}

// scratch.x is that of the context step, whose first rows these are, or the block's own output.
void MtpDrafter::RunSlotStep(const base::WorkerRank& worker) const {
  if (feed_back_) MixInputs(worker);
  RunLayer(step_, layer(), formats_.front(), 0, {.hc = weights().head_hc}, worker);
  kernels::HcPreArgs args = CollapseArgs(step_, weights().head_hc, weights().norm);
  args.out = scratch_.head_input.Out(FormatsOf({&head()}));
  args.out.f32 = scratch_.head_input.f32;
  parts_.ops.hc_pre(args, worker);
  worker.Barrier();
  LinearJobs jobs(step_, worker);
  jobs.Add(head(), scratch_.head_input, scratch_.draft.logits);
  jobs.Run();
}

const float* MtpDrafter::Logits(size_t drafting, int32_t /*slot*/) const {
  return scratch_.draft.logits + static_cast<int64_t>(drafting) * config_.vocab_size;
}

float MtpDrafter::Confidence(size_t drafting, int32_t slot, int32_t token) const {
  const float* logits = Logits(drafting, slot);
  const double margin = static_cast<double>(logits[token]) -
                        static_cast<double>(LargestOther(logits, config_.vocab_size, token));
  return static_cast<float>(1.0 / (1.0 + std::exp(-margin)));
}

}  // namespace fulgur::model
