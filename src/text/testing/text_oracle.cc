// Lets the Python differential tests run this library: one JSON object a line in, one out.
//
//   text_oracle TOKENIZER_JSON < requests > answers
//
// {"encode": TEXT, "plain": [[BEGIN, END], ...]}  ->  {"ids": [...]}
// {"decode": [IDS], "skip_special": BOOL}          ->  {"text": TEXT}
// {"stream": [IDS]}                                ->  {"deltas": [TEXT, ...], "flush": TEXT}
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace fulgur::text {
namespace {

using nlohmann::json;

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

json Answer(const Tokenizer& tokenizer, const json& request) {
  if (request.contains("encode")) return Encode(tokenizer, request);
  if (request.contains("decode")) return Decode(tokenizer, request);
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
