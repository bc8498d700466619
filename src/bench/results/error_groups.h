// Errors grouped for people: many messages differ only in a number.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/stats/cell.h"

namespace fulgur::bench {

// Counts equal errors, in order of first appearance.
class ErrorGrouper {
 public:
  void Add(const ErrorGroup& error);
  std::vector<ErrorGroup> TakeGroups() { return std::move(groups_); }

 private:
  using Key = std::tuple<std::optional<int>, std::string, std::string>;  // code, type, message

  std::map<Key, size_t> places_;
  std::vector<ErrorGroup> groups_;
};

// The text inside a JSON error body ("error.message" or "message"), else the text itself; numbers
// are replaced by '#', and what is longer than 200 bytes is cut.
std::string MaskedMessage(std::string_view message);

// One group for each code and masked message, the most frequent first.
std::vector<ErrorGroup> GroupForPeople(const std::vector<ErrorGroup>& errors);

// "400", or the type where there is no code.
std::string CodeName(const ErrorGroup& group);

}  // namespace fulgur::bench
