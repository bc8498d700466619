#include "grammar/ebnf.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "grammar/characters.h"
#include "grammar/pattern_text.h"
#include "text/utf8.h"

namespace fulgur::grammar {
namespace {

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

std::string_view SkippedBlanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

class EbnfParser {
 public:
  EbnfParser(std::string_view text, GrammarBuilder& builder)
      : text_("the grammar", text), builder_(builder) {}

  absl::StatusOr<Symbol> Parse() {
    RETURN_IF_ERROR(text_.Check());
    SkipBlanks();
    if (text_.AtEnd()) return text_.Error("it is empty");
    while (!text_.AtEnd()) RETURN_IF_ERROR(ParseRule());
    for (const auto& [name, rule] : rules_) {
      if (rule.defined) continue;
      return absl::InvalidArgumentError(
          fmt::format("the grammar uses the rule `{}`, which it does not define", name));
    }
    const auto root = rules_.find("root");
    if (root != rules_.end()) return root->second.symbol;
    return absl::InvalidArgumentError(
        "the grammar has no rule `root`, which says the whole answer");
  }

 private:
  struct Rule {
    Symbol symbol;
    bool defined = false;
  };

  void SkipBlanks() {
    while (!text_.AtEnd()) {
      if (text_.At("#")) {
        text_.Skip(std::min(text_.rest().find('\n'), text_.rest().size()));
      } else if (absl::ascii_isspace(static_cast<unsigned char>(text_.rest().front()))) {
        text_.Skip(1);
      } else {
        return;
      }
    }
  }

  bool TakeToken(std::string_view token) {
    const bool taken = text_.Take(token);
    if (taken) SkipBlanks();
    return taken;
  }

  // The name that comes next, which is not taken; empty: none does.
  std::string_view PeekName() const {
    size_t length = 0;
    while (length < text_.rest().size() && IsNameCharacter(text_.rest()[length])) ++length;
    return text_.rest().substr(0, length);
  }

  // Whether a name and `::=` come next: the end of the rule before.
  bool AtRule() const {
    const std::string_view name = PeekName();
    return !name.empty() && SkippedBlanks(text_.rest().substr(name.size())).starts_with("::=");
  }

  Rule& RuleNamed(std::string_view name) {
    const auto [found, added] = rules_.try_emplace(std::string(name));
    if (added) found->second.symbol = builder_.Declare();
    return found->second;
  }

  absl::Status ParseRule() {
    if (!AtRule()) return text_.Error("a rule is expected, such as: root ::= \"yes\" | \"no\"");
    const std::string_view name = PeekName();
    text_.Skip(name.size());
    SkipBlanks();
    TakeToken("::=");
    if (RuleNamed(name).defined) return text_.Error(fmt::format("`{}` is defined twice", name));
    RuleNamed(name).defined = true;
    ASSIGN_OR_RETURN(const Symbol body, ParseAlternatives(0));
    builder_.Define(RuleNamed(name).symbol, {&body, 1});
    return absl::OkStatus();
  }

  absl::StatusOr<Symbol> ParseAlternatives(int depth) {
    if (depth > kMaxPatternDepth) return text_.Error("groups are nested too deep");
    std::vector<Symbol> options;
    do {
      ASSIGN_OR_RETURN(options.emplace_back(), ParseSequence(depth));
    } while (TakeToken("|"));
    return builder_.Choice(options);
  }

  absl::StatusOr<Symbol> ParseSequence(int depth) {
    std::vector<Symbol> parts;
    while (!text_.AtEnd() && !text_.At("|") && !text_.At(")") && !AtRule()) {
      ASSIGN_OR_RETURN(const Symbol item, ParseItem(depth));
      ASSIGN_OR_RETURN(parts.emplace_back(), ParseRepeats(item));
    }
    return builder_.Sequence(parts);
  }

  absl::StatusOr<Symbol> ParseRepeats(Symbol item) {
    SkipBlanks();
    while (true) {
      RepeatCount count;
      if (TakeToken("*")) {
        count = {0, GrammarBuilder::kUnbounded};
      } else if (TakeToken("+")) {
        count = {1, GrammarBuilder::kUnbounded};
      } else if (TakeToken("?")) {
        count = {0, 1};
      } else if (TakeToken("{")) {
        ASSIGN_OR_RETURN(count, text_.TakeBounds());
        SkipBlanks();
      } else {
        return item;
      }
      item = builder_.Repeat(item, count.least, count.most);
    }
  }

  absl::StatusOr<Symbol> ParseItem(int depth) {
    if (text_.Take("\"")) return ParseLiteral();
    if (text_.Take("[")) return ParseClass();
    if (TakeToken("(")) {
      ASSIGN_OR_RETURN(const Symbol inside, ParseAlternatives(depth + 1));
      if (!text_.Take(")")) return text_.Error("a group is not closed");
      return inside;
    }
    if (text_.Take(".")) return CharacterSet().Complement().Spell(builder_);
    const std::string_view name = PeekName();
    if (name.empty()) {
      return text_.Error("a rule's name, \"text\", [characters] or a group is expected");
    }
    text_.Skip(name.size());
    return RuleNamed(name).symbol;
  }

  absl::StatusOr<Symbol> ParseLiteral() {
    std::string literal;
    while (!text_.Take("\"")) {
      ASSIGN_OR_RETURN(const uint32_t character, ParseCharacter("a text"));
      text::AppendUtf8(character, &literal);
    }
    return builder_.Literal(literal);
  }

  absl::StatusOr<Symbol> ParseClass() {
    const bool negated = text_.Take("^");
    CharacterSet set;
    while (!text_.Take("]")) {
      ASSIGN_OR_RETURN(const uint32_t first, ParseCharacter("a character class"));
      uint32_t last = first;
      if (text_.At("-") && !text_.At("-]")) {
        text_.Take("-");
        ASSIGN_OR_RETURN(last, ParseCharacter("a character class"));
      }
      if (last < first) return text_.Error("this is no range of characters");
      set.Add(first, last);
    }
    return (negated ? set.Complement() : set).Spell(builder_);
  }

  absl::StatusOr<uint32_t> ParseCharacter(std::string_view inside) {
    if (text_.AtEnd()) return text_.Error(fmt::format("{} is not closed", inside));
    if (!text_.Take("\\")) return text_.TakeCharacter();
    if (text_.Take("n")) return '\n';
    if (text_.Take("t")) return '\t';
    if (text_.Take("r")) return '\r';
    if (text_.Take("x")) return text_.TakeHex(2);
    if (text_.Take("u")) return text_.TakeHex(4);
    if (text_.Take("U")) return text_.TakeHex(8);
    if (text_.AtEnd() || absl::ascii_isalnum(static_cast<unsigned char>(text_.rest().front()))) {
      return text_.Error("`\\` may stand before n, t, r, xHH, uHHHH, UHHHHHHHH and punctuation");
    }
    return text_.TakeCharacter();
  }

  PatternText text_;
  GrammarBuilder& builder_;
  absl::flat_hash_map<std::string, Rule> rules_;
};

}  // namespace

absl::StatusOr<Symbol> ParseEbnf(std::string_view text, GrammarBuilder& builder) {
  return EbnfParser(text, builder).Parse();
}

}  // namespace fulgur::grammar
