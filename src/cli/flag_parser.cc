#include "cli/flag_parser.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "cli/config_file.h"
#include "cli/words.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool SpellsBool(std::string_view word) {
  return word == "true" || word == "True" || word == "false" || word == "False";
}

// "-1" is a number, "-" a common name for standard input.
bool LooksLikeFlag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !IsDigit(word[1]) && word[1] != '.';
}

absl::Status UnknownFlag(const FlagTable& table, std::string_view spelling) {
  const auto suggestion = table.Suggest(spelling);
  return absl::InvalidArgumentError(fmt::format(
      "unknown flag {}{}", spelling,
      suggestion ? fmt::format("; did you mean {}?", *suggestion) : "; --help lists all flags"));
}

// --no-x, and --disable-y where the flag is called enable-y.
const FlagSpec* FindNegated(const FlagTable& table, std::string_view name) {
  const FlagSpec* flag = nullptr;
  if (name.starts_with("--no-")) {
    flag = table.FindSpelling(fmt::format("--{}", name.substr(5)));
  } else if (name.starts_with("--disable-")) {
    flag = table.FindSpelling(fmt::format("--enable-{}", name.substr(10)));
  }
  return flag != nullptr && flag->type == FlagType::kBool ? flag : nullptr;
}

// Walks over the words of a command line.
class WordReader {
 public:
  WordReader(const FlagTable& table, std::span<const std::string> words)
      : table_(table), words_(words) {}

  absl::Status ReadAll() {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (word == "--") {
        positionals.insert(positionals.end(), words_.begin() + static_cast<ptrdiff_t>(next_),
                           words_.end());
        return absl::OkStatus();
      }
      if (LooksLikeFlag(word)) {
        RETURN_IF_ERROR(ReadFlag(word));
      } else {
        RETURN_IF_ERROR(ReadPositional(word));
      }
    }
    return absl::OkStatus();
  }

  std::vector<FlagOccurrence> flags;
  std::vector<std::string> positionals;

 private:
  absl::Status ReadFlag(const std::string& word) {
    const size_t equals = word.find('=');
    const bool glued_level = word.size() > 2 && word.starts_with("-O") && IsDigit(word[2]);
    std::string spelling = glued_level ? "-O" : word.substr(0, equals);
    ASSIGN_OR_RETURN(FlagOccurrence flag, ResolveFlag(table_, spelling));
    if (glued_level) {
      flag.words = {word.substr(2)};
    } else if (equals != std::string::npos) {
      flag.words = {word.substr(equals + 1)};
    }
    if (flag.flag->type == FlagType::kBool) {
      if (!flag.words.empty()) return ValueForSwitch(flag, flag.words.front());
    } else if (flag.words.empty()) {
      RETURN_IF_ERROR(ReadValue(flag));
    }
    flags.push_back(std::move(flag));
    return absl::OkStatus();
  }

  absl::Status ReadValue(FlagOccurrence& flag) {
    const bool list = flag.flag->type == FlagType::kTextList;
    while (next_ < words_.size() && !LooksLikeFlag(words_[next_])) {
      flag.words.push_back(words_[next_++]);
      if (!list) break;
    }
    if (!flag.words.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("{} needs a value: {}", flag.spelling, DescribeAccepted(*flag.flag)));
  }

  absl::Status ReadPositional(const std::string& word) {
    const bool after_switch = next_ >= 2 && !flags.empty() &&
                              flags.back().flag->type == FlagType::kBool &&
                              LooksLikeFlag(words_[next_ - 2]);
    if (after_switch && SpellsBool(word)) {
      return ValueForSwitch(flags.back(), word);
    }
    positionals.push_back(word);
    return absl::OkStatus();
  }

  absl::Status ValueForSwitch(const FlagOccurrence& flag, std::string_view value) {
    return absl::InvalidArgumentError(
        fmt::format("{} takes no value ('{}' was given); write --{} or --no-{}", flag.spelling,
                    value, flag.flag->name, flag.flag->name));
  }

  const FlagTable& table_;
  std::span<const std::string> words_;
  size_t next_ = 0;
};

