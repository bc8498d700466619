#include "io/json.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "base/status_macros.h"
#include "fmt/format.h"
#include "io/mapped_file.h"

namespace fulgur::io {

absl::StatusOr<JsonDocument> JsonDocument::Parse(std::string_view text, std::string_view source,
                                                 int max_depth) {
  if (static_cast<int64_t>(text.size()) > kMaxJsonBytes) {
    return absl::InvalidArgumentError(fmt::format(
        "{} has {} bytes of JSON; at most {} are accepted", source, text.size(), kMaxJsonBytes));
  }
  JsonDocument document;
  document.parser_ = std::make_unique<simdjson::dom::parser>();
  simdjson::error_code error =
      document.parser_->allocate(text.size() + 64, static_cast<size_t>(max_depth));
  if (error == simdjson::SUCCESS) {
    error = document.parser_->parse(text.data(), text.size()).get(document.root_);
  }
  if (error == simdjson::DEPTH_ERROR) {
    return absl::InvalidArgumentError(
        fmt::format("{} nests JSON deeper than {} levels", source, max_depth));
  }
  if (error != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not valid JSON: {}", source, simdjson::error_message(error)));
  }
  return document;
}

absl::StatusOr<JsonDocument> JsonDocument::ReadFile(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return Parse(file.text(), path);
}

absl::StatusOr<simdjson::dom::object> RootObject(const JsonDocument& document,
                                                 std::string_view source) {
  simdjson::dom::object object;
  if (document.root().get(object) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(fmt::format("{} is not a JSON object", source));
  }
  return object;
}

std::string Shortened(std::string_view text) {
  constexpr size_t kLongest = 100;
  std::string escaped = absl::Utf8SafeCHexEscape(std::string(text.substr(0, kLongest)));
  if (text.size() > kLongest) escaped += "...";
  return escaped;
}

std::string Quoted(std::string_view text) { return fmt::format("\"{}\"", Shortened(text)); }

}  // namespace fulgur::io
