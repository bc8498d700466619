#include "model/testing/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/team.h"
#include "kernels/packing.h"
#include "tensor/buffer.h"
#include "tensor/numbers.h"

namespace fulgur::model::testing {
namespace {

using kernels::WeightFormat;

uint64_t Fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3U;
  return hash;
}

// Value `index` of a tensor: a multiple of 1/128 in [-1, 1).
float Uniform(uint64_t name_hash, int64_t index) {
  uint64_t z = name_hash + static_cast<uint64_t>(index + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  z ^= z >> 31;
  return static_cast<float>(static_cast<int>(z >> 56) - 128) / 128.0F;
}

// A linear in its storage format, as a checkpoint would hold it.
struct Stored {
  kernels::LinearSource source;
  std::vector<std::byte> weight;
  std::vector<std::byte> scale;
};

template <typename T>
std::vector<std::byte> Bytes(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

float MaxAbs(const float* values, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(values[i]));
  return largest;
}

class Builder {
 public:
  Builder(const ModelConfig& config, Storage storage, bool reference)
      : config_(config), storage_(storage), reference_(reference) {}

  Weights Build();

 private:
  class Memory : public WeightStorage {
   public:
    std::span<float> Floats(int64_t count) {
      floats_.emplace_back(count);
      return floats_.back().span();
    }
    std::span<std::byte> Packed(int64_t bytes) {
      packed_.emplace_back(bytes);
      return packed_.back().span();
    }
    std::span<int32_t> Ids(int64_t count) {
      ids_.emplace_back(count);
      return ids_.back().span();
    }
    std::span<tensor::BFloat16> Bf16(int64_t count) {
      bf16_.emplace_back(count);
      return bf16_.back().span();
    }
    int64_t size_bytes() const override {
      int64_t total = 0;
      for (const auto& b : floats_) total += b.size_bytes();
      for (const auto& b : packed_) total += b.size_bytes();
      for (const auto& b : ids_) total += b.size_bytes();
      for (const auto& b : bf16_) total += b.size_bytes();
      return total;
    }

   private:
    std::deque<tensor::Buffer<float>> floats_;
    std::deque<tensor::Buffer<std::byte>> packed_;
    std::deque<tensor::Buffer<int32_t>> ids_;
    std::deque<tensor::Buffer<tensor::BFloat16>> bf16_;
  };

  std::span<const float> Vector(const std::string& name, int64_t count, float scale, float offset) {
    std::span<float> values = memory_->Floats(count);
    const uint64_t hash = Fnv1a(name);
    for (int64_t i = 0; i < count; ++i) {
      values[static_cast<size_t>(i)] = Uniform(hash, i) * scale + offset;
    }
    return values;
  }
  std::span<const float> Norm(const std::string& name, int64_t count) {
    return Vector(name + ".weight", count, 0.25F, 1.0F);
  }

  // `gain` multiplies the linear rule 2^-floor(log2(in) / 2).
  std::vector<float> LinearValues(const std::string& name, int64_t out, int64_t in, float gain) {
    const double exponent = std::floor(std::log2(static_cast<double>(in)) / 2);
    const auto scale = static_cast<float>(gain * std::exp2(-exponent));
    const uint64_t hash = Fnv1a(name + ".weight");
    std::vector<float> values(static_cast<size_t>(out * in));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = Uniform(hash, static_cast<int64_t>(i)) * scale;
    }
    return values;
  }

  kernels::PackedLinear Linear(const std::string& name, int64_t out, int64_t in,
                               WeightFormat format, float gain = 1.0F) {
    const std::vector<float> values = LinearValues(name, out, in, gain);
    return PackAs(Store(values, out, in, format), format);
  }

  kernels::PackedLinear PackAs(const Stored& stored, WeightFormat format) {
    const WeightFormat target = reference_ ? WeightFormat::kF32 : format;
    std::span<std::byte> packed = memory_->Packed(kernels::PackedBytes(stored.source, target));
    kernels::Pack(stored.source, target, packed, base::WorkerRank(0, 1, nullptr));
    return {target, stored.source.out, stored.source.in, packed};
  }

  static Stored Store(const std::vector<float>& values, int64_t out, int64_t in,
                      WeightFormat format);

  WeightFormat Attention() const;
  WeightFormat Output() const;
  WeightFormat Shared() const;
  WeightFormat Routed() const;
  WeightFormat Plain() const {
    return storage_ == Storage::kF32 ? WeightFormat::kF32 : WeightFormat::kBf16;
  }

  HyperConnection MakeHyperConnection(const std::string& prefix, int64_t outputs, int64_t scales);
  Compressor MakeCompressor(const std::string& prefix, int64_t ratio, int64_t dim);
  model::Attention MakeAttention(const std::string& prefix, int64_t ratio);
  Expert MakeExpert(const std::string& prefix, WeightFormat format);
  Moe MakeMoe(const std::string& prefix, bool hash);
  std::span<const int32_t> ExpertTable();
  Layer MakeLayer(const std::string& prefix, int64_t ratio, bool hash);
  Embedding MakeEmbedding(const std::string& name, int64_t size);
  DrafterWeights MakeDrafter();

  const ModelConfig& config_;
  const Storage storage_;
  const bool reference_;
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
};

WeightFormat Builder::Attention() const {
  switch (storage_) {
    case Storage::kFp8Fp4:
      return WeightFormat::kFp8Block;
    case Storage::kInt8:
    case Storage::kInt4:
      return WeightFormat::kInt8;
    default:
      return Plain();
  }
}

WeightFormat Builder::Output() const {
  return storage_ == Storage::kFp8Fp4 ? WeightFormat::kFp8Block : Plain();
}

WeightFormat Builder::Shared() const { return Attention(); }

WeightFormat Builder::Routed() const {
  if (storage_ == Storage::kFp8Fp4) return WeightFormat::kFp4;
  return storage_ == Storage::kInt4 ? WeightFormat::kInt4 : Attention();
}

// Symmetric integers, one scale per row; int4 packs two rows into a byte.
void StoreIntegers(const std::vector<float>& values, int64_t out, int64_t in, int top,
                   Stored& stored) {
  std::vector<float> scales;
  std::vector<int8_t> codes;
  for (int64_t o = 0; o < out; ++o) {
    const float* row = values.data() + o * in;
    scales.push_back(std::max(MaxAbs(row, in), 1e-5F) / static_cast<float>(top));
    for (int64_t i = 0; i < in; ++i) {
      const float code = std::nearbyint(row[i] / scales.back());
      codes.push_back(static_cast<int8_t>(
          std::clamp(code, static_cast<float>(-top - 1), static_cast<float>(top))));
    }
  }
  stored.scale = Bytes(scales);
  if (top == 127) {
    stored.weight = Bytes(codes);
    return;
  }
  std::vector<uint8_t> pairs(static_cast<size_t>(out / 2 * in));
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t i = 0; i < in; ++i) {
      const int nibble = codes[static_cast<size_t>(o * in + i)] & 15;
      uint8_t& pair = pairs[static_cast<size_t>(o / 2 * in + i)];
      pair = static_cast<uint8_t>(pair | (o % 2 == 0 ? nibble : nibble << 4));
    }
  }
  stored.weight = Bytes(pairs);
}

