#include "text/tool_schema.h"

#include <gtest/gtest.h>

namespace fulgur::text {
namespace {

std::string Correct(std::string_view text, bool is_string, std::string_view schema_json) {
  const auto schema = ParseJson(schema_json);
  EXPECT_TRUE(schema.ok()) << schema_json;
  return WriteJson(CorrectParameter(text, is_string, &*schema), NumberStyle::kAsWritten);
}

struct Case {
  std::string text;
  bool is_string;
  std::string schema;
  std::string expected;
};

void CheckCases(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(Correct(c.text, c.is_string, c.schema), c.expected)
        << c.text << (c.is_string ? " (string) " : " (json) ") << c.schema;
  }
}

TEST(ToolSchemaTest, TextMarkedAsStringStaysUnlessTheSchemaForbids) {
  CheckCases({
      {"5", true, "{}", R"("5")"},
      {"5", true, R"({"type": "string"})", R"("5")"},
      {"5", true, R"({"type": ["integer", "string"]})", R"("5")"},
      {"5", true, R"({"type": "integer"})", "5"},
      {"+007", true, R"({"type": "integer"})", "7"},
      {"-0", true, R"({"type": "integer"})", "-0"},
      {"5.5", true, R"({"type": "integer"})", R"("5.5")"},
      {" 5.50 ", true, R"({"type": "number"})", "5.50"},
      {"five", true, R"({"type": "number"})", R"("five")"},
      {"TRUE", true, R"({"type": "boolean"})", "true"},
      {"0", true, R"({"type": "boolean"})", "false"},
      {"Null", true, R"({"type": ["null", "integer"]})", "null"},
      {"1", true, R"({"type": ["boolean", "integer"]})", "1"},
      {R"({"a":[1]})", true, R"({"type": "object"})", R"({"a": [1]})"},
      {"[1,", true, R"({"type": "array"})", R"("[1,")"},
  });
}

TEST(ToolSchemaTest, TextMarkedAsJsonIsReadAsJson) {
  CheckCases({
      {"5", false, "{}", "5"},
      {" [1,2] ", false, "{}", "[1, 2]"},
      {R"({"k":"\u00e9"})", false, "{}", R"({"k": "é"})"},
      {"12345678901234567890", false, "{}", "12345678901234567890"},
      {"1.10", false, "{}", "1.10"},
      {"NaN", false, "{}", R"("NaN")"},
      {"1e999", false, "{}", R"("1e999")"},
      {"tr", false, "{}", R"("tr")"},
      {"007", false, "{}", R"("007")"},
      {"hello", false, "{}", R"("hello")"},
      {"1.10", false, R"({"type": "string"})", R"("1.10")"},
      {R"("x")", false, R"({"type": "string"})", R"("x")"},
      {"5", false, R"({"type": "number"})", "5"},
      {"5.0", false, R"({"type": "integer"})", R"("5.0")"},
      {R"("7")", false, R"({"type": "integer"})", "7"},
      {R"("seven")", false, R"({"type": "integer"})", R"("seven")"},
      {"True", false, R"({"type": "boolean"})", "true"},
      {"None", false, R"({"type": ["string", "null"]})", R"("None")"},
      {"[1]", false, R"({"type": "string"})", R"("[1]")"},
      {"1", false, R"({"type": ["string", "boolean"]})", "true"},
      {"{}", false, R"({"type": "array"})", R"("{}")"},
  });
}

TEST(ToolSchemaTest, MembersAndItemsAreCorrectedToo) {
  const std::string schema = R"({"type": "array", "items": {"type": "object", "properties": {
      "age": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}}})";
  EXPECT_EQ(Correct(R"([{"age": "31", "tags": [1.50, "x"], "other": "5"}])", false, schema),
            R"([{"age": 31, "tags": ["1.50", "x"], "other": "5"}])");
}

TEST(ToolSchemaTest, TypesComeFromAllOverTheSchema) {
  const auto types = [](std::string_view text) {
    const auto schema = ParseJson(text);
    return AllowedTypes(&*schema);
  };
  EXPECT_EQ(AllowedTypes(nullptr), 0);
  EXPECT_EQ(types("true"), 0);
  EXPECT_EQ(types(R"({"type": "str"})"), kStringBit);
  EXPECT_EQ(types(R"({"type": ["Integer", "none"]})"), kIntegerBit | kNullBit);
  EXPECT_EQ(types(R"({"enum": ["a", 1, null]})"), kStringBit | kIntegerBit | kNullBit);
  EXPECT_EQ(types(R"({"const": 1.5})"), kNumberBit);
  EXPECT_EQ(types(R"({"anyOf": [{"type": "dict"}, {"oneOf": [{"type": "list"}]}]})"),
            kObjectBit | kArrayBit);
  EXPECT_EQ(types(R"({"$ref": "#/x"})"), 0);
  EXPECT_EQ(types(R"({"type": 5, "enum": 3, "anyOf": {}})"), 0);
}

TEST(ToolSchemaTest, PropertiesMayBeInABranch) {
  const std::string schema =
      R"({"anyOf": [{"type": "null"}, {"type": "object", "properties": {"n": {"type": "integer"}}}]})";
  EXPECT_EQ(Correct(R"({"n": "1"})", false, schema), R"({"n": 1})");
}

ToolSchemas Tools() {
  return *ToolSchemas::FromJson(R"([
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer"}}}}},
    {"type": "function", "function": {"name": "g", "parameters": {"properties": {"input": {}}}}},
    {"type": "function", "function": {"name": "h"}}])");
}

TEST(ToolSchemaTest, Wrappers) {
  const ToolSchemas tools = Tools();
  EXPECT_TRUE(tools.MayBeWrapper("f", "arguments"));
  EXPECT_TRUE(tools.MayBeWrapper("f", "input"));
  EXPECT_FALSE(tools.MayBeWrapper("f", "city"));
  EXPECT_FALSE(tools.MayBeWrapper("g", "input"));
  EXPECT_FALSE(tools.MayBeWrapper("h", "input"));
  EXPECT_FALSE(tools.MayBeWrapper("unknown", "input"));
  EXPECT_EQ(WriteJson(*tools.Unwrap("f", *ParseJson(R"({"days": "3"})")), NumberStyle::kAsWritten),
            R"({"days": 3})");
  EXPECT_TRUE(tools.Unwrap("f", JsonValue::String(R"({"city": "Rome"})")).has_value());
  EXPECT_FALSE(tools.Unwrap("f", *ParseJson(R"({"other": 1})")).has_value());
  EXPECT_FALSE(tools.Unwrap("f", JsonValue::String("[]")).has_value());
}

TEST(ToolSchemaTest, KnowsTheToolsOfARequest) {
  const ToolSchemas tools = Tools();
  EXPECT_TRUE(tools.Declares("f"));
  EXPECT_TRUE(tools.Declares("h"));
  EXPECT_FALSE(tools.Declares("i"));
  EXPECT_NE(tools.Parameter("f", "city"), nullptr);
  EXPECT_EQ(tools.Parameter("f", "town"), nullptr);
  EXPECT_EQ(tools.Parameter("h", "city"), nullptr);
  for (const char* text :
       {"", "{}", "[1]", "[{}]", R"([{"function": {}}])", R"([{"function": {"name": 1}}])"}) {
    EXPECT_FALSE(ToolSchemas::FromJson(text).ok()) << text;
  }
}

}  // namespace
}  // namespace fulgur::text
