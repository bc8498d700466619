#include "text/added_tokens.h"

#include <algorithm>

namespace fulgur::text {
namespace {

uint64_t ChildKey(int32_t node, char byte) {
  return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
}

}  // namespace

void AddedTokenMatcher::Add(std::string_view content, int32_t id) {
  first_bytes_[static_cast<uint8_t>(content.front())] = true;
  int32_t node = 0;
  for (char byte : content) {
    const auto next = static_cast<int32_t>(id_at_node_.size());
    const auto [child, is_new] = children_.try_emplace(ChildKey(node, byte), next);
    if (is_new) id_at_node_.push_back(-1);
    node = child->second;
  }
  id_at_node_[static_cast<size_t>(node)] = id;
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::LongestAt(std::string_view text,
                                                                     size_t begin) const {
  std::optional<Match> longest;
  int32_t node = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    const auto child = children_.find(ChildKey(node, text[i]));
    if (child == children_.end()) break;
    node = child->second;
    const int32_t id = id_at_node_[static_cast<size_t>(node)];
    if (id >= 0) longest = Match{{begin, i + 1}, id};
  }
  return longest;
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::FindNext(
    std::string_view text, size_t from, std::span<const ByteRange> excluded) const {
  auto range = std::upper_bound(excluded.begin(), excluded.end(), from,
                                [](size_t at, const ByteRange& r) { return at < r.end; });
  for (size_t i = from; i < text.size(); ++i) {
    if (!first_bytes_[static_cast<uint8_t>(text[i])]) continue;
    while (range != excluded.end() && range->end <= i) ++range;
    const size_t limit = range == excluded.end() ? text.size() : range->begin;
    if (limit <= i) {
      i = range->end - 1;
      continue;
    }
    if (auto match = LongestAt(text.substr(0, std::min(limit, text.size())), i)) return match;
  }
  return std::nullopt;
}

}  // namespace fulgur::text
