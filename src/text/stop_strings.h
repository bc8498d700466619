// Finds stop strings in a text that arrives in pieces.
//
// Holds back exactly the longest tail that could still begin a stop string, works in time linear in
// the text whatever the number of stop strings (Aho and Corasick, 1975), and gives the same result
// for every way of cutting the text. One object per sequence, used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace fulgur::text {

class StopStringMatcher {
 public:
  // Empty strings in `stop_strings` are ignored. With `include_in_output` the matched stop string
  // itself is still part of the output.
  StopStringMatcher(std::vector<std::string> stop_strings, bool include_in_output);

  // Takes the next piece and returns the text that is certain to be output. After a match this is
  // the text up to the match, and all later pieces return nothing. With `may_stop` false a stop
  // string that ends inside the piece does not count; one that only begins there may.
  std::string Push(std::string_view piece, bool may_stop = true);

  // No more text will come: returns what was held back.
  std::string Finish();

  // The stop string that was found. Of several, the one whose last character came first; of those,
  // the longest.
  bool stopped() const { return matched_.has_value(); }
  const std::string& matched() const { return stop_strings_[*matched_]; }

 private:
  struct Node {
    int32_t fail = 0;      // node of the longest proper suffix that is also a prefix
    int32_t depth = 0;     // length of the prefix this node stands for, in bytes
    int32_t longest = -1;  // the longest stop string that ends here, or -1
  };

  void AddString(int32_t index);
  void LinkSuffixes();
  int32_t Child(int32_t node, char byte) const;  // -1: none
  int32_t Advance(int32_t node, char byte) const;
  std::string Release(size_t kept);  // all that is held but the last `kept` bytes

  std::vector<std::string> stop_strings_;
  bool include_in_output_;
  std::vector<Node> nodes_;
  absl::flat_hash_map<uint64_t, int32_t> children_;  // node * 256 + byte -> node
  int32_t node_ = 0;
  std::string held_;
  size_t released_ = 0;  // bytes at the front of held_ that were returned already
  std::optional<size_t> matched_;
};

}  // namespace fulgur::text
