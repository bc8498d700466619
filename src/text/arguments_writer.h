// Writes the arguments object of one tool call, as JSON text, while its parameters arrive.
//
// Every method appends to `out` what became certain; all of it together is the arguments text. A
// value that is sure to be a string is written as it arrives, any other when it is complete, typed
// by the tool's schema. Of a repeated parameter the first counts, the only choice that keeps text
// already sent valid.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "text/tool_schema.h"

namespace fulgur::text {

class ArgumentsWriter {
 public:
  // `tools` must outlive this object.
  ArgumentsWriter(const ToolSchemas* tools, std::string tool)
      : tools_(tools), tool_(std::move(tool)) {}

  void BeginParameter(std::string name, bool is_string, std::string* out);
  void ValueText(std::string_view text, std::string* out);  // whole characters
  void EndParameter(std::string* out);

  // The end of a call whose parameters were given in the way above.
  void Finish(std::string* out);

  // The whole of a call that gives its arguments as one JSON object. Text that is none becomes a
  // parameter named "arguments", as in the prompt format.
  void FinishWithObject(std::string_view text, std::string* out);

 private:
  enum class Mode { kStreamed, kCollected, kIgnored };
  struct Parameter {
    std::string name;
    bool is_string = false;
    std::string text;
  };

  void WriteKey(std::string_view name, std::string* out);
  void WriteMember(const Parameter& parameter, std::string* out);
  void WriteHeld(std::string* out);
  std::optional<JsonValue> Unwrapped() const;
  std::optional<JsonValue> UnwrapObject(const JsonValue& object) const;

  const ToolSchemas* tools_;
  std::string tool_;
  absl::flat_hash_set<std::string> names_;
  bool empty_ = true;  // no member was written yet
  Mode mode_ = Mode::kIgnored;
  Parameter current_;
  std::optional<Parameter> held_;  // a complete parameter that may wrap all arguments
};

}  // namespace fulgur::text