std::vector<std::string_view> SplitPath(std::string_view path) {
  std::vector<std::string_view> keys;
  for (size_t end = 0; end != std::string_view::npos; path.remove_prefix(end + 1)) {
    end = path.find('.');
    keys.push_back(path.substr(0, end));
    if (end == std::string_view::npos) break;
  }
  return keys;
}

// The place in `root` that a dotted path names; missing objects are made on the way.
absl::StatusOr<nlohmann::json*> FindPlace(nlohmann::json& root, const FlagOccurrence& piece) {
  nlohmann::json* place = &root;
  for (std::string_view key : SplitPath(piece.path)) {
    if (place->is_null()) *place = nlohmann::json::object();
    if (key.empty() || !place->is_object()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: '{}' does not name a place in the JSON object", piece.spelling, key));
    }
    place = &(*place)[std::string(key)];
  }
  return place;
}

nlohmann::json JsonOrText(const std::string& text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? nlohmann::json(text) : json;
}

absl::Status ApplyPiece(const FlagOccurrence& piece, nlohmann::json& object) {
  ASSIGN_OR_RETURN(nlohmann::json * place, FindPlace(object, piece));
  const std::string& text = piece.words.front();
  if (!piece.append) {
    *place = JsonOrText(text);
    return absl::OkStatus();
  }
  if (place->is_null()) *place = nlohmann::json::array();
  if (!place->is_array()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: only a list can be appended to", piece.spelling));
  }
  for (std::string_view item : SplitWords(text, ',')) {
    place->push_back(JsonOrText(std::string(item)));
  }
  return absl::OkStatus();
}

absl::StatusOr<nlohmann::json> ParseWholeObject(const FlagOccurrence& whole) {
  ASSIGN_OR_RETURN(nlohmann::json json, ParseJsonText(whole.spelling, whole.words.front()));
  if (json.is_number_integer() && whole.spelling == "-O") return nlohmann::json{{"level", json}};
  if (json.is_object()) return json;
  if (json.is_null()) return nlohmann::json::object();
  return absl::InvalidArgumentError(fmt::format(
      "{}: {} is not a JSON object such as {{\"key\": 1}}", whole.spelling, whole.words.front()));
}

// A JSON flag: the last whole value of the strongest source, then the pieces in order.
absl::StatusOr<FlagValue> CombineJson(const std::vector<const FlagOccurrence*>& occurrences) {
  const FlagOccurrence* whole = nullptr;
  for (const FlagOccurrence* occurrence : occurrences) {
    if (occurrence->path.empty()) whole = occurrence;
  }
  nlohmann::json object = nlohmann::json::object();
  if (whole != nullptr) {
    ASSIGN_OR_RETURN(object, ParseWholeObject(*whole));
  }
  for (const FlagOccurrence* piece : occurrences) {
    const bool overruled = whole != nullptr && !whole->from_file && piece->from_file;
    if (piece->path.empty() || overruled) continue;
    RETURN_IF_ERROR(ApplyPiece(*piece, object));
  }
  const bool from_file = occurrences.back()->from_file;
  return FlagValue{object, object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                   from_file};
}

absl::StatusOr<FlagValue> CombinePlain(const FlagOccurrence& last) {
  if (last.flag->type == FlagType::kBool) {
    return FlagValue{!last.negated, last.negated ? "false" : "true", last.from_file};
  }
  ASSIGN_OR_RETURN(FlagData data, ParseFlagData(*last.flag, last.spelling, last.words));
  return FlagValue{std::move(data), fmt::format("{}", fmt::join(last.words, " ")), last.from_file};
}

absl::Status CheckPath(const FlagOccurrence& occurrence) {
  if (occurrence.path.empty() || occurrence.flag->type == FlagType::kJson) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{}: only flags that take a JSON object can be written in pieces, and --{} takes {}",
      occurrence.spelling, occurrence.flag->name, DescribeAccepted(*occurrence.flag)));
}

