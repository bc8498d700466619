// What the messages of an OpenAI-style answer carry: text, reasoning, tool calls, usage, errors. Of
// chats and completions; those of the Responses API are read by responses_api.h.
//
// Classes of messages follow aiperf: a first message with only a role is no token, reasoning is.
// Both spellings of the reasoning field are read, since servers differ (`reasoning_content`,
// `reasoning`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/stats/record.h"
#include "simdjson.h"

namespace fulgur::bench {

// One answer as it comes in.
struct AnswerSoFar {
  std::vector<Frame> frames;
  Usage usage;
  std::string text;                  // visible, tool calls included
  std::string reasoning;             // both kept only with AnswerReader::KeepText
  std::optional<std::string> error;  // an error object inside the answer, as JSON
  int64_t unreadable = 0;            // messages that are no JSON object
  bool done = false;                 // "[DONE]" came
  bool finished = false;             // a finish_reason came
  int64_t counted_tokens = 0;        // by running usage figures, so far
};

// Reads messages into answers. One thread; one reader serves any number of answers.
class AnswerReader {
 public:
  explicit AnswerReader(bool keep_text) : keep_text_(keep_text) {}

  // The data of one server-sent event.
  void ReadMessage(std::string_view data, int64_t arrival_ns, AnswerSoFar& answer);

  // The body of an answer that is not streamed: one frame.
  void ReadWhole(std::string_view body, int64_t arrival_ns, AnswerSoFar& answer);

 private:
  bool ParseObject(std::string_view json, simdjson::dom::object& object);
  void ReadUsage(simdjson::dom::object root, AnswerSoFar& answer);
  FrameKind ReadChoice(simdjson::dom::object choice, std::string_view part, AnswerSoFar& answer);
  void ReadObject(std::string_view data, std::string_view part, Frame frame, AnswerSoFar& answer);

  const bool keep_text_;
  simdjson::dom::parser parser_;
};

}  // namespace fulgur::bench