// The nearest E2M1 code, ties to the even one.
int E2M1Code(float magnitude) {
  int best = 0;
  for (int code = 1; code < 8; ++code) {
    const float distance = std::fabs(tensor::E2M1ToFloat(static_cast<uint8_t>(code)) - magnitude);
    const float best_distance =
        std::fabs(tensor::E2M1ToFloat(static_cast<uint8_t>(best)) - magnitude);
    if (distance < best_distance || (distance == best_distance && code % 2 == 0)) best = code;
  }
  return best;
}

int E4M3Code(float magnitude) {
  const float rounded = tensor::RoundToE4M3(magnitude);
  if (rounded < 0x1p-6F) return static_cast<int>(rounded * 512.0F);
  const int exponent = std::ilogb(rounded);
  return ((exponent + 7) << 3) + static_cast<int>(std::ldexp(rounded, 3 - exponent)) - 8;
}

uint8_t ScaleCode(float scale) { return static_cast<uint8_t>(std::ilogb(scale) + 127); }

float PowerScale(float largest, float top) {
  return largest == 0 ? 1.0F : tensor::CeilToPowerOfTwo(largest * (1.0F / top));
}

void StoreFp4(const std::vector<float>& values, int64_t out, int64_t in, Stored& stored) {
  std::vector<uint8_t> bytes(static_cast<size_t>(out * in / 2));
  std::vector<uint8_t> scales;
  for (int64_t block = 0; block < out * in / 32; ++block) {
    const float* v = values.data() + block * 32;
    const float scale = PowerScale(MaxAbs(v, 32), 6.0F);
    scales.push_back(ScaleCode(scale));
    for (int64_t i = 0; i < 32; ++i) {
      const int sign = std::signbit(v[i]) ? 8 : 0;
      const int code = E2M1Code(std::fabs(v[i]) / scale) | sign;
      uint8_t& byte = bytes[static_cast<size_t>((block * 32 + i) / 2)];
      byte = static_cast<uint8_t>(byte | (i % 2 == 0 ? code : code << 4));
    }
  }
  stored.weight = Bytes(bytes);
  stored.scale = Bytes(scales);
}

