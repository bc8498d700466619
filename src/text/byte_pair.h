// Byte-pair encoding of one piece of text: starting from single bytes, the adjacent pair with the
// lowest rank is merged until none is left (Sennrich et al., 2016).
//
// Immutable after construction, usable from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace fulgur::text {

class BytePairEncoder {
 public:
  struct MergeRule {
    int32_t left;
    int32_t right;
    int32_t merged;
  };

  // `merges` in order of rank; a pair that occurs twice keeps its later rank. `byte_ids` are the
  // tokens of the 256 bytes.
  BytePairEncoder(const std::array<int32_t, 256>& byte_ids, const std::vector<MergeRule>& merges);

  // Declares that `word` is encoded as the one token `id`, so that Encode can look it up. The bytes
  // of `word` must outlive this object.
  void AddWholeWord(std::string_view word, int32_t id) { whole_words_.emplace(word, id); }

  // Appends the tokens of `piece`, in time n log n.
  void Encode(std::string_view piece, std::vector<int32_t>* ids) const;

  // The same by merging alone, without the table of whole words.
  void Merge(std::string_view piece, std::vector<int32_t>* ids) const;

 private:
  static constexpr int32_t kNoMerge = std::numeric_limits<int32_t>::max();
  struct Merged {
    int32_t rank = kNoMerge;
    int32_t id = -1;
  };
  class Work;

  Merged Find(int32_t left, int32_t right) const;

  std::array<int32_t, 256> byte_ids_;
  absl::flat_hash_map<uint64_t, Merged> merges_;  // left id << 32 | right id
  // The same for pairs of bytes, left * 256 + right: every piece begins with a look-up of each.
  std::vector<Merged> byte_merges_;
  absl::flat_hash_map<std::string_view, int32_t> whole_words_;
};

}  // namespace fulgur::text
