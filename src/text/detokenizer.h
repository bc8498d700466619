// Turns a stream of token ids into a stream of text without ever showing half a character.
//
// The pieces, concatenated with what Finish() returns, equal Tokenizer::Decode of all ids: a UTF-8
// character spread over tokens comes out with its last token, bytes that can no longer become a
// character come out as U+FFFD at once, and nothing is lost. One object per sequence, used by one
// thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/tokenizer.h"
#include "text/utf8.h"

namespace fulgur::text {

class Detokenizer {
 public:
  // With `skip_special_tokens`, tokens flagged special produce no text.
  Detokenizer(Tokenizer tokenizer, bool skip_special_tokens)
      : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

  // The text that became certain with this token; often empty in the middle of a character.
  std::string Push(int32_t id);

  // The unfinished rest, as U+FFFD. The object may be used for a new sequence afterwards.
  std::string Finish();

 private:
  Tokenizer tokenizer_;
  bool skip_special_tokens_;
  Utf8Assembler assembler_;
};

}  // namespace fulgur::text
