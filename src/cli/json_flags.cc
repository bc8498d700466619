#include "cli/json_flags.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "base/status_macros.h"
#include "cli/near_miss.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kLoaderKeys[] = {"enable_multithread_load", "num_threads",
                                            "enable_weights_track"};
constexpr std::string_view kTransferKeys[] = {"kv_connector",
                                              "kv_role",
                                              "engine_id",
                                              "kv_port",
                                              "kv_ip",
                                              "kv_buffer_device",
                                              "kv_buffer_size",
                                              "kv_rank",
                                              "kv_parallel_size",
                                              "kv_load_failure_policy",
                                              "kv_connector_module_path",
                                              "kv_connector_extra_config",
                                              "enable_permute_local_kv"};
constexpr std::string_view kRoles[] = {"kv_producer", "kv_consumer", "kv_both"};
constexpr std::string_view kFailurePolicies[] = {"fail", "recompute"};
constexpr std::string_view kHardwareSwitches[] = {
    "enable_cpu_binding",          "multistream_overlap_shared_expert",
    "enable_shared_expert_dp",     "enable_dsa_cp",
    "recompute_scheduler_enable",  "enable_flashcomm1",
    "multistream_dsv4_dsa_overlap"};

bool IsOneOf(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

absl::Status WrongValue(std::string_view flag, std::string_view key, const json& found,
                        std::string_view accepted) {
  return absl::InvalidArgumentError(
      fmt::format("--{}: {} must be {}, not {}", flag, key, accepted,
                  found.dump(-1, ' ', false, json::error_handler_t::replace)));
}

absl::Status CheckKeys(std::string_view flag, const json& object,
                       std::span<const std::string_view> known) {
  for (const auto& item : object.items()) {
    if (IsOneOf(item.key(), known)) continue;
    const auto near = NearMiss(item.key(), known);
    return absl::InvalidArgumentError(fmt::format(
        "--{}: unexpected key '{}'{}; accepted are {}", flag, item.key(),
        near ? fmt::format(", did you mean '{}'?", *near) : "", fmt::join(known, ", ")));
  }
  return absl::OkStatus();
}

absl::Status CheckBool(std::string_view flag, const json& object, std::string_view key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_boolean()) return absl::OkStatus();
  return WrongValue(flag, key, *found, "a bool, true or false without quotes");
}

absl::Status CheckPositive(std::string_view flag, const json& object, std::string_view key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return absl::OkStatus();
  if (found->is_number_integer() && *found >= 1) return absl::OkStatus();
  return WrongValue(flag, key, *found, "a positive integer");
}

absl::Status CheckWord(std::string_view flag, const json& object, std::string_view key,
                       std::span<const std::string_view> words) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return absl::OkStatus();
  if (found->is_string() && IsOneOf(found->get_ref<const std::string&>(), words)) {
    return absl::OkStatus();
  }
  return WrongValue(flag, key, *found, fmt::format("one of {}", fmt::join(words, ", ")));
}

absl::Status CheckLoader(const FlagValues& values) {
  constexpr std::string_view kFlag = "model-loader-extra-config";
  const json object = values.Json(kFlag);
  if (object.is_null()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckKeys(kFlag, object, kLoaderKeys));
  RETURN_IF_ERROR(CheckBool(kFlag, object, "enable_multithread_load"));
  RETURN_IF_ERROR(CheckBool(kFlag, object, "enable_weights_track"));
  RETURN_IF_ERROR(CheckPositive(kFlag, object, "num_threads"));
  const std::string strategy = values.String("safetensors-load-strategy");
  if (object.value("enable_multithread_load", false) && !strategy.empty() && strategy != "lazy") {
    return absl::InvalidArgumentError(
        fmt::format("--{}: enable_multithread_load conflicts with --safetensors-load-strategy {}: "
                    "each decides how files are read; drop one of them",
                    kFlag, strategy));
  }
  return absl::OkStatus();
}

absl::Status CheckTransfer(const FlagValues& values) {
  constexpr std::string_view kFlag = "kv-transfer-config";
  const json object = values.Json(kFlag);
  if (object.is_null()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckKeys(kFlag, object, kTransferKeys));
  RETURN_IF_ERROR(CheckWord(kFlag, object, "kv_role", kRoles));
  RETURN_IF_ERROR(CheckWord(kFlag, object, "kv_load_failure_policy", kFailurePolicies));
  if (object.contains("kv_connector") && !object.contains("kv_role")) {
    return absl::InvalidArgumentError(
        fmt::format("--{}: a kv_connector needs a kv_role: {}", kFlag, fmt::join(kRoles, ", ")));
  }
  return absl::OkStatus();
}

absl::Status CheckHardware(const FlagValues& values) {
  constexpr std::string_view kFlag = "additional-config";
  const json object = values.Json(kFlag);
  if (object.is_null()) return absl::OkStatus();
  for (std::string_view key : kHardwareSwitches) RETURN_IF_ERROR(CheckBool(kFlag, object, key));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckJsonFlags(const FlagValues& values) {
  RETURN_IF_ERROR(CheckLoader(values));
  RETURN_IF_ERROR(CheckTransfer(values));
  return CheckHardware(values);
}

}  // namespace fulgur::cli
