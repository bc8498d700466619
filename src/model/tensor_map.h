// The tensors of a model: the one list of their names, shapes and places in `Weights`. Checking a
// checkpoint, loading it and making dummy weights all walk this list.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/linear.h"
#include "model/config.h"
#include "model/weights.h"

namespace fulgur::model {

// What a tensor is read as.
enum class TensorKind {
  kLinear,       // a matrix in any weight format, packed in that format
  kFloatLinear,  // a matrix in any weight format, packed as fp32
  kVector,       // BF16, F16 or F32, read as fp32
  kEmbedding,    // BF16, F16 or F32
  kExpertTable,  // I64 or I32, expert ids
};

// Where the tensor goes.
using Destination = std::variant<kernels::PackedLinear*, std::vector<kernels::PackedLinear>*,
                                 std::span<const float>*, std::span<const int32_t>*, Embedding*>;

struct TensorSlot {
  std::string name;            // canonical, of the weight itself: "layers.0.attn.wq_a.weight"
  std::vector<int64_t> shape;  // a linear's [out, in], however it is stored
  TensorKind kind = TensorKind::kVector;
  kernels::WeightFormat official = kernels::WeightFormat::kF32;  // linears of official checkpoints
  Destination to;
  int64_t groups = 1;     // output groups that become linears of their own
  bool optional = false;  // some tools leave it out

  int64_t out() const { return shape[0]; }
  int64_t in() const { return shape[1]; }
};

// The tensors of the main model in the order of a forward pass. Sizes the vectors in `weights`; the
// destinations point into it.
std::vector<TensorSlot> MainTensors(const ModelConfig& config, Weights& weights);

// The tensors of config.num_draft_blocks draft blocks "mtp.0.", "mtp.1." ... of the kind
// config.drafter, in the same way.
std::vector<TensorSlot> DrafterTensors(const ModelConfig& config, DrafterWeights& weights);

}  // namespace fulgur::model
