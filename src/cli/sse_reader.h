// Takes a stream of server-sent events apart (HTML standard, section 9.2), however it is cut.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fulgur::cli {

class SseReader {
 public:
  // The data of the events that are complete with these bytes, in order. Only `data` fields are
  // read: chat completion streams use nothing else.
  std::vector<std::string> Feed(std::string_view bytes);

 private:
  void ReadLine(std::string_view line, std::vector<std::string>& events);

  std::string line_;  // unfinished
  std::string data_;  // of the unfinished event
  bool has_data_ = false;
};

}  // namespace fulgur::cli
