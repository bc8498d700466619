#include "grammar/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "grammar/format_harness.h"

namespace fulgur::grammar {
namespace {

using ::testing::HasSubstr;

OutputFormat Schema(std::string schema) {
  return FormatOf(OutputFormat::Kind::kJsonSchema, std::move(schema));
}

struct Case {
  const char* schema;
  const char* text;
  bool valid;
};

class JsonSchemaTest : public testing::TestWithParam<Case> {};

TEST_P(JsonSchemaTest, LetsThroughWhatIsValid) {
  EXPECT_EQ(HasFormat(GetParam().text, Schema(GetParam().schema)), GetParam().valid)
      << GetParam().schema << " on " << GetParam().text;
}

constexpr const char* kPerson =
    R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}}}, "required": ["name", "tags"]})";

constexpr const char* kTree =
    R"({"$defs": {"node": {"type": "object", "required": ["v"], "properties": {"v": {"type": "null"},
        "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}}, "$ref": "#/$defs/node"})";

INSTANTIATE_TEST_SUITE_P(
    Objects, JsonSchemaTest,
    testing::Values(
        Case{kPerson, R"({"name": "Ada", "age": 36, "tags": ["a", "b"]})", true},
        Case{kPerson, R"({"name":"Ada","tags":[]})", true},
        Case{kPerson, "{\n  \"name\": \"Ada\",\n  \"tags\": [\n    \"a\"\n  ]\n}", true},
        Case{kPerson, R"({"name": "Ada"})", false},
        Case{kPerson, R"({"tags": [], "name": ""})", false},
        Case{kPerson, R"({"name": "Ada", "tags": ["c"]})", false},
        Case{kPerson, R"({"name": "Ada", "tags": [], "more": 1})", false},
        Case{kPerson, R"({"name": "Ada", "tags": [],})", false}, Case{kPerson, "{{", false},
        Case{
            R"({"properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "boolean"}})",
            R"({"b": true, "aa": false})", true},
        Case{
            R"({"properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "boolean"}})",
            R"({"a": true})", false},
        Case{R"({"properties": {"a": {"type": "null"}}, "additionalProperties": true})",
             R"({"a": null, "": {"x": []}})", true},
        Case{R"({"properties": {"a": {}, "b": {}}})", R"({"b": 1})", true},
        Case{R"({"properties": {"a": {}, "b": {}}})", R"({})", true},
        Case{R"({"type": "object"})", R"({"any": ["thing", {}]})", true},
        Case{R"({"type": "object", "additionalProperties": false})", R"({"x": 1})", false},
        Case{kTree, R"({"v": null, "next": {"v": null, "next": null}})", true},
        Case{kTree, R"({"v": null, "next": {}})", false}),
    [](const auto& info) { return "Case" + std::to_string(info.index); });

INSTANTIATE_TEST_SUITE_P(
    Arrays, JsonSchemaTest,
    testing::Values(
        Case{R"({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3})",
             "[true]", false},
        Case{R"({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3})",
             "[true, false, true]", true},
        Case{R"({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3})",
             "[true, false, true, true]", false},
        Case{R"({"type": "array", "maxItems": 0})", "[]", true},
        Case{R"({"type": "array", "maxItems": 0})", "[1]", false},
        Case{R"({"prefixItems": [{"type": "null"}, {"type": "string"}], "items": false})",
             R"([null, "x"])", true},
        Case{R"({"prefixItems": [{"type": "null"}, {"type": "string"}], "items": false})",
             R"([null, "x", 1])", false},
        Case{R"({"prefixItems": [{"type": "null"}], "items": {"type": "integer"}})", "[null, 1, 2]",
             true}),
    [](const auto& info) { return "Case" + std::to_string(info.index); });

