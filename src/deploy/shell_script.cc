#include "deploy/shell_script.h"

#include <cctype>
#include <optional>
#include <utility>

namespace fulgur::deploy {
namespace {

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Reader {
 public:
  Reader(std::string_view text, ShellVariables variables, int first_line)
      : text_(text), variables_(std::move(variables)), line_(first_line) {}

  std::vector<ShellCommand> Read() {
    while (!AtEnd()) Step();
    EndCommand();
    return std::move(commands_);
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char Take() {
    if (text_[at_] == '\n') ++line_;
    return text_[at_++];
  }

  void Step() {
    const char c = Peek();
    if (c == '\n') {
      Take();
      ReadDocuments();
      EndCommand();
    } else if (c == ' ' || c == '\t' || c == '\r') {
      Take();
    } else if (c == '\\' && Peek(1) == '\n') {
      Take();
      Take();
    } else if (c == '#') {
      while (!AtEnd() && Peek() != '\n') Take();
    } else if (c == '<' || c == '>') {
      Redirect();
    } else if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
      Take();
      EndCommand();
    } else {
      AddWord();
    }
  }

  // The file of a redirection is no argument; a here-document's body follows after the line.
  void Redirect() {
    const bool document = Peek() == '<' && Peek(1) == '<' && Peek(2) != '<';
    DropDescriptor();
    while (Peek() == '<' || Peek() == '>' || Peek() == '&' || Peek() == '-') Take();
    while (Peek() == ' ' || Peek() == '\t') Take();
    const bool quoted = Peek() == '\'' || Peek() == '"' || Peek() == '\\';
    const ShellWord word = ReadWord();
    if (document) pending_.emplace_back(word.text, quoted);
  }

  // The 2 of 2>&1 is no argument.
  void DropDescriptor() {
    if (current_.words.empty() || at_ == 0) return;
    const std::string& last = current_.words.back().text;
    const bool number = !last.empty() && last.find_first_not_of("0123456789") == std::string::npos;
    if (number && text_[at_ - 1] == last.back()) current_.words.pop_back();
  }

  void ReadDocuments() {
    for (auto& [delimiter, quoted] : std::exchange(pending_, {})) {
      HereDocument document{{}, line_, quoted};
      while (!AtEnd()) {
        std::string body_line;
        while (!AtEnd() && Peek() != '\n') body_line.push_back(Take());
        if (!AtEnd()) Take();
        const size_t text = body_line.find_first_not_of('\t');
        if (text != std::string::npos && body_line.substr(text) == delimiter) break;
        document.body += body_line + "\n";
      }
      current_.documents.push_back(std::move(document));
    }
  }

  void AddWord() {
    if (current_.words.empty() && current_.assignments.empty()) current_.line = line_;
    const size_t start = at_;
    ShellWord word = ReadWord();
    if (at_ == start) {  // a character that begins no word
      Take();
      return;
    }
    const bool declares = !current_.words.empty() && current_.words[0].text == "export";
    const size_t equals = word.text.find('=');
    if ((current_.words.empty() || declares) && equals != std::string::npos && equals > 0 &&
        IsAssignment(word.text.substr(0, equals))) {
      const std::string name = word.text.substr(0, equals);
      word.text.erase(0, equals + 1);
      current_.assignments[name] = std::move(word);
    } else if (!(word.text == "{" || word.text == "}" || word.text == "do" || word.text == "then" ||
                 word.text == "else") ||
               !current_.words.empty()) {
      current_.words.push_back(std::move(word));
    }
  }

  static bool IsAssignment(std::string_view name) {
    if (!IsNameStart(name[0])) return false;
    for (char c : name) {
      if (!IsName(c)) return false;
    }
    return true;
  }

  void EndCommand() {
    const bool declares = current_.words.empty() || current_.words[0].text == "export";
    if (declares) current_.words.clear();
    if (declares) {
      for (const auto& [name, word] : current_.assignments) {
        if (word.unknown) {
          variables_.erase(name);
        } else {
          variables_[name] = word.text;
        }
      }
    }
    if (!current_.words.empty() || !current_.assignments.empty() || !current_.documents.empty()) {
      commands_.push_back(std::move(current_));
    }
    current_ = {};
  }

  ShellWord ReadWord() {
    ShellWord word;
    word.line = line_;
    while (!AtEnd()) {
      const char c = Peek();
      if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ';' || c == '&' || c == '|' ||
          c == '<' || c == '>' || c == '(' || c == ')') {
        break;
      }
      if (c == '\'') {
        SingleQuoted(word);
      } else if (c == '"') {
        DoubleQuoted(word);
      } else if (c == '\\') {
        Take();
        if (AtEnd()) break;
        const char escaped = Take();
        if (escaped != '\n') word.text.push_back(escaped);
      } else if (c == '$' || c == '`') {
        Expansion(word);
      } else {
        word.text.push_back(Take());
      }
    }
    return word;
  }