void StoreFp8(const std::vector<float>& values, int64_t out, int64_t in, Stored& stored) {
  const int64_t across = (in + 127) / 128;
  std::vector<float> largest(static_cast<size_t>((out + 127) / 128 * across));
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t i = 0; i < in; ++i) {
      float& block = largest[static_cast<size_t>(o / 128 * across + i / 128)];
      block = std::max(block, std::fabs(values[static_cast<size_t>(o * in + i)]));
    }
  }
  std::vector<uint8_t> codes;
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t i = 0; i < in; ++i) {
      const float v = values[static_cast<size_t>(o * in + i)];
      const float scale =
          PowerScale(largest[static_cast<size_t>(o / 128 * across + i / 128)], 448.0F);
      const int sign = std::signbit(v) ? 128 : 0;
      codes.push_back(static_cast<uint8_t>(E4M3Code(std::fabs(v) / scale) | sign));
    }
  }
  std::vector<uint8_t> scales;
  for (const float block : largest) scales.push_back(ScaleCode(PowerScale(block, 448.0F)));
  stored.weight = Bytes(codes);
  stored.scale = Bytes(scales);
}

Stored Builder::Store(const std::vector<float>& values, int64_t out, int64_t in,
                      WeightFormat format) {
  Stored stored;
  tensor::DType type = tensor::DType::kI8;
  tensor::DType scale_type = tensor::DType::kF8E8M0;
  switch (format) {
    case WeightFormat::kF32:
      type = tensor::DType::kF32;
      stored.weight = Bytes(values);
      break;
    case WeightFormat::kBf16: {
      type = tensor::DType::kBf16;
      std::vector<tensor::BFloat16> rounded;
      for (const float v : values) rounded.push_back(tensor::ToBFloat16(v));
      stored.weight = Bytes(rounded);
      break;
    }
    case WeightFormat::kFp8Block:
      type = tensor::DType::kF8E4M3;
      StoreFp8(values, out, in, stored);
      break;
    case WeightFormat::kFp4:
      StoreFp4(values, out, in, stored);
      break;
    case WeightFormat::kInt8:
    case WeightFormat::kInt4:
      scale_type = tensor::DType::kF32;
      StoreIntegers(values, out, in, format == WeightFormat::kInt8 ? 127 : 7, stored);
      break;
  }
  stored.source = {format, out, in, stored.weight.data(), type, stored.scale.data(), scale_type};
  return stored;
}

HyperConnection Builder::MakeHyperConnection(const std::string& prefix, int64_t outputs,
                                             int64_t scales) {
  const int64_t in = config_.hc_mult * config_.hidden_size;
  Stored fn;
  const std::span<const float> values = Vector(prefix + "_fn", outputs * in, 1.0F / 16, 0.0F);
  fn.source = {WeightFormat::kF32,
               outputs,
               in,
               reinterpret_cast<const std::byte*>(values.data()),
               tensor::DType::kF32,
               nullptr,
               tensor::DType::kF32};
  return {PackAs(fn, WeightFormat::kF32), Vector(prefix + "_base", outputs, 1.0F, 0.0F),
          Vector(prefix + "_scale", scales, 0.5F, 1.0F)};
}

Compressor Builder::MakeCompressor(const std::string& prefix, int64_t ratio, int64_t dim) {
  const int64_t cols = (ratio == 4 ? 2 : 1) * dim;
  return {Linear(prefix + "wkv", cols, config_.hidden_size, Plain()),
          Linear(prefix + "wgate", cols, config_.hidden_size, Plain()),
          Vector(prefix + "ape", ratio * cols, 2.0F, 0.0F), Norm(prefix + "norm", dim)};
}

