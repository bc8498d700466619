#include "deploy/serve_command.h"

#include <algorithm>

#include "fmt/format.h"

namespace fulgur::deploy {
namespace {

using Json = nlohmann::json;

bool IsFlag(const ShellWord& word) {
  return word.text.size() > 1 && word.text[0] == '-' &&
         !(word.text[1] >= '0' && word.text[1] <= '9');
}

std::string Shortened(const std::string& text) {
  constexpr size_t kShown = 80;
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
}

class CommandReader {
 public:
  CommandReader(const std::vector<ShellWord>& words, const FlagSyntax& syntax,
                const std::string& file, Findings& findings)
      : words_(words), syntax_(syntax), findings_(findings) {
    command_.file = file;
    command_.count = syntax.count;
    if (!words.empty()) command_.line = words[0].line;
  }

  ServeCommand Read() {
    while (at_ < words_.size()) {
      if (IsFlag(words_[at_])) {
        ReadFlag();
      } else if (command_.model.empty()) {
        command_.model = words_[at_++].text;
      } else {
        ReportStray(words_[at_++]);
      }
    }
    if (const auto model = command_.Text("model"); model && command_.model.empty()) {
      command_.model = *model;
    }
    return std::move(command_);
  }

 private:
  void Report(std::string rule, int line, std::string why, std::string fix) {
    findings_.push_back(
        {Severity::kError, std::move(rule), command_.file, line, std::move(why), std::move(fix)});
  }

  void ReportStray(const ShellWord& word) {
    const bool looks_like_json = word.text.find_first_of("{}:") != std::string::npos;
    Report(looks_like_json ? "json-quotes-lost" : "stray-argument", word.line,
           fmt::format(
               "'{}' belongs to no flag{}", Shortened(word.text),
               looks_like_json ? "; it looks like a piece of JSON that a shell has split" : ""),
           looks_like_json ? kQuoteFix : "remove it, or put the flag in front that it belongs to");
  }

  void ReadFlag() {
    const ShellWord& word = words_[at_++];
    const size_t equals = word.text.find('=');
    const std::string spelling = word.text.substr(0, equals);
    const auto shape = syntax_.shape(spelling);
    if (!shape.ok()) {
      Report("unknown-flag", word.line, std::string(shape.status().message()),
             "correct the name; `fulgur serve --help=all` lists all flags");
      if (equals == std::string::npos && at_ < words_.size() && !IsFlag(words_[at_])) ++at_;
      return;
    }
    std::vector<ShellWord> values;
    if (equals != std::string::npos) {
      values.push_back({word.text.substr(equals + 1), word.line, word.unknown});
    } else if (shape->kind == FlagShape::Kind::kList) {
      while (at_ < words_.size() && !IsFlag(words_[at_])) values.push_back(words_[at_++]);
    } else if (shape->kind != FlagShape::Kind::kBool) {
      if (at_ >= words_.size() || (IsFlag(words_[at_]) && shape->kind != FlagShape::Kind::kJson)) {
        return Report("value-missing", word.line, fmt::format("{} has no value", spelling),
                      "give it one");
      }
      values.push_back(words_[at_++]);
    }
    Store(*shape, spelling, word.line, values);
  }

  void Store(const FlagShape& shape, const std::string& spelling, int line,
             const std::vector<ShellWord>& values) {
    FlagSetting& setting = command_.flags[shape.name];
    setting.line = line;
    setting.unknown = false;
    for (const ShellWord& value : values) setting.unknown |= value.unknown;
    switch (shape.kind) {
      case FlagShape::Kind::kBool:
        setting.value = !shape.negated;
        break;
      case FlagShape::Kind::kValue:
        setting.value = values[0].text;
        if (!setting.unknown) CheckNumber(spelling, values[0]);
        break;
      case FlagShape::Kind::kList:
        setting.value = Json::array();
        for (const ShellWord& value : values) setting.value.push_back(value.text);
        break;
      case FlagShape::Kind::kJson:
        StoreJson(shape, spelling, values[0], setting);
        break;
    }
  }

  void CheckNumber(const std::string& spelling, const ShellWord& value) {
    const absl::Status status = syntax_.check_number(spelling, value.text);
    if (status.ok()) return;
    Report("value-not-accepted", value.line, std::string(status.message()), "correct the number");
  }

  void StoreJson(const FlagShape& shape, const std::string& spelling, const ShellWord& word,
                 FlagSetting& setting) {
    Json value = Json::parse(word.text, nullptr, false);
    if (!setting.value.is_object()) setting.value = Json::object();
    if (!shape.path.empty()) {
      if (value.is_discarded()) value = word.text;
      Json* place = &setting.value;
      for (size_t start = 0; start <= shape.path.size();) {
        const size_t dot = std::min(shape.path.find('.', start), shape.path.size());
        if (!place->is_object()) *place = Json::object();
        place = &(*place)[shape.path.substr(start, dot - start)];
        start = dot + 1;
      }
      *place = std::move(value);
    } else if (value.is_object()) {
      setting.value = std::move(value);
    } else if (!word.unknown) {
      Report("json-quotes-lost", word.line,
             fmt::format("{} receives {} which is no JSON object: quotes were lost in a layer of "
                         "shell",
                         spelling, Shortened(word.text)),
             kQuoteFix);
    }
  }

  static constexpr const char* kQuoteFix =
      "put the command in a script of its own, written with a quoted here-document "
      "(cat > serve.sh <<'EOF'), JSON in single quotes, and mount it; no JSON inside bash -c";

  const std::vector<ShellWord>& words_;
  const FlagSyntax& syntax_;
  Findings& findings_;
  ServeCommand command_;
  size_t at_ = 0;
};

}  // namespace

int ServeCommand::LineOf(const std::string& name) const {
  const auto found = flags.find(name);
  return found == flags.end() ? line : found->second.line;
}

std::optional<std::string> ServeCommand::Text(const std::string& name) const {
  const auto found = flags.find(name);
  if (found == flags.end() || found->second.unknown || !found->second.value.is_string()) {
    return std::nullopt;
  }
  return found->second.value.get<std::string>();
}

std::optional<int64_t> ServeCommand::Number(const std::string& name) const {
  const auto text = Text(name);
  return text ? count(*text) : std::nullopt;
}

bool ServeCommand::IsOn(const std::string& name) const {
  const auto found = flags.find(name);
  return found != flags.end() && found->second.value == true;
}

bool ServeCommand::IsOff(const std::string& name) const {
  const auto found = flags.find(name);
  return found != flags.end() && found->second.value == false;
}

const nlohmann::json& ServeCommand::Json(const std::string& name) const {
  static const nlohmann::json kEmpty = nlohmann::json::object();
  const auto found = flags.find(name);
  return found != flags.end() && found->second.value.is_object() ? found->second.value : kEmpty;
}

std::optional<std::string> ServeCommand::Variable(const std::string& name) const {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.unknown) return std::nullopt;
  return found->second.text;
}

ServeCommand ReadServeCommand(const std::vector<ShellWord>& words, const FlagSyntax& syntax,
                              const std::string& file, Findings& findings) {
  return CommandReader(words, syntax, file, findings).Read();
}

}  // namespace fulgur::deploy
