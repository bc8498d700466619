// A `vllm serve` command as the checks see it: flags by name, JSON as JSON, the environment and the
// container around it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/finding.h"
#include "deploy/shell_script.h"
#include "nlohmann/json.hpp"

namespace fulgur::deploy {

// How a flag is written: what the program's own flag table says about a spelling.
struct FlagShape {
  enum class Kind { kBool, kValue, kList, kJson };
  std::string name;  // without dashes
  Kind kind = Kind::kValue;
  std::string path;      // kJson: behind the first dot
  bool negated = false;  // kBool
};

// The serve flags' syntax, handed in by the layer that owns the table.
struct FlagSyntax {
  // The error says what was probably meant.
  std::function<absl::StatusOr<FlagShape>(std::string_view spelling)> shape;
  std::function<std::optional<int64_t>(std::string_view)> count;  // "128k"
  // Whether a flag for numbers accepts a value; the error says what it accepts. OK for others.
  std::function<absl::Status(std::string_view spelling, const std::string& value)> check_number;
};

struct FlagSetting {
  nlohmann::json value;  // kJson: the object; kBool: bool; else text, or a list of texts
  int line = 0;
  bool unknown = false;  // its value is only known to the running shell
};

struct ServeCommand {
  std::string file;
  int line = 0;
  std::string model;
  std::map<std::string, FlagSetting> flags;
  std::map<std::string, ShellWord> environment;
  std::string image;  // of the container; empty if not known
  int image_line = 0;
  std::optional<int> num_devices;  // the container's, or those made visible
  std::function<std::optional<int64_t>(std::string_view)> count;

  bool Has(const std::string& name) const { return flags.count(name) != 0; }
  int LineOf(const std::string& name) const;  // the command's if the flag is not there

  // The value if it is there and known.
  std::optional<std::string> Text(const std::string& name) const;
  std::optional<int64_t> Number(const std::string& name) const;
  bool IsOn(const std::string& name) const;   // a boolean flag that is given and true
  bool IsOff(const std::string& name) const;  // given as --no-...
  const nlohmann::json& Json(const std::string& name) const;  // an empty object if it is not there

  std::optional<std::string> Variable(const std::string& name) const;
};

// Reads the words behind `serve`. What cannot be understood becomes a finding, the rest is read.
ServeCommand ReadServeCommand(const std::vector<ShellWord>& words, const FlagSyntax& syntax,
                              const std::string& file, Findings& findings);

}  // namespace fulgur::deploy
