// Takes a stream of server-sent events apart (HTML standard, section 9.2) and keeps when the first
// byte of each message came.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace fulgur::bench {

class SseMessages {
 public:
  // Gets the data of one message and when its first byte came. Comments are not passed on.
  using Sink = std::function<void(std::string_view data, int64_t arrival_ns)>;

  explicit SseMessages(Sink sink) : sink_(std::move(sink)) {}

  // Bytes that one read delivered. Lines end with \n, \r\n or \r; of lines and messages beyond
  // 16 MB only the beginning is kept.
  void Feed(std::string_view bytes, int64_t now_ns);

  // The end of the stream: a message without its blank line still counts.
  void Finish();

  int64_t comments() const { return comments_; }

 private:
  void TakeLine(std::string_view line);
  void EndMessage();

  Sink sink_;
  std::string line_;  // unfinished, from earlier reads
  std::string data_;
  bool has_data_ = false;
  bool after_return_ = false;  // the last byte was \r: a \n belongs to it
  int64_t line_ns_ = 0;        // first byte of the unfinished line
  int64_t message_ns_ = 0;     // first byte of the unfinished message
  int64_t comments_ = 0;
};

}  // namespace fulgur::bench
