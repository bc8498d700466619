#include "model/tensor_map.h"

#include <utility>

namespace fulgur::model {
namespace {

using kernels::PackedLinear;
using kernels::WeightFormat;

// Appends slots of one block or of the whole model.
class SlotList {
 public:
  explicit SlotList(const ModelConfig& config) : config_(config) {}

  std::vector<TensorSlot> Take() { return std::move(slots_); }

  void Linear(std::string name, int64_t out, int64_t in, WeightFormat official, PackedLinear* to) {
    Add(std::move(name) + ".weight", {out, in}, TensorKind::kLinear, official, to);
  }

  void FloatLinear(std::string name, int64_t out, int64_t in, WeightFormat official,
                   PackedLinear* to) {
    Add(std::move(name), {out, in}, TensorKind::kFloatLinear, official, to);
  }

  void Vector(std::string name, std::vector<int64_t> shape, std::span<const float>* to) {
    Add(std::move(name), std::move(shape), TensorKind::kVector, WeightFormat::kF32, to);
  }

  void Norm(std::string name, int64_t size, std::span<const float>* to) {
    Vector(std::move(name) + ".weight", {size}, to);
  }

  void HyperConnection(const std::string& name, int64_t outputs, int64_t scales,
                       HyperConnection& to);
  void Layer(const std::string& prefix, int64_t ratio, bool hashed, Layer& to);
  void Embedding(const std::string& name, Weights* to) {
    Add(name, {config_.vocab_size, config_.hidden_size}, TensorKind::kEmbedding,
        WeightFormat::kBf16, to);
  }

  TensorSlot& Add(std::string name, std::vector<int64_t> shape, TensorKind kind,
                  WeightFormat official, Destination to) {
    slots_.push_back({std::move(name), std::move(shape), kind, official, to});
    return slots_.back();
  }

 private:
  void Attention(const std::string& prefix, int64_t ratio, Attention& to);
  void Compressor(const std::string& prefix, int64_t ratio, int64_t dim, Compressor& to);
  void Indexer(const std::string& prefix, int64_t ratio, Indexer& to);
  void Moe(const std::string& prefix, bool hashed, Moe& to);
  void Expert(const std::string& prefix, WeightFormat official, Expert& to);

