#include "text/byte_pair.h"

#include <algorithm>
#include <cstddef>

namespace fulgur::text {
namespace {

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

// The symbols of one piece as a linked list, and a heap of the merges that are possible. A merge
// leaves stale candidates behind; they are recognised when they come up.
class BytePairEncoder::Work {
 public:
  void Run(const BytePairEncoder& encoder, std::string_view piece, std::vector<int32_t>* ids) {
    encoder_ = &encoder;
    Start(piece);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Candidate top = heap_.back();
      heap_.pop_back();
      if (IsCurrent(top)) Apply(top);
    }
    for (int32_t i = 0; i >= 0; i = At(i).next) ids->push_back(At(i).id);
  }

 private:
  static constexpr int32_t kGone = -1;  // the id of a symbol that was merged into its left one

  Symbol& At(int32_t position) { return symbols_[static_cast<size_t>(position)]; }

  void Start(std::string_view piece) {
    const auto n = static_cast<int32_t>(piece.size());
    symbols_.clear();
    heap_.clear();
    for (int32_t i = 0; i < n; ++i) {
      const auto byte = static_cast<uint8_t>(piece[static_cast<size_t>(i)]);
      symbols_.push_back({encoder_->byte_ids_[byte], i - 1, i + 1 < n ? i + 1 : -1});
    }
    for (int32_t i = 0; i + 1 < n; ++i) {
      if (const Merged* merged = encoder_->Find(At(i).id, At(i + 1).id)) {
        heap_.push_back({merged->rank, i, merged->id});
      }
    }
    std::make_heap(heap_.begin(), heap_.end());
  }

  bool IsCurrent(const Candidate& candidate) {
    const Symbol& left = At(candidate.position);
    if (left.id == kGone || left.next < 0) return false;
    const Merged* merged = encoder_->Find(left.id, At(left.next).id);
    return merged != nullptr && merged->id == candidate.merged;
  }

  void Apply(const Candidate& candidate) {
    Symbol& left = At(candidate.position);
    Symbol& right = At(left.next);
    left.id = candidate.merged;
    left.next = right.next;
    right.id = kGone;
    if (left.next >= 0) At(left.next).previous = candidate.position;
    if (left.previous >= 0) Propose(left.previous);
    Propose(candidate.position);
  }

  void Propose(int32_t position) {
    const Symbol& left = At(position);
    if (left.next < 0) return;
    if (const Merged* merged = encoder_->Find(left.id, At(left.next).id)) {
      heap_.push_back({merged->rank, position, merged->id});
      std::push_heap(heap_.begin(), heap_.end());
    }
  }

  const BytePairEncoder* encoder_ = nullptr;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

BytePairEncoder::BytePairEncoder(const std::array<int32_t, 256>& byte_ids,
                                 const std::vector<MergeRule>& merges)
    : byte_ids_(byte_ids) {
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const MergeRule& rule = merges[rank];
    merges_[PairKey(rule.left, rule.right)] = {static_cast<int32_t>(rank), rule.merged};
  }
}

const BytePairEncoder::Merged* BytePairEncoder::Find(int32_t left, int32_t right) const {
  const auto merged = merges_.find(PairKey(left, right));
  return merged == merges_.end() ? nullptr : &merged->second;
}

void BytePairEncoder::Encode(std::string_view piece, std::vector<int32_t>* ids) const {
  const auto word = whole_words_.find(piece);
  if (word != whole_words_.end()) {
    ids->push_back(word->second);
  } else {
    Merge(piece, ids);
  }
}

void BytePairEncoder::Merge(std::string_view piece, std::vector<int32_t>* ids) const {
  if (piece.empty()) return;
  // Pieces longer than this do not occur outside of a stress test; the memory is kept otherwise.
  constexpr size_t kKeep = 1 << 16;
  thread_local Work kept;
  if (piece.size() <= kKeep) {
    kept.Run(*this, piece, ids);
  } else {
    Work().Run(*this, piece, ids);
  }
}

}  // namespace fulgur::text
