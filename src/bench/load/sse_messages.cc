#include "bench/load/sse_messages.h"

#include <algorithm>

namespace fulgur::bench {
namespace {

// What a server without line ends may fill our memory with. No message of an answer is as long.
constexpr size_t kMaxBytes = 16 << 20;

void Append(std::string_view bytes, std::string& text) {
  text += bytes.substr(0, kMaxBytes - std::min(kMaxBytes, text.size()));
}

}  // namespace

void SseMessages::Feed(std::string_view bytes, int64_t now_ns) {
  if (after_return_ && !bytes.empty()) {
    after_return_ = false;
    if (bytes[0] == '\n') bytes.remove_prefix(1);
  }
  while (!bytes.empty()) {
    const size_t end = bytes.find_first_of("\r\n");
    if (line_.empty()) line_ns_ = now_ns;
    if (end == std::string_view::npos) return Append(bytes, line_);
    if (line_.empty()) {
      TakeLine(bytes.substr(0, end));
    } else {
      Append(bytes.substr(0, end), line_);
      TakeLine(line_);
      line_.clear();
    }
    const bool is_return = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (is_return && bytes.starts_with('\n'))
      bytes.remove_prefix(1);
    else
      after_return_ = is_return && bytes.empty();
  }
}

void SseMessages::Finish() {
  if (!line_.empty()) TakeLine(line_);
  line_.clear();
  EndMessage();
}

void SseMessages::TakeLine(std::string_view line) {
  if (line.empty()) return EndMessage();
  if (line.starts_with(':')) {
    ++comments_;
    return;
  }
  constexpr std::string_view kData = "data:";
  if (!line.starts_with(kData)) return;
  line.remove_prefix(kData.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (has_data_) {
    data_ += '\n';
  } else {
    message_ns_ = line_ns_;
    data_.clear();
  }
  Append(line, data_);
  has_data_ = true;
}

void SseMessages::EndMessage() {
  if (!has_data_) return;
  has_data_ = false;
  sink_(data_, message_ns_);
}

}  // namespace fulgur::bench