// True if the command line itself gives the flag twice.
bool Repeated(const std::vector<const FlagOccurrence*>& occurrences) {
  return std::count_if(occurrences.begin(), occurrences.end(), [](const FlagOccurrence* flag) {
           return flag->path.empty() && !flag->from_file;
         }) > 1;
}

FlagValue AddUp(const std::vector<const FlagOccurrence*>& occurrences) {
  std::vector<std::string> words;
  for (const FlagOccurrence* occurrence : occurrences) {
    words.insert(words.end(), occurrence->words.begin(), occurrence->words.end());
  }
  std::string text = fmt::format("{}", fmt::join(words, " "));
  return {std::move(words), std::move(text), occurrences.back()->from_file};
}

absl::Status Combine(const std::vector<FlagOccurrence>& occurrences, ParsedCommand& command) {
  std::map<std::string_view, std::vector<const FlagOccurrence*>> by_flag;
  for (const FlagOccurrence& occurrence : occurrences) {
    RETURN_IF_ERROR(CheckPath(occurrence));
    by_flag[occurrence.flag->name].push_back(&occurrence);
  }
  for (const auto& [name, all] : by_flag) {
    const FlagSpec& flag = *all.front()->flag;
    if (flag.adds_up) {
      command.values.Set(flag, AddUp(all));
      continue;
    }
    if (Repeated(all)) {
      command.warnings.push_back(fmt::format("--{} is given more than once; the last wins", name));
    }
    ASSIGN_OR_RETURN(FlagValue value,
                     flag.type == FlagType::kJson ? CombineJson(all) : CombinePlain(*all.back()));
    command.values.Set(flag, std::move(value));
  }
  return absl::OkStatus();
}

absl::StatusOr<ConfigFile> ReadNamedConfig(const FlagTable& table,
                                           const std::vector<FlagOccurrence>& flags) {
  const FlagOccurrence* config = nullptr;
  for (const FlagOccurrence& flag : flags) {
    if (flag.flag->name == "config") config = &flag;
  }
  if (config == nullptr) return ConfigFile();
  return ReadConfigFile(table, config->words.front());
}

}  // namespace

absl::StatusOr<FlagOccurrence> ResolveFlag(const FlagTable& table, std::string_view spelling) {
  const size_t dot = spelling.find('.');
  const std::string name = NormalizeName(spelling.substr(0, dot));
  FlagOccurrence occurrence;
  occurrence.spelling = std::string(spelling);
  if (dot != std::string_view::npos) {
    occurrence.path = std::string(spelling.substr(dot + 1));
    occurrence.append = occurrence.path.ends_with('+');
    if (occurrence.append) occurrence.path.pop_back();
  }
  occurrence.flag = table.FindSpelling(name);
  if (occurrence.flag == nullptr) {
    occurrence.flag = FindNegated(table, name);
    occurrence.negated = true;
  }
  if (occurrence.flag == nullptr) return UnknownFlag(table, spelling.substr(0, dot));
  return occurrence;
}

absl::StatusOr<ParsedCommand> ParseCommand(const FlagTable& table,
                                           std::span<const std::string> args) {
  WordReader reader(table, args);
  RETURN_IF_ERROR(reader.ReadAll());
  ASSIGN_OR_RETURN(ConfigFile file, ReadNamedConfig(table, reader.flags));
  ParsedCommand command{FlagValues(table), std::move(reader.positionals), {}};
  if (command.positionals.empty()) command.positionals = std::move(file.positionals);
  // The file first: what follows wins.
  std::vector<FlagOccurrence> all = std::move(file.flags);
  all.insert(all.end(), std::make_move_iterator(reader.flags.begin()),
             std::make_move_iterator(reader.flags.end()));
  RETURN_IF_ERROR(Combine(all, command));
  return command;
}

}  // namespace fulgur::cli
