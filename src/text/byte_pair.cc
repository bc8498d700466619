#include "text/byte_pair.h"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace fulgur::text {
namespace {

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

// The symbols of one piece as a linked list, and a heap of the merges that are possible: rank and
// position of the left symbol in one number, so that the lowest rank comes first, leftmost first.
// A merge leaves stale entries behind; they no longer name the rank of the pair at their position.
class BytePairEncoder::Work {
 public:
  void Run(const BytePairEncoder& encoder, std::string_view piece, std::vector<int32_t>* ids) {
    encoder_ = &encoder;
    Start(piece);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const auto rank = static_cast<int32_t>(heap_.back() >> 32);
      const auto position = static_cast<int32_t>(heap_.back() & 0xFFFFFFFF);
      heap_.pop_back();
      if (At(position).with_next.rank == rank) MergeAt(position);
    }
    for (int32_t i = 0; i >= 0; i = At(i).next) ids->push_back(At(i).id);
  }

 private:
  struct Symbol {
    int32_t id;
    int32_t previous;  // -1: none
    int32_t next;      // -1: none
    Merged with_next;
  };

  Symbol& At(int32_t position) { return symbols_[static_cast<size_t>(position)]; }

  void Start(std::string_view piece) {
    symbols_.clear();
    heap_.clear();
    for (size_t i = 0; i < piece.size(); ++i) {
      const auto byte = static_cast<uint8_t>(piece[i]);
      const auto position = static_cast<int32_t>(i);
      Symbol symbol{encoder_->byte_ids_[byte], position - 1, -1, {}};
      if (i + 1 < piece.size()) {
        symbol.next = position + 1;
        symbol.with_next =
            encoder_
                ->byte_merges_[static_cast<size_t>(byte) << 8 | static_cast<uint8_t>(piece[i + 1])];
      }
      symbols_.push_back(symbol);
      if (symbol.with_next.rank != kNoMerge)
        heap_.push_back(Entry(symbol.with_next.rank, position));
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  static uint64_t Entry(int32_t rank, int32_t position) { return PairKey(rank, position); }

  void MergeAt(int32_t position) {
    Symbol& left = At(position);
    Symbol& right = At(left.next);
    left.id = left.with_next.id;
    left.next = right.next;
    right.with_next = {};
    if (left.next >= 0) At(left.next).previous = position;
    Propose(position);
    if (left.previous >= 0) Propose(left.previous);
  }

  void Propose(int32_t position) {
    Symbol& left = At(position);
    left.with_next = left.next < 0 ? Merged() : encoder_->Find(left.id, At(left.next).id);
    if (left.with_next.rank == kNoMerge) return;
    heap_.push_back(Entry(left.with_next.rank, position));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  const BytePairEncoder* encoder_ = nullptr;
  std::vector<Symbol> symbols_;
  std::vector<uint64_t> heap_;
};

BytePairEncoder::BytePairEncoder(const std::array<int32_t, 256>& byte_ids,
                                 const std::vector<MergeRule>& merges)
    : byte_ids_(byte_ids), byte_merges_(size_t{256} * 256) {
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const MergeRule& rule = merges[rank];
    merges_[PairKey(rule.left, rule.right)] = {static_cast<int32_t>(rank), rule.merged};
  }
  for (size_t pair = 0; pair < byte_merges_.size(); ++pair) {
    byte_merges_[pair] = Find(byte_ids_[pair >> 8], byte_ids_[pair & 255]);
  }
}

BytePairEncoder::Merged BytePairEncoder::Find(int32_t left, int32_t right) const {
  const auto merged = merges_.find(PairKey(left, right));
  return merged == merges_.end() ? Merged() : merged->second;
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
