// Typed, checked access to the fields of a JSON configuration.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "io/json.h"

namespace fulgur::model {

// Reads fields of one JSON object. The first field that is missing or has an unacceptable value is
// remembered in status() with a sentence; reading goes on with a harmless value.
class ConfigFields {
 public:
  // `source` names the object in errors, such as "config.json".
  ConfigFields(simdjson::dom::object object, std::string source)
      : object_(object), source_(std::move(source)) {}

  const absl::Status& status() const { return status_; }

  // Integers from `low` to `high`. Without a fallback the field is required; null counts as absent.
  int64_t Int(std::string_view name, int64_t low, int64_t high,
              std::optional<int64_t> fallback = std::nullopt);

  // Numbers from `low` to `high`.
  float Number(std::string_view name, double low, double high,
               std::optional<float> fallback = std::nullopt);

  bool Bool(std::string_view name, bool fallback);

  // Refuses any other value than `accepted`; a missing field is accepted.
  void RequireText(std::string_view name, std::string_view accepted);
  void RequireInt(std::string_view name, int64_t accepted);
  void RequireFalse(std::string_view name);

  // A list of integers; required if `required`.
  std::vector<int64_t> Ints(std::string_view name, int64_t low, int64_t high, bool required);

  // One token id or a list of them.
  std::vector<int32_t> Tokens(std::string_view name, int64_t vocab_size);

  bool Has(std::string_view name) const { return Find(name).has_value(); }

  // The field if it is there and not null.
  std::optional<simdjson::dom::element> Find(std::string_view name) const;

  // Remembers "<source>: "<name>" is <value>; expected <accepted>".
  void Refuse(std::string_view name, std::string_view accepted);

 private:
  simdjson::dom::object object_;
  std::string source_;
  absl::Status status_;
};

}  // namespace fulgur::model
