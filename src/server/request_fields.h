// The top-level fields of a JSON request body, with the lenient typing that clients rely on.
//
// Numbers may come as text ("16"), integers as whole floats (16.0), booleans as 0/1 or "true";
// null means absent; unknown fields are ignored. Everything is checked to be strict JSON in UTF-8
// when the body is read; single fields are converted when asked for. A value of the wrong type is a
// MalformedError that names the field.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/json.h"

namespace fulgur::server {

class RequestFields {
 public:
  // Takes over the body. Refuses what is no JSON object, nests deeper than 128 levels, has more
  // than ten million values, unpaired surrogates, or numbers beyond a double.
  static absl::StatusOr<RequestFields> Parse(std::string body);

  // The members of a nested object; an absent field gives no members. `name` becomes part of the
  // names in errors: "stream_options.include_usage".
  absl::StatusOr<RequestFields> Object(std::string_view name) const;

  bool Has(std::string_view name) const { return Raw(name).has_value(); }

  // JSON text of a field, unless it is absent or null.
  std::optional<std::string_view> Raw(std::string_view name) const;

  // Each leaves `*value` alone if the field is absent.
  absl::Status Read(std::string_view name, bool* value) const;
  absl::Status Read(std::string_view name, int32_t* value) const;
  absl::Status Read(std::string_view name, int64_t* value) const;
  absl::Status Read(std::string_view name, float* value) const;
  absl::Status Read(std::string_view name, std::string* value) const;
  absl::Status Read(std::string_view name, std::vector<int32_t>* values) const;
  absl::Status Read(std::string_view name, std::vector<std::string>* values) const;
  template <typename T>
  absl::Status Read(std::string_view name, std::optional<T>* value) const {
    if (!Has(name)) return absl::OkStatus();
    return Read(name, &value->emplace());
  }

  // A text or a list of texts (`stop`).
  absl::Status ReadTextOrList(std::string_view name, std::vector<std::string>* values) const;

  // A map from token ids, as text, to numbers (`logit_bias`).
  absl::Status ReadIdMap(std::string_view name, std::vector<std::pair<int64_t, float>>* map) const;

 private:
  RequestFields() = default;

  absl::Status WrongType(std::string_view name, std::string_view wanted) const;
  absl::StatusOr<double> ToNumber(std::string_view name, const text::JsonValue& value) const;
  absl::StatusOr<int64_t> ToInteger(std::string_view name, const text::JsonValue& value,
                                    int64_t low, int64_t high) const;
  absl::StatusOr<text::JsonValue> Value(std::string_view name) const;

  std::string body_;  // with room behind it for simdjson's wide reads
  std::string prefix_;
  std::map<std::string, std::pair<size_t, size_t>, std::less<>> fields_;  // name -> offset, length
};

// The JSON texts of a list's items; `json` must outlive them.
absl::StatusOr<std::vector<std::string_view>> SplitList(std::string_view json,
                                                        std::string_view name);

// Appends the ids of a JSON list; fast enough for a million of them. `name` is for errors.
absl::Status ParseIdList(std::string_view json, std::string_view name, std::vector<int32_t>* ids);

}  // namespace fulgur::server
