#include "model/generation_config.h"

#include <limits>

#include "base/status_macros.h"
#include "io/json.h"
#include "model/config_fields.h"

namespace fulgur::model {
namespace {

std::optional<float> OptionalNumber(ConfigFields& fields, std::string_view name, double low,
                                    double high) {
  if (!fields.Has(name)) return std::nullopt;
  return fields.Number(name, low, high);
}

std::optional<int64_t> OptionalInt(ConfigFields& fields, std::string_view name, int64_t low) {
  if (!fields.Has(name)) return std::nullopt;
  return fields.Int(name, low, std::numeric_limits<int32_t>::max());
}

absl::StatusOr<GenerationConfig> Read(const io::JsonDocument& document, const std::string& source) {
  ASSIGN_OR_RETURN(const simdjson::dom::object root, io::RootObject(document, source));
  ConfigFields fields(root, source);
  GenerationConfig config;
  config.eos_tokens = fields.Tokens("eos_token_id", std::numeric_limits<int32_t>::max());
  if (fields.Has("do_sample")) config.do_sample = fields.Bool("do_sample", true);
  config.temperature = OptionalNumber(fields, "temperature", 0, 1e6);
  config.top_p = OptionalNumber(fields, "top_p", 0, 1);
  config.min_p = OptionalNumber(fields, "min_p", 0, 1);
  config.top_k = OptionalInt(fields, "top_k", -1);
  config.repetition_penalty = OptionalNumber(fields, "repetition_penalty", 0, 1e6);
  config.max_new_tokens = OptionalInt(fields, "max_new_tokens", 1);
  RETURN_IF_ERROR(fields.status());
  return config;
}

}  // namespace

absl::StatusOr<GenerationConfig> ParseGenerationConfig(std::string_view json) {
  const std::string source = "generation_config.json";
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::Parse(json, source));
  return Read(document, source);
}

absl::StatusOr<GenerationConfig> LoadGenerationConfig(const std::string& folder) {
  const std::string path = folder + "/generation_config.json";
  absl::StatusOr<io::JsonDocument> document = io::JsonDocument::ReadFile(path);
  if (absl::IsNotFound(document.status())) return GenerationConfig{};
  RETURN_IF_ERROR(document.status());
  return Read(*document, path);
}

}  // namespace fulgur::model