model::Attention Builder::MakeAttention(const std::string& prefix, int64_t ratio) {
  const ModelConfig& c = config_;
  model::Attention a;
  a.wq_a = Linear(prefix + "wq_a", c.q_lora_rank, c.hidden_size, Attention());
  a.q_norm = Norm(prefix + "q_norm", c.q_lora_rank);
  a.wq_b = Linear(prefix + "wq_b", c.num_heads * c.head_dim, c.q_lora_rank, Attention());
  a.wkv = Linear(prefix + "wkv", c.head_dim, c.hidden_size, Attention());
  a.kv_norm = Norm(prefix + "kv_norm", c.head_dim);
  const int64_t group_in = c.num_heads * c.head_dim / c.o_groups;
  const std::vector<float> wo_a =
      LinearValues(prefix + "wo_a", c.o_groups * c.o_lora_rank, group_in, 1.0F);
  for (int64_t g = 0; g < c.o_groups; ++g) {
    const auto begin = wo_a.begin() + g * c.o_lora_rank * group_in;
    const std::vector<float> slice(begin, begin + c.o_lora_rank * group_in);
    a.wo_a.push_back(PackAs(Store(slice, c.o_lora_rank, group_in, Output()), Output()));
  }
  a.wo_b = Linear(prefix + "wo_b", c.hidden_size, c.o_groups * c.o_lora_rank, Output());
  a.sink = Vector(prefix + "attn_sink", c.num_heads, 2.0F, 0.0F);
  if (ratio > 0) a.compressor = MakeCompressor(prefix + "compressor.", ratio, c.head_dim);
  if (ratio != 4) return a;
  const std::string indexer = prefix + "indexer.";
  a.indexer.wq_b =
      Linear(indexer + "wq_b", c.index_heads * c.index_head_dim, c.q_lora_rank, Attention());
  a.indexer.weights_proj = Linear(indexer + "weights_proj", c.index_heads, c.hidden_size, Plain());
  a.indexer.compressor = MakeCompressor(indexer + "compressor.", ratio, c.index_head_dim);
  return a;
}

Expert Builder::MakeExpert(const std::string& prefix, WeightFormat format) {
  const int64_t f = config_.expert_size;
  const int64_t h = config_.hidden_size;
  return {Linear(prefix + "w1", f, h, format, 8.0F), Linear(prefix + "w3", f, h, format, 8.0F),
          Linear(prefix + "w2", h, f, format, 1.0F / 16)};
}

std::span<const int32_t> Builder::ExpertTable() {
  const int64_t k = config_.experts_per_token;
  const int64_t experts = config_.num_experts;
  std::span<int32_t> table = memory_->Ids(config_.vocab_size * k);
  for (int64_t t = 0; t < config_.vocab_size; ++t) {
    const int64_t first = (5 * t + 3) % experts;
    for (int64_t j = 0; j < k; ++j) {
      const int64_t id = j == 0 ? first : (first + 1 + (t + j - 1) % (experts - 1)) % experts;
      table[static_cast<size_t>(t * k + j)] = static_cast<int32_t>(id);
    }
  }
  return table;
}

Moe Builder::MakeMoe(const std::string& prefix, bool hash) {
  const ModelConfig& c = config_;
  Moe moe;
  moe.router = Linear(prefix + "gate", c.num_experts, c.hidden_size, WeightFormat::kF32, 2.0F);
  if (hash) {
    moe.token_experts = ExpertTable();
  } else {
    moe.router_bias = Vector(prefix + "gate.bias", c.num_experts, 0.125F, 0.0F);
  }
  for (int64_t e = 0; e < c.num_experts; ++e) {
    moe.experts.push_back(MakeExpert(prefix + "experts." + std::to_string(e) + ".", Routed()));
  }
  CHECK_EQ(c.num_shared_experts, 1);
  moe.shared.push_back(MakeExpert(prefix + "shared_experts.", Shared()));
  return moe;
}

Layer Builder::MakeLayer(const std::string& prefix, int64_t ratio, bool hash) {
  const int64_t mixes = config_.hc_mult * (2 + config_.hc_mult);
  Layer layer;
  layer.attn_hc = MakeHyperConnection(prefix + "hc_attn", mixes, 3);
  layer.attn_norm = Norm(prefix + "attn_norm", config_.hidden_size);
  layer.attention = MakeAttention(prefix + "attn.", ratio);
  layer.ffn_hc = MakeHyperConnection(prefix + "hc_ffn", mixes, 3);
  layer.ffn_norm = Norm(prefix + "ffn_norm", config_.hidden_size);
  layer.moe = MakeMoe(prefix + "ffn.", hash);
  return layer;
}

Embedding Builder::MakeEmbedding(const std::string& name, int64_t size) {
  Embedding embedding;
  const int64_t count = config_.vocab_size * size;
  const std::span<const float> values = Vector(name, count, 1.0F, 0.0F);
  if (reference_ || storage_ == Storage::kF32) {
    embedding.f32 = values;
    return embedding;
  }
  std::span<tensor::BFloat16> rounded = memory_->Bf16(count);
  std::transform(values.begin(), values.end(), rounded.begin(), tensor::ToBFloat16);
  embedding.bf16 = rounded;
  return embedding;
}