INSTANTIATE_TEST_SUITE_P(
    Scalars, JsonSchemaTest,
    testing::Values(
        Case{"{}", R"({"a": [1, "b", null, -2.5e-3]})", true}, Case{"true", "17", true},
        Case{"{}", "01", false}, Case{"{}", "1.", false}, Case{"{}", R"("\ud83d\ude42\n")", true},
        Case{"{}", R"("\ud83d")", false}, Case{"{}", "\"a\nb\"", false},
        Case{"{}", R"("\x")", false}, Case{R"({"type": ["string", "null"]})", "null", true},
        Case{R"({"type": ["string", "null"]})", "1", false},
        Case{R"({"const": {"a": [1, "x\"y"]}})", R"({"a": [1, "x\"y"]})", true},
        Case{R"({"enum": [1, "one", null]})", R"("one")", true},
        Case{R"({"type": "string", "minLength": 2, "maxLength": 3})", R"("中文")", true},
        Case{R"({"type": "string", "minLength": 2, "maxLength": 3})", R"("\u4e2d")", false},
        Case{R"({"type": "string", "minLength": 2, "maxLength": 3})", R"("abcd")", false},
        Case{R"({"type": "string", "pattern": "^[a-z]\"\\d$"})", R"("a\"7")", true},
        Case{R"({"type": "string", "pattern": "^[a-z]\"\\d$"})", R"("a"7")", false},
        Case{R"({"type": "string", "pattern": "b+"})", R"("abba")", true},
        Case{R"({"type": "string", "pattern": "b+"})", R"("aa")", false},
        Case{R"({"type": "string", "format": "date"})", R"("2024-02-29")", true},
        Case{R"({"type": "string", "format": "date"})", R"("2024-13-01")", false},
        Case{R"({"type": "string", "format": "date-time"})", R"("2024-02-29T23:59:59Z")", true},
        Case{R"({"type": "string", "format": "ipv4"})", R"("255.0.10.1")", true},
        Case{R"({"type": "string", "format": "ipv4"})", R"("256.0.0.1")", false},
        Case{R"({"type": "string", "format": "hue"})", R"("anything")", true}),
    [](const auto& info) { return "Case" + std::to_string(info.index); });

// Every whole number and half around the bounds, against plain comparison.
class NumberRangeTest : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(NumberRangeTest, KeepsBounds) {
  const auto [low, high] = GetParam();
  const std::string bounds =
      "\"minimum\": " + std::to_string(low) + ", \"maximum\": " + std::to_string(high) + "}";
  const std::string open_bounds = "\"exclusiveMinimum\": " + std::to_string(low) +
                                  ", \"exclusiveMaximum\": " + std::to_string(high) + "}";
  for (int value = low - 12; value <= high + 12; ++value) {
    const std::string whole = std::to_string(value);
    const bool inside = low <= value && value <= high;
    EXPECT_EQ(HasFormat(whole, Schema("{\"type\": \"integer\", " + bounds)), inside) << whole;
    EXPECT_EQ(HasFormat(whole, Schema("{\"type\": \"number\", " + bounds)), inside) << whole;
    const bool strictly = low < value && value < high;
    EXPECT_EQ(HasFormat(whole, Schema("{\"type\": \"number\", " + open_bounds)), strictly) << whole;
    const std::string half = (value < 0 ? "-" : "") + std::to_string(std::abs(value)) + ".5";
    const double number = std::stod(half);
    const bool between = low < number && number < high;
    EXPECT_EQ(HasFormat(half, Schema("{\"type\": \"number\", " + bounds)), between) << half;
    EXPECT_EQ(HasFormat(half, Schema("{\"type\": \"number\", " + open_bounds)), between) << half;
  }
}

INSTANTIATE_TEST_SUITE_P(, NumberRangeTest,
                         testing::Values(std::pair(0, 1), std::pair(-1, 0), std::pair(-25, 13),
                                         std::pair(7, 123), std::pair(-123, -7),
                                         std::pair(95, 105)));

