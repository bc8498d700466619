// Any text as model output: the same result however it is cut, whole characters in every delta,
// arguments that are JSON when the output ended by itself.
//
// Input: one byte of options, one that seeds the cutting, then the text, in which the bytes
// 0x01 to 0x0F stand for markers and tags, so that mutations hit them often.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/json.h"
#include "text/output_parser.h"
#include "text/utf8.h"

namespace {

using fulgur::text::OutputDelta;
using fulgur::text::OutputEnd;
using fulgur::text::OutputParser;
using fulgur::text::OutputParserOptions;
using fulgur::text::OutputStart;
using fulgur::text::ParsedOutput;
using fulgur::text::ToolSchemas;

constexpr std::string_view kShorthands[16] = {
    "",
    "<｜DSML｜tool_calls>\n",
    "</｜DSML｜tool_calls>",
    "<｜DSML｜invoke name=\"a\">\n",
    "<｜DSML｜invoke name=\"b\">\n",
    "</｜DSML｜invoke>\n",
    "<｜DSML｜parameter name=\"x\" string=\"true\">",
    "<｜DSML｜parameter name=\"n\" string=\"false\">",
    "</｜DSML｜parameter>\n",
    "<｜DSML｜parameter name=\"input\">",
    "\n",
    "<think>",
    "</think>",
    "｜DSML｜",
    "<｜end▁of▁sentence｜>",
    "<｜User｜>",
};

std::string Expand(std::string_view input) {
  std::string text;
  for (char byte : input) {
    const auto value = static_cast<uint8_t>(byte);
    if (value >= 1 && value < 16) {
      text += kShorthands[value];
    } else {
      text.push_back(byte);
    }
  }
  return text;
}

OutputParserOptions Options(uint8_t bits) {
  static const auto tools = std::make_shared<const ToolSchemas>(*ToolSchemas::FromJson(R"([
    {"function": {"name": "a", "parameters": {"type": "object", "properties": {
      "x": {"type": "string"}, "n": {"type": "integer"}, "o": {"type": "object"}}}}},
    {"function": {"name": "c"}}])"));
  OutputParserOptions options;
  options.start = static_cast<OutputStart>(bits & 3);
  options.parse_reasoning = (bits & 4) == 0;
  options.parse_tools = (bits & 8) == 0;
  options.parallel_tool_calls = (bits & 16) == 0;
  options.tools = tools;
  options.forced_tool = "a";
  return options;
}

ParsedOutput ParseInPieces(std::string_view text, const OutputParserOptions& options, OutputEnd end,
                           uint32_t seed) {
  OutputParser parser(options);
  ParsedOutput output;
  const auto take = [&](const std::vector<OutputDelta>& deltas) {
    for (const OutputDelta& delta : deltas) CHECK(fulgur::text::IsValidUtf8(delta.text));
    output.Append(deltas);
  };
  while (!text.empty()) {
    seed = seed * 1664525 + 1013904223;
    const size_t length = std::min<size_t>(text.size(), 1 + (seed >> 16) % 9);
    std::vector<OutputDelta> deltas;
    parser.PushText(text.substr(0, length), &deltas);
    take(deltas);
    text.remove_prefix(length);
  }
  std::vector<OutputDelta> deltas;
  parser.Finish(end, &deltas);
  take(deltas);
  CHECK(static_cast<int>(output.tool_calls.size()) == parser.num_tool_calls());
  return output;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const OutputParserOptions options = Options(data[0]);
  const OutputEnd end = (data[0] & 32) == 0 ? OutputEnd::kStop : OutputEnd::kLength;
  const std::string text = Expand({reinterpret_cast<const char*>(data + 2), size - 2});
  const ParsedOutput whole = fulgur::text::ParseOutput(text, options, end);
  CHECK(ParseInPieces(text, options, end, data[1]) == whole);
  if (end == OutputEnd::kLength) return 0;
  for (const auto& call : whole.tool_calls) {
    const auto arguments = fulgur::text::ParseJson(call.arguments);
    CHECK(arguments.ok() && arguments->is_object());
  }
  return 0;
}
