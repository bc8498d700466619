// What one user of a load does: one request, or several turns of a conversation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fulgur::bench {

struct ChatMessage {
  std::string role;
  std::string content;
};

struct PlannedTurn {
  std::vector<ChatMessage> messages;  // new in this turn; for completions one, its content the text
  std::string body;                   // the whole request; empty: made when the answers are known
  int64_t input_tokens = 0;           // of all messages so far that are known; 0: not known
  std::optional<int64_t> output_tokens;
  int64_t delay_ns = 0;  // after the answer before it
};

struct PlannedSession {
  int64_t index = 0;  // in its phase
  std::string id;
  bool warmup = false;
  std::optional<int64_t> at_ns;     // by a schedule: offset from the start
  std::optional<int64_t> group;     // requests of one group share a prefix
  bool input_is_estimated = false;  // no tokenizer was there to count
  std::vector<PlannedTurn> turns;

  size_t bytes() const {
    size_t sum = sizeof(PlannedSession);
    for (const PlannedTurn& turn : turns) {
      sum += sizeof(PlannedTurn) + turn.body.size();
      for (const ChatMessage& message : turn.messages) sum += message.content.size();
    }
    return sum;
  }
};

}  // namespace fulgur::bench
