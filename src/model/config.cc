#include "model/config.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "fmt/format.h"
#include "io/json.h"
#include "model/config_fields.h"
#include "model/generation_config.h"

namespace fulgur::model {
namespace {

// Far above any model of this architecture; they keep every product of sizes inside int64, and the
// int32 sums of integer weights over kMaxSize inputs inside int32.
constexpr int64_t kMaxSize = int64_t{1} << 16;
constexpr int64_t kMaxCount = int64_t{1} << 14;
constexpr int64_t kMaxLayers = 512;
constexpr int64_t kMaxExperts = 1024;
constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
constexpr int64_t kMaxPositions = int64_t{1} << 30;

absl::Status CheckArchitecture(const ConfigFields& fields, const std::string& source) {
  const auto value = fields.Find("model_type");
  if (!value.has_value() || simdjson::minify(*value) != "\"deepseek_v4\"") {
    return absl::UnimplementedError(fmt::format(
        "{}: \"model_type\" is {}; the only architecture that this program runs is "
        "\"deepseek_v4\"",
        source, value.has_value() ? io::Shortened(simdjson::minify(*value)) : "missing"));
  }
  const auto names = fields.Find("architectures");
  if (!names.has_value()) return absl::OkStatus();
  const std::string text = simdjson::minify(*names);
  if (text == R"(["DeepseekV4ForCausalLM"])") return absl::OkStatus();
  return absl::UnimplementedError(
      fmt::format("{}: \"architectures\" is {}; the only architecture that this program runs is "
                  "\"DeepseekV4ForCausalLM\"",
                  source, io::Shortened(text)));
}

// Fields whose only known value is built into the forward pass.
void CheckFixedChoices(ConfigFields& fields) {
  fields.RequireInt("num_key_value_heads", 1);
  fields.RequireInt("n_shared_experts", 1);
  fields.RequireText("scoring_func", "sqrtsoftplus");
  fields.RequireText("topk_method", "noaux_tc");
  fields.RequireText("hidden_act", "silu");
  fields.RequireFalse("attention_bias");
  fields.RequireFalse("tie_word_embeddings");
}

void ReadAttention(ConfigFields& fields, ModelConfig& config) {
  config.num_heads = fields.Int("num_attention_heads", 1, kMaxCount);
  config.head_dim = fields.Int("head_dim", 2, kMaxCount);
  config.rope_dim = fields.Int("qk_rope_head_dim", 2, config.head_dim);
  if (config.rope_dim % 2 != 0) fields.Refuse("qk_rope_head_dim", "an even number");
  config.q_lora_rank = fields.Int("q_lora_rank", 1, kMaxSize);
  config.o_lora_rank = fields.Int("o_lora_rank", 1, kMaxSize);
  config.o_groups = fields.Int("o_groups", 1, kMaxCount);
  if (config.num_heads % config.o_groups != 0) {
    fields.Refuse("o_groups", fmt::format("a divisor of the {} attention heads", config.num_heads));
  }
  if (config.num_heads * config.head_dim / config.o_groups > kMaxSize) {
    fields.Refuse("head_dim", fmt::format("at most {} inputs for an output group", kMaxSize));
  }
  if (config.o_groups * config.o_lora_rank > kMaxSize) {
    fields.Refuse("o_lora_rank", fmt::format("at most {} over all output groups", kMaxSize));
  }
  config.sliding_window = fields.Int("sliding_window", 1, kMaxPositions);
}

// Some engines write 1 for "no compression".
void ReadRatios(ConfigFields& fields, ModelConfig& config) {
  config.compress_ratios = fields.Ints("compress_ratios", 0, 128, true);
  const auto layers = static_cast<size_t>(config.num_layers);
  if (config.compress_ratios.size() < layers) {
    fields.Refuse("compress_ratios",
                  fmt::format("at least {} entries, one for each layer", layers));
    config.compress_ratios.resize(layers, 0);
  }
  for (int64_t& ratio : config.compress_ratios) {
    if (ratio == 1) ratio = 0;
    if (ratio != 0 && ratio != 4 && ratio != 128) {
      fields.Refuse("compress_ratios", "a list of 0, 1, 4 and 128");
    }
  }
}

void ReadIndexer(ConfigFields& fields, ModelConfig& config) {
  const auto main_end = config.compress_ratios.begin() + config.num_layers;
  const bool used = std::find(config.compress_ratios.begin(), main_end, 4) != main_end;
  if (!used) return;
  config.index_heads = fields.Int("index_n_heads", 1, kMaxCount);
  config.index_head_dim = fields.Int("index_head_dim", config.rope_dim, kMaxCount);
  config.index_topk = fields.Int("index_topk", 1, kMaxPositions);
}

void ReadExperts(ConfigFields& fields, ModelConfig& config) {
  config.num_experts = fields.Int("n_routed_experts", 1, kMaxExperts);
  config.num_shared_experts = 1;
  config.experts_per_token = fields.Int("num_experts_per_tok", 1, config.num_experts);
  config.expert_size = fields.Int("moe_intermediate_size", 1, kMaxSize);
  config.num_hash_layers = fields.Int("num_hash_layers", 0, config.num_layers, 0);
  config.routed_scaling_factor = fields.Number("routed_scaling_factor", 0, 1e6, 1.0F);
  config.norm_topk_prob = fields.Bool("norm_topk_prob", true);
  config.swiglu_limit = fields.Number("swiglu_limit", 0, 1e6, 0.0F);
}

void ReadHyperConnections(ConfigFields& fields, ModelConfig& config) {
  config.hc_mult = fields.Int("hc_mult", 1, 64);
  config.hc_sinkhorn_iters = fields.Int("hc_sinkhorn_iters", 1, 1000);
  config.hc_eps = fields.Number("hc_eps", 0, 1);
}

// Both spellings of the kind are published: "type" and "rope_type".
absl::StatusOr<RopeScaling> ReadRopeScaling(const ConfigFields& fields, const std::string& source) {
  RopeScaling scaling;
  const auto value = fields.Find("rope_scaling");
  if (!value.has_value()) return scaling;
  simdjson::dom::object object;
  if (value->get(object) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        fmt::format("{}: \"rope_scaling\" is not a JSON object or null", source));
  }
  ConfigFields rope(object, source + ": rope_scaling");
  const char* kind = rope.Has("rope_type") ? "rope_type" : "type";
  if (!rope.Has(kind)) rope.Refuse(kind, "\"yarn\"");
  rope.RequireText(kind, "yarn");
  scaling.factor = rope.Number("factor", 1, 1e6);
  scaling.original_max_position = rope.Int("original_max_position_embeddings", 1, kMaxPositions);
  scaling.beta_fast = rope.Number("beta_fast", 1e-3, 1e6, 32.0F);
  scaling.beta_slow = rope.Number("beta_slow", 1e-3, 1e6, 1.0F);
  RETURN_IF_ERROR(rope.status());
  return scaling;
}

void ReadDrafts(ConfigFields& fields, ModelConfig& config) {
  config.num_draft_blocks = fields.Int("num_nextn_predict_layers", 0, 64, 0);
  if (!fields.Has("dspark_block_size")) return;
  DsparkConfig& dspark = config.dspark;
  dspark.block_size = fields.Int("dspark_block_size", 1, 64);
  // Some conversions name the noise token as mask-predict models do.
  const bool has_noise = fields.Has("dspark_noise_token_id") || !fields.Has("mask_token_id");
  const char* noise = has_noise ? "dspark_noise_token_id" : "mask_token_id";
  dspark.noise_token = static_cast<int32_t>(fields.Int(noise, 0, config.vocab_size - 1));
  dspark.target_layers = fields.Ints("dspark_target_layer_ids", 0, config.num_layers - 1, true);
  if (!std::is_sorted(dspark.target_layers.begin(), dspark.target_layers.end(),
                      std::less_equal<>())) {
    fields.Refuse("dspark_target_layer_ids", "layers in ascending order");
  }
  dspark.markov_rank = fields.Int("dspark_markov_rank", 1, kMaxSize);
}

void ReadVocabulary(ConfigFields& fields, ModelConfig& config) {
  config.vocab_size = fields.Int("vocab_size", 2, kMaxVocabulary);
  config.bos_token = static_cast<int32_t>(fields.Int("bos_token_id", 0, config.vocab_size - 1, 0));
  config.eos_tokens = fields.Tokens("eos_token_id", config.vocab_size);
}

// The FP8 layout that the reader knows. Which tensors have it, their own types say.
absl::Status CheckQuantization(const ConfigFields& fields, const std::string& source) {
  const auto value = fields.Find("quantization_config");
  if (!value.has_value()) return absl::OkStatus();
  simdjson::dom::object object;
  if (value->get(object) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        fmt::format("{}: \"quantization_config\" is not a JSON object", source));
  }
  ConfigFields quantization(object, source + ": quantization_config");
  if (!quantization.Has("quant_method")) quantization.Refuse("quant_method", "\"fp8\"");
  quantization.RequireText("quant_method", "fp8");
  quantization.RequireText("fmt", "e4m3");
  quantization.RequireText("activation_scheme", "dynamic");
  const auto block = quantization.Find("weight_block_size");
  if (!block.has_value() || simdjson::minify(*block) != "[128,128]") {
    quantization.Refuse("weight_block_size", "[128,128]");
  }
  return quantization.status();
}

