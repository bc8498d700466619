#include "cli/speculative_config.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "base/status_macros.h"
#include "cli/near_miss.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fulgur::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kFlag = "--speculative-config";

// Keys with an effect here.
constexpr std::string_view kKeys[] = {"method",
                                      "num_speculative_tokens",
                                      "model",
                                      "adaptive",
                                      "enable_adaptive_verification",
                                      "verify_method",
                                      "rejection_sample_method",
                                      "synthetic_acceptance_length",
                                      "synthetic_acceptance_rates"};
// Keys of other servers that cannot change anything here.
constexpr std::string_view kIdleKeys[] = {"enforce_eager",
                                          "draft_sample_method",
                                          "draft_tensor_parallel_size",
                                          "max_model_len",
                                          "quantization",
                                          "revision",
                                          "attention_backend",
                                          "moe_backend",
                                          "kv_cache_dtype",
                                          "disable_padded_drafter_batch"};
constexpr std::string_view kMethods[] = {"dspark", "mtp", "auto", "none"};
constexpr std::string_view kVerifyMethods[] = {"exact", "rejection"};
constexpr std::string_view kRejectionMethods[] = {"standard", "synthetic"};
constexpr int64_t kManyMtpTokens = 4;

absl::Status Mistake(const std::string& sentence) { return absl::InvalidArgumentError(sentence); }

