#include "cli/serve_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "cli/words.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "text/chat_encoding.h"

namespace fulgur::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEffortScript = "encoding/encoding_dsv4.py";
constexpr uintmax_t kMaxScriptBytes = 1 << 20;

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// "organisation/name", as hubs call models.
bool LooksLikeHubName(const std::string& model) {
  return !model.starts_with('/') && !model.starts_with('.') &&
         std::count(model.begin(), model.end(), '/') == 1;
}

fs::path TokenizerFile(const std::string& tokenizer) {
  return IsFolder(tokenizer) ? fs::path(tokenizer) / "tokenizer.json" : fs::path(tokenizer);
}

absl::Status CheckTokenizerFile(const std::string& tokenizer) {
  const fs::path file = TokenizerFile(tokenizer);
  if (Exists(file)) return absl::OkStatus();
  return absl::NotFoundError(
      fmt::format("there is no tokenizer at {}; give one with --tokenizer, or serve token ids with "
                  "--skip-tokenizer-init",
                  file.string()));
}

void SetSampling(const model::GenerationConfig& config, server::SamplingDefaults& sampling) {
  if (config.temperature) sampling.temperature = *config.temperature;
  if (config.top_p) sampling.top_p = *config.top_p;
  if (config.top_k) sampling.top_k = static_cast<int32_t>(*config.top_k);
  if (config.min_p) sampling.min_p = *config.min_p;
  if (config.repetition_penalty) sampling.repetition_penalty = *config.repetition_penalty;
  if (config.max_new_tokens) sampling.max_new_tokens = config.max_new_tokens;
}

void AddTokens(const std::vector<int32_t>& more, std::vector<int32_t>& tokens) {
  for (int32_t token : more) {
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  }
}

absl::Status CompleteGeneration(ServeOptions& options) {
  if (options.generation_config != "vllm") {
    const bool from_model = options.generation_config == "auto";
    const std::string& folder = from_model ? options.model : options.generation_config;
    if (!from_model && !Exists(fs::path(folder) / "generation_config.json")) {
      return absl::NotFoundError(fmt::format(
          "--generation-config: {} has no generation_config.json; give auto, vllm or a folder",
          folder));
    }
    ASSIGN_OR_RETURN(const model::GenerationConfig config, model::LoadGenerationConfig(folder));
    SetSampling(config, options.server.sampling);
    AddTokens(config.eos_tokens, options.engine.eos_tokens);
  }
  SetSampling(options.generation_overrides, options.server.sampling);
  return absl::OkStatus();
}

// The start of the checkpoint's own encoder script, if it has one of sane size.
std::optional<std::string> ReadEffortScript(const fs::path& file) {
  std::error_code error;
  const uintmax_t size = fs::file_size(file, error);
  if (error || size > kMaxScriptBytes) return std::nullopt;
  std::ifstream stream(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

void CompleteEffortProfile(ServeOptions& options) {
  const auto name = [](text::EffortProfile profile) {
    return profile == text::EffortProfile::kOfficial ? "official" : "preview";
  };
  std::string reason = "as --dsv4-reasoning-effort-profile says";
  std::optional<text::EffortProfile> profile = options.effort_profile;
  if (!profile) {
    const auto script = ReadEffortScript(fs::path(options.model) / kEffortScript);
    if (script) profile = text::DetectEffortProfile(*script);
    reason = profile  ? fmt::format("as {} shows", kEffortScript)
             : script ? fmt::format("since {} does not tell", kEffortScript)
                      : fmt::format("since the checkpoint has no {}", kEffortScript);
  }
  options.server.chat.effort_profile = profile.value_or(text::EffortProfile::kPreview);
  spdlog::info("reasoning effort profile: {}, {}", name(options.server.chat.effort_profile),
               reason);
}

absl::Status CompleteModelLen(const model::ModelConfig& config, ServeOptions& options) {
  const int64_t given = options.max_model_len.value_or(config.max_position);
  if (given > config.max_position) {
    return absl::InvalidArgumentError(
        fmt::format("--max-model-len {} is above what the model was made for, {} tokens "
                    "(max_position_embeddings in config.json)",
                    given, config.max_position));
  }
  const bool fit = given < 0;
  const int64_t length = fit ? config.max_position : given;
  options.engine.memory.shorten_to_fit = fit;
  options.engine.memory.max_model_len = length;
  options.engine.limits.max_model_len = length;
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckModelFolder(const std::string& model) {
  if (!Exists(model)) {
    return absl::NotFoundError(fmt::format(
        "the model folder {} does not exist{}", model,
        LooksLikeHubName(model)
            ? "; if this is a name on a hub, download it first and give the folder's path"
            : ""));
  }
  if (!IsFolder(model)) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is a file; give the folder of a checkpoint, with its config.json and *.safetensors",
        model));
  }
  if (!Exists(fs::path(model) / "config.json")) {
    return absl::NotFoundError(fmt::format(
        "{} has no config.json; give the folder of a checkpoint in Hugging Face's layout", model));
  }
  return absl::OkStatus();
}

absl::Status CheckFiles(const ServeOptions& options) {
  if (options.script.empty()) {
    RETURN_IF_ERROR(CheckModelFolder(options.model));
  } else if (!Exists(options.script)) {
    return absl::NotFoundError(fmt::format("--scripted-output: {} does not exist", options.script));
  } else if (IsFolder(options.script)) {
    return absl::InvalidArgumentError(fmt::format(
        "--scripted-output: {} is a folder; give a file of JSON lines", options.script));
  }
  if (options.tokenizer.empty()) return absl::OkStatus();
  return CheckTokenizerFile(options.tokenizer);
}

absl::StatusOr<text::Tokenizer> LoadTokenizer(const ServeOptions& options) {
  const fs::path file = TokenizerFile(options.tokenizer);
  ASSIGN_OR_RETURN(text::Tokenizer tokenizer, text::Tokenizer::Load(file));
  const absl::Status tokens = text::CheckChatTokens(tokenizer);
  if (!tokens.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a tokenizer of DeepSeek-V4: {}", file.string(), Message(tokens)));
  }
  return tokenizer;
}

absl::StatusOr<model::ModelConfig> CompleteFromCheckpoint(ServeOptions& options) {
  ASSIGN_OR_RETURN(model::ModelConfig config, model::LoadConfig(options.model));
  RETURN_IF_ERROR(CompleteModelLen(config, options));
  AddTokens(config.eos_tokens, options.engine.eos_tokens);
  RETURN_IF_ERROR(CompleteGeneration(options));
  CompleteEffortProfile(options);
  return config;
}

}  // namespace fulgur::cli
