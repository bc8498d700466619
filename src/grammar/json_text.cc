#include "grammar/json_text.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "text/utf8.h"

namespace fulgur::grammar {
namespace {

constexpr int64_t kMaxIndent = 40;
constexpr int64_t kMaxDigits = 16;
constexpr int64_t kMaxExponentDigits = 2;
constexpr uint32_t kFirstPrintable = 0x20;

// Characters of a string that stand for themselves.
bool NeedsEscape(uint32_t character) {
  return character < kFirstPrintable || character == '"' || character == '\\';
}

std::string EscapeOf(uint32_t character) {
  switch (character) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return absl::StrFormat("\\u%04x", character);
  }
}

// Names by their characters, to say which strings are none of them.
struct NameTree {
  std::map<uint32_t, NameTree> next;
  bool is_name = false;

  void Add(std::string_view name) {
    NameTree* node = this;
    while (!name.empty()) {
      const text::Utf8Step step = text::DecodeUtf8(name);
      name.remove_prefix(step.length);
      node = &node->next[step.code_point];
    }
    node->is_name = true;
  }
};

// What may follow in a string that begins as `node` does, so that it becomes none of the names.
Symbol OtherThan(const NameTree& node, JsonText& json, GrammarBuilder& builder) {
  std::vector<Symbol> options;
  CharacterSet named;
  for (const auto& [character, child] : node.next) {
    named.Add(character);
    CharacterSet one;
    one.Add(character);
    options.push_back(builder.Sequence({json.Character(one), OtherThan(child, json, builder)}));
  }
  const Symbol rest = builder.Repeat(json.AnyCharacter(), 0, GrammarBuilder::kUnbounded);
  options.push_back(builder.Sequence({json.Character(named.Complement()), rest}));
  if (!node.is_name) options.push_back(builder.Empty());
  return builder.Choice(options);
}

}  // namespace

// Numbers without their sign.
struct JsonText::Magnitudes {
  NumberBound low;
  std::optional<NumberBound> high;
};

JsonText::JsonText(GrammarBuilder& builder, Symbol blank, Symbol separator_blank)
    : builder_(builder), blank_(blank), separator_blank_(separator_blank) {}

Symbol JsonText::AnyBlank(GrammarBuilder& builder) {
  const Symbol indent = builder.Repeat(builder.Bytes(ByteSet().set(' ').set('\t')), 0, kMaxIndent);
  return builder.Choice(
      {builder.Empty(), builder.Byte(' '), builder.Sequence({builder.Byte('\n'), indent})});
}

Symbol JsonText::Value() {
  if (value_) return *value_;
  value_ = builder_.Declare();
  const Symbol items = List(*value_, 0, GrammarBuilder::kUnbounded);
  const std::array options = {Object(), Enclosed("[", items, "]"), String(), Number({}), Boolean(),
                              Null()};
  builder_.Define(*value_, options);
  return *value_;
}

Symbol JsonText::Object() {
  return Enclosed("{", List(Member(String(), Value()), 0, GrammarBuilder::kUnbounded), "}");
}

Symbol JsonText::Boolean() {
  return builder_.Choice({builder_.Literal("true"), builder_.Literal("false")});
}

Symbol JsonText::String() {
  if (!string_) string_ = Quoted(builder_.Repeat(AnyCharacter(), 0, GrammarBuilder::kUnbounded));
  return *string_;
}

Symbol JsonText::StringOfLength(int64_t least, int64_t most) {
  if (least == 0 && most == GrammarBuilder::kUnbounded) return String();
  return Quoted(builder_.Repeat(AnyCharacter(), least, most));
}

Symbol JsonText::Quoted(Symbol content) {
  return builder_.Sequence({builder_.Byte('"'), content, builder_.Byte('"')});
}

Symbol JsonText::StringOtherThan(std::span<const std::string> names) {
  NameTree tree;
  for (const std::string& name : names) tree.Add(name);
  return Quoted(OtherThan(tree, *this, builder_));
}

