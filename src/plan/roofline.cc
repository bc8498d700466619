#include "plan/roofline.h"

#include <algorithm>
#include <cmath>

#include "kernels/packed_layout.h"

namespace fulgur::plan {
namespace {

using kernels::PackedLinear;
using kernels::WeightFormat;

// Reading and arithmetic overlap badly where both take about as long: from memory, FP8 and FP4
// kernels at one row need a quarter more than reading alone.
constexpr double kOverlapNorm = 3.0;

// Every piece of work begins slowly: prefetchers have to find its stream of weights.
constexpr double kUnitSeconds = 0.05e-6;

// And every stage, with what stands between two of them.
constexpr double kStageSeconds = 5e-6;

// Of a row in a sub-layer, whatever its width: Sinkhorn iterations, norms, routing.
constexpr double kRowOps = 40e3;

// Rates relative to products with many rows: of what is not a product, and of experts, whose rows
// are gathered and uneven in number. As measured with the AVX-512 kernels.
constexpr double kAttentionShare = 0.45;  // of bf16
constexpr double kIndexShare = 0.20;      // of int8; scoring and choosing
constexpr double kVectorShare = 0.08;     // of fp32
constexpr double kExpertShare = 0.60;     // of the format of the weights

constexpr int64_t kHeadsAtATime = 16;  // that share the keys of a row in attention
constexpr int64_t kKeysAtATime = 64;   // an indexer's unit of work

double Seconds(const ProductWork& work, const ProductRate& rate) {
  return work.bytes / rate.unpack + 2.0 * work.weights * std::max(0.0, work.rows - 1.0) / rate.ops;
}

// Tokens of a sequence that the last row of a step sees, itself included.
int64_t LastKnown(const StepShape& step) { return step.context + step.rows_each; }

// min(1 / ratio, most) + min(2 / ratio, most) + ... + min(known / ratio, most), in whole entries.
double EntriesUpTo(int64_t known, int64_t ratio, int64_t most) {
  const int64_t growing = std::min(known, most * ratio);  // tokens before the limit counts
  const int64_t whole_entries = growing / ratio;
  const auto whole = static_cast<double>(whole_entries);
  const auto rest = static_cast<double>(growing % ratio + 1);
  const double sum = static_cast<double>(ratio) * whole * (whole - 1.0) / 2.0 + whole * rest;
  return sum + static_cast<double>((known - growing) * most);
}

// Compressed entries of all rows of one sequence together, at most `most` for each row. The window
// is the same with a ratio of 1.
double EntryKeys(const StepShape& step, int64_t ratio, int64_t most) {
  if (ratio == 0) return 0.0;
  return EntriesUpTo(LastKnown(step), ratio, most) - EntriesUpTo(step.context, ratio, most);
}

// Collects the stages of one step.
class Collector {
 public:
  Collector(const ModelShape& model, const kv::Layout& layout, const StepShape& step)
      : config_(model.config),
        weights_(model.weights),
        layout_(layout),
        step_(step),
        rows_(static_cast<double>(step.rows())),
        window_keys_(EntryKeys(step, 1, model.config.sliding_window)) {}

  std::vector<StageWork> Run() {
    for (layer_ = 0; layer_ < config_.num_layers; ++layer_) {
      const model::Layer& layer = weights_.layers[static_cast<size_t>(layer_)];
      AddStreams(layer.attn_hc);
      AddAttention(layer.attention);
      AddStreams(layer.ffn_hc);
      AddExperts(layer.moe);
    }
    if (step_.logit_rows > 0) AddHead();
    return std::move(stages_);
  }

 private:
  StageWork& Begin(StageKind kind) {
    StageWork stage;
    stage.kind = kind;
    stage.layer = layer_;
    stage.ratio = layer_ < config_.num_layers ? config_.Ratio(layer_) : 0;
    stage.units = 0;
    stages_.push_back(stage);
    return stages_.back();
  }

  // `copies` matrices of this shape are read, each met by `rows` rows.
  static void AddProduct(StageWork& stage, const PackedLinear& matrix, double rows,
                         double copies = 1.0) {
    if (matrix.out == 0 || rows <= 0.0) return;
    stage.products.push_back({matrix.format, copies * static_cast<double>(BytesOf(matrix)),
                              copies * WeightsOf(matrix), rows});
    stage.units += static_cast<int64_t>(std::ceil(
        copies * static_cast<double>(kernels::CeilDiv(matrix.out, kernels::kBlockChannels))));
  }

