// From the token ids of one answer to what a client sees: detokeniser, stop strings and output
// parser in one.
//
// Stop strings are searched in the text as generated, reasoning and markup included, and holding
// text back for them never changes how it is parsed. One object per answer (choice), used by one
// thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/output_parser.h"
#include "text/stop_strings.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace fulgur::text {

struct ResponseOptions {
  // Tokens flagged special produce no text (the request's skip_special_tokens).
  bool skip_special_tokens = true;

  std::vector<std::string> stop_strings;
  bool include_stop_string = false;
  int64_t min_tokens = 0;  // a stop string that ends within that many tokens does not count

  // Absent: the answer is raw text, all of it kContent (/v1/completions).
  std::optional<OutputParserOptions> parser;
};

class ResponseDecoder {
 public:
  ResponseDecoder(Tokenizer tokenizer, ResponseOptions options);

  // Takes the next token of the answer and appends what it makes visible. Ignored after a stop
  // string was found, so the drafts behind it may be pushed safely. The EOS token may be pushed or
  // left out.
  void Push(int32_t id, std::vector<OutputDelta>* deltas);

  // No more tokens will come. After a stop string `end` is taken as kStop.
  void Finish(OutputEnd end, std::vector<OutputDelta>* deltas);

  // A stop string was found: the sequence should be ended, its stop_reason is stop_string().
  bool stopped() const { return stop_.stopped(); }
  const std::string& stop_string() const { return stop_.matched(); }

  // For usage: tokens of the reasoning, without the marker that closes it.
  int reasoning_tokens() const { return reasoning_tokens_; }
  bool in_reasoning() const { return parser_.has_value() && parser_->in_reasoning(); }
  int num_tool_calls() const { return parser_.has_value() ? parser_->num_tool_calls() : 0; }
  OutputFlaws flaws() const { return parser_.has_value() ? parser_->flaws() : OutputFlaws(); }

 private:
  // The text of one token, or of a few that only together are whole characters.
  struct Piece {
    std::string text;
    std::optional<Marker> marker;
    int tokens;
  };

  std::optional<Marker> MarkerOf(int32_t id) const;
  void Feed(std::string text, std::optional<Marker> marker, std::vector<OutputDelta>* deltas);
  void Release(std::string_view text, std::vector<OutputDelta>* deltas);
  void Emit(std::string_view text, std::optional<Marker> marker, std::vector<OutputDelta>* deltas);
  void CountReasoning(const Piece& piece);

  Tokenizer tokenizer_;
  bool skip_special_tokens_;
  int64_t min_tokens_;
  int64_t num_tokens_ = 0;
  StopStringMatcher stop_;
  std::optional<OutputParser> parser_;
  std::vector<std::pair<int32_t, Marker>> markers_;  // those the vocabulary has as tokens
  bool spelt_markers_ = false;  // some are missing there: recognise all by their text
  Utf8Assembler assembler_;
  int tokens_in_assembler_ = 0;
  std::deque<Piece> waiting_;  // not yet let go by the stop-string search
  size_t released_ = 0;        // bytes of waiting_.front() that it did let go
  int reasoning_tokens_ = 0;
};

}  // namespace fulgur::text
