// Which bytes of the weight memory every tensor gets, before anything is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/packing.h"
#include "model/precision.h"
#include "model/tensor_map.h"
#include "model/weights.h"
#include "tensor/dtype.h"

namespace fulgur::model {

// Weight memory: one block of zeroed pages that exist once they are touched, on huge pages where
// the system has them.
class WeightArena : public WeightStorage {
 public:
  static absl::StatusOr<std::unique_ptr<WeightArena>> Allocate(int64_t bytes);
  ~WeightArena() override;
  WeightArena(const WeightArena&) = delete;
  WeightArena& operator=(const WeightArena&) = delete;

  int64_t size_bytes() const override { return size_; }
  std::byte* data() { return data_; }

 private:
  WeightArena(std::byte* data, int64_t size) : data_(data), size_(size) {}

  std::byte* data_;
  int64_t size_;
};

// A slot, and how its tensor is stored at its source.
struct PlanSource {
  const TensorSlot* slot = nullptr;
  kernels::WeightFormat linear = kernels::WeightFormat::kF32;  // linears
  tensor::DType type = tensor::DType::kF32;                    // everything else
};

// A tensor, or one output group of it, and its place.
struct PlannedTensor {
  const TensorSlot* slot = nullptr;
  size_t source_index = 0;
  int64_t group = 0;
  kernels::WeightFormat target = kernels::WeightFormat::kF32;  // linears
  bool as_bf16 = false;                                        // embedding
  int64_t offset = 0;
  std::span<std::byte> to;  // set by Place
};

// The tensors in the order of the sources, which is the order in which a forward pass reads them.
class WeightPlan {
 public:
  // Keeps pointers to the slots.
  WeightPlan(std::span<const PlanSource> sources, Precision precision);

  int64_t arena_bytes() const { return arena_bytes_; }
  const std::vector<PlannedTensor>& tensors() const { return tensors_; }

  // Gives every tensor its bytes of the arena and points the slots' destinations at them.
  void Place(std::byte* arena);

 private:
  void Add(PlannedTensor tensor, int64_t bytes);

  std::vector<PlannedTensor> tensors_;
  std::vector<int64_t> bytes_;
  int64_t arena_bytes_ = 0;
};

}  // namespace fulgur::model
