// One forward pass over a ragged batch: T rows (tokens) of S sequences.
//
// The model knows no request: it sees rows with absolute positions, and where each sequence keeps
// its memory. A cache row's place follows from its position alone, so overwriting a position is
// always safe and nothing needs to be rolled back.
#pragma once

#include <cstdint>
#include <span>

namespace fulgur::model {

using PageId = int32_t;     // a page of compressed rows, 256 tokens of one sequence, all layers
using StateSlot = int32_t;  // the fixed-size rings of one sequence, all layers

struct SequenceRows {
  StateSlot slot = -1;
  std::span<const PageId> pages;  // block table: page i holds tokens [256 i, 256 (i + 1))
  int64_t first_position = 0;     // absolute position of the first row
  int32_t first_row = 0;          // rows [first_row, first_row + num_rows) of the batch
  int32_t num_rows = 0;
  int32_t num_logit_rows = 0;  // how many of the last rows want logits: 0 .. num_rows
};

struct StepBatch {
  std::span<const int32_t> tokens;  // [T]
  std::span<const SequenceRows> sequences;
};

}  // namespace fulgur::model
