// Lets the Python differential tests run this library: one JSON object a line in, one out.
//
//   text_oracle TOKENIZER_JSON < requests > answers
//
// {"encode": TEXT, "plain": [[BEGIN, END], ...]}  ->  {"ids": [...]}
// {"decode": [IDS], "skip_special": BOOL}          ->  {"text": TEXT}
// {"stream": [IDS]}                                ->  {"deltas": [TEXT, ...], "flush": TEXT}
// {"chat": MESSAGES, "tools": TOOLS, "thinking": BOOL, "effort": "low"|"high"|"max"}
//                                                  ->  {"prompt": TEXT, "ids": [...]}
// {"parse": [TEXT, ...], "tools": TOOLS, "reasoning": BOOL, "length": BOOL}
//                                                  ->  {"reasoning", "content", "calls": [[NAME,
//                                                  ARGUMENTS]]}
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "text/chat_encoding.h"
#include "text/chat_request.h"
#include "text/detokenizer.h"
#include "text/output_parser.h"
#include "text/tokenizer.h"

namespace fulgur::text {
namespace {

using json = nlohmann::ordered_json;

json Encode(const Tokenizer& tokenizer, const json& request) {
  std::vector<ByteRange> plain;
  for (const json& range : request.value("plain", json::array())) {
    plain.push_back({range.at(0).get<size_t>(), range.at(1).get<size_t>()});
  }
  EncodeOptions options;
  options.plain_text = plain;
  return {{"ids", tokenizer.Encode(request.at("encode").get<std::string>(), options)}};
}

json Decode(const Tokenizer& tokenizer, const json& request) {
  const auto ids = request.at("decode").get<std::vector<int32_t>>();
  return {{"text", tokenizer.Decode(ids, request.value("skip_special", false))}};
}

json Stream(const Tokenizer& tokenizer, const json& request) {
  Detokenizer detokenizer(tokenizer, /*skip_special_tokens=*/false);
  json deltas = json::array();
  for (const json& id : request.at("stream")) deltas.push_back(detokenizer.Push(id.get<int32_t>()));
  return {{"deltas", deltas}, {"flush", detokenizer.Finish()}};
}

template <typename T>
T ValueOrDie(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::invalid_argument(std::string(value.status().message()));
  return *std::move(value);
}

json Chat(const Tokenizer& tokenizer, const json& request) {
  ChatOptions options;
  options.thinking = request.value("thinking", true);
  options.effort_profile = EffortProfile::kOfficial;
  const std::string effort = request.value("effort", "low");
  options.effort = effort == "max"    ? ReasoningEffort::kMax
                   : effort == "high" ? ReasoningEffort::kHigh
                                      : ReasoningEffort::kLow;
  if (request.contains("tools")) options.tools = request["tools"].dump();
  const ChatPrompt prompt =
      ValueOrDie(RenderChat(ValueOrDie(ParseMessages(request.at("chat").dump())), options));
  return {{"prompt", prompt.text}, {"ids", EncodePrompt(tokenizer, prompt)}};
}

json Parse(const json& request) {
  OutputParserOptions options;
  options.start =
      request.value("reasoning", false) ? OutputStart::kReasoning : OutputStart::kContent;
  options.parse_tools = request.contains("tools");
  if (options.parse_tools) {
    options.tools = std::make_shared<const ToolSchemas>(
        ValueOrDie(ToolSchemas::FromJson(request["tools"].dump())));
  }
  OutputParser parser(options);
  std::vector<OutputDelta> deltas;
  for (const json& piece : request.at("parse")) parser.PushText(piece.get<std::string>(), &deltas);
  parser.Finish(request.value("length", false) ? OutputEnd::kLength : OutputEnd::kStop, &deltas);
  ParsedOutput output;
  output.Append(deltas);
  json calls = json::array();
  for (const ParsedToolCall& call : output.tool_calls) calls.push_back({call.name, call.arguments});
  return {{"reasoning", output.reasoning}, {"content", output.content}, {"calls", calls}};
}

json Answer(const Tokenizer& tokenizer, const json& request) {
  if (request.contains("encode")) return Encode(tokenizer, request);
  if (request.contains("decode")) return Decode(tokenizer, request);
  if (request.contains("chat")) return Chat(tokenizer, request);
  if (request.contains("parse")) return Parse(request);
  return Stream(tokenizer, request);
}

int Main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: text_oracle TOKENIZER_JSON < requests > answers\n";
    return 2;
  }
  const absl::StatusOr<Tokenizer> tokenizer = Tokenizer::Load(argv[1]);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status().message() << "\n";
    return 1;
  }
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << Answer(*tokenizer, json::parse(line)).dump() << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace fulgur::text

int main(int argc, char** argv) { return fulgur::text::Main(argc, argv); }
