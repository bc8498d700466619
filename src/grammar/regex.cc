#include "grammar/regex.h"

#include <optional>
#include <vector>

#include "base/status_macros.h"
#include "grammar/characters.h"
#include "grammar/pattern_text.h"

namespace fulgur::grammar {
namespace {

CharacterSet Digits() {
  CharacterSet set;
  set.Add('0', '9');
  return set;
}

CharacterSet WordCharacters() {
  CharacterSet set = Digits();
  set.Add('A', 'Z');
  set.Add('a', 'z');
  set.Add('_');
  return set;
}

CharacterSet Spaces() {
  CharacterSet set;
  set.Add('\t', '\r');
  set.Add(' ');
  return set;
}

CharacterSet AllButNewlines() {
  CharacterSet newlines;
  newlines.Add('\n');
  newlines.Add('\r');
  return newlines.Complement();
}

// \d, \W and so on; nothing for other letters.
std::optional<CharacterSet> NamedClass(uint32_t letter) {
  switch (letter) {
    case 'd':
      return Digits();
    case 'D':
      return Digits().Complement();
    case 'w':
      return WordCharacters();
    case 'W':
      return WordCharacters().Complement();
    case 's':
      return Spaces();
    case 'S':
      return Spaces().Complement();
    default:
      return std::nullopt;
  }
}

std::optional<uint32_t> ControlCharacter(uint32_t letter) {
  switch (letter) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case '0':
      return '\0';
    default:
      return std::nullopt;
  }
}

bool IsAsciiAlphanumeric(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class RegexParser {
 public:
  RegexParser(std::string_view pattern, const CharacterSpeller& spell, GrammarBuilder& builder)
      : text_("the regular expression", pattern), spell_(spell), builder_(builder) {}

  absl::StatusOr<Symbol> Parse() {
    RETURN_IF_ERROR(text_.Check());
    if (text_.AtEnd()) return text_.Error("it is empty");
    text_.Take("^");
    ASSIGN_OR_RETURN(const Symbol whole, ParseAlternatives(0));
    if (!text_.AtEnd()) return text_.Error("there is no group for `)` to close");
    return whole;
  }

 private:
  absl::StatusOr<Symbol> ParseAlternatives(int depth) {
    if (depth > kMaxPatternDepth) return text_.Error("groups are nested too deep");
    std::vector<Symbol> options;
    do {
      ASSIGN_OR_RETURN(options.emplace_back(), ParseSequence(depth));
    } while (text_.Take("|"));
    return builder_.Choice(options);
  }

  absl::StatusOr<Symbol> ParseSequence(int depth) {
    std::vector<Symbol> parts;
    while (!text_.AtEnd() && !text_.At("|") && !text_.At(")")) {
      if (text_.rest() == "$") {
        text_.Take("$");
        break;
      }
      ASSIGN_OR_RETURN(const Symbol atom, ParseAtom(depth));
      ASSIGN_OR_RETURN(parts.emplace_back(), ParseRepeats(atom));
    }
    return builder_.Sequence(parts);
  }

  absl::StatusOr<Symbol> ParseRepeats(Symbol atom) {
    RepeatCount count;
    if (text_.Take("*")) {
      count = {0, GrammarBuilder::kUnbounded};
    } else if (text_.Take("+")) {
      count = {1, GrammarBuilder::kUnbounded};
    } else if (text_.Take("?")) {
      count = {0, 1};
    } else if (text_.Take("{")) {
      ASSIGN_OR_RETURN(count, text_.TakeBounds());
    } else {
      return atom;
    }
    text_.Take("?");  // lazy: the same texts match
    if (text_.At("*") || text_.At("+") || text_.At("?") || text_.At("{")) {
      return text_.Error("a repetition is repeated; put the inner one into a group");
    }
    return builder_.Repeat(atom, count.least, count.most);
  }

  absl::StatusOr<Symbol> ParseAtom(int depth) {
    if (text_.Take("(")) return ParseGroup(depth);
    if (text_.Take("[")) return ParseClass();
    if (text_.Take(".")) return spell_(AllButNewlines());
    if (text_.Take("\\")) {
      CharacterSet set;
      RETURN_IF_ERROR(ParseEscape(set).status());
      return spell_(set);
    }
    for (const std::string_view repeat : {"*", "+", "?", "{"}) {
      if (text_.At(repeat)) return text_.Error("there is nothing to repeat");
    }
    if (text_.At("^") || text_.At("$")) {
      return text_.Error("`^` may only stand at the beginning and `$` at the end");
    }
    CharacterSet one;
    one.Add(text_.TakeCharacter());
    return spell_(one);
  }

  absl::StatusOr<Symbol> ParseGroup(int depth) {
    if (text_.Take("?")) {
      if (text_.Take("P<") || (text_.At("<") && !text_.At("<=") && !text_.At("<!"))) {
        const size_t name = text_.rest().find('>');
        if (name == std::string_view::npos) return text_.Error("the group's name has no end");
        text_.Skip(name + 1);
      } else if (!text_.Take(":")) {
        return text_.Error("look-around and inline flags are not supported");
      }
    }
    ASSIGN_OR_RETURN(const Symbol inside, ParseAlternatives(depth + 1));
    if (!text_.Take(")")) return text_.Error("a group is not closed");
    return inside;
  }

  // Adds what an escape stands for; returns it if it is one character.
  absl::StatusOr<std::optional<uint32_t>> ParseEscape(CharacterSet& set) {
    if (text_.AtEnd()) return text_.Error("there is nothing behind `\\`");
    if (text_.At("x") || text_.At("u")) {
      ASSIGN_OR_RETURN(const uint32_t character, ParseHexEscape());
      set.Add(character);
      return character;
    }
    const uint32_t letter = text_.TakeCharacter();
    if (const auto named = NamedClass(letter)) {
      set.Add(*named);
      return std::nullopt;
    }
    const std::optional<uint32_t> control = ControlCharacter(letter);
    if (!control && IsAsciiAlphanumeric(letter)) {
      return text_.Error(
          "back-references, assertions and this letter behind `\\` are not supported");
    }
    set.Add(control.value_or(letter));
    return control.value_or(letter);
  }

  absl::StatusOr<uint32_t> ParseHexEscape() {
    if (text_.Take("x")) return text_.TakeHex(2);
    text_.Take("u");
    if (!text_.Take("{")) return text_.TakeHex(4);
    const size_t digits = text_.rest().find('}');
    if (digits == std::string_view::npos || digits == 0 || digits > 6) {
      return text_.Error("1 to 6 hexadecimal digits and `}` are expected");
    }
    ASSIGN_OR_RETURN(const uint32_t character, text_.TakeHex(static_cast<int>(digits)));
    text_.Take("}");
    return character;
  }

  absl::StatusOr<Symbol> ParseClass() {
    const bool negated = text_.Take("^");
    CharacterSet set;
    for (bool first = true; first || !text_.At("]"); first = false) {
      if (text_.AtEnd()) return text_.Error("a character class is not closed");
      if (first && text_.At("]")) return text_.Error("a character class is empty");
      RETURN_IF_ERROR(ParseClassItem(set));
    }
    text_.Take("]");
    return spell_(negated ? set.Complement() : set);
  }

  // A character, a named class, or a range of characters.
  absl::Status ParseClassItem(CharacterSet& set) {
    ASSIGN_OR_RETURN(const std::optional<uint32_t> first, ParseClassCharacter(set));
    if (!text_.At("-") || text_.At("-]")) return absl::OkStatus();
    text_.Take("-");
    if (text_.AtEnd()) return text_.Error("a character class is not closed");
    ASSIGN_OR_RETURN(const std::optional<uint32_t> last, ParseClassCharacter(set));
    if (!first || !last || *first > *last) return text_.Error("this is no range of characters");
    set.Add(*first, *last);
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<uint32_t>> ParseClassCharacter(CharacterSet& set) {
    if (text_.Take("\\b")) {
      set.Add('\b');
      return '\b';
    }
    if (text_.Take("\\")) return ParseEscape(set);
    const uint32_t character = text_.TakeCharacter();
    set.Add(character);
    return character;
  }

  PatternText text_;
  const CharacterSpeller& spell_;
  GrammarBuilder& builder_;
};

}  // namespace

absl::StatusOr<Symbol> ParseRegex(std::string_view pattern, const CharacterSpeller& spell,
                                  GrammarBuilder& builder) {
  return RegexParser(pattern, spell, builder).Parse();
}

}  // namespace fulgur::grammar