  void AddStreams(const model::HyperConnection& hc);
  void AddAttention(const model::Attention& attention);
  void AddIndex();
  void AddKeys();
  void AddExperts(const model::Moe& moe);
  void AddHead();

  int64_t Entries() const {
    const int64_t ratio = config_.Ratio(layer_);
    return ratio == 0 ? 0 : LastKnown(step_) / ratio;
  }
  bool Choosing() const {
    return layout_.layer(layer_).has_indexer() && Entries() > config_.index_topk;
  }

  const model::ModelConfig& config_;
  const model::Weights& weights_;
  const kv::Layout& layout_;
  const StepShape step_;
  const double rows_;
  const double window_keys_;  // of all rows of one sequence
  int64_t layer_ = 0;
  std::vector<StageWork> stages_;
};

// Mixing the streams takes a multiplication and an addition for each pair of them and element.
void Collector::AddStreams(const model::HyperConnection& hc) {
  StageWork& stage = Begin(StageKind::kStreams);
  AddProduct(stage, hc.fn, rows_);
  const auto streams = static_cast<double>(config_.hc_mult);
  const auto width = static_cast<double>(config_.hidden_size);
  stage.vector_ops = rows_ * (2.0 * streams * (streams + 2.0) * width + kRowOps);
  stage.units = std::max<int64_t>(step_.rows(), config_.hidden_size / kernels::kBlockChannels);
}

void Collector::AddAttention(const model::Attention& attention) {
  StageWork& inputs = Begin(StageKind::kAttentionInputs);
  AddProduct(inputs, attention.wq_a, rows_);
  AddProduct(inputs, attention.wkv, rows_);
  AddProduct(inputs, attention.compressor.wkv, rows_);
  AddProduct(inputs, attention.compressor.wgate, rows_);
  AddProduct(inputs, attention.indexer.compressor.wkv, rows_);
  AddProduct(inputs, attention.indexer.compressor.wgate, rows_);
  AddProduct(inputs, attention.indexer.weights_proj, rows_);

  StageWork& queries = Begin(StageKind::kQueries);
  AddProduct(queries, attention.wq_b, rows_);
  if (Choosing()) AddProduct(queries, attention.indexer.wq_b, rows_);
  const auto width = static_cast<double>(config_.num_heads * config_.head_dim);
  queries.vector_ops = 4.0 * rows_ * width;  // norm and rotation

  if (Choosing()) AddIndex();
  AddKeys();

  StageWork& outputs = Begin(StageKind::kAttentionOutputs);
  for (const PackedLinear& group : attention.wo_a) AddProduct(outputs, group, rows_);
  AddProduct(outputs, attention.wo_b, rows_);
}

void Collector::AddIndex() {
  StageWork& stage = Begin(StageKind::kIndex);
  const auto sequences = static_cast<double>(step_.sequences);
  const auto heads = static_cast<double>(config_.index_heads);
  const int64_t ratio = config_.Ratio(layer_);
  const double scored = sequences * EntryKeys(step_, ratio, Entries());
  stage.index_ops = 2.0 * scored * heads * static_cast<double>(config_.index_head_dim);
  stage.cache_bytes = sequences * static_cast<double>(Entries() * layout_.key_bytes());
  stage.units = std::max<int64_t>(1, Entries() / kKeysAtATime) * step_.rows();
}

// Rows of one sequence share the entries that they read.
void Collector::AddKeys() {
  StageWork& stage = Begin(StageKind::kAttention);
  const int64_t most = Choosing() ? config_.index_topk : Entries();
  const double keys = window_keys_ + EntryKeys(step_, config_.Ratio(layer_), most);
  const double distinct =
      std::min(keys, static_cast<double>(Entries() + config_.sliding_window + step_.rows_each));
  const auto sequences = static_cast<double>(step_.sequences);
  const auto width = static_cast<double>(config_.num_heads * config_.head_dim);
  stage.attention_ops = 4.0 * sequences * keys * width;
  stage.cache_bytes = sequences * distinct * static_cast<double>(layout_.row_bytes());
  stage.units = step_.rows() * kernels::CeilDiv(config_.num_heads, kHeadsAtATime);
}

// Tokens choose independently, so n of them leave an expert out with chance (1 - k / E)^n.
void Collector::AddExperts(const model::Moe& moe) {
  StageWork& router = Begin(StageKind::kRouter);
  AddProduct(router, moe.router, rows_);

  StageWork& stage = Begin(StageKind::kExperts);
  const auto experts = static_cast<double>(config_.num_experts);
  const auto chosen = static_cast<double>(config_.experts_per_token);
  const double busy = experts * (1.0 - std::pow(1.0 - chosen / experts, rows_));
  const double rows = rows_ * chosen / busy;
  for (const PackedLinear* matrix :
       {&moe.experts[0].gate, &moe.experts[0].up, &moe.experts[0].down}) {
    AddProduct(stage, *matrix, rows, busy);
  }
  for (const model::Expert& expert : moe.shared) {
    AddProduct(stage, expert.gate, rows_);
    AddProduct(stage, expert.up, rows_);
    AddProduct(stage, expert.down, rows_);
  }
}

void Collector::AddHead() {
  StageWork& stage = Begin(StageKind::kHead);
  AddProduct(stage, weights_.head_hc.fn, rows_);
  AddProduct(stage, weights_.head, static_cast<double>(step_.logit_rows));
}

}  // namespace

std::string_view StageName(StageKind kind) {
  switch (kind) {
    case StageKind::kStreams:
      return "hyper-connections";
    case StageKind::kAttentionInputs:
      return "attention inputs";
    case StageKind::kQueries:
      return "queries";
    case StageKind::kIndex:
      return "index";
    case StageKind::kAttention:
      return "attention";
    case StageKind::kAttentionOutputs:
      return "attention outputs";
    case StageKind::kRouter:
      return "router";
    case StageKind::kExperts:
      return "experts";
    case StageKind::kHead:
      return "head";
  }
  return "";
}

double StageWork::bytes() const {
  double sum = cache_bytes;
  for (const ProductWork& work : products) sum += work.bytes;
  return sum;
}

double StageWork::ops() const {
  double sum = attention_ops + index_ops + vector_ops;
  for (const ProductWork& work : products) sum += 2.0 * work.weights * work.rows;
  return sum;
}

std::vector<StageWork> WorkOfStep(const ModelShape& model, const kv::Layout& layout,
                                  const StepShape& step) {
  return Collector(model, layout, step).Run();
}

StageTime TimeOf(const StageWork& stage, const MachineFigures& machine) {
  double compute = stage.attention_ops / (kAttentionShare * machine.Of(WeightFormat::kBf16).ops) +
                   stage.index_ops / (kIndexShare * machine.Of(WeightFormat::kInt8).ops) +
                   stage.vector_ops / (kVectorShare * machine.Of(WeightFormat::kF32).ops);
  const double share = stage.kind == StageKind::kExperts ? kExpertShare : 1.0;
  for (const ProductWork& work : stage.products) {
    compute += Seconds(work, machine.Of(work.format)) / share;
  }

  // The busiest worker has this share of the stage.
  const auto units = static_cast<double>(std::max<int64_t>(1, stage.units));
  const double busiest = std::ceil(units / machine.cores) / units;
  StageTime time;
  time.read = std::max(stage.bytes() / SpreadReadRate(machine),
                       busiest * stage.bytes() / machine.core_read_rate);
  time.compute = compute * machine.cores * busiest;
  time.barrier = machine.cores > 1 ? machine.barrier_seconds : 0.0;
  time.start = kStageSeconds + kUnitSeconds * std::ceil(units / machine.cores);
  time.total = time.start + time.barrier +
               std::pow(std::pow(time.read, kOverlapNorm) + std::pow(time.compute, kOverlapNorm),
                        1.0 / kOverlapNorm);
  return time;
}

StepTime PredictStep(const ModelShape& model, const kv::Layout& layout, const StepShape& step,
                     const MachineFigures& machine) {
  StepTime time;
  for (const StageWork& stage : WorkOfStep(model, layout, step)) {
    time.bytes += stage.bytes();
    time.ops += stage.ops();
    time.seconds += TimeOf(stage, machine).total;
  }
  return time;
}

double PredictPrompt(const ModelShape& model, const kv::Layout& layout, int64_t tokens,
                     int64_t chunk, const MachineFigures& machine) {
  double seconds = 0.0;
  for (int64_t at = 0; at < tokens; at += chunk) {
    const int64_t rows = std::min(chunk, tokens - at);
    const StepShape step{.sequences = 1,
                         .rows_each = rows,
                         .context = at,
                         .logit_rows = at + rows == tokens ? 1 : 0};
    seconds += PredictStep(model, layout, step, machine).seconds;
  }
  return seconds;
}

}  // namespace fulgur::plan
