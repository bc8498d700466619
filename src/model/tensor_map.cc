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
  TensorSlot& Embedding(const std::string& name, int64_t size, model::Embedding* to) {
    return Add(name, {config_.vocab_size, size}, TensorKind::kEmbedding, WeightFormat::kBf16, to);
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
void AddMtpParts(const ModelConfig& c, const std::string& prefix, SlotList& slots,
                 DrafterWeights& to) {
  slots.Linear(prefix + "e_proj", c.hidden_size, c.hidden_size, WeightFormat::kFp8Block,
               &to.e_proj);
  slots.Linear(prefix + "h_proj", c.hidden_size, c.hidden_size, WeightFormat::kFp8Block,
               &to.h_proj);
  slots.Norm(prefix + "enorm", c.hidden_size, &to.enorm);
  slots.Norm(prefix + "hnorm", c.hidden_size, &to.hnorm);
}

void AddDsparkContext(const ModelConfig& c, SlotList& slots, DrafterWeights& to) {
  const auto targets = static_cast<int64_t>(c.dspark.target_layers.size());
  slots.Linear("mtp.0.main_proj", c.hidden_size, c.hidden_size * targets, WeightFormat::kFp8Block,
               &to.main_proj);
  slots.Norm("mtp.0.main_norm", c.hidden_size, &to.main_norm);
}

void AddDsparkHead(const ModelConfig& c, const std::string& prefix, SlotList& slots,
                   DrafterWeights& to) {
  const int64_t rank = c.dspark.markov_rank;
  slots.Embedding(prefix + "markov_head.markov_w1.weight", rank, &to.markov_w1);
  slots.Linear(prefix + "markov_head.markov_w2", c.vocab_size, rank, WeightFormat::kBf16,
               &to.markov_w2);
  slots.Vector(prefix + "confidence_head.proj.weight", {1, c.hidden_size + rank}, &to.confidence);
}

// Its own embedding and head, which some quantisation tools add: they rotate the residual streams
// of the main model but not those of the drafter.
void AddDrafterEnds(const ModelConfig& c, const std::string& last, SlotList& slots,
                    DrafterWeights& to) {
  for (const char* name : {"mtp.0.emb.tok_emb.weight", "mtp.0.embed.weight"}) {
    slots.Embedding(name, c.hidden_size, &to.embed).optional = true;
  }
  slots.HyperConnection(last + "hc_head", c.hc_mult, 1, to.head_hc);
  slots.Norm(last + "norm", c.hidden_size, &to.norm);
  slots
      .Add(last + "head.weight", {c.vocab_size, c.hidden_size}, TensorKind::kLinear,
           WeightFormat::kBf16, &to.head)
      .optional = true;
}

}  // namespace

std::vector<TensorSlot> MainTensors(const ModelConfig& config, Weights& weights) {
  SlotList slots(config);
  slots.Embedding("embed.weight", config.hidden_size, &weights.embed);
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

std::vector<TensorSlot> DrafterTensors(const ModelConfig& config, DrafterWeights& weights) {
  SlotList slots(config);
  const bool dspark = config.drafter == DrafterKind::kDspark;
  const int64_t blocks = config.NumDraftLayers();
  if (blocks == 0) return {};
  const auto prefix = [](int64_t block) { return "mtp." + std::to_string(block) + "."; };
  if (dspark) AddDsparkContext(config, slots, weights);
  if (!dspark) AddMtpParts(config, prefix(0), slots, weights);
  weights.layers.resize(static_cast<size_t>(blocks));
  for (int64_t i = 0; i < blocks; ++i) {
    slots.Layer(prefix(i), 0, false, weights.layers[static_cast<size_t>(i)]);
  }
  AddDrafterEnds(config, prefix(blocks - 1), slots, weights);
  if (dspark) AddDsparkHead(config, prefix(blocks - 1), slots, weights);
  return slots.Take();
}

}  // namespace fulgur::model
