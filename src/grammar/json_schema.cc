#include "grammar/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "grammar/json_text.h"
#include "grammar/regex.h"
#include "grammar/schema_words.h"
#include "grammar/string_schema.h"

namespace fulgur::grammar {
namespace {

using text::JsonValue;
using Type = JsonValue::Type;

constexpr std::array<std::string_view, 17> kRefusedWords = {"multipleOf",
                                                            "uniqueItems",
                                                            "contains",
                                                            "minContains",
                                                            "maxContains",
                                                            "patternProperties",
                                                            "propertyNames",
                                                            "minProperties",
                                                            "maxProperties",
                                                            "dependentRequired",
                                                            "dependentSchemas",
                                                            "dependencies",
                                                            "if",
                                                            "then",
                                                            "else",
                                                            "not",
                                                            "unevaluatedProperties"};

// Words that say something about values of one type.
constexpr std::array<std::string_view, 3> kObjectWords = {"properties", "required",
                                                          "additionalProperties"};
constexpr std::array<std::string_view, 4> kArrayWords = {"items", "prefixItems", "minItems",
                                                         "maxItems"};
constexpr std::array<std::string_view, 4> kStringWords = {"minLength", "maxLength", "pattern",
                                                          "format"};
constexpr std::array<std::string_view, 4> kNumberWords = {"minimum", "maximum", "exclusiveMinimum",
                                                          "exclusiveMaximum"};

bool HasAny(const JsonValue& schema, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return schema.Find(word) != nullptr; });
}

// The names in a JSON pointer (RFC 6901) such as #/$defs/name.
std::vector<std::string> PointerParts(const std::string& pointer) {
  std::vector<std::string> parts;
  for (const char c : pointer) {
    if (c == '/') {
      parts.emplace_back();
    } else if (!parts.empty()) {
      parts.back() += c;
    }
  }
  for (std::string& part : parts) {
    part = absl::StrReplaceAll(part, {{"~1", "/"}, {"~0", "~"}});
  }
  return parts;
}

class SchemaReader {
 public:
  SchemaReader(const JsonValue& root, const JsonText& text, GrammarBuilder& builder)
      : root_(root), text_(text), builder_(builder) {}

  absl::StatusOr<Symbol> Read(const JsonValue& schema) { return ReadSchema(schema, "#"); }

 private:
  // The rule of a schema; schemas that are met again, through $ref, are the same rule.
  absl::StatusOr<Symbol> ReadSchema(const JsonValue& schema, const std::string& place) {
    const auto known = rules_.find(&schema);
    if (known != rules_.end()) return known->second;
    const Symbol rule = builder_.Declare();
    rules_.emplace(&schema, rule);
    ASSIGN_OR_RETURN(const Symbol body, ReadBody(schema, place));
    builder_.Define(rule, {&body, 1});
    return rule;
  }

  absl::StatusOr<Symbol> ReadBody(const JsonValue& schema, const std::string& place) {
    if (schema.type() == Type::kBoolean && schema.boolean()) return text_.Value();
    if (!schema.is_object()) return RefuseSchema(place, "a schema is an object or true");
    for (const std::string_view word : kRefusedWords) {
      const JsonValue* value = schema.Find(word);
      if (value == nullptr || (value->type() == Type::kBoolean && !value->boolean())) continue;
      return RefuseSchema(place,
                          fmt::format("`{}` cannot be kept while decoding; leave it out", word));
    }
    if (const JsonValue* target = schema.Find("$ref")) return ReadReference(*target, place);
    if (const JsonValue* value = schema.Find("const")) return LiteralOf(*value);
    if (const JsonValue* values = schema.Find("enum")) return ReadEnum(*values, place);
    for (const char* word : {"anyOf", "oneOf", "allOf"}) {
      if (const JsonValue* options = schema.Find(word)) {
        return ReadCombination(schema, *options, word, place);
      }
    }
    return ReadTypes(schema, place);
  }

  Symbol LiteralOf(const JsonValue& value) {
    return builder_.Literal(text::WriteJson(value, text::NumberStyle::kAsWritten));
  }

  absl::StatusOr<Symbol> ReadEnum(const JsonValue& values, const std::string& place) {
    if (!values.is_array() || values.items().empty()) {
      return RefuseSchema(place, "`enum` is a list of at least one value");
    }
    std::vector<Symbol> options;
    for (const JsonValue& value : values.items()) options.push_back(LiteralOf(value));
    return builder_.Choice(options);
  }

