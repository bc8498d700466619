// The output parsing cases of testdata/output_cases.json.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "text/output_parser.h"
#include "text/testing/fixtures.h"

namespace fulgur::text::testing {

struct OutputCase {
  std::string id;
  std::string text;
  OutputParserOptions options;
  OutputEnd end;
  ParsedOutput expected;
};

inline std::vector<OutputCase> OutputCases() {
  std::vector<OutputCase> cases;
  for (const auto& json : ReadCases("output_cases.json", "cases")) {
    OutputCase c;
    c.id = json["id"];
    c.text = json["generated_text"];
    c.end = json["ended_by"] == "length" ? OutputEnd::kLength : OutputEnd::kStop;
    c.options.start =
        json["start_state"] == "reasoning" ? OutputStart::kReasoning : OutputStart::kContent;
    c.options.parse_tools = json["tools_active"].get<bool>() && !json["tools"].empty();
    auto tools = ToolSchemas::FromJson(json["tools"].dump());
    EXPECT_TRUE(tools.ok()) << tools.status();
    c.options.tools = std::make_shared<const ToolSchemas>(*std::move(tools));
    if (json["reasoning"].is_string()) c.expected.reasoning = json["reasoning"];
    if (json["content"].is_string()) c.expected.content = json["content"];
    for (const auto& call : json["tool_calls"]) {
      c.expected.tool_calls.push_back({call["name"], call["arguments_text"]});
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace fulgur::text::testing

namespace fulgur::text {

// For messages of failed tests.
inline void PrintTo(const ParsedOutput& output, std::ostream* out) {
  *out << "reasoning <" << output.reasoning << "> content <" << output.content << ">";
  for (const ParsedToolCall& call : output.tool_calls) {
    *out << " call " << call.name << " <" << call.arguments << ">";
  }
}

}  // namespace fulgur::text