DrafterWeights Builder::MakeDrafter() {
  const ModelConfig& c = config_;
  const int64_t h = c.hidden_size;
  DrafterWeights weights;
  if (c.drafter == DrafterKind::kNone) return weights;
  for (int64_t i = 0; i < c.num_draft_blocks; ++i) {
    weights.layers.push_back(MakeLayer("mtp." + std::to_string(i) + ".", 0, false));
  }
  const std::string last = "mtp." + std::to_string(c.num_draft_blocks - 1) + ".";
  weights.head_hc = MakeHyperConnection(last + "hc_head", c.hc_mult, 1);
  weights.norm = Norm(last + "norm", h);
  if (c.drafter == DrafterKind::kMtp) {
    weights.enorm = Norm("mtp.0.enorm", h);
    weights.hnorm = Norm("mtp.0.hnorm", h);
    weights.e_proj = Linear("mtp.0.e_proj", h, h, Output());
    weights.h_proj = Linear("mtp.0.h_proj", h, h, Output());
    return weights;
  }
  const auto targets = static_cast<int64_t>(c.dspark.target_layers.size());
  const int64_t rank = c.dspark.markov_rank;
  weights.main_proj = Linear("mtp.0.main_proj", h, h * targets, Output());
  weights.main_norm = Norm("mtp.0.main_norm", h);
  weights.markov_w1 = MakeEmbedding(last + "markov_head.markov_w1.weight", rank);
  weights.markov_w2 = Linear(last + "markov_head.markov_w2", c.vocab_size, rank, Plain());
  const std::vector<float> confidence =
      LinearValues(last + "confidence_head.proj", 1, h + rank, 1.0F);
  const std::span<float> kept = memory_->Floats(h + rank);
  std::copy(confidence.begin(), confidence.end(), kept.begin());
  weights.confidence = kept;
  return weights;
}

Weights Builder::Build() {
  const ModelConfig& c = config_;
  Weights weights;
  weights.embed = MakeEmbedding("embed.weight", c.hidden_size);
  for (int64_t n = 0; n < c.num_layers; ++n) {
    weights.layers.push_back(
        MakeLayer("layers." + std::to_string(n) + ".", c.Ratio(n), c.IsHashLayer(n)));
  }
  weights.head_hc = MakeHyperConnection("hc_head", c.hc_mult, 1);
  weights.norm = Norm("norm", c.hidden_size);
  weights.head = Linear("head", c.vocab_size, c.hidden_size, Plain());
  weights.drafter = MakeDrafter();
  weights.storage = std::move(memory_);
  return weights;
}

}  // namespace

ModelConfig TinyConfig() {
  ModelConfig c;
  c.hidden_size = 256;
  c.num_layers = 7;
  c.vocab_size = 512;
  c.max_position = 1048576;
  c.num_heads = 8;
  c.head_dim = 128;
  c.rope_dim = 64;
  c.q_lora_rank = 128;
  c.o_lora_rank = 64;
  c.o_groups = 2;
  c.sliding_window = 16;
  c.compress_ratios = {0, 0, 4, 128, 4, 128, 4, 0};
  c.index_heads = 16;
  c.index_head_dim = 128;
  c.index_topk = 8;
  c.num_experts = 8;
  c.num_shared_experts = 1;
  c.experts_per_token = 2;
  c.expert_size = 128;
  c.num_hash_layers = 3;
  c.routed_scaling_factor = 1.5F;
  c.swiglu_limit = 10.0F;
  c.hc_mult = 4;
  c.hc_sinkhorn_iters = 20;
  c.hc_eps = 1e-6F;
  c.rms_norm_eps = 1e-6F;
  c.rope_theta = 10000;
  c.compress_rope_theta = 160000;
  c.rope_scaling = {.factor = 16, .original_max_position = 65536, .beta_fast = 32, .beta_slow = 1};
  c.bos_token = 0;
  c.eos_tokens = {1};
  c.num_draft_blocks = 1;
  return c;
}

ModelConfig TinyConfig(DrafterKind drafter) {
  ModelConfig c = TinyConfig();
  c.drafter = drafter;
  if (drafter != DrafterKind::kDspark) return c;
  c.num_draft_blocks = 3;
  c.dspark = {.block_size = 5, .noise_token = 511, .target_layers = {4, 5, 6}, .markov_rank = 32};
  return c;
}

Weights MakeWeights(const ModelConfig& config, Storage storage, bool reference) {
  return Builder(config, storage, reference).Build();
}

std::vector<int32_t> StandardTokens(const ModelConfig& config, int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>((37 * i + 11 + i * i % 13) % config.vocab_size));
  }
  return tokens;
}

}  // namespace fulgur::model::testing