  absl::StatusOr<Symbol> ReadReference(const JsonValue& target, const std::string& place) {
    if (!target.is_string() || !target.string().starts_with("#")) {
      return RefuseSchema(place, "`$ref` must point into the same schema, as #/$defs/name does");
    }
    const JsonValue* found = &root_;
    for (const std::string& part : PointerParts(target.string())) {
      found = found->Find(part);
      if (found == nullptr) {
        return RefuseSchema(place, fmt::format("there is no {} in the schema", target.string()));
      }
    }
    return ReadSchema(*found, target.string());
  }

  absl::StatusOr<Symbol> ReadCombination(const JsonValue& schema, const JsonValue& options,
                                         std::string_view word, const std::string& place) {
    if (!options.is_array() || options.items().empty()) {
      return RefuseSchema(place, fmt::format("`{}` is a list of at least one schema", word));
    }
    if (word == "allOf" && options.items().size() > 1) {
      return RefuseSchema(place, "`allOf` of several schemas cannot be kept; write them as one");
    }
    if (HasAny(schema, kObjectWords) || HasAny(schema, kArrayWords) ||
        HasAny(schema, kStringWords) || HasAny(schema, kNumberWords)) {
      return RefuseSchema(
          place,
          fmt::format("limits beside `{}` cannot be kept; write them into each of its schemas",
                      word));
    }
    std::vector<Symbol> rules;
    for (size_t i = 0; i < options.items().size(); ++i) {
      ASSIGN_OR_RETURN(rules.emplace_back(),
                       ReadSchema(options.items()[i], fmt::format("{}/{}/{}", place, word, i)));
    }
    return builder_.Choice(rules);
  }

  // ---- types ----

  absl::StatusOr<Symbol> ReadTypes(const JsonValue& schema, const std::string& place) {
    const JsonValue* type = schema.Find("type");
    if (type == nullptr) return ReadUntyped(schema, place);
    if (type->is_string()) return ReadType(type->string(), schema, place);
    if (!type->is_array() || type->items().empty()) {
      return RefuseSchema(place, "`type` is a type's name or a list of them");
    }
    std::vector<Symbol> options;
    for (const JsonValue& item : type->items()) {
      if (!item.is_string())
        return RefuseSchema(place, "`type` is a type's name or a list of them");
      ASSIGN_OR_RETURN(options.emplace_back(), ReadType(item.string(), schema, place));
    }
    return builder_.Choice(options);
  }

  // A schema without a type is of the type that its words speak of.
  absl::StatusOr<Symbol> ReadUntyped(const JsonValue& schema, const std::string& place) {
    if (HasAny(schema, kObjectWords)) return ReadObject(schema, place);
    if (HasAny(schema, kArrayWords)) return ReadArray(schema, place);
    if (HasAny(schema, kStringWords)) return ReadString(schema, place);
    if (HasAny(schema, kNumberWords)) return ReadNumber(schema, place);
    return text_.Value();
  }

  absl::StatusOr<Symbol> ReadType(std::string_view type, const JsonValue& schema,
                                  const std::string& place) {
    if (type == "object") return ReadObject(schema, place);
    if (type == "array") return ReadArray(schema, place);
    if (type == "string") return ReadString(schema, place);
    if (type == "number") return ReadNumber(schema, place);
    if (type == "integer") return ReadInteger(schema, place);
    if (type == "boolean") return text_.Boolean();
    if (type == "null") return text_.Null();
    return RefuseSchema(place, fmt::format("there is no type `{}`", type));
  }

  absl::StatusOr<Symbol> ReadString(const JsonValue& schema, const std::string& place) {
    if (!HasAny(schema, kStringWords)) return text_.String();
    const CharacterStyle escaped = {
        .one_of = [this](const CharacterSet& set) { return text_.Character(set); },
        .any = text_.AnyCharacter()};
    ASSIGN_OR_RETURN(const Symbol content, AddStringContent(schema, escaped, place, builder_));
    return text_.Quoted(content);
  }

  // ---- numbers ----

  absl::StatusOr<std::optional<NumberBound>> ReadBound(const JsonValue& schema,
                                                       std::string_view word,
                                                       std::string_view exclusive_word,
                                                       const std::string& place) {
    const JsonValue* inclusive = schema.Find(word);
    const JsonValue* exclusive = schema.Find(exclusive_word);
    if (inclusive != nullptr && exclusive != nullptr) {
      return RefuseSchema(place, fmt::format("`{}` beside `{}`", word, exclusive_word));
    }
    const JsonValue* bound = inclusive != nullptr ? inclusive : exclusive;
    if (bound == nullptr) return std::nullopt;
    double value = 0.0;
    const bool number = bound->type() == Type::kInteger || bound->type() == Type::kNumber;
    if (!number || !absl::SimpleAtod(bound->number_spelling(), &value) ||
        std::trunc(value) != value || std::abs(value) > static_cast<double>(kLargestBound)) {
      return RefuseSchema(place, "bounds of numbers must be whole numbers of at most 15 digits");
    }
    return NumberBound{static_cast<int64_t>(value), exclusive != nullptr};
  }