  const ModelConfig& config_;
  std::vector<TensorSlot> slots_;
};

void SlotList::HyperConnection(const std::string& name, int64_t outputs, int64_t scales,
                               model::HyperConnection& to) {
  const int64_t inputs = config_.hc_mult * config_.hidden_size;
  FloatLinear(name + "_fn", outputs, inputs, WeightFormat::kF32, &to.fn);
  Vector(name + "_base", {outputs}, &to.base);
  Vector(name + "_scale", {scales}, &to.scale);
}

void SlotList::Layer(const std::string& prefix, int64_t ratio, bool hashed, model::Layer& to) {
  const int64_t outputs = config_.hc_mult * (2 + config_.hc_mult);
  HyperConnection(prefix + "hc_attn", outputs, 3, to.attn_hc);
  Norm(prefix + "attn_norm", config_.hidden_size, &to.attn_norm);
  Attention(prefix + "attn.", ratio, to.attention);
  HyperConnection(prefix + "hc_ffn", outputs, 3, to.ffn_hc);
  Norm(prefix + "ffn_norm", config_.hidden_size, &to.ffn_norm);
  Moe(prefix + "ffn.", hashed, to.moe);
}

void SlotList::Attention(const std::string& prefix, int64_t ratio, model::Attention& to) {
  const ModelConfig& c = config_;
  const int64_t query_dims = c.num_heads * c.head_dim;
  const int64_t group_outputs = c.o_groups * c.o_lora_rank;
  Linear(prefix + "wq_a", c.q_lora_rank, c.hidden_size, WeightFormat::kFp8Block, &to.wq_a);
  Norm(prefix + "q_norm", c.q_lora_rank, &to.q_norm);
  Linear(prefix + "wq_b", query_dims, c.q_lora_rank, WeightFormat::kFp8Block, &to.wq_b);
  Linear(prefix + "wkv", c.head_dim, c.hidden_size, WeightFormat::kFp8Block, &to.wkv);
  Norm(prefix + "kv_norm", c.head_dim, &to.kv_norm);
  if (ratio != 0) Compressor(prefix + "compressor.", ratio, c.head_dim, to.compressor);
  if (ratio == 4) Indexer(prefix + "indexer.", ratio, to.indexer);
  Vector(prefix + "attn_sink", {c.num_heads}, &to.sink);
  to.wo_a.resize(static_cast<size_t>(c.o_groups));
  Add(prefix + "wo_a.weight", {group_outputs, query_dims / c.o_groups}, TensorKind::kLinear,
      WeightFormat::kFp8Block, &to.wo_a)
      .groups = c.o_groups;
  Linear(prefix + "wo_b", c.hidden_size, group_outputs, WeightFormat::kFp8Block, &to.wo_b);
}

// Blocks of ratio 4 overlap: every input row gives a value to its own block and to the next.
void SlotList::Compressor(const std::string& prefix, int64_t ratio, int64_t dim,
                          model::Compressor& to) {
  const int64_t width = ratio == 4 ? 2 * dim : dim;
  Linear(prefix + "wkv", width, config_.hidden_size, WeightFormat::kBf16, &to.wkv);
  Linear(prefix + "wgate", width, config_.hidden_size, WeightFormat::kBf16, &to.wgate);
  Vector(prefix + "ape", {ratio, width}, &to.ape);
  Norm(prefix + "norm", dim, &to.norm);
}

void SlotList::Indexer(const std::string& prefix, int64_t ratio, model::Indexer& to) {
  const int64_t dims = config_.index_heads * config_.index_head_dim;
  Linear(prefix + "wq_b", dims, config_.q_lora_rank, WeightFormat::kFp8Block, &to.wq_b);
  Linear(prefix + "weights_proj", config_.index_heads, config_.hidden_size, WeightFormat::kBf16,
         &to.weights_proj);
  Compressor(prefix + "compressor.", ratio, config_.index_head_dim, to.compressor);
}

void SlotList::Moe(const std::string& prefix, bool hashed, model::Moe& to) {
  const ModelConfig& c = config_;
  FloatLinear(prefix + "gate.weight", c.num_experts, c.hidden_size, WeightFormat::kBf16,
              &to.router);
  if (hashed) {
    Add(prefix + "gate.tid2eid", {c.vocab_size, c.experts_per_token}, TensorKind::kExpertTable,
        WeightFormat::kF32, &to.token_experts);
  } else {
    Vector(prefix + "gate.bias", {c.num_experts}, &to.router_bias);
  }
  to.experts.resize(static_cast<size_t>(c.num_experts));
  for (size_t e = 0; e < to.experts.size(); ++e) {
    Expert(prefix + "experts." + std::to_string(e) + ".", WeightFormat::kFp4, to.experts[e]);
  }
  to.shared.resize(static_cast<size_t>(c.num_shared_experts));
  for (model::Expert& shared : to.shared) {
    Expert(prefix + "shared_experts.", WeightFormat::kFp8Block, shared);
  }
}

void SlotList::Expert(const std::string& prefix, WeightFormat official, model::Expert& to) {
  Linear(prefix + "w1", config_.expert_size, config_.hidden_size, official, &to.gate);
  Linear(prefix + "w3", config_.expert_size, config_.hidden_size, official, &to.up);
  Linear(prefix + "w2", config_.hidden_size, config_.expert_size, official, &to.down);
}

// An MTP block combines the embedding of the next token with the main model's residual streams.
void AddMtpParts(const ModelConfig& c, const std::string& prefix, SlotList& slots) {
  for (const char* name : {"e_proj", "h_proj"}) {
    slots.Linear(prefix + name, c.hidden_size, c.hidden_size, WeightFormat::kFp8Block, nullptr);
  }
  for (const char* name : {"enorm", "hnorm", "norm"}) {
    slots.Norm(prefix + name, c.hidden_size, nullptr);
  }
  HyperConnection head;
  slots.HyperConnection(prefix + "hc_head", c.hc_mult, 1, head);
}

void AddDsparkHead(const ModelConfig& c, const std::string& prefix, SlotList& slots) {
  const int64_t rank = c.dspark.markov_rank;
  slots.Norm(prefix + "norm", c.hidden_size, nullptr);
  HyperConnection head;
  slots.HyperConnection(prefix + "hc_head", c.hc_mult, 1, head);
  slots.Linear(prefix + "markov_head.markov_w1", c.vocab_size, rank, WeightFormat::kBf16, nullptr);
  slots.Linear(prefix + "markov_head.markov_w2", c.vocab_size, rank, WeightFormat::kBf16, nullptr);
  slots.Linear(prefix + "confidence_head.proj", 1, c.hidden_size + rank, WeightFormat::kBf16,
               nullptr);
}

void AddDsparkParts(const ModelConfig& c, int64_t stage, int64_t stages, SlotList& slots) {
  const std::string prefix = "mtp." + std::to_string(stage) + ".";
  if (stage == 0) {
    const auto targets = static_cast<int64_t>(c.dspark.target_layers.size());
    slots.Linear(prefix + "main_proj", c.hidden_size, c.hidden_size * targets,
                 WeightFormat::kFp8Block, nullptr);
    slots.Norm(prefix + "main_norm", c.hidden_size, nullptr);
  }
  if (stage == stages - 1) AddDsparkHead(c, prefix, slots);
}

// Copies of the embedding and the head that some quantisation tools add to draft blocks.
void AddDraftCopies(const ModelConfig& c, const std::string& prefix, SlotList& slots) {
  for (const char* name : {"emb.tok_emb.weight", "embed.weight", "head.weight"}) {
    slots
        .Add(prefix + name, {c.vocab_size, c.hidden_size}, TensorKind::kLinear, WeightFormat::kBf16,
             std::monostate())
        .optional = true;
  }
}

}  // namespace

std::vector<TensorSlot> MainTensors(const ModelConfig& config, Weights& weights) {
  SlotList slots(config);
  slots.Embedding("embed.weight", &weights);
  weights.layers.resize(static_cast<size_t>(config.num_layers));
  for (int64_t n = 0; n < config.num_layers; ++n) {
    slots.Layer("layers." + std::to_string(n) + ".", config.Ratio(n), config.IsHashLayer(n),
                weights.layers[static_cast<size_t>(n)]);
  }
  slots.HyperConnection("hc_head", config.hc_mult, 1, weights.head_hc);
  slots.Norm("norm", config.hidden_size, &weights.norm);
  slots.Linear("head", config.vocab_size, config.hidden_size, WeightFormat::kBf16, &weights.head);
  return slots.Take();
}

std::vector<TensorSlot> DraftTensors(const ModelConfig& config, DrafterKind kind, int64_t blocks) {
  SlotList slots(config);
  for (int64_t i = 0; i < blocks; ++i) {
    const std::string prefix = "mtp." + std::to_string(i) + ".";
    Layer layer;
    slots.Layer(prefix, 0, false, layer);
    if (kind == DrafterKind::kMtp) AddMtpParts(config, prefix, slots);
    if (kind == DrafterKind::kDspark) AddDsparkParts(config, i, blocks, slots);
    AddDraftCopies(config, prefix, slots);
  }
  std::vector<TensorSlot> tensors = slots.Take();
  for (TensorSlot& slot : tensors) slot.to = std::monostate();
  return tensors;
}

}  // namespace fulgur::model
