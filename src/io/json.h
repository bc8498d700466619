// JSON documents read from files that we did not write: bounded in size and depth, errors with the
// file's name.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "simdjson.h"

namespace fulgur::io {

inline constexpr int kMaxJsonDepth = 32;
inline constexpr int64_t kMaxJsonBytes = 100'000'000;

// A parsed document. Elements are views into it and live as long as it does. Move-only.
class JsonDocument {
 public:
  // `source` names the text in errors. Deeper than `max_depth` or larger than kMaxJsonBytes is an
  // error.
  static absl::StatusOr<JsonDocument> Parse(std::string_view text, std::string_view source,
                                            int max_depth = kMaxJsonDepth);
  static absl::StatusOr<JsonDocument> ReadFile(const std::string& path);

  simdjson::dom::element root() const { return root_; }

 private:
  JsonDocument() = default;

  std::unique_ptr<simdjson::dom::parser> parser_;
  simdjson::dom::element root_;
};

// The root of `document` as an object, or an error that says it is none.
absl::StatusOr<simdjson::dom::object> RootObject(const JsonDocument& document,
                                                 std::string_view source);

// Text from a file, fit for a message: escaped, at most about 100 characters; then also quoted.
std::string Shortened(std::string_view text);
std::string Quoted(std::string_view text);

}  // namespace fulgur::io
