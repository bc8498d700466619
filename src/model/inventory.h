// Finds every tensor of a model in a checkpoint, in whatever format it is stored, and refuses a
// checkpoint in which one is missing, too many, or not what it should be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/packing.h"
#include "model/checkpoint.h"
#include "model/tensor_map.h"

namespace fulgur::model {

// A slot and the tensors of the checkpoint that fill it. Pointers into both. Optional slots that
// nothing fills are left out.
struct FilledSlot {
  const TensorSlot* slot = nullptr;
  kernels::WeightFormat format = kernels::WeightFormat::kF32;  // linears
  const StoredTensor* weight = nullptr;
  const StoredTensor* scale = nullptr;   // quantised linears
  const StoredTensor* offset = nullptr;  // integer linears; must be zero
};

struct TensorTotals {
  int64_t tensors = 0;
  int64_t bytes = 0;
};

struct Inventory {
  std::vector<FilledSlot> main;  // in the order of the slots
  std::vector<FilledSlot> drafter;
  TensorTotals main_totals;
  TensorTotals drafter_totals;
};

// Matches the slots (of MainTensors and DrafterTensors) against the checkpoint's tensors. Formats
// follow from types, shapes and the quantisation description, never from names. The error counts
// what is missing, unexpected, wrongly shaped or typed, with the first of each.
absl::StatusOr<Inventory> TakeInventory(const Checkpoint& checkpoint,
                                        std::span<const TensorSlot> main_slots,
                                        std::span<const TensorSlot> drafter_slots);

// The same for the drafter alone; tensors of a main model are allowed and ignored.
absl::StatusOr<Inventory> TakeDrafterInventory(const Checkpoint& checkpoint,
                                               std::span<const TensorSlot> drafter_slots);

// The bytes of output group `group` of a filled linear slot.
kernels::LinearSource SourceOf(const FilledSlot& filled, int64_t group = 0);

}  // namespace fulgur::model
