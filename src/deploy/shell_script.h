// Reads shell scripts without running them: commands, their words and variables, here-documents.
//
// As much of POSIX shell as launch scripts use. What only the running script can know (command
// substitution, unset variables) stays in the text as written and marks the word as unknown.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fulgur::deploy {

struct ShellWord {
  std::string text;  // after quotes and known variables
  int line = 0;
  bool unknown = false;  // holds something that only a running shell knows
};

struct HereDocument {
  std::string body;
  int line = 0;         // of its first line
  bool quoted = false;  // the delimiter was: nothing in the body is expanded
};

struct ShellCommand {
  std::map<std::string, ShellWord> assignments;  // NAME=value in front of it, or of export
  std::vector<ShellWord> words;
  std::vector<HereDocument> documents;
  int line = 0;
};

// Variables known before the script starts: "1" is $1.
using ShellVariables = std::map<std::string, std::string>;

// The commands in order; assignments without a command, and those of `export`, have no words and
// are known to later commands. `first_line` numbers the first line.
std::vector<ShellCommand> ReadShellScript(std::string_view text, ShellVariables variables = {},
                                          int first_line = 1);

// `text` as one word of a shell command, in single quotes where needed.
std::string QuoteForShell(std::string_view text);

}  // namespace fulgur::deploy
