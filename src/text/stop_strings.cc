#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace fulgur::text {
namespace {

uint64_t ChildKey(int32_t node, char byte) {
  return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
}

}  // namespace

StopStringMatcher::StopStringMatcher(std::vector<std::string> stop_strings, bool include_in_output)
    : stop_strings_(std::move(stop_strings)), include_in_output_(include_in_output), nodes_(1) {
  for (size_t i = 0; i < stop_strings_.size(); ++i) {
    if (!stop_strings_[i].empty()) AddString(static_cast<int32_t>(i));
  }
  LinkSuffixes();
}

void StopStringMatcher::AddString(int32_t index) {
  int32_t node = 0;
  for (char byte : stop_strings_[static_cast<size_t>(index)]) {
    const auto next = static_cast<int32_t>(nodes_.size());
    const auto [child, is_new] = children_.try_emplace(ChildKey(node, byte), next);
    if (is_new) nodes_.push_back({.depth = nodes_[static_cast<size_t>(node)].depth + 1});
    node = child->second;
  }
  nodes_[static_cast<size_t>(node)].longest = index;
}

// Every node's `fail` is found from its parent's, so nodes are visited by depth.
void StopStringMatcher::LinkSuffixes() {
  std::vector<std::pair<uint64_t, int32_t>> edges(children_.begin(), children_.end());
  std::sort(edges.begin(), edges.end(), [this](const auto& a, const auto& b) {
    return nodes_[static_cast<size_t>(a.second)].depth <
           nodes_[static_cast<size_t>(b.second)].depth;
  });
  for (const auto& [key, child] : edges) {
    const auto parent = static_cast<size_t>(key >> 8);
    Node& node = nodes_[static_cast<size_t>(child)];
    if (parent != 0) node.fail = Advance(nodes_[parent].fail, static_cast<char>(key & 255));
    if (node.longest < 0) node.longest = nodes_[static_cast<size_t>(node.fail)].longest;
  }
}

int32_t StopStringMatcher::Child(int32_t node, char byte) const {
  const auto child = children_.find(ChildKey(node, byte));
  return child == children_.end() ? -1 : child->second;
}

int32_t StopStringMatcher::Advance(int32_t node, char byte) const {
  while (true) {
    const int32_t child = Child(node, byte);
    if (child >= 0) return child;
    if (node == 0) return 0;
    node = nodes_[static_cast<size_t>(node)].fail;
  }
}

std::string StopStringMatcher::Push(std::string_view piece, bool may_stop) {
  if (stopped()) return "";
  for (size_t i = 0; i < piece.size(); ++i) {
    node_ = Advance(node_, piece[i]);
    const int32_t longest = nodes_[static_cast<size_t>(node_)].longest;
    if (longest < 0 || !may_stop) continue;
    matched_ = static_cast<size_t>(longest);
    held_.append(piece.substr(0, i + 1));
    return Release(include_in_output_ ? 0 : matched().size());
  }
  held_.append(piece);
  return Release(static_cast<size_t>(nodes_[static_cast<size_t>(node_)].depth));
}

std::string StopStringMatcher::Finish() {
  node_ = 0;
  return stopped() ? "" : Release(0);
}

std::string StopStringMatcher::Release(size_t kept) {
  const size_t end = held_.size() - kept;
  std::string out = held_.substr(released_, end - released_);
  released_ = end;
  // Moving the kept bytes to the front only now and then keeps the whole linear.
  if (released_ > held_.size() / 2) {
    held_.erase(0, released_);
    released_ = 0;
  }
  return out;
}

}  // namespace fulgur::text
