#include "model/quant_description.h"

#include "base/status_macros.h"
#include "io/json.h"
#include "io/mapped_file.h"
#include "model/tensor_names.h"

namespace fulgur::model {
namespace {

constexpr std::string_view kFloat = "FLOAT";

}  // namespace

absl::StatusOr<QuantDescription> QuantDescription::Parse(std::string_view json,
                                                         const std::string& source) {
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::Parse(json, source));
  ASSIGN_OR_RETURN(const simdjson::dom::object root, io::RootObject(document, source));
  QuantDescription description;
  for (const auto& [name, value] : root) {
    std::string_view type;
    if (value.get(type) == simdjson::SUCCESS && type != kFloat) {
      description.types_[CanonicalName(name)] = std::string(type);
    }
  }
  return description;
}

absl::StatusOr<QuantDescription> QuantDescription::Load(const std::string& folder) {
  const std::string path = folder + "/quant_model_description.json";
  const absl::StatusOr<io::MappedFile> file = io::MappedFile::Open(path);
  if (absl::IsNotFound(file.status())) return QuantDescription();
  RETURN_IF_ERROR(file.status());
  return Parse(file->text(), path);
}

std::string_view QuantDescription::TypeOf(const std::string& name) const {
  const auto entry = types_.find(name);
  return entry == types_.end() ? kFloat : std::string_view(entry->second);
}

}  // namespace fulgur::model
