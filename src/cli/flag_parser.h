// Turns the words of a command line, and of a --config file, into flag values.
//
// The syntax is that of vLLM: `_` equals `-`; --flag value or --flag=value; --flag, --no-flag and,
// for --enable-x, --disable-x; JSON flags whole or in dotted pieces (--flag.key value, --flag.list+
// value); the last of repeated flags wins, unless their words add up; the command line wins over
// the file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/flag_table.h"
#include "cli/flag_values.h"

namespace fulgur::cli {

// One flag as it was written.
struct FlagOccurrence {
  const FlagSpec* flag = nullptr;
  std::string spelling;            // without value, for messages
  std::string path;                // JSON flags: what follows the first dot
  bool append = false;             // JSON flags: the path ended in '+'
  bool negated = false;            // kBool: --no-flag
  std::vector<std::string> words;  // the value, or several of a list; empty for kBool
  bool from_file = false;
};

struct ParsedCommand {
  FlagValues values;
  std::vector<std::string> positionals;
  std::vector<std::string> warnings;  // one sentence each
};

// A flag name as typed, such as "--no-enable_x" or "-O.mode", looked up in the table: fills all but
// `words`. Unknown names get a suggestion.
absl::StatusOr<FlagOccurrence> ResolveFlag(const FlagTable& table, std::string_view spelling);

// Parses a command's arguments (without program and subcommand). Reads the file of --config if the
// table has that flag. Errors are one sentence that names the flag.
absl::StatusOr<ParsedCommand> ParseCommand(const FlagTable& table,
                                           std::span<const std::string> args);

}  // namespace fulgur::cli
