// The one table of command-line flags: it drives parsing, --help, --dry-run and the docs page.
//
// A table is constant data. Names are spelt without dashes in front; on the command line `_` equals
// `-`.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fulgur::cli {

// A text for people, in English and Chinese.
struct Text {
  std::string_view en;
  std::string_view zh;
};

enum class FlagType {
  kBool,      // --flag, --no-flag; --enable-x also has --disable-x
  kInt,       // whole number
  kCount,     // whole number that may carry a unit: 1k = 1000, 1K = 1024, 25.6k
  kFloat,     // decimal number
  kText,      // one word
  kTextList,  // one or more words, up to the next flag
  kJson,      // a JSON object, whole or in dotted pieces: --flag.key value
  kJsonList,  // a JSON list of texts
};

// What giving a flag does.
enum class FlagEffect {
  kUsed,       // does what it says
  kExplained,  // accepted, has no effect here; the log says why, once
  kRefused,    // serving stops with the reason, unless the value asks for nothing
};

struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // min itself is not allowed
};

struct FlagSpec {
  std::string_view name;
  FlagType type = FlagType::kText;
  FlagEffect effect = FlagEffect::kUsed;
  std::string_view default_value = {};  // as it would be typed; empty: none
  Text help = {};
  Text reason = {};               // why a flag is explained or refused
  std::string_view aliases = {};  // as typed, separated by spaces: "-tp --tp-size"
  // Texts: the only values allowed, separated by '|'. Numbers: words allowed besides the range.
  std::string_view choices = {};
  Range range = {};
  // Values, separated by '|', with which a refused flag asks for nothing. The default is always
  // one.
  std::string_view harmless = {};
  bool adds_up = false;  // kTextList: the words of repeated flags follow each other
};

struct FlagGroup {
  std::string_view id;  // for --help=ID
  Text title;
  std::span<const FlagSpec> flags;
};

// The flags of one subcommand.
class FlagTable {
 public:
  explicit FlagTable(std::vector<FlagGroup> groups) : groups_(std::move(groups)) {}

  std::span<const FlagGroup> groups() const { return groups_; }

  // The flag that is spelt so on the command line, dashes included ("--max_model_len", "-tp");
  // null if there is none. `--no-` and `--disable-` forms are the parser's business.
  const FlagSpec* FindSpelling(std::string_view spelling) const;

  // The flag of that name; it must exist.
  const FlagSpec& Get(std::string_view name) const;

  // What someone who typed an unknown flag probably meant, with its dashes.
  std::optional<std::string> Suggest(std::string_view spelling) const;

 private:
  std::vector<FlagGroup> groups_;
};

// An environment variable that deployments of such servers set.
struct EnvironmentVariable {
  std::string_view name;
  FlagEffect effect = FlagEffect::kExplained;  // never refused
  Text help;
};

// `fulgur serve`, and the variables it looks at or knows to be without meaning here.
const FlagTable& ServeFlags();
std::span<const EnvironmentVariable> ServeEnvironment();

// Splits a list of choices such as "auto|lazy".
std::vector<std::string_view> SplitChoices(std::string_view choices);

// A flag name with every `_` turned into `-`.
std::string NormalizeName(std::string_view name);

}  // namespace fulgur::cli
