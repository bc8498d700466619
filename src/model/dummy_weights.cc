#include "model/dummy_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/team.h"
#include "model/tensor_map.h"
#include "model/weight_plan.h"
#include "tensor/buffer.h"
#include "tensor/numbers.h"

namespace fulgur::model {
namespace {

using kernels::LinearSource;
using kernels::WeightFormat;
using tensor::DType;

constexpr int64_t kWord = sizeof(uint64_t);
constexpr int64_t kFp8Block = 128;
constexpr int64_t kFp4Block = 32;

// Typical sizes (root mean square) of the random codes below.
constexpr double kFp8CodeSize = 0.6;
constexpr double kFp4CodeSize = 2.9;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// SplitMix64 (Steele, Lea, Flood 2014): word `index` of the stream that starts at `seed`.
uint64_t RandomWord(uint64_t seed, int64_t index) {
  uint64_t z = seed + static_cast<uint64_t>(index + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

// A power of two near 1 / sqrt(inputs) / code_size, as an exponent.
int GainExponent(int64_t inputs, double code_size) {
  return static_cast<int>(
      std::lround(std::log2(1.0 / std::sqrt(static_cast<double>(inputs)) / code_size)));
}

bool FitsOfficialFormat(const TensorSlot& slot) {
  if (slot.official == WeightFormat::kFp4) return slot.in() % kFp4Block == 0;
  const int64_t rows = slot.groups == 1 ? kFp8Block : slot.out() / slot.groups;
  return slot.official != WeightFormat::kFp8Block || rows % kFp8Block == 0 || kFp8Block % rows == 0;
}

PlanSource FormatOf(const TensorSlot& slot) {
  PlanSource format{&slot, slot.official, DType::kF32};
  if (slot.kind == TensorKind::kEmbedding) format.type = DType::kBf16;
  if (!FitsOfficialFormat(slot)) format.linear = WeightFormat::kBf16;
  return format;
}

// The random bytes of one linear, as they would lie in a checkpoint. Reused from tensor to tensor.
class DummyLinear {
 public:
  // Room for the largest of the linears.
  explicit DummyLinear(std::span<const TensorSlot> slots);

  // Describes a linear; the bytes are those that the last Fill wrote.
  LinearSource Describe(WeightFormat format, int64_t out, int64_t in) const;

  // Writes this worker's share of the bytes of `source`.
  void Fill(const LinearSource& source, uint64_t seed, const base::WorkerRank& worker);

 private:
  static int64_t WeightBytes(WeightFormat format, int64_t out, int64_t in);
  static int64_t ScaleBytes(WeightFormat format, int64_t out, int64_t in);

  tensor::Buffer<std::byte> weight_;
  tensor::Buffer<std::byte> scale_;
};

int64_t DummyLinear::WeightBytes(WeightFormat format, int64_t out, int64_t in) {
  switch (format) {
    case WeightFormat::kF32:
      return out * in * 4;
    case WeightFormat::kBf16:
      return out * in * 2;
    case WeightFormat::kFp4:
      return out * in / 2;
    default:
      return out * in;
  }
}

int64_t DummyLinear::ScaleBytes(WeightFormat format, int64_t out, int64_t in) {
  if (format == WeightFormat::kFp4) return out * (in / kFp4Block);
  if (format == WeightFormat::kFp8Block) return CeilDiv(out, kFp8Block) * CeilDiv(in, kFp8Block);
  return 0;
}

DummyLinear::DummyLinear(std::span<const TensorSlot> slots) {
  int64_t weight = 0;
  int64_t scale = 0;
  for (const TensorSlot& slot : slots) {
    if (slot.kind != TensorKind::kLinear && slot.kind != TensorKind::kFloatLinear) continue;
    const WeightFormat format = FormatOf(slot).linear;
    const int64_t rows = slot.out() / slot.groups;
    weight = std::max(weight, WeightBytes(format, rows, slot.in()));
    scale = std::max(scale, ScaleBytes(format, rows, slot.in()));
  }
  weight_ = tensor::Buffer<std::byte>(weight);
  scale_ = tensor::Buffer<std::byte>(scale);
}

LinearSource DummyLinear::Describe(WeightFormat format, int64_t out, int64_t in) const {
  LinearSource source;
  source.format = format;
  source.out = out;
  source.in = in;
  source.weight = weight_.data();
  source.weight_type = format == WeightFormat::kF32 ? DType::kF32 : DType::kBf16;
  source.scale = scale_.data();
  source.scale_type = DType::kF8E8M0;
  return source;
}

// Four bf16 of random sign and mantissa, of magnitude 2^exponent to 2^(exponent + 2).
uint64_t RandomBf16s(uint64_t random, int exponent) {
  const auto base = static_cast<uint64_t>(exponent + 127) << 7;
  return (random & 0x807f807f807f807fU) + (base * 0x0001000100010001U) +
         (random & 0x0080008000800080U);
}

// Two fp32 of random sign and mantissa, of magnitude 2^exponent to 2^(exponent + 1).
uint64_t RandomFloats(uint64_t random, int exponent) {
  const auto base = static_cast<uint64_t>(exponent + 127) << 23;
  return (random & 0x807fffff807fffffU) + base * 0x0000000100000001U;
}

// Writes this worker's share of `size` bytes, eight at a time: word(i) is the i-th eight.
void FillWords(std::byte* bytes, int64_t size, const base::WorkerRank& worker, auto word) {
  const auto [begin, end] = worker.Share(CeilDiv(size, kWord));
  for (int64_t i = begin; i < end; ++i) {
    const uint64_t value = word(i);
    std::memcpy(bytes + i * kWord, &value, static_cast<size_t>(std::min(kWord, size - i * kWord)));
  }
}

void DummyLinear::Fill(const LinearSource& source, uint64_t seed, const base::WorkerRank& worker) {
  const int64_t size = WeightBytes(source.format, source.out, source.in);
  const int64_t scales = ScaleBytes(source.format, source.out, source.in);
  const int gain = GainExponent(source.in, 1.0);
  const auto random = [seed](int64_t i) { return RandomWord(seed, i); };
  const auto constant = [](int exponent) {
    return static_cast<uint64_t>(exponent + 127) * 0x0101010101010101U;
  };
  switch (source.format) {
    case WeightFormat::kF32:
      return FillWords(weight_.data(), size, worker,
                       [&](int64_t i) { return RandomFloats(random(i), gain - 1); });
    case WeightFormat::kBf16:
      return FillWords(weight_.data(), size, worker,
                       [&](int64_t i) { return RandomBf16s(random(i), gain - 1); });
    case WeightFormat::kFp8Block: {  // without the upper half of the exponents, and without NaN
      FillWords(weight_.data(), size, worker,
                [&](int64_t i) { return random(i) & 0xbfbfbfbfbfbfbfbfU; });
      const uint64_t scale = constant(GainExponent(source.in, kFp8CodeSize));
      return FillWords(scale_.data(), scales, worker, [&](int64_t) { return scale; });
    }
    default: {  // FP4: scales of four neighbouring powers of two
      FillWords(weight_.data(), size, worker, random);
      const uint64_t largest = constant(GainExponent(source.in, kFp4CodeSize) + 1);
      return FillWords(scale_.data(), scales, worker, [&](int64_t i) {
        return largest - (RandomWord(~seed, i) & 0x0303030303030303U);
      });
    }
  }
}

// Norms and gains are 1; everything else is small.
bool IsGain(std::string_view name) {
  return name.ends_with("norm.weight") || name.ends_with("_scale");
}

void FillVector(const PlannedTensor& planned, uint64_t seed, const base::WorkerRank& worker) {
  auto* values = reinterpret_cast<float*>(planned.to.data());
  const auto [begin, end] = worker.Share(static_cast<int64_t>(planned.to.size()) / 4);
  const bool gain = IsGain(planned.slot->name);
  for (int64_t i = begin; i < end; ++i) {
    const auto top = static_cast<int64_t>(RandomWord(seed, i) >> 40);
    values[i] = gain ? 1.0F : std::ldexp(static_cast<float>(top), -25) - 0.25F;
  }
}

// Bf16 numbers, also where they are kept as fp32.
void FillEmbedding(const PlannedTensor& planned, uint64_t seed, const base::WorkerRank& worker) {
  constexpr int kExponent = -1;
  const auto size = static_cast<int64_t>(planned.to.size());
  const auto bf16s = [seed](int64_t i) { return RandomBf16s(RandomWord(seed, i), kExponent); };
  if (planned.as_bf16) return FillWords(planned.to.data(), size, worker, bf16s);
  auto* values = reinterpret_cast<float*>(planned.to.data());
  const auto [begin, end] = worker.Share(size / 4);
  for (int64_t i = begin; i < end; ++i) {
    values[i] = tensor::ToFloat({static_cast<uint16_t>(bf16s(i / 4) >> (i % 4 * 16))});
  }
}

// Different experts for each token, the first one at random.
void FillTable(const PlannedTensor& planned, int64_t experts, uint64_t seed,
               const base::WorkerRank& worker) {
  auto* table = reinterpret_cast<int32_t*>(planned.to.data());
  const int64_t chosen = planned.slot->shape[1];
  const auto [begin, end] = worker.Share(planned.slot->shape[0]);
  for (int64_t token = begin; token < end; ++token) {
    const auto first =
        static_cast<int64_t>(RandomWord(seed, token) % static_cast<uint64_t>(experts));
    for (int64_t j = 0; j < chosen; ++j) {
      table[token * chosen + j] = static_cast<int32_t>((first + j) % experts);
    }
  }
}

// All workers; one linear at a time is drawn by all of them, then packed by all of them.
void FillAll(const WeightPlan& plan, std::span<const PlanSource> sources, int64_t experts,
             uint64_t seed, DummyLinear& linear, const base::WorkerRank& worker) {
  for (size_t i = 0; i < plan.tensors().size(); ++i) {
    const PlannedTensor& planned = plan.tensors()[i];
    const TensorSlot& slot = *planned.slot;
    const uint64_t stream = RandomWord(seed, static_cast<int64_t>(i));
    switch (slot.kind) {
      case TensorKind::kLinear:
      case TensorKind::kFloatLinear: {
        const LinearSource source = linear.Describe(sources[planned.source_index].linear,
                                                    slot.out() / slot.groups, slot.in());
        linear.Fill(source, stream, worker);
        worker.Barrier();
        kernels::Pack(source, planned.target, planned.to, worker);
        worker.Barrier();
        break;
      }
      case TensorKind::kVector:
        FillVector(planned, stream, worker);
        break;
      case TensorKind::kEmbedding:
        FillEmbedding(planned, stream, worker);
        break;
      case TensorKind::kExpertTable:
        FillTable(planned, experts, stream, worker);
        break;
    }
  }
}

}  // namespace

absl::StatusOr<Weights> MakeDummyWeights(const ModelConfig& config, const DummyOptions& options) {
  Weights weights;
  std::vector<TensorSlot> slots = MainTensors(config, weights);
  std::ranges::move(DrafterTensors(config, weights.drafter), std::back_inserter(slots));
  std::erase_if(slots, [](const TensorSlot& slot) { return slot.optional; });
  std::vector<PlanSource> sources;
  sources.reserve(slots.size());
  for (const TensorSlot& slot : slots) sources.push_back(FormatOf(slot));
  WeightPlan plan(sources, options.precision);
  ASSIGN_OR_RETURN(std::unique_ptr<WeightArena> arena, WeightArena::Allocate(plan.arena_bytes()));
  plan.Place(arena->data());
  DummyLinear linear(slots);
  base::WorkerTeam team(options.num_threads);
  team.Run([&](const base::WorkerRank& worker) {
    FillAll(plan, sources, config.num_experts, options.seed, linear, worker);
  });
  weights.storage = std::move(arena);
  return weights;
}

}  // namespace fulgur::model
