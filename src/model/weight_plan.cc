#include "model/weight_plan.h"

#include <sys/mman.h>

#include <variant>

#include "fmt/format.h"
#include "tensor/buffer.h"

namespace fulgur::model {
namespace {

using kernels::PackedLinear;
using kernels::WeightFormat;

constexpr int64_t kHugePage = int64_t{2} << 20;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

int64_t Elements(const TensorSlot& slot) {
  int64_t count = 1;
  for (const int64_t size : slot.shape) count *= size;
  return count;
}

// Router and hyper-connections decide discretely or are iterated, so they stay fp32.
WeightFormat TargetOf(const TensorSlot& slot, WeightFormat stored, Precision precision) {
  const bool wide = slot.kind == TensorKind::kFloatLinear || precision == Precision::kReference;
  return wide ? WeightFormat::kF32 : stored;
}

template <typename T>
std::span<const T> SpanOf(std::span<std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

void PointAt(const PlannedTensor& tensor) {
  const TensorSlot& slot = *tensor.slot;
  const auto packed = [&] {
    return PackedLinear{tensor.target, slot.out() / slot.groups, slot.in(), tensor.to};
  };
  if (const auto* linear = std::get_if<PackedLinear*>(&slot.to)) {
    **linear = packed();
  } else if (const auto* groups = std::get_if<std::vector<PackedLinear>*>(&slot.to)) {
    (**groups)[static_cast<size_t>(tensor.group)] = packed();
  } else if (const auto* vector = std::get_if<std::span<const float>*>(&slot.to)) {
    **vector = SpanOf<float>(tensor.to);
  } else if (const auto* table = std::get_if<std::span<const int32_t>*>(&slot.to)) {
    **table = SpanOf<int32_t>(tensor.to);
  } else if (const auto* embedding = std::get_if<Embedding*>(&slot.to)) {
    if (tensor.as_bf16) {
      (*embedding)->bf16 = SpanOf<tensor::BFloat16>(tensor.to);
    } else {
      (*embedding)->f32 = SpanOf<float>(tensor.to);
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<WeightArena>> WeightArena::Allocate(int64_t bytes) {
  const auto size = static_cast<size_t>(RoundUp(bytes, kHugePage));
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        fmt::format("the weights need {:.1f} GB of memory, which the system does not give",
                    static_cast<double>(bytes) / 1e9));
  }
  madvise(data, size, MADV_HUGEPAGE);
  return std::unique_ptr<WeightArena>(
      new WeightArena(static_cast<std::byte*>(data), static_cast<int64_t>(size)));
}

WeightArena::~WeightArena() { munmap(data_, static_cast<size_t>(size_)); }

WeightPlan::WeightPlan(std::span<const PlanSource> sources, Precision precision) {
  for (size_t i = 0; i < sources.size(); ++i) {
    const TensorSlot& slot = *sources[i].slot;
    PlannedTensor tensor;
    tensor.slot = &slot;
    tensor.source_index = i;
    switch (slot.kind) {
      case TensorKind::kLinear:
      case TensorKind::kFloatLinear: {
        tensor.target = TargetOf(slot, sources[i].linear, precision);
        kernels::LinearSource source;
        source.format = sources[i].linear;
        source.out = slot.out() / slot.groups;
        source.in = slot.in();
        const int64_t bytes = kernels::PackedBytes(source, tensor.target);
        for (tensor.group = 0; tensor.group < slot.groups; ++tensor.group) Add(tensor, bytes);
        break;
      }
      case TensorKind::kEmbedding:
        tensor.as_bf16 = precision == Precision::kNative && sources[i].type == tensor::DType::kBf16;
        Add(tensor, Elements(slot) * (tensor.as_bf16 ? 2 : 4));
        break;
      case TensorKind::kVector:
      case TensorKind::kExpertTable:
        Add(tensor, Elements(slot) * 4);
        break;
    }
  }
}

void WeightPlan::Add(PlannedTensor tensor, int64_t bytes) {
  tensor.offset = arena_bytes_;
  tensors_.push_back(tensor);
  bytes_.push_back(bytes);
  arena_bytes_ += RoundUp(bytes, static_cast<int64_t>(tensor::kAlignment));
}

void WeightPlan::Place(std::byte* arena) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    PlannedTensor& tensor = tensors_[i];
    tensor.to = {arena + tensor.offset, static_cast<size_t>(bytes_[i])};
    PointAt(tensor);
  }
}

}  // namespace fulgur::model
