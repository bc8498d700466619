#include "cli/config_file.h"

#include <set>
#include <utility>

#include "base/status_macros.h"
#include "cli/words.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "yaml-cpp/yaml.h"

namespace fulgur::cli {
namespace {

// Quoted scalars carry the tag "!": they are texts whatever they spell.
bool IsQuoted(const YAML::Node& node) { return node.Tag() == "!"; }

std::optional<bool> AsBool(const YAML::Node& node) {
  bool value = false;
  if (IsQuoted(node) || !YAML::convert<bool>::decode(node, value)) return std::nullopt;
  return value;
}

nlohmann::json ScalarToJson(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (IsQuoted(node)) return text;
  if (const auto flag = AsBool(node)) return *flag;
  if (const auto integer = ParseWhole<int64_t>(text)) return *integer;
  if (const auto number = ParseWhole<double>(text)) return *number;
  return text;
}

nlohmann::json ToJson(const YAML::Node& node) {
  if (node.IsMap()) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& entry : node) object[entry.first.Scalar()] = ToJson(entry.second);
    return object;
  }
  if (node.IsSequence()) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& item : node) list.push_back(ToJson(item));
    return list;
  }
  return node.IsScalar() ? ScalarToJson(node) : nlohmann::json();
}

absl::Status SetSwitch(const YAML::Node& value, FlagOccurrence& flag) {
  const auto on = value.IsScalar() ? AsBool(value) : std::nullopt;
  if (!on) return absl::InvalidArgumentError("write true or false, without quotes");
  if (!*on) flag.negated = !flag.negated;
  return absl::OkStatus();
}

absl::Status SetWords(const YAML::Node& value, FlagOccurrence& flag) {
  const FlagType type = flag.flag->type;
  if (value.IsScalar()) {
    flag.words = {value.Scalar()};
  } else if ((value.IsMap() && type == FlagType::kJson) ||
             (value.IsSequence() && (type == FlagType::kJsonList || !flag.path.empty()))) {
    flag.words = {ToJson(value).dump()};
  } else if (value.IsSequence() && type == FlagType::kTextList) {
    for (const auto& item : value) {
      if (!item.IsScalar()) return absl::InvalidArgumentError("every item must be one text");
      flag.words.push_back(item.Scalar());
    }
  } else {
    return absl::InvalidArgumentError(fmt::format("give {}", DescribeAccepted(*flag.flag)));
  }
  return absl::OkStatus();
}

absl::StatusOr<FlagOccurrence> ReadEntry(const FlagTable& table, const std::string& key,
                                         const YAML::Node& value) {
  ASSIGN_OR_RETURN(FlagOccurrence flag, ResolveFlag(table, fmt::format("--{}", key)));
  flag.from_file = true;
  if (flag.flag->name == "config") {
    return absl::InvalidArgumentError("a config file cannot name another one");
  }
  const absl::Status status =
      flag.flag->type == FlagType::kBool ? SetSwitch(value, flag) : SetWords(value, flag);
  if (!status.ok()) return absl::InvalidArgumentError(fmt::format("{}: {}", key, Message(status)));
  return flag;
}

absl::Status ReadEntries(const FlagTable& table, const YAML::Node& root, ConfigFile& file) {
  std::set<std::string> seen;
  for (const auto& entry : root) {
    if (!entry.first.IsScalar()) return absl::InvalidArgumentError("keys must be flag names");
    const std::string key = entry.first.Scalar();
    if (!seen.insert(NormalizeName(key)).second) {
      return absl::InvalidArgumentError(fmt::format("{} is given twice", key));
    }
    if (entry.second.IsNull()) continue;
    if (key == "model" || key == "model_tag") {
      if (!entry.second.IsScalar()) return absl::InvalidArgumentError("model: give one path");
      file.positionals = {entry.second.Scalar()};
      continue;
    }
    ASSIGN_OR_RETURN(FlagOccurrence flag, ReadEntry(table, key, entry.second));
    file.flags.push_back(std::move(flag));
  }
  return absl::OkStatus();
}

absl::StatusOr<ConfigFile> Parse(const FlagTable& table, const std::string& path) {
  try {
    const YAML::Node root = YAML::LoadFile(path);
    ConfigFile file;
    if (root.IsNull()) return file;
    if (!root.IsMap()) return absl::InvalidArgumentError("it must be a map of flag names");
    RETURN_IF_ERROR(ReadEntries(table, root, file));
    return file;
  } catch (const YAML::BadFile&) {
    return absl::NotFoundError("it cannot be read");
  } catch (const YAML::ParserException& error) {
    return absl::InvalidArgumentError(
        fmt::format("line {} is not YAML: {}", error.mark.line + 1, error.msg));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(error.msg);
  }
}

}  // namespace

absl::StatusOr<ConfigFile> ReadConfigFile(const FlagTable& table, const std::string& path) {
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "No config file specified! Please check your command-line arguments.");
  }
  if (!path.ends_with(".yaml") && !path.ends_with(".yml")) {
    return absl::InvalidArgumentError(
        fmt::format("Config file must be of a yaml/yml type. {} given", path));
  }
  auto file = Parse(table, path);
  if (file.ok()) return file;
  return absl::InvalidArgumentError(fmt::format("--config {}: {}", path, Message(file.status())));
}

}  // namespace fulgur::cli
