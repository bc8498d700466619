#include "grammar/string_schema.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "base/status_macros.h"
#include "grammar/schema_words.h"

namespace fulgur::grammar {
namespace {

constexpr std::string_view kDate = R"(\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))";
constexpr std::string_view kTime =
    R"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))";

std::optional<std::string> PatternOfFormat(std::string_view format) {
  if (format == "date") return std::string(kDate);
  if (format == "time") return std::string(kTime);
  if (format == "date-time") return fmt::format("{}T{}", kDate, kTime);
  if (format == "uuid") return "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
  if (format == "ipv4") {
    constexpr std::string_view kPart = R"((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))";
    return fmt::format("{}(\\.{}){{3}}", kPart, kPart);
  }
  if (format == "email")
    return R"([A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63}){1,8})";
  return std::nullopt;  // describes only
}

// The regular expression that a schema's strings must match, if there is one.
absl::StatusOr<std::optional<std::string>> ReadPattern(const text::JsonValue& schema,
                                                       std::string_view place) {
  std::optional<std::string> pattern;
  const text::JsonValue* format = schema.Find("format");
  if (format != nullptr && format->is_string()) pattern = PatternOfFormat(format->string());
  if (pattern) pattern = fmt::format("^{}$", *pattern);
  const text::JsonValue* own = schema.Find("pattern");
  if (own == nullptr) return pattern;
  if (!own->is_string()) return RefuseSchema(place, "`pattern` is a text");
  if (pattern) return RefuseSchema(place, "`pattern` beside `format` cannot be kept");
  return own->string();
}

// A pattern is searched for anywhere in the string, unless it is anchored.
absl::StatusOr<Symbol> AddPattern(const std::string& pattern, const CharacterStyle& style,
                                  std::string_view place, GrammarBuilder& builder) {
  auto inside = ParseRegex(pattern, style.one_of, builder);
  if (!inside.ok()) return RefuseSchema(place, std::string(inside.status().message()));
  const Symbol anything = builder.Repeat(style.any, 0, GrammarBuilder::kUnbounded);
  const Symbol nothing = builder.Empty();
  const bool ends = pattern.ends_with("$") && !pattern.ends_with("\\$");
  return builder.Sequence(
      {pattern.starts_with("^") ? nothing : anything, *inside, ends ? nothing : anything});
}

}  // namespace

CharacterStyle PlainCharacters(GrammarBuilder& builder) {
  return {.one_of = [&builder](const CharacterSet& set) { return set.Spell(builder); },
          .any = CharacterSet().Complement().Spell(builder)};
}

absl::StatusOr<Symbol> AddStringContent(const text::JsonValue& schema, const CharacterStyle& style,
                                        std::string_view place, GrammarBuilder& builder) {
  ASSIGN_OR_RETURN(const SchemaCounts length, ReadCounts(schema, "minLength", "maxLength", place));
  ASSIGN_OR_RETURN(const std::optional<std::string> pattern, ReadPattern(schema, place));
  if (!pattern) return builder.Repeat(style.any, length.least, length.most);
  if (schema.Find("minLength") != nullptr || schema.Find("maxLength") != nullptr) {
    return RefuseSchema(place, "a length beside `pattern` or `format` cannot be kept");
  }
  return AddPattern(*pattern, style, place, builder);
}

}  // namespace fulgur::grammar
