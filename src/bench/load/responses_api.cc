#include "bench/load/responses_api.h"

#include <string>
#include <string_view>

namespace fulgur::bench {
namespace {

using Object = simdjson::dom::object;

std::string_view Text(Object object, std::string_view key) {
  std::string_view text;
  if (object[key].get(text) != simdjson::SUCCESS) return {};
  return text;
}

FrameKind AddText(FrameKind kind, std::string_view text, bool keep_text, AnswerSoFar& answer) {
  if (text.empty()) return FrameKind::kRole;
  if (keep_text) (kind == FrameKind::kReasoning ? answer.reasoning : answer.text) += text;
  return kind;
}

void ReadUsage(Object response, AnswerSoFar& answer) {
  Object usage;
  if (response["usage"].get(usage) != simdjson::SUCCESS) return;
  const auto read = [](Object object, const char* key, std::optional<int64_t>& field) {
    int64_t count = 0;
    if (object[key].get(count) == simdjson::SUCCESS) field = count;
  };
  read(usage, "input_tokens", answer.usage.prompt_tokens);
  read(usage, "output_tokens", answer.usage.completion_tokens);
  Object details;
  if (usage["input_tokens_details"].get(details) == simdjson::SUCCESS) {
    read(details, "cached_tokens", answer.usage.cached_tokens);
  }
  if (usage["output_tokens_details"].get(details) == simdjson::SUCCESS) {
    read(details, "reasoning_tokens", answer.usage.reasoning_tokens);
  }
}

// The texts of an item's parts, which stand in "content" or, for reasoning, also in "summary".
std::string PartTexts(Object item) {
  std::string texts;
  for (const char* const list : {"content", "summary"}) {
    simdjson::dom::array parts;
    if (item[list].get(parts) != simdjson::SUCCESS) continue;
    for (const simdjson::dom::element element : parts) {
      Object part;
      if (element.get(part) == simdjson::SUCCESS) texts += Text(part, "text");
    }
  }
  return texts;
}

// A body in one piece. Its kind is that of what a user sees first: text, calls, then reasoning.
FrameKind ReadOutput(Object response, bool keep_text, AnswerSoFar& answer) {
  FrameKind seen = FrameKind::kRole;
  simdjson::dom::array output;
  if (response["output"].get(output) != simdjson::SUCCESS) return seen;
  for (const simdjson::dom::element element : output) {
    Object item;
    if (element.get(item) != simdjson::SUCCESS) continue;
    const std::string_view type = Text(item, "type");
    FrameKind kind = FrameKind::kRole;
    if (type == "message") {
      kind = AddText(FrameKind::kContent, PartTexts(item), keep_text, answer);
    } else if (type == "reasoning") {
      kind = AddText(FrameKind::kReasoning, PartTexts(item), keep_text, answer);
    } else if (type == "function_call") {
      const std::string call =
          std::string(Text(item, "name")) + std::string(Text(item, "arguments"));
      kind = AddText(FrameKind::kTool, call, keep_text, answer);
    }
    const bool first = seen == FrameKind::kRole;
    if (first || kind == FrameKind::kContent) seen = kind;
  }
  return seen;
}

// The last event, or the body: usage, and whether it failed.
FrameKind ReadEnd(Object response, AnswerSoFar& answer) {
  ReadUsage(response, answer);
  answer.finished = true;
  answer.done = true;
  simdjson::dom::element error;
  if (response["error"].get(error) != simdjson::SUCCESS || error.is_null())
    return FrameKind::kUsage;
  answer.error = simdjson::minify(error);
  return FrameKind::kError;
}

}  // namespace

bool IsResponsesObject(Object root) {
  return Text(root, "object") == "response" || Text(root, "type").starts_with("response.") ||
         Text(root, "type") == "error";
}

FrameKind ReadResponsesObject(Object root, bool keep_text, AnswerSoFar& answer) {
  if (Text(root, "object") == "response") {
    const FrameKind seen = ReadOutput(root, keep_text, answer);
    const FrameKind end = ReadEnd(root, answer);
    return end == FrameKind::kError ? end : seen;
  }
  const std::string_view type = Text(root, "type");
  if (type == "error") {
    answer.error = simdjson::minify(root);
    return FrameKind::kError;
  }
  if (type == "response.completed" || type == "response.incomplete" || type == "response.failed") {
    Object response;
    if (root["response"].get(response) != simdjson::SUCCESS) return FrameKind::kRole;
    const FrameKind end = ReadEnd(response, answer);
    if (type == "response.failed" && !answer.error) answer.error = simdjson::minify(root);
    return answer.error ? FrameKind::kError : end;
  }
  if (!type.ends_with(".delta")) return FrameKind::kRole;
  const std::string_view delta = Text(root, "delta");
  if (type.starts_with("response.reasoning")) {
    return AddText(FrameKind::kReasoning, delta, keep_text, answer);
  }
  if (type == "response.output_text.delta" || type == "response.refusal.delta") {
    return AddText(FrameKind::kContent, delta, keep_text, answer);
  }
  return AddText(FrameKind::kTool, delta, keep_text,
                 answer);  // arguments and other inputs of tools
}

}  // namespace fulgur::bench