  absl::StatusOr<NumberRange> ReadRange(const JsonValue& schema, const std::string& place) {
    NumberRange range;
    ASSIGN_OR_RETURN(range.low, ReadBound(schema, "minimum", "exclusiveMinimum", place));
    ASSIGN_OR_RETURN(range.high, ReadBound(schema, "maximum", "exclusiveMaximum", place));
    return range;
  }

  absl::StatusOr<Symbol> ReadNumber(const JsonValue& schema, const std::string& place) {
    ASSIGN_OR_RETURN(const NumberRange range, ReadRange(schema, place));
    return text_.Number(range);
  }

  absl::StatusOr<Symbol> ReadInteger(const JsonValue& schema, const std::string& place) {
    ASSIGN_OR_RETURN(const NumberRange range, ReadRange(schema, place));
    return text_.Integer(range);
  }

  // ---- arrays ----

  absl::StatusOr<Symbol> ReadArray(const JsonValue& schema, const std::string& place) {
    ASSIGN_OR_RETURN(const SchemaCounts counts, ReadCounts(schema, "minItems", "maxItems", place));
    ASSIGN_OR_RETURN(const std::vector<Symbol> first, ReadFirstItems(schema, place));
    const auto num_first = static_cast<int64_t>(first.size());
    if (counts.most != GrammarBuilder::kUnbounded && counts.most < num_first) {
      return RefuseSchema(place, "`maxItems` is smaller than the number of `prefixItems`");
    }
    const JsonValue* items = schema.Find("items");
    const bool closed = items != nullptr && items->type() == Type::kBoolean && !items->boolean();
    std::vector<Symbol> parts;
    for (const Symbol& item : first) {
      if (!parts.empty()) parts.push_back(text_.Comma());
      parts.push_back(item);
    }
    if (!closed) {
      Symbol item = text_.Value();
      if (items != nullptr) {
        ASSIGN_OR_RETURN(item, ReadSchema(*items, place + "/items"));
      }
      parts.push_back(MoreItems(item, num_first, counts));
    }
    return text_.Enclosed("[", builder_.Sequence(parts), "]");
  }

  absl::StatusOr<std::vector<Symbol>> ReadFirstItems(const JsonValue& schema,
                                                     const std::string& place) {
    std::vector<Symbol> first;
    const JsonValue* items = schema.Find("prefixItems");
    if (items == nullptr) return first;
    if (!items->is_array()) return RefuseSchema(place, "`prefixItems` is a list of schemas");
    for (size_t i = 0; i < items->items().size(); ++i) {
      ASSIGN_OR_RETURN(first.emplace_back(),
                       ReadSchema(items->items()[i], fmt::format("{}/prefixItems/{}", place, i)));
    }
    return first;
  }

  // Items behind the first `num_before`, as many as the counts of all still allow.
  Symbol MoreItems(Symbol item, int64_t num_before, const SchemaCounts& counts) {
    const int64_t least = std::max<int64_t>(0, counts.least - num_before);
    const int64_t most =
        counts.most == GrammarBuilder::kUnbounded ? counts.most : counts.most - num_before;
    if (num_before == 0) return text_.List(item, least, most);
    return builder_.Repeat(builder_.Sequence({text_.Comma(), item}), least, most);
  }

  // ---- objects ----

  struct Property {
    Symbol member;
    bool required;
  };

