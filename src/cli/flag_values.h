// The values of a command's flags, parsed and checked against the table.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/flag_table.h"
#include "nlohmann/json.hpp"

namespace fulgur::cli {

// By flag type: kBool; kInt and kCount; kFloat; kText; kTextList and kJsonList; kJson.
using FlagData =
    std::variant<bool, int64_t, double, std::string, std::vector<std::string>, nlohmann::json>;

struct FlagValue {
  FlagData data;
  std::string text;  // as it was given, for messages
  bool from_file = false;
};

// Parses what was typed for a flag. A word among the choices of a number reads as -1. `spelling` is
// how the flag was typed, for the error, which says what is accepted.
absl::StatusOr<FlagData> ParseFlagData(const FlagSpec& flag, std::string_view spelling,
                                       const std::vector<std::string>& words);

// Parses a whole number with an optional unit: 128k = 128000, 128K = 131072, 25.6k = 25600.
std::optional<int64_t> ParseCount(std::string_view text);

// The JSON that was typed for a flag; the error shows what arrived and how quotes get lost.
absl::StatusOr<nlohmann::json> ParseJsonText(std::string_view spelling, std::string_view text);

// What a flag accepts, such as "a whole number, at least 1, or auto".
std::string DescribeAccepted(const FlagSpec& flag);

class FlagValues {
 public:
  explicit FlagValues(const FlagTable& table) : table_(&table) {}

  void Set(const FlagSpec& flag, FlagValue value);

  // Whether the command or its file gives the flag.
  bool Given(std::string_view name) const;

  // Whether there is a value: given, or by default.
  bool Has(std::string_view name) const;

  // The value or the default. The flag must be of that type; without a value: false, 0, 0.0, "",
  // no words, null.
  bool Bool(std::string_view name) const { return Read<bool>(name); }
  int64_t Int(std::string_view name) const { return Read<int64_t>(name); }
  double Float(std::string_view name) const { return Read<double>(name); }
  std::string String(std::string_view name) const { return Read<std::string>(name); }
  std::vector<std::string> List(std::string_view name) const {
    return Read<std::vector<std::string>>(name);
  }
  nlohmann::json Json(std::string_view name) const { return Read<nlohmann::json>(name); }

  // Whether a refused flag is given a value that asks for something.
  bool AsksFor(const FlagSpec& flag) const;

  const FlagTable& table() const { return *table_; }
  const std::map<std::string_view, FlagValue>& given() const { return given_; }

  // Names of the flags that were looked at so far.
  const std::set<std::string_view>& reads() const { return reads_; }

 private:
  template <typename T>
  T Read(std::string_view name) const;

  const FlagTable* table_;
  std::map<std::string_view, FlagValue> given_;  // keys live in the table
  mutable std::set<std::string_view> reads_;
};

}  // namespace fulgur::cli
