#include "bench/load/answer_reader.h"

#include "bench/load/responses_api.h"

namespace fulgur::bench {
namespace {

std::string_view Text(simdjson::dom::object object, std::string_view key) {
  std::string_view text;
  if (object[key].get(text) != simdjson::SUCCESS) return {};
  return text;
}

std::optional<int64_t> Count(simdjson::dom::object object, std::string_view key) {
  int64_t count = 0;
  if (object[key].get(count) != simdjson::SUCCESS) return std::nullopt;
  return count;
}

// Name and arguments of all tool calls, one after the other.
std::string ToolText(simdjson::dom::object message) {
  std::string text;
  simdjson::dom::array calls;
  if (message["tool_calls"].get(calls) != simdjson::SUCCESS) return text;
  for (const simdjson::dom::element element : calls) {
    simdjson::dom::object function;
    if (element["function"].get(function) != simdjson::SUCCESS) continue;
    text += Text(function, "name");
    text += Text(function, "arguments");
  }
  return text;
}

}  // namespace

bool AnswerReader::ParseObject(std::string_view json, simdjson::dom::object& object) {
  return parser_.parse(json.data(), json.size()).get(object) == simdjson::SUCCESS;
}

void AnswerReader::ReadUsage(simdjson::dom::object root, AnswerSoFar& answer) {
  simdjson::dom::object usage;
  if (root["usage"].get(usage) != simdjson::SUCCESS) return;  // absent, or null in every frame
  Usage& last = answer.usage;
  const auto update = [](std::optional<int64_t>& field, std::optional<int64_t> value) {
    if (value) field = value;
  };
  update(last.prompt_tokens, Count(usage, "prompt_tokens"));
  update(last.completion_tokens, Count(usage, "completion_tokens"));
  simdjson::dom::object details;
  if (usage["prompt_tokens_details"].get(details) == simdjson::SUCCESS) {
    update(last.cached_tokens, Count(details, "cached_tokens"));
  }
  if (usage["completion_tokens_details"].get(details) == simdjson::SUCCESS) {
    update(last.reasoning_tokens, Count(details, "reasoning_tokens"));
  }
}

FrameKind AnswerReader::ReadChoice(simdjson::dom::object choice, std::string_view part,
                                   AnswerSoFar& answer) {
  if (!Text(choice, "finish_reason").empty()) answer.finished = true;
  std::string_view visible = Text(choice, "text");
  std::string_view reasoning;
  std::string tools;
  simdjson::dom::object message;
  if (choice[part].get(message) == simdjson::SUCCESS) {
    visible = Text(message, "content");
    reasoning = Text(message, "reasoning");
    if (reasoning.empty()) reasoning = Text(message, "reasoning_content");
    tools = ToolText(message);
  }
  if (keep_text_) {
    answer.text += visible;
    answer.text += tools;
    answer.reasoning += reasoning;
  }
  if (!visible.empty()) return FrameKind::kContent;
  if (!tools.empty()) return FrameKind::kTool;
  if (!reasoning.empty()) return FrameKind::kReasoning;
  return Text(choice, "finish_reason").empty() ? FrameKind::kRole : FrameKind::kFinish;
}

void AnswerReader::ReadObject(std::string_view data, std::string_view part, Frame frame,
                              AnswerSoFar& answer) {
  simdjson::dom::object root;
  if (!ParseObject(data, root)) {
    ++answer.unreadable;
    return;
  }
  if (IsResponsesObject(root)) {
    frame.kind = ReadResponsesObject(root, keep_text_, answer);
    answer.frames.push_back(frame);
    return;
  }
  simdjson::dom::element error;
  if (root["error"].get(error) == simdjson::SUCCESS && !error.is_null()) {
    answer.error = std::string(data);
    frame.kind = FrameKind::kError;
    answer.frames.push_back(frame);
    return;
  }
  ReadUsage(root, answer);
  simdjson::dom::array choices;
  simdjson::dom::object first;
  if (root["choices"].get(choices) == simdjson::SUCCESS &&
      choices.at(0).get(first) == simdjson::SUCCESS) {
    frame.kind = ReadChoice(first, part, answer);
  } else {
    frame.kind = FrameKind::kUsage;
  }
  // Running usage figures tell how many tokens each frame brought.
  const int64_t counted = answer.usage.completion_tokens.value_or(0);
  if (frame.is_output() && counted > answer.counted_tokens) {
    frame.tokens = counted - answer.counted_tokens;
    answer.counted_tokens = counted;
  }
  answer.frames.push_back(frame);
}

void AnswerReader::ReadMessage(std::string_view data, int64_t arrival_ns, AnswerSoFar& answer) {
  if (data == "[DONE]") {
    answer.done = true;
    answer.frames.push_back({.arrival_ns = arrival_ns, .kind = FrameKind::kDone, .tokens = {}});
    return;
  }
  ReadObject(data, "delta", {.arrival_ns = arrival_ns, .kind = FrameKind::kRole, .tokens = {}},
             answer);
}

void AnswerReader::ReadWhole(std::string_view body, int64_t arrival_ns, AnswerSoFar& answer) {
  ReadObject(body, "message", {.arrival_ns = arrival_ns, .kind = FrameKind::kRole, .tokens = {}},
             answer);
  answer.done = true;
}

}  // namespace fulgur::bench
