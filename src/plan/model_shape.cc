#include "plan/model_shape.h"

#include <span>
#include <variant>
#include <vector>

#include "base/status_macros.h"
#include "kernels/packing.h"
#include "model/drafter_source.h"
#include "model/inventory.h"
#include "model/precision.h"
#include "model/tensor_map.h"
#include "model/weight_plan.h"

namespace fulgur::plan {
namespace {

using kernels::PackedLinear;

// Gives the matrices of `sources` their formats and sizes; returns the bytes of everything.
int64_t Describe(std::span<const model::PlanSource> sources) {
  const model::WeightPlan plan(sources, model::Precision::kNative);
  for (const model::PlannedTensor& tensor : plan.tensors()) {
    const model::TensorSlot& slot = *tensor.slot;
    const auto described = [&] {
      return PackedLinear{tensor.target, slot.out() / slot.groups, slot.in(), {}};
    };
    if (const auto* linear = std::get_if<PackedLinear*>(&slot.to)) {
      **linear = described();
    } else if (const auto* groups = std::get_if<std::vector<PackedLinear>*>(&slot.to)) {
      (**groups)[static_cast<size_t>(tensor.group)] = described();
    }
  }
  return plan.arena_bytes();
}

}  // namespace

ModelShape ShapeOfConfig(const model::ModelConfig& config) {
  ModelShape shape;
  shape.config = config;
  const std::vector<model::TensorSlot> slots = model::MainTensors(config, shape.weights);
  std::vector<model::PlanSource> sources;
  for (const model::TensorSlot& slot : slots) {
    const bool embedding = slot.kind == model::TensorKind::kEmbedding;
    sources.push_back(
        {&slot, slot.official, embedding ? tensor::DType::kBf16 : tensor::DType::kF32});
  }
  shape.weight_bytes = Describe(sources);
  return shape;
}

absl::StatusOr<ModelShape> ShapeOfCheckpoint(const model::Checkpoint& checkpoint) {
  ModelShape shape;
  shape.config = checkpoint.config();
  ASSIGN_OR_RETURN(const model::FoundDrafter found, model::FindDrafter(checkpoint));
  model::ModelConfig with_drafter = checkpoint.config();
  with_drafter.drafter = found.kind;
  with_drafter.num_draft_blocks = found.blocks;
  const auto main = model::MainTensors(shape.config, shape.weights);
  const auto drafts = model::DrafterTensors(with_drafter, shape.weights.drafter);
  ASSIGN_OR_RETURN(const model::Inventory inventory,
                   model::TakeInventory(checkpoint, main, drafts));
  std::vector<model::PlanSource> sources;
  for (const model::FilledSlot& filled : inventory.main) {
    sources.push_back({filled.slot, filled.format, filled.weight->view.type});
  }
  shape.weight_bytes = Describe(sources);
  return shape;
}

int64_t BytesOf(const kernels::PackedLinear& matrix) {
  if (matrix.out == 0) return 0;
  kernels::LinearSource source;
  source.format = matrix.format;
  source.out = matrix.out;
  source.in = matrix.in;
  return kernels::PackedBytes(source, matrix.format);
}

double WeightsOf(const kernels::PackedLinear& matrix) {
  return static_cast<double>(matrix.out) * static_cast<double>(matrix.in);
}

}  // namespace fulgur::plan
