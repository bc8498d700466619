// Splits what the model writes into reasoning, answer and tool calls while it is being written.
//
// The format is DeepSeek-V4's: reasoning up to </think>, then the answer, then at most a block of
// tool calls in DSML tags. The parser is told nothing about how the text is cut: for every cutting
// the concatenated deltas are the same. Each byte is looked at a bounded number of times. Tags that
// make no call are left out; only a call of an undeclared tool outside of a block, and a header
// nothing of a call follows, are shown as the quotations they probably are. Text that only
// resembles markup is passed on. Malformed and truncated calls are repaired or cut as described at
// Finish(); no output of a model is an error, but flaws() tells what was left out.
// One object per sequence, used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tool_schema.h"

namespace fulgur::text {

// The special tokens of the output format.
enum class Marker : uint8_t {
  kBos,
  kEos,
  kUser,
  kAssistant,
  kThinkOpen,
  kThinkClose,
  kDsml,  // ｜DSML｜; the rest of a tag is ordinary text
};
inline constexpr int kNumMarkers = 7;

// How a marker is spelt, such as "</think>" or "｜DSML｜".
std::string_view MarkerText(Marker marker);

// Where in its turn the model continues; follows from the end of the prompt, never from the
// request (ChatPrompt::start says it).
enum class OutputStart {
  kContent,
  kReasoning,  // after <think>
  kToolCalls,  // after a block of tool calls was opened for the model
  kArguments,  // after the header of a call, OutputParserOptions::forced_tool, was written for it
};

struct OutputParserOptions {
  OutputStart start = OutputStart::kContent;

  // False: think tags are ordinary text (a server without a reasoning parser).
  bool parse_reasoning = true;

  // True if the request has tools, tool_choice is not "none" and the server has a tool parser.
  // False: DSML tags are ordinary text.
  bool parse_tools = false;

  // The tools of the request: their parameter types correct the arguments. May be null.
  std::shared_ptr<const ToolSchemas> tools = nullptr;

  // False (parallel_tool_calls: false): calls after the first are dropped.
  bool parallel_tool_calls = true;

  std::string forced_tool = {};  // used with OutputStart::kArguments only
};

// One piece of output. All of one kind (and call) concatenated are the whole.
struct OutputDelta {
  enum class Kind {
    kReasoning,
    kContent,
    kToolCall,   // a new call begins; `text` is the tool's name
    kArguments,  // more of the arguments of call `call_index`: a piece of a JSON object's text
  };
  Kind kind;
  int call_index = 0;  // counts from 0; for kToolCall and kArguments
  std::string text;

  friend bool operator==(const OutputDelta&, const OutputDelta&) = default;
};

// What of the output nobody gets to see, because it is neither text nor a call.
struct OutputFlaws {
  bool stray_markup = false;     // tags outside of a call
  bool lost_text = false;        // text between and behind calls, a block without a call
  bool unfinished_call = false;  // a call that the model ended the output in

  bool any() const { return stray_markup || lost_text || unfinished_call; }
  friend bool operator==(const OutputFlaws&, const OutputFlaws&) = default;
};

// Why the model stopped writing.
enum class OutputEnd {
  kStop,    // EOS, a stop token or a stop string
  kLength,  // the token limit, or anything else that cuts a text short
};

class OutputParser {
 public:
  explicit OutputParser(OutputParserOptions options);
  ~OutputParser();
  OutputParser(OutputParser&&) noexcept;
  OutputParser& operator=(OutputParser&&) noexcept;

  // All of these append to `deltas`, or extend its last entry if that is of the same kind and call.

  // Takes the next piece of text in which every marker is spelt out; use this where only text is
  // known. Pieces may be cut anywhere, even inside a character.
  void PushText(std::string_view piece, std::vector<OutputDelta>* deltas);

  // The same where token ids are known: markers come as such, and text that merely spells one is
  // ordinary. `text` must be whole characters.
  void PushOrdinaryText(std::string_view text, std::vector<OutputDelta>* deltas);
  void PushMarker(Marker marker, std::vector<OutputDelta>* deltas);

  // The end of the output. kStop completes an open value and call, so that the arguments are valid
  // JSON; kLength leaves them as they are: a prefix of a JSON object. A call outside of a block
  // that was never closed is none. Of a tag that the output ended in only a call's name is shown.
  void Finish(OutputEnd end, std::vector<OutputDelta>* deltas);

  // True while what comes next is reasoning.
  bool in_reasoning() const;

  // Calls begun so far.
  int num_tool_calls() const;

  // Complete after Finish().
  const OutputFlaws& flaws() const;

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

// A complete output, for callers that do not stream.
struct ParsedToolCall {
  std::string name;
  std::string arguments;

  friend bool operator==(const ParsedToolCall&, const ParsedToolCall&) = default;
};
struct ParsedOutput {
  std::string reasoning;
  std::string content;
  std::vector<ParsedToolCall> tool_calls;

  // Adds what deltas bring.
  void Append(const std::vector<OutputDelta>& deltas);

  friend bool operator==(const ParsedOutput&, const ParsedOutput&) = default;
};

// Parses a whole output at once; `text` spells markers out.
ParsedOutput ParseOutput(std::string_view text, OutputParserOptions options, OutputEnd end);

}  // namespace fulgur::text