TEST(JsonSchemaTest, OneBoundIsEnough) {
  EXPECT_TRUE(HasFormat("0.25", Schema(R"({"type": "number", "minimum": 0})")));
  EXPECT_FALSE(HasFormat("-0.25", Schema(R"({"type": "number", "minimum": 0})")));
  EXPECT_FALSE(HasFormat("0", Schema(R"({"type": "number", "exclusiveMinimum": 0})")));
  EXPECT_TRUE(HasFormat("0.001", Schema(R"({"type": "number", "exclusiveMinimum": 0})")));
  EXPECT_TRUE(HasFormat("-99", Schema(R"({"type": "integer", "maximum": 5})")));
  EXPECT_FALSE(HasFormat("6", Schema(R"({"type": "integer", "maximum": 5})")));
}

TEST(JsonSchemaTest, NothingGoesOnForEverBetweenTokens) {
  EXPECT_FALSE(HasFormat("{" + std::string(50, ' ') + "}", Schema("{}")));
  EXPECT_FALSE(HasFormat("[1,\n\n1]", Schema("{}")));
  EXPECT_FALSE(HasFormat(std::string(40, '7'), Schema("{}")));
  EXPECT_FALSE(HasFormat("{} ", Schema("{}")));
}

TEST(JsonSchemaTest, SpacingCanBeChosen) {
  OutputFormat compact = Schema(kPerson);
  compact.spacing.compact = true;
  EXPECT_TRUE(HasFormat(R"({"name": "Ada", "tags": ["a", "b"]})", compact));
  EXPECT_FALSE(HasFormat(R"({ "name": "Ada", "tags": [] })", compact));
  OutputFormat wide = Schema(R"({"type": "array"})");
  wide.spacing.pattern = "  ";
  EXPECT_TRUE(HasFormat("[  1,  2  ]", wide));
}

TEST(JsonSchemaTest, RefusesWhatItCannotKeep) {
  EXPECT_THAT(ErrorOf(Schema(R"({"properties": {"a": {"multipleOf": 3}}})")),
              HasSubstr("at #/properties/a: `multipleOf` cannot be kept"));
  EXPECT_THAT(ErrorOf(Schema(R"({"type": "text"})")), HasSubstr("there is no type `text`"));
  EXPECT_THAT(ErrorOf(Schema(R"({"$ref": "http://x/y"})")), HasSubstr("same schema"));
  EXPECT_THAT(ErrorOf(Schema(R"({"$ref": "#/$defs/no"})")), HasSubstr("there is no #/$defs/no"));
  EXPECT_THAT(ErrorOf(Schema(R"({"$ref": "#"})")), HasSubstr("no answer can have this format"));
  EXPECT_THAT(ErrorOf(Schema(R"({"enum": []})")), HasSubstr("`enum`"));
  EXPECT_THAT(ErrorOf(Schema(R"({"required": ["x"]})")), HasSubstr("`x`, which is no property"));
  EXPECT_THAT(ErrorOf(Schema(R"({"minItems": 3, "maxItems": 2, "type": "array"})")),
              HasSubstr("larger"));
  EXPECT_THAT(ErrorOf(Schema(R"({"type": "number", "minimum": 0.5})")), HasSubstr("whole numbers"));
  EXPECT_THAT(ErrorOf(Schema(R"({"type": "string", "pattern": "(a"})")), HasSubstr("not closed"));
  EXPECT_THAT(ErrorOf(Schema(R"({"allOf": [{}, {}]})")), HasSubstr("`allOf`"));
  EXPECT_THAT(ErrorOf(Schema(R"({"anyOf": [{}], "properties": {}})")), HasSubstr("beside `anyOf`"));
  EXPECT_THAT(ErrorOf(Schema("[1]")), HasSubstr("a schema is an object"));
  EXPECT_FALSE(BuildGrammar(Schema("{")).ok());
}

}  // namespace
}  // namespace fulgur::grammar
