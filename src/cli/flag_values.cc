#include "cli/flag_values.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "cli/words.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

bool Contains(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool IsNumeric(FlagType type) {
  return type == FlagType::kInt || type == FlagType::kCount || type == FlagType::kFloat;
}

bool HasRange(const FlagSpec& flag) {
  return std::isfinite(flag.range.min) || std::isfinite(flag.range.max);
}

std::string Number(double value) { return fmt::format("{}", value); }

std::string DescribeRange(const Range& range) {
  std::string text;
  if (std::isfinite(range.min)) {
    text = fmt::format("{}{}", range.above_min ? "above " : "at least ", Number(range.min));
  }
  if (std::isfinite(range.max)) {
    text += fmt::format("{}at most {}", text.empty() ? "" : " and ", Number(range.max));
  }
  return text;
}

std::string DescribeType(FlagType type) {
  switch (type) {
    case FlagType::kBool:
      return "no value: the flag alone, or with no- in front";
    case FlagType::kInt:
      return "a whole number";
    case FlagType::kCount:
      return "a whole number, also with a unit (1k = 1000, 1K = 1024)";
    case FlagType::kFloat:
      return "a number";
    case FlagType::kText:
      return "a text";
    case FlagType::kTextList:
      return "one or more texts";
    case FlagType::kJson:
      return "a JSON object";
    case FlagType::kJsonList:
      return "a JSON list of texts";
  }
  return "";
}

absl::Status Refuse(const FlagSpec& flag, std::string_view spelling, std::string_view text) {
  return absl::InvalidArgumentError(
      fmt::format("{}: '{}' is not accepted; give {}", spelling, text, DescribeAccepted(flag)));
}

absl::Status CheckRange(const FlagSpec& flag, std::string_view spelling, std::string_view text,
                        double value) {
  const Range& range = flag.range;
  const bool low = range.above_min ? value <= range.min : value < range.min;
  if (std::isnan(value) || low || value > range.max) return Refuse(flag, spelling, text);
  return absl::OkStatus();
}

absl::StatusOr<FlagData> ParseNumber(const FlagSpec& flag, std::string_view spelling,
                                     const std::string& text) {
  const auto choices = SplitChoices(flag.choices);
  const bool chosen = Contains(choices, text);
  if (!chosen && !choices.empty() && !HasRange(flag)) return Refuse(flag, spelling, text);

  if (flag.type == FlagType::kFloat) {
    const auto value = ParseWhole<double>(text);
    if (!value) return Refuse(flag, spelling, text);
    if (!chosen) RETURN_IF_ERROR(CheckRange(flag, spelling, text, *value));
    return *value;
  }
  if (chosen) return ParseWhole<int64_t>(text).value_or(-1);
  const auto value = flag.type == FlagType::kCount ? ParseCount(text) : ParseWhole<int64_t>(text);
  if (!value) return Refuse(flag, spelling, text);
  RETURN_IF_ERROR(CheckRange(flag, spelling, text, static_cast<double>(*value)));
  return *value;
}

absl::StatusOr<FlagData> ParseJsonList(const FlagSpec& flag, std::string_view spelling,
                                       const std::string& text) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ParseJsonText(spelling, text));
  std::vector<std::string> items;
  if (!json.is_array()) return Refuse(flag, spelling, text);
  for (const auto& item : json) {
    if (!item.is_string()) return Refuse(flag, spelling, text);
    items.push_back(item.get<std::string>());
  }
  return items;
}

std::optional<FlagData> DefaultData(const FlagSpec& flag) {
  if (flag.type == FlagType::kBool) return FlagData(flag.default_value == "true");
  if (flag.default_value.empty()) return std::nullopt;
  std::vector<std::string> words = {std::string(flag.default_value)};
  if (flag.type == FlagType::kTextList) {
    const auto split = SplitWords(flag.default_value, ' ');
    words.assign(split.begin(), split.end());
  }
  auto data = ParseFlagData(flag, flag.name, words);
  CHECK(data.ok());
  return *std::move(data);
}

}  // namespace

