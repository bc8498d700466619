#include "grammar/tool_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "grammar/format_harness.h"

namespace fulgur::grammar {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTools = R"([
  {"type": "function", "function": {"name": "weather", "strict": true, "parameters": {
     "type": "object", "required": ["city"], "properties": {
       "city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 9},
       "unit": {"type": "string", "enum": ["C", "F"]}, "at": {"$ref": "#/$defs/place"}},
     "$defs": {"place": {"type": "object", "properties": {"x": {"type": "number"}},
                         "required": ["x"]}}}}},
  {"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}])";

// `@` stands for the marker as a token, `~` for its text.
std::string Marked(std::string text) {
  const std::string marker = "｜DSML｜";
  const auto replace = [&](char sign, const std::string& by) {
    for (size_t at = 0; (at = text.find(sign, at)) != std::string::npos; at += by.size()) {
      text.replace(at, 1, by);
    }
  };
  replace('@', static_cast<char>(kAddedTokenMark) + marker);
  replace('~', marker);
  return text;
}

OutputFormat Calls(ToolCallFormat calls) {
  calls.tools = kTools;
  return {.kind = OutputFormat::Kind::kToolCalls, .source = "", .spacing = {}, .calls = calls};
}

bool Allows(const ToolCallFormat& format, const std::string& text) {
  return HasFormat(Marked(text), Calls(format));
}

std::string Block(const std::string& calls) {
  return "\n\n<@tool_calls>\n" + calls + "</@tool_calls>";
}
std::string Weather(const std::string& parameters) {
  return "<@invoke name=\"weather\">\n" + parameters + "</@invoke>\n";
}
std::string City(const std::string& value) {
  return "<@parameter name=\"city\" string=\"true\">" + value + "</@parameter>\n";
}
std::string Days(const std::string& value) {
  return "<@parameter name=\"days\" string=\"false\">" + value + "</@parameter>\n";
}
const std::string kClock = "<@invoke name=\"clock\">\n</@invoke>\n";

TEST(ToolCallsTest, TextCallsOrBoth) {
  EXPECT_TRUE(Allows({}, "No call, < just text > with ~ in it."));
  EXPECT_TRUE(Allows({}, Block(kClock)));
  EXPECT_TRUE(Allows({}, "Let me see." + Block(Weather(City("L<ü>tt \"x\"")) + kClock)));
  EXPECT_FALSE(Allows({}, Block(kClock) + "and more"));
  EXPECT_FALSE(Allows({}, Block("")));
  EXPECT_FALSE(Allows({}, "a marker @ alone"));
  EXPECT_FALSE(Allows({}, "<@tool_call>"));
}

TEST(ToolCallsTest, RequiredNamedAndSingleCalls) {
  EXPECT_FALSE(Allows({.required = true}, "text"));
  EXPECT_FALSE(Allows({.required = true}, "text" + Block(kClock)));
  EXPECT_TRUE(Allows({.required = true}, Block(kClock + kClock)));
  EXPECT_FALSE(Allows({.required = true, .one_call = true}, Block(kClock + kClock)));
  EXPECT_TRUE(Allows({.named = "clock", .required = true}, Block(kClock)));
  EXPECT_FALSE(Allows({.named = "clock", .required = true}, Block(Weather(City("x")))));
  EXPECT_FALSE(Allows({.required = true}, Block("<@invoke name=\"moon\">\n</@invoke>\n")));
}

TEST(ToolCallsTest, StrictToolsHoldTheirArguments) {
  const auto allows = [](const std::string& parameters) {
    return Allows({}, Block(Weather(parameters)));
  };
  EXPECT_TRUE(allows(City("Paris") + Days("3")));
  EXPECT_FALSE(allows(Days("3"))) << "the city is required";
  EXPECT_FALSE(allows(City("Paris") + Days("0")));
  EXPECT_FALSE(allows(City("Paris") + Days("three")));
  EXPECT_FALSE(allows(City("Paris") + City("Rome")));
  EXPECT_TRUE(allows(City("") + "<@parameter name=\"unit\" string=\"true\">F</@parameter>\n"));
  EXPECT_FALSE(allows(City("") + "<@parameter name=\"unit\" string=\"true\">K</@parameter>\n"));
  EXPECT_TRUE(
      allows(City("") + "<@parameter name=\"at\" string=\"false\">{\"x\": 1.5}</@parameter>\n"));
  EXPECT_FALSE(allows(City("") + "<@parameter name=\"more\" string=\"true\">1</@parameter>\n"));
}

TEST(ToolCallsTest, OtherToolsMayTakeAnything) {
  const std::string call =
      "<@invoke name=\"clock\">\n<@parameter name=\"zone\" string=\"true\">UTC</@parameter>\n"
      "<@parameter name=\"list\" string=\"false\">[1, {}]</@parameter>\n</@invoke>\n";
  EXPECT_TRUE(Allows({}, Block(call)));
  EXPECT_FALSE(Allows({.hold_arguments = true}, Block(call)));
}

TEST(ToolCallsTest, AStrictSchemaThatCannotBeKeptIsNamed) {
  OutputFormat format = Calls({});
  format.calls.tools = R"([{"function": {"name": "f", "strict": true, "parameters": {
      "properties": {"n": {"type": "integer", "multipleOf": 5}}}}}])";
  EXPECT_THAT(ErrorOf(format),
              HasSubstr("the parameter `n` of the tool `f`: the JSON schema at #: `multipleOf`"));
}

}  // namespace
}  // namespace fulgur::grammar
