// Finds added tokens, such as <｜User｜>, in raw text: leftmost first, longest first.
//
// Immutable after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "text/tokenizer.h"

namespace fulgur::text {

class AddedTokenMatcher {
 public:
  struct Match {
    ByteRange range;
    int32_t id;
  };

  // `content` must not be empty; a repeated content keeps its last id.
  void Add(std::string_view content, int32_t id);

  // The first match in text[from, text.size()) that touches none of `excluded`, which is ascending
  // and disjoint, in offsets of `text`.
  std::optional<Match> FindNext(std::string_view text, size_t from,
                                std::span<const ByteRange> excluded) const;

 private:
  std::optional<Match> LongestAt(std::string_view text, size_t begin) const;

  absl::flat_hash_map<uint64_t, int32_t> children_;  // node * 256 + byte -> node
  std::vector<int32_t> id_at_node_ = {-1};           // -1: no token ends here
  std::array<bool, 256> first_bytes_{};
};

}  // namespace fulgur::text