std::optional<int64_t> ParseCount(std::string_view text) {
  constexpr std::string_view kUnits = "kmgtKMGT";
  const size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  if (unit == std::string_view::npos) return ParseWhole<int64_t>(text);

  text.remove_suffix(1);
  const bool binary = unit >= 4;
  const double factor = std::pow(binary ? 1024 : 1000, static_cast<double>(unit % 4 + 1));
  // A fraction of a binary unit is more likely a mistake than a wish, as in vLLM.
  const auto digits = binary ? "0123456789" : "0123456789.";
  if (text.find_first_not_of(digits) != std::string_view::npos) return std::nullopt;
  const auto number = ParseWhole<double>(text);
  if (!number || *number * factor > 9e18) return std::nullopt;
  return std::llround(*number * factor);
}

absl::StatusOr<nlohmann::json> ParseJsonText(std::string_view spelling, std::string_view text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  return absl::InvalidArgumentError(
      fmt::format("{}: the value is not JSON; what arrived is <{}>. If quotes are missing, a shell "
                  "in between took them: put the flag into a file for --config, or write it in "
                  "pieces such as {}.key value",
                  spelling, text, spelling));
}

std::string DescribeAccepted(const FlagSpec& flag) {
  const std::string choices = fmt::format("{}", fmt::join(SplitChoices(flag.choices), ", "));
  if (!choices.empty() && !HasRange(flag)) return fmt::format("one of {}", choices);
  std::string text = DescribeType(flag.type);
  if (HasRange(flag)) text += fmt::format(", {}", DescribeRange(flag.range));
  if (!choices.empty()) text += fmt::format(", or {}", choices);
  return text;
}

absl::StatusOr<FlagData> ParseFlagData(const FlagSpec& flag, std::string_view spelling,
                                       const std::vector<std::string>& words) {
  if (flag.type == FlagType::kTextList) return words;
  CHECK(!words.empty());
  const std::string& text = words.front();
  if (IsNumeric(flag.type)) return ParseNumber(flag, spelling, text);
  if (flag.type == FlagType::kJsonList) return ParseJsonList(flag, spelling, text);
  if (flag.type == FlagType::kJson) {
    ASSIGN_OR_RETURN(nlohmann::json json, ParseJsonText(spelling, text));
    return json;
  }
  const auto choices = SplitChoices(flag.choices);
  if (!choices.empty() && !Contains(choices, text)) return Refuse(flag, spelling, text);
  return text;
}

void FlagValues::Set(const FlagSpec& flag, FlagValue value) {
  given_.insert_or_assign(flag.name, std::move(value));
}

bool FlagValues::Given(std::string_view name) const {
  reads_.insert(table_->Get(name).name);
  return given_.contains(name);
}

bool FlagValues::Has(std::string_view name) const {
  reads_.insert(table_->Get(name).name);
  return Given(name) || !table_->Get(name).default_value.empty();
}

template <typename T>
T FlagValues::Read(std::string_view name) const {
  const FlagSpec& flag = table_->Get(name);
  reads_.insert(flag.name);
  const auto found = given_.find(flag.name);
  const std::optional<FlagData> data =
      found != given_.end() ? found->second.data : DefaultData(flag);
  if (!data) return T();
  CHECK(std::holds_alternative<T>(*data));
  return std::get<T>(*data);
}

template bool FlagValues::Read(std::string_view) const;
template int64_t FlagValues::Read(std::string_view) const;
template double FlagValues::Read(std::string_view) const;
template std::string FlagValues::Read(std::string_view) const;
template std::vector<std::string> FlagValues::Read(std::string_view) const;
template nlohmann::json FlagValues::Read(std::string_view) const;

bool FlagValues::AsksFor(const FlagSpec& flag) const {
  const auto found = given_.find(flag.name);
  if (found == given_.end()) return false;
  if (const auto standard = DefaultData(flag); standard && found->second.data == *standard) {
    return false;
  }
  const std::string& text = found->second.text;
  return !Contains(SplitChoices(flag.harmless), text) &&
         !(text.empty() && flag.type != FlagType::kBool);
}

}  // namespace fulgur::cli
