// A stand-in for the model in tests: its logits are a hash over everything that the real model
// could read, kept in the same pages and slots. A stale, missing or mixed-up row changes the
// tokens.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/check.h"
#include "engine/model_runner.h"
#include "kv/layout.h"

namespace fulgur::engine {

class FakeRunner : public ModelRunner {
 public:
  static constexpr int64_t kVocab = 50;
  static constexpr int64_t kWindow = 32;

  FakeRunner(int64_t num_pages, int64_t num_slots)
      : pages_(static_cast<size_t>(num_pages)), slots_(static_cast<size_t>(num_slots)) {}

  // Called before each step; its error is the step's.
  std::function<absl::Status(const model::StepBatch&)> before_step;
  // May change a row of logits: (position of the row, row).
  std::function<void(int64_t, std::span<float>)> edit_row;

  int64_t VocabSize() const override { return kVocab; }

  absl::Status Forward(const model::StepBatch& batch, std::span<float> logits) override {
    if (before_step) {
      if (absl::Status status = before_step(batch); !status.ok()) return status;
    }
    size_t next_row = 0;
    for (const model::SequenceRows& sequence : batch.sequences) {
      for (int32_t i = 0; i < sequence.num_rows; ++i) {
        const int64_t position = sequence.first_position + i;
        Write(sequence, position, batch.tokens[static_cast<size_t>(sequence.first_row + i)]);
        if (i < sequence.num_rows - sequence.num_logit_rows) continue;
        FillRow(Digest(sequence, position), logits.subspan(next_row, kVocab));
        if (edit_row) edit_row(position, logits.subspan(next_row, kVocab));
        next_row += kVocab;
      }
    }
    CHECK_EQ(next_row, logits.size());
    return absl::OkStatus();
  }

 private:
  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }

  void Write(const model::SequenceRows& sequence, int64_t position, int32_t token) {
    const uint64_t value = Mix(static_cast<uint64_t>(position) * 1000003 +
                               static_cast<uint64_t>(token) + 0x9E3779B97F4A7C15ULL);
    const auto page = sequence.pages[static_cast<size_t>(position / kv::kPageTokens)];
    pages_[static_cast<size_t>(page)][static_cast<size_t>(position % kv::kPageTokens)] = value;
    slots_[static_cast<size_t>(sequence.slot)][static_cast<size_t>(position % kWindow)] =
        Mix(value);
  }

  uint64_t Digest(const model::SequenceRows& sequence, int64_t position) const {
    uint64_t sum = static_cast<uint64_t>(position);
    for (int64_t p = 0; p <= position; ++p) {
      const auto page = sequence.pages[static_cast<size_t>(p / kv::kPageTokens)];
      sum += pages_[static_cast<size_t>(page)][static_cast<size_t>(p % kv::kPageTokens)];
    }
    for (int64_t p = std::max<int64_t>(0, position - kWindow + 1); p <= position; ++p) {
      sum += slots_[static_cast<size_t>(sequence.slot)][static_cast<size_t>(p % kWindow)];
    }
    return Mix(sum);
  }

  static void FillRow(uint64_t digest, std::span<float> row) {
    for (size_t v = 0; v < row.size(); ++v) {
      row[v] = static_cast<float>(Mix(digest + v) % 4096) / 512.0F - 4.0F;
    }
  }

  std::vector<std::array<uint64_t, kv::kPageTokens>> pages_;
  std::vector<std::array<uint64_t, kWindow>> slots_;
};

}  // namespace fulgur::engine