absl::StatusOr<ModelConfig> ReadConfig(const io::JsonDocument& document,
                                       const std::string& source) {
  ASSIGN_OR_RETURN(const simdjson::dom::object root, io::RootObject(document, source));
  ConfigFields fields(root, source);
  RETURN_IF_ERROR(CheckArchitecture(fields, source));
  CheckFixedChoices(fields);
  ModelConfig config;
  config.hidden_size = fields.Int("hidden_size", 1, kMaxSize);
  config.num_layers = fields.Int("num_hidden_layers", 1, kMaxLayers);
  config.max_position = fields.Int("max_position_embeddings", 1, kMaxPositions);
  config.rms_norm_eps = fields.Number("rms_norm_eps", 0, 1);
  config.rope_theta = fields.Number("rope_theta", 1, 1e12);
  config.compress_rope_theta = fields.Number("compress_rope_theta", 1, 1e12);
  ReadVocabulary(fields, config);
  ReadAttention(fields, config);
  ReadRatios(fields, config);
  ReadIndexer(fields, config);
  ReadExperts(fields, config);
  ReadHyperConnections(fields, config);
  ReadDrafts(fields, config);
  RETURN_IF_ERROR(fields.status());
  RETURN_IF_ERROR(CheckQuantization(fields, source));
  ASSIGN_OR_RETURN(config.rope_scaling, ReadRopeScaling(fields, source));
  return config;
}

}  // namespace

absl::StatusOr<ModelConfig> ParseConfig(std::string_view json) {
  const std::string source = "config.json";
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::Parse(json, source));
  return ReadConfig(document, source);
}

absl::StatusOr<ModelConfig> LoadConfig(const std::string& folder) {
  const std::string path = folder + "/config.json";
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::ReadFile(path));
  ASSIGN_OR_RETURN(ModelConfig config, ReadConfig(document, path));
  ASSIGN_OR_RETURN(const GenerationConfig generation, LoadGenerationConfig(folder));
  for (const int32_t token : generation.eos_tokens) {
    if (token >= config.vocab_size) {
      return absl::InvalidArgumentError(
          fmt::format("{}/generation_config.json: \"eos_token_id\" names token {}, but the "
                      "vocabulary has {} tokens",
                      folder, token, config.vocab_size));
    }
    const auto& known = config.eos_tokens;
    if (std::find(known.begin(), known.end(), token) == known.end()) {
      config.eos_tokens.push_back(token);
    }
  }
  return config;
}

}  // namespace fulgur::model