std::string Show(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::Status WrongValue(std::string_view key, const json& found, std::string_view accepted) {
  return Mistake(fmt::format("{}: {} must be {}, not {}", kFlag, key, accepted, Show(found)));
}

bool IsOneOf(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

absl::Status CheckKeys(const json& object) {
  for (const auto& item : object.items()) {
    if (IsOneOf(item.key(), kKeys) || IsOneOf(item.key(), kIdleKeys)) continue;
    const auto near = NearMiss(item.key(), kKeys);
    return Mistake(fmt::format("{}: unexpected key '{}'{}; accepted are {}", kFlag, item.key(),
                               near ? fmt::format(", did you mean '{}'?", *near) : "",
                               fmt::join(kKeys, ", ")));
  }
  return absl::OkStatus();
}

// The value of a key, unless it is absent or null.
const json* Find(const json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

absl::StatusOr<std::optional<std::string>> Word(const json& object, std::string_view key,
                                                std::span<const std::string_view> words) {
  const json* value = Find(object, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string() && IsOneOf(value->get_ref<const std::string&>(), words)) {
    return value->get<std::string>();
  }
  return WrongValue(key, *value, fmt::format("one of {}", fmt::join(words, ", ")));
}

absl::StatusOr<std::optional<bool>> Bool(const json& object, std::string_view key) {
  const json* value = Find(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) return WrongValue(key, *value, "a bool, true or false");
  return value->get<bool>();
}

absl::Status ReadMethod(const json& object, SpeculativeConfig& config) {
  const json* value = Find(object, "method");
  if (value == nullptr) return absl::OkStatus();
  if (!value->is_string()) return WrongValue("method", *value, "a text such as \"dspark\"");
  std::string name = value->get<std::string>();
  if (name == "deepseek_mtp") name = "mtp";
  if (!IsOneOf(name, kMethods)) {
    return Mistake(fmt::format(
        "{}: the method \"{}\" is not known here; DeepSeek-V4 checkpoints carry drafters for "
        "\"dspark\" or \"mtp\" (\"auto\" takes what is there, \"none\" drafts nothing)",
        kFlag, name));
  }
  config.enabled = name != "none";
  if (name == "dspark") config.method = model::DrafterKind::kDspark;
  if (name == "mtp") config.method = model::DrafterKind::kMtp;
  return absl::OkStatus();
}

absl::Status ReadNumber(const json& object, SpeculativeConfig& config) {
  const json* value = Find(object, "num_speculative_tokens");
  if (value == nullptr) return absl::OkStatus();
  if (!value->is_number_integer() || *value < 1) {
    return WrongValue("num_speculative_tokens", *value, "a positive integer");
  }
  config.num_tokens = value->get<int64_t>();
  return absl::OkStatus();
}

absl::Status ReadAdaptive(const json& object, std::optional<bool>& adaptive) {
  ASSIGN_OR_RETURN(adaptive, Bool(object, "adaptive"));
  ASSIGN_OR_RETURN(const std::optional<bool> alias, Bool(object, "enable_adaptive_verification"));
  if (alias && adaptive && *alias != *adaptive) {
    return Mistake(fmt::format(
        "{}: adaptive and enable_adaptive_verification mean the same and differ; drop one", kFlag));
  }
  if (!adaptive) adaptive = alias;
  return absl::OkStatus();
}

absl::Status ReadVerification(const json& object, SpeculativeConfig& config, bool& synthetic) {
  ASSIGN_OR_RETURN(const auto verify, Word(object, "verify_method", kVerifyMethods));
  const json* method = Find(object, "rejection_sample_method");
  if (method != nullptr && (*method == "block" || *method == "fly")) {
    return Mistake(fmt::format("{}: rejection_sample_method {} is not offered{}; accepted are {}",
                               kFlag, Show(*method),
                               *method == "fly" ? ", since it changes what is said" : "",
                               fmt::join(kRejectionMethods, ", ")));
  }
  ASSIGN_OR_RETURN(const auto rejection,
                   Word(object, "rejection_sample_method", kRejectionMethods));
  synthetic = rejection == "synthetic";
  const bool wants_rejection = verify == "rejection" || rejection == "standard";
  if (verify == "exact" && rejection == "standard") {
    return Mistake(fmt::format(
        "{}: verify_method \"exact\" and rejection_sample_method \"standard\" exclude each other; "
        "drop one",
        kFlag));
  }
  if (wants_rejection) config.verification = sample::VerifyMethod::kRejection;
  return absl::OkStatus();
}

absl::Status ReadRates(const json& object, SpeculativeConfig& config) {
  const json* rates = Find(object, "synthetic_acceptance_rates");
  if (rates == nullptr) return absl::OkStatus();
  constexpr std::string_view kAccepted = "a list of numbers from 1 down to 0, one per draft";
  if (!rates->is_array() || rates->empty()) {
    return WrongValue("synthetic_acceptance_rates", *rates, kAccepted);
  }
  double last = 1.0;
  for (const json& rate : *rates) {
    if (!rate.is_number() || !(rate >= 0.0) || !(rate <= last)) {
      return WrongValue("synthetic_acceptance_rates", *rates, kAccepted);
    }
    last = rate.get<double>();
    config.synthetic_rates.push_back(last);
  }
  return absl::OkStatus();
}

absl::Status ReadSynthetic(const json& object, bool synthetic, SpeculativeConfig& config) {
  RETURN_IF_ERROR(ReadRates(object, config));
  if (const json* length = Find(object, "synthetic_acceptance_length")) {
    if (!length->is_number() || !(*length >= 1.0) || !(*length <= 1.0 + sched::kMaxDrafts)) {
      return WrongValue("synthetic_acceptance_length", *length,
                        "a mean number of tokens per step, the last one included: 1 or more");
    }
    config.synthetic_length = length->get<double>();
  }
  const bool rates = !config.synthetic_rates.empty();
  const bool given = rates || config.synthetic_length.has_value();
  if (rates && config.synthetic_length) {
    return Mistake(fmt::format(
        "{}: synthetic_acceptance_length and synthetic_acceptance_rates say the same twice; drop "
        "one",
        kFlag));
  }
  if (synthetic == given) return absl::OkStatus();
  return Mistake(synthetic
                     ? fmt::format("{}: rejection_sample_method \"synthetic\" needs "
                                   "synthetic_acceptance_length or synthetic_acceptance_rates",
                                   kFlag)
                     : fmt::format("{}: synthetic acceptance makes answers meaningless and is for "
                                   "benchmarks; ask for it with \"rejection_sample_method\": "
                                   "\"synthetic\", or drop the key",
                                   kFlag));
}

absl::Status CheckIdleKeys(const json& object, SpeculativeConfig& config) {
  RETURN_IF_ERROR(Bool(object, "enforce_eager").status());
  const json* ranks = Find(object, "draft_tensor_parallel_size");
  if (ranks != nullptr && *ranks != 1) {
    return WrongValue("draft_tensor_parallel_size", *ranks, "1, as there is one worker");
  }
  for (const std::string_view key : kIdleKeys) {
    if (Find(object, key) == nullptr || key == "enforce_eager") continue;
    config.notes.push_back(fmt::format("{}: {} has no effect here", kFlag, key));
  }
  return absl::OkStatus();
}

// Puts the value of a short flag in its place, unless the long one says something else.
absl::Status Merge(json& object, std::string_view key, std::string_view flag, const json& value) {
  const json* there = Find(object, key);
  if (there != nullptr && *there != value) {
    return Mistake(fmt::format("{}: {} is {}, but --{} says {}; drop one", kFlag, key, Show(*there),
                               flag, Show(value)));
  }
  object[std::string(key)] = value;
  return absl::OkStatus();
}

absl::StatusOr<json> MergedObject(const FlagValues& values) {
  json object = values.Json("speculative-config");
  if (object.is_null()) object = json::object();
  if (const std::string method = values.String("spec-method"); !method.empty()) {
    RETURN_IF_ERROR(Merge(object, "method", "spec-method", method));
  }
  if (const std::string model = values.String("spec-model"); !model.empty()) {
    RETURN_IF_ERROR(Merge(object, "model", "spec-model", model));
  }
  if (const int64_t tokens = values.Int("spec-tokens"); tokens > 0) {
    RETURN_IF_ERROR(Merge(object, "num_speculative_tokens", "spec-tokens", tokens));
  }
  return object;
}

// Drafts 1, 2, ... always stand, and the one in which the mean ends in a share of the rounds.
std::vector<double> RatesOf(double length, int64_t num_drafts) {
  std::vector<double> rates;
  for (int64_t i = 0; i < num_drafts; ++i) {
    rates.push_back(std::clamp(length - 1.0 - static_cast<double>(i), 0.0, 1.0));
  }
  return rates;
}

std::string_view NameOf(model::DrafterKind kind) {
  return kind == model::DrafterKind::kDspark ? "DSpark" : "MTP";
}

}  // namespace

absl::StatusOr<SpeculativeConfig> ReadSpeculativeConfig(const FlagValues& values) {
  ASSIGN_OR_RETURN(const json object, MergedObject(values));
  SpeculativeConfig config;
  RETURN_IF_ERROR(CheckKeys(object));
  config.enabled = !object.empty();
  RETURN_IF_ERROR(ReadMethod(object, config));
  RETURN_IF_ERROR(ReadNumber(object, config));
  if (const json* model = Find(object, "model")) {
    if (!model->is_string()) return WrongValue("model", *model, "the folder of a drafter");
    config.model = model->get<std::string>();
  }
  bool synthetic = false;
  RETURN_IF_ERROR(ReadVerification(object, config, synthetic));
  RETURN_IF_ERROR(ReadSynthetic(object, synthetic, config));
  std::optional<bool> adaptive;
  RETURN_IF_ERROR(ReadAdaptive(object, adaptive));
  if (synthetic && adaptive.value_or(false)) {
    return Mistake(fmt::format(
        "{}: synthetic acceptance and \"adaptive\": true exclude each other, since a plan could "
        "verify fewer drafts than are to be accepted",
        kFlag));
  }
  config.adaptive = adaptive.value_or(!synthetic);
  RETURN_IF_ERROR(CheckIdleKeys(object, config));
  return config;
}

engine::SpeculationOptions ResolveSpeculation(SpeculativeConfig& config, model::DrafterKind drafter,
                                              int64_t trained) {
  const int64_t wanted = config.num_tokens.value_or(trained);
  const bool dspark = drafter == model::DrafterKind::kDspark;
  const int64_t most = dspark ? std::min<int64_t>(trained, sched::kMaxDrafts) : sched::kMaxDrafts;
  const int64_t given = std::min(wanted, most);
  if (given < wanted) {
    config.notes.push_back(fmt::format(
        "{}: num_speculative_tokens {} becomes {}, {}", kFlag, wanted, given,
        dspark ? "the width of the block that the drafter was trained for" : "the most there are"));
  } else if (!dspark && given > kManyMtpTokens) {
    config.notes.push_back(fmt::format(
        "{}: an MTP block was trained for {} draft; few of {} will stand", kFlag, trained, given));
  }
  engine::SpeculationOptions options{.num_drafts = static_cast<int32_t>(given),
                                     .adaptive = config.adaptive,
                                     .verification = config.verification,
                                     .synthetic_rates = config.synthetic_rates};
  if (config.synthetic_length) options.synthetic_rates = RatesOf(*config.synthetic_length, given);
  if (static_cast<int64_t>(options.synthetic_rates.size()) > given) {
    options.synthetic_rates.resize(static_cast<size_t>(given));
  }
  return options;
}

std::string DescribeSpeculation(const engine::SpeculationOptions& options,
                                model::DrafterKind drafter) {
  const std::string_view verification =
      !options.synthetic_rates.empty() ? "synthetic acceptance (answers are meaningless)"
      : options.verification == sample::VerifyMethod::kRejection
          ? "verified by rejection (the distribution of answers is unchanged)"
          : "verified by exact match (answers are unchanged)";
  return fmt::format("{}, {} {} drafts per step, {}", NameOf(drafter),
                     options.adaptive ? "up to" : "always", options.num_drafts, verification);
}

}  // namespace fulgur::cli