Symbol JsonText::Character(const CharacterSet& set) {
  std::vector<Symbol> options;
  CharacterSet plain;
  for (const auto& [first, last] : set.Ranges()) {
    for (uint32_t c = first; c <= std::min<uint32_t>(last, '\\'); ++c) {
      if (NeedsEscape(c)) {
        options.push_back(builder_.Literal(EscapeOf(c)));
      } else {
        plain.Add(c);
      }
    }
    if (last > '\\') plain.Add(std::max<uint32_t>(first, '\\' + 1), last);
  }
  options.push_back(plain.Spell(builder_));
  return builder_.Choice(options);
}

Symbol JsonText::AnyCharacter() {
  if (any_character_) return *any_character_;
  CharacterSet escaped;
  escaped.Add(0, kFirstPrintable - 1);
  escaped.Add('"');
  escaped.Add('\\');
  any_character_ = builder_.Choice({escaped.Complement().Spell(builder_), Escape()});
  return *any_character_;
}

// A surrogate only as half of a pair.
Symbol JsonText::Escape() {
  const auto set = [this](std::string_view bytes) {
    ByteSet all;
    for (const char byte : bytes) all.set(static_cast<uint8_t>(byte));
    return builder_.Bytes(all);
  };
  const Symbol hex = set("0123456789abcdefABCDEF");
  const Symbol no_surrogate =
      builder_.Choice({builder_.Sequence({set("0123456789abcefABCEF"), hex, hex, hex}),
                       builder_.Sequence({set("dD"), set("01234567"), hex, hex})});
  const Symbol pair =
      builder_.Sequence({set("dD"), set("89abAB"), hex, hex, builder_.Literal("\\u"), set("dD"),
                         set("cdefCDEF"), hex, hex});
  const Symbol code =
      builder_.Sequence({builder_.Byte('u'), builder_.Choice({no_surrogate, pair})});
  return builder_.Sequence({builder_.Byte('\\'), builder_.Choice({set("\"\\/bfnrt"), code})});
}

// ---- numbers ----

Symbol JsonText::Digit(char first, char last) {
  ByteSet digits;
  for (char digit = first; digit <= last; ++digit) digits.set(static_cast<uint8_t>(digit));
  return builder_.Bytes(digits);
}

Symbol JsonText::Digits(int64_t least, int64_t most) {
  return builder_.Repeat(Digit('0', '9'), least, most);
}

Symbol JsonText::Fraction() {
  return builder_.Optional(builder_.Sequence({builder_.Byte('.'), Digits(1, kMaxDigits)}));
}

// Numbers with equally many digits from `low` to `high`.
Symbol JsonText::DigitsBetween(std::string_view low, std::string_view high) {
  if (low.empty()) return builder_.Empty();
  const bool all = low.find_first_not_of('0') == std::string_view::npos &&
                   high.find_first_not_of('9') == std::string_view::npos;
  if (all) return Digits(static_cast<int64_t>(low.size()), static_cast<int64_t>(low.size()));
  const std::string_view low_rest = low.substr(1), high_rest = high.substr(1);
  const auto with_first = [this](char digit, Symbol rest) {
    return builder_.Sequence({builder_.Byte(static_cast<uint8_t>(digit)), rest});
  };
  if (low.front() == high.front()) {
    return with_first(low.front(), DigitsBetween(low_rest, high_rest));
  }
  const std::string nines(low_rest.size(), '9'), zeros(low_rest.size(), '0');
  const auto rest_digits = static_cast<int64_t>(low_rest.size());
  std::vector<Symbol> options = {with_first(low.front(), DigitsBetween(low_rest, nines)),
                                 with_first(high.front(), DigitsBetween(zeros, high_rest))};
  if (low.front() + 1 < high.front()) {
    options.push_back(builder_.Sequence(
        {Digit(static_cast<char>(low.front() + 1), static_cast<char>(high.front() - 1)),
         Digits(rest_digits, rest_digits)}));
  }
  return builder_.Choice(options);
}

// 0 <= low <= high.
Symbol JsonText::WholeBetween(int64_t low, int64_t high) {
  std::vector<Symbol> options;
  while (low <= high) {
    const std::string digits = absl::StrCat(low);
    const std::string nines(digits.size(), '9');
    const std::string last = digits.size() < absl::StrCat(high).size() ? nines : absl::StrCat(high);
    options.push_back(DigitsBetween(digits, last));
    low = std::stoll(last) + 1;
  }
  return builder_.Choice(options);
}