  void SingleQuoted(ShellWord& word) {
    Take();
    while (!AtEnd() && Peek() != '\'') word.text.push_back(Take());
    if (!AtEnd()) Take();
  }

  void DoubleQuoted(ShellWord& word) {
    Take();
    while (!AtEnd() && Peek() != '"') {
      if (Peek() == '\\' && (Peek(1) == '"' || Peek(1) == '\\' || Peek(1) == '$' ||
                             Peek(1) == '`' || Peek(1) == '\n')) {
        Take();
        const char escaped = Take();
        if (escaped != '\n') word.text.push_back(escaped);
      } else if (Peek() == '$' || Peek() == '`') {
        Expansion(word);
      } else {
        word.text.push_back(Take());
      }
    }
    if (!AtEnd()) Take();
  }

  // $NAME, ${NAME}, ${NAME:-default}, $1; anything else is kept as written.
  void Expansion(ShellWord& word) {
    const size_t start = at_;
    if (Peek() == '`' || (Peek() == '$' && Peek(1) == '(')) {
      SkipSubstitution();
      word.text += text_.substr(start, at_ - start);
      word.unknown = true;
      return;
    }
    Take();
    std::string name;
    std::optional<std::string> fallback;
    if (Peek() == '{') {
      Take();
      while (!AtEnd() && IsName(Peek())) name.push_back(Take());
      if (Peek() == ':' && Peek(1) == '-') {
        Take();
        Take();
        fallback = "";
        while (!AtEnd() && Peek() != '}') fallback->push_back(Take());
      }
      while (!AtEnd() && Peek() != '}') Take();
      if (!AtEnd()) Take();
    } else if (std::isdigit(static_cast<unsigned char>(Peek())) != 0 || Peek() == '@' ||
               Peek() == '?' || Peek() == '#' || Peek() == '$' || Peek() == '*' || Peek() == '!') {
      name.push_back(Take());
    } else {
      while (!AtEnd() && IsName(Peek())) name.push_back(Take());
    }
    const auto found = variables_.find(name);
    if (name.empty()) {
      word.text.push_back('$');
    } else if (found != variables_.end()) {
      word.text += found->second;
    } else if (fallback && fallback->find('$') == std::string::npos) {
      word.text += *fallback;
    } else {
      word.text += text_.substr(start, at_ - start);
      word.unknown = true;
    }
  }

  void SkipSubstitution() {
    if (Peek() == '`') {
      Take();
      while (!AtEnd() && Peek() != '`') Take();
      if (!AtEnd()) Take();
      return;
    }
    int depth = 0;
    do {
      const char c = Take();
      if (c == '(') ++depth;
      if (c == ')') --depth;
    } while (!AtEnd() && (depth > 0 || Peek() == '('));
  }

  const std::string_view text_;
  ShellVariables variables_;
  size_t at_ = 0;
  int line_;
  ShellCommand current_;
  std::vector<std::pair<std::string, bool>> pending_;  // here-documents: delimiter, quoted
  std::vector<ShellCommand> commands_;
};

}  // namespace

std::vector<ShellCommand> ReadShellScript(std::string_view text, ShellVariables variables,
                                          int first_line) {
  return Reader(text, std::move(variables), first_line).Read();
}

std::string QuoteForShell(std::string_view text) {
  const auto harmless = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./:,=@%+").find(c) != std::string_view::npos;
  };
  bool plain = !text.empty();
  for (char c : text) plain = plain && harmless(c);
  if (plain) return std::string(text);
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace fulgur::deploy
