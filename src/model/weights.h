// The weights of the main model and its drafter, packed for the kernels. Views into owning storage;
// read-only after loading.
//
// Names in comments are those of the official checkpoint. Legend: H hidden, S residual streams, N
// heads, D head dim, QL/OL query/output LoRA rank, G output groups, E experts, F expert width, V
// vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/linear.h"
#include "tensor/numbers.h"

namespace fulgur::model {

// hc_{attn,ffn,head}_{fn,base,scale}: M = S (2 + S) outputs before a sub-layer, S before the head.
struct HyperConnection {
  kernels::PackedLinear fn;      // [M, S H], fp32
  std::span<const float> base;   // [M]
  std::span<const float> scale;  // [3], or [1] before the head
};

// attn.compressor.* or attn.indexer.compressor.*; C = 2 Dc when blocks overlap (ratio 4), else Dc.
struct Compressor {
  kernels::PackedLinear wkv;    // [C, H]
  kernels::PackedLinear wgate;  // [C, H]
  std::span<const float> ape;   // [ratio, C]
  std::span<const float> norm;  // [Dc]
};

struct Indexer {
  kernels::PackedLinear wq_b;          // [index heads x index dim, QL]
  kernels::PackedLinear weights_proj;  // [index heads, H]
  Compressor compressor;
};

struct Attention {
  kernels::PackedLinear wq_a;               // [QL, H]
  std::span<const float> q_norm;            // [QL]
  kernels::PackedLinear wq_b;               // [N D, QL]
  kernels::PackedLinear wkv;                // [D, H]
  std::span<const float> kv_norm;           // [D]
  std::vector<kernels::PackedLinear> wo_a;  // G x [OL, N D / G]
  kernels::PackedLinear wo_b;               // [H, G OL]
  std::span<const float> sink;              // [N]
  Compressor compressor;                    // layers with a ratio only
  Indexer indexer;                          // layers of ratio 4 only
};

struct Expert {
  kernels::PackedLinear gate;  // w1 [F, H]
  kernels::PackedLinear up;    // w3 [F, H]
  kernels::PackedLinear down;  // w2 [H, F]
};

struct Moe {
  kernels::PackedLinear router;            // gate.weight [E, H], fp32
  std::span<const float> router_bias;      // [E]; empty in hash layers
  std::span<const int32_t> token_experts;  // tid2eid [V, experts per token]; hash layers only
  std::vector<Expert> experts;             // E
  std::vector<Expert> shared;              // n_shared_experts
};

struct Layer {
  HyperConnection attn_hc;
  std::span<const float> attn_norm;  // [H]
  Attention attention;
  HyperConnection ffn_hc;
  std::span<const float> ffn_norm;  // [H]
  Moe moe;
};

// Owns the memory behind the views; the loader decides how it is laid out.
class WeightStorage {
 public:
  virtual ~WeightStorage() = default;
  virtual int64_t size_bytes() const = 0;
};

// A table of one row for each token. One of the two is empty.
struct Embedding {
  std::span<const tensor::BFloat16> bf16;
  std::span<const float> f32;  // reference precision, or stored wider than bf16

  bool empty() const { return bf16.empty() && f32.empty(); }
};

// mtp.*: empty without a drafter. RK: rank of the Markov chain.
struct DrafterWeights {
  std::vector<Layer>
      layers;  // the MTP block, or the DSpark stages; no compression, no hash routing
  HyperConnection head_hc;
  std::span<const float> norm;  // [H]
  Embedding embed;              // [V, H]; empty: the main model's
  kernels::PackedLinear head;   // [V, H]; empty: the main model's

  // MTP.
  std::span<const float> enorm;  // [H]
  std::span<const float> hnorm;  // [H]
  kernels::PackedLinear e_proj;  // [H, H]
  kernels::PackedLinear h_proj;  // [H, H]

  // DSpark.
  kernels::PackedLinear main_proj;    // [H, target layers x H]
  std::span<const float> main_norm;   // [H]
  Embedding markov_w1;                // [V, RK]
  kernels::PackedLinear markov_w2;    // [V, RK]
  std::span<const float> confidence;  // [H + RK]

  std::unique_ptr<WeightStorage> storage;  // null if the main model's storage holds it all
};

struct Weights {
  Embedding embed;  // [V, H]
  std::vector<Layer> layers;
  HyperConnection head_hc;
  std::span<const float> norm;  // [H]
  kernels::PackedLinear head;   // [V, H]
  DrafterWeights drafter;
  std::unique_ptr<WeightStorage> storage;
};

}  // namespace fulgur::model