  absl::StatusOr<Symbol> ReadObject(const JsonValue& schema, const std::string& place) {
    const JsonValue* properties = schema.Find("properties");
    if (properties != nullptr && !properties->is_object()) {
      return RefuseSchema(place, "`properties` is an object of schemas");
    }
    std::vector<std::string> names;
    if (properties != nullptr) {
      for (const auto& [name, unused] : properties->members()) names.push_back(name);
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> required, ReadRequired(schema, place));
    for (const std::string& name : required) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      return RefuseSchema(place, fmt::format("`required` names `{}`, which is no property", name));
    }
    std::vector<Property> members;
    for (const std::string& name : names) {
      ASSIGN_OR_RETURN(
          const Symbol value,
          ReadSchema(*properties->Find(name), fmt::format("{}/properties/{}", place, name)));
      const bool needed = std::find(required.begin(), required.end(), name) != required.end();
      const Symbol key = LiteralOf(JsonValue::String(name));
      members.push_back({text_.Member(key, value), needed});
    }
    ASSIGN_OR_RETURN(const std::optional<Symbol> other, ReadOtherMembers(schema, names, place));
    return text_.Enclosed("{", Members(members, other), "}");
  }

  absl::StatusOr<std::vector<std::string>> ReadRequired(const JsonValue& schema,
                                                        const std::string& place) {
    std::vector<std::string> names;
    const JsonValue* required = schema.Find("required");
    if (required == nullptr) return names;
    const auto& items = required->items();
    const auto is_name = [](const JsonValue& item) { return item.is_string(); };
    if (!required->is_array() || !std::all_of(items.begin(), items.end(), is_name)) {
      return RefuseSchema(place, "`required` is a list of names");
    }
    for (const JsonValue& item : items) names.push_back(item.string());
    return names;
  }

  // A member that no property names, if there may be one.
  absl::StatusOr<std::optional<Symbol>> ReadOtherMembers(const JsonValue& schema,
                                                         const std::vector<std::string>& names,
                                                         const std::string& place) {
    const JsonValue* rule = schema.Find("additionalProperties");
    const bool allowed =
        rule == nullptr ? names.empty() : rule->type() != Type::kBoolean || rule->boolean();
    if (!allowed) return std::nullopt;
    Symbol value = text_.Value();
    if (rule != nullptr) {
      ASSIGN_OR_RETURN(value, ReadSchema(*rule, place + "/additionalProperties"));
    }
    const Symbol key = names.empty() ? text_.String() : text_.StringOtherThan(names);
    return text_.Member(key, value);
  }

  // The members in their order, from the last to the first: what may follow when nothing was
  // written yet, and what may follow a member, where a comma comes first.
  Symbol Members(std::span<const Property> members, std::optional<Symbol> other) {
    Symbol behind = builder_.Empty();
    Symbol first = builder_.Empty();
    if (other) {
      behind = builder_.Repeat(builder_.Sequence({text_.Comma(), *other}), 0,
                               GrammarBuilder::kUnbounded);
      first = builder_.Optional(builder_.Sequence({*other, behind}));
    }
    for (auto it = members.rbegin(); it != members.rend(); ++it) {
      const Symbol starts = builder_.Sequence({it->member, behind});
      const Symbol follows = builder_.Sequence({text_.Comma(), it->member, behind});
      first = it->required ? starts : builder_.Choice({starts, first});
      behind = it->required ? follows : builder_.Choice({follows, behind});
    }
    return first;
  }

  const JsonValue& root_;
  JsonText text_;
  GrammarBuilder& builder_;
  absl::flat_hash_map<const JsonValue*, Symbol> rules_;
};

absl::StatusOr<JsonText> MakeText(const JsonSpacing& spacing, GrammarBuilder& builder) {
  if (spacing.pattern) {
    const auto spell = [&](const CharacterSet& set) { return set.Spell(builder); };
    ASSIGN_OR_RETURN(const Symbol blank, ParseRegex(*spacing.pattern, spell, builder));
    return JsonText(builder, blank, blank);
  }
  if (spacing.compact) return JsonText(builder, builder.Empty(), builder.Byte(' '));
  const Symbol blank = JsonText::AnyBlank(builder);
  return JsonText(builder, blank, blank);
}

}  // namespace

absl::StatusOr<Symbol> AddJsonSchema(const JsonValue& root, const JsonValue& schema,
                                     const JsonSpacing& spacing, GrammarBuilder& builder) {
  ASSIGN_OR_RETURN(const JsonText text, MakeText(spacing, builder));
  return SchemaReader(root, text, builder).Read(schema);
}

absl::StatusOr<Symbol> AddPlainString(const JsonValue& schema, GrammarBuilder& builder) {
  std::vector<Symbol> options;
  const JsonValue* values = schema.Find("enum");
  if (values != nullptr && values->is_array()) {
    for (const JsonValue& value : values->items()) {
      if (value.is_string()) options.push_back(builder.Literal(value.string()));
    }
  }
  const JsonValue* value = schema.Find("const");
  if (value != nullptr && value->is_string()) options.push_back(builder.Literal(value->string()));
  if (!options.empty()) return builder.Choice(options);
  return AddStringContent(schema, PlainCharacters(builder), "#", builder);
}

absl::StatusOr<Symbol> AddJsonObject(const JsonSpacing& spacing, GrammarBuilder& builder) {
  ASSIGN_OR_RETURN(JsonText text, MakeText(spacing, builder));
  return text.Object();
}

}  // namespace fulgur::grammar