void JsonText::AddIntegers(int64_t low, int64_t high, std::vector<Symbol>& options) {
  if (high >= 0 && low <= high) options.push_back(WholeBetween(std::max<int64_t>(low, 0), high));
  if (low < 0 && low <= high) {
    const Symbol magnitude = WholeBetween(std::max<int64_t>(1, -high), -low);
    options.push_back(builder_.Sequence({builder_.Byte('-'), magnitude}));
  }
}

Symbol JsonText::Integer(const NumberRange& range) {
  int64_t low = -kLargestBound, high = kLargestBound;
  if (range.low) low = range.low->value + (range.low->exclusive ? 1 : 0);
  if (range.high) high = range.high->value - (range.high->exclusive ? 1 : 0);
  std::vector<Symbol> options;
  AddIntegers(low, high, options);
  return builder_.Choice(options);
}

void JsonText::AddMagnitudes(const Magnitudes& magnitudes, std::string_view sign,
                             std::vector<Symbol>& options) {
  const auto [low, high] = magnitudes;
  const auto add = [&](Symbol number) {
    options.push_back(builder_.Sequence({builder_.Literal(sign), number}));
  };
  const int64_t last_whole = high ? high->value - 1 : kLargestBound;
  const int64_t first_whole = low.value + (low.exclusive ? 1 : 0);
  if (first_whole <= last_whole) {
    add(builder_.Sequence({WholeBetween(first_whole, last_whole), Fraction()}));
  }
  if (low.exclusive && (!high || low.value < high->value)) {
    add(builder_.Sequence({builder_.Literal(absl::StrCat(low.value, ".")),
                           Digits(0, kMaxDigits - 1), Digit('1', '9')}));
  }
  const bool ends_inside =
      high && !high->exclusive &&
      (low.value < high->value || (low.value == high->value && !low.exclusive));
  if (ends_inside) add(builder_.Literal(absl::StrCat(high->value)));
}

Symbol JsonText::Number(const NumberRange& range) {
  if (range.open()) {
    const Symbol sign = builder_.Optional(builder_.Byte('-'));
    const Symbol whole = builder_.Choice(
        {builder_.Byte('0'), builder_.Sequence({Digit('1', '9'), Digits(0, kMaxDigits - 1)})});
    const Symbol exponent = builder_.Optional(
        builder_.Sequence({builder_.Bytes(ByteSet().set('e').set('E')),
                           builder_.Optional(builder_.Bytes(ByteSet().set('+').set('-'))),
                           Digits(1, kMaxExponentDigits)}));
    return builder_.Sequence({sign, whole, Fraction(), exponent});
  }
  std::vector<Symbol> options;
  const auto mirrored = [](const std::optional<NumberBound>& bound) {
    return bound ? std::optional(NumberBound{-bound->value, bound->exclusive}) : std::nullopt;
  };
  const auto at_least = [](const std::optional<NumberBound>& bound, NumberBound floor) {
    return bound && bound->value >= floor.value ? *bound : floor;
  };
  AddMagnitudes({at_least(range.low, {0, false}), range.high}, "", options);
  // Below zero; there is no negative zero.
  NumberBound least = at_least(mirrored(range.high), {0, true});
  least.exclusive |= least.value == 0;
  AddMagnitudes({least, mirrored(range.low)}, "-", options);
  return builder_.Choice(options);
}

// ---- structure ----

Symbol JsonText::Enclosed(std::string_view open, Symbol inside, std::string_view close) {
  return builder_.Sequence(
      {builder_.Literal(open), blank_, inside, blank_, builder_.Literal(close)});
}

Symbol JsonText::List(Symbol item, int64_t least, int64_t most) {
  if (most == 0) return builder_.Empty();
  const int64_t most_behind = most == GrammarBuilder::kUnbounded ? most : most - 1;
  const Symbol behind = builder_.Repeat(builder_.Sequence({Comma(), item}),
                                        std::max<int64_t>(0, least - 1), most_behind);
  const Symbol some = builder_.Sequence({item, behind});
  return least == 0 ? builder_.Optional(some) : some;
}

Symbol JsonText::Comma() { return builder_.Sequence({builder_.Byte(','), separator_blank_}); }

Symbol JsonText::Member(Symbol key, Symbol value) {
  return builder_.Sequence({key, builder_.Byte(':'), separator_blank_, value});
}

}  // namespace fulgur::grammar
