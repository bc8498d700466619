// The quantisation type of every tensor, as modelslim writes it to quant_model_description.json.
// Recipes differ in what they quantise, so nothing may be guessed from a tensor's name.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/statusor.h"

namespace fulgur::model {

class QuantDescription {
 public:
  // No tensor is described: all are "FLOAT".
  QuantDescription() = default;

  // Parses the file's text; values that are not text (the format's metadata) are passed over.
  static absl::StatusOr<QuantDescription> Parse(std::string_view json, const std::string& source);

  // Reads <folder>/quant_model_description.json; an empty description if there is no such file.
  static absl::StatusOr<QuantDescription> Load(const std::string& folder);

  // "FLOAT", "W8A8_DYNAMIC", "W4A8_DYNAMIC" or any other word of the file. `name` is canonical.
  std::string_view TypeOf(const std::string& name) const;

 private:
  std::unordered_map<std::string, std::string> types_;
};

}  // namespace fulgur::model
