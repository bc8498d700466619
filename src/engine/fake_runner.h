// A stand-in for the model in tests: its logits are a hash over everything that the real model
// could read, kept in the same pages and slots. A stale, missing or mixed-up row changes the
// tokens. Its drafter knows the model's own logits, or is made to err, and checks that it is told
// of every row that stands.
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

// A scripted drafter: at each position it knows the model's logits with a probability, or says
// something random.
struct FakeDrafter {
  int64_t max_drafts = 0;    // 0: there is none
  double knows = 1.0;        // share of positions
  bool is_confident = true;  // of what it knows, and only of that
  model::DrafterKind kind = model::DrafterKind::kDspark;
};

class FakeRunner : public ModelRunner {
 public:
  static constexpr int64_t kVocab = 50;
  static constexpr int64_t kWindow = 32;
  // A rejected row must not reach back into the window: that many more rows (DSpark's ring rule).
  static constexpr int64_t kRing = kWindow + 7;

  FakeRunner(int64_t num_pages, int64_t num_slots, const FakeDrafter& drafter = {})
      : drafter_(drafter),
        pages_(static_cast<size_t>(num_pages)),
        slots_(static_cast<size_t>(num_slots)),
        known_(static_cast<size_t>(num_slots), 0) {}

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
    batch_.assign(batch.sequences.begin(), batch.sequences.end());
    for (const model::SequenceRows& sequence : batch.sequences) {
      // Every row that stands was told of, so the drafter's context has no holes; or none at all.
      int64_t& known = known_[static_cast<size_t>(sequence.slot)];
      if (sequence.first_position == 0) known = 0;
      if (drafter_.max_drafts > 0 && known > 0 && checks_context) {
        CHECK_EQ(known, sequence.first_position);
      }
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

  model::DrafterKind drafter() const override {
    return drafter_.max_drafts > 0 ? drafter_.kind : model::DrafterKind::kNone;
  }
  int64_t MaxDrafts() const override { return drafter_.max_drafts; }

  absl::Status Propose(std::span<const model::DraftRows> rows, model::DraftChooser& chooser,
                       model::Drafts& out) override {
    out.tokens.clear();
    out.confidence.clear();
    int32_t last = -1;
    for (size_t i = 0; i < rows.size(); ++i) {
      const model::SequenceRows& sequence = batch_[static_cast<size_t>(rows[i].sequence)];
      CHECK_LT(last, rows[i].sequence);
      CHECK_LT(0, rows[i].num_accepted);
      CHECK_LE(rows[i].num_accepted, sequence.num_rows);
      CHECK_LE(rows[i].num_drafts, drafter_.max_drafts);
      last = rows[i].sequence;
      int64_t& known = known_[static_cast<size_t>(sequence.slot)];
      if (checks_context) CHECK_EQ(known, sequence.first_position);
      known = sequence.first_position + rows[i].num_accepted;
      ProposeFor(static_cast<int32_t>(i), rows[i], sequence, chooser, out);
    }
    return absl::OkStatus();
  }

  // Whether a sequence must go on where the drafter was told that it stands.
  bool checks_context = true;

 private:
  // Draft k is chosen from what the model would say at `position` + k, if the tokens before it were
  // next_token and the drafts so far.
  void ProposeFor(int32_t index, const model::DraftRows& rows, const model::SequenceRows& sequence,
                  model::DraftChooser& chooser, model::Drafts& out) {
    int64_t position = sequence.first_position + rows.num_accepted;
    uint64_t ahead = 0;  // of pages and window: what the tokens that are not yet rows will add
    int32_t token = rows.next_token;
    std::array<float, kVocab> row;
    for (int32_t slot = 0; slot < rows.num_drafts; ++slot, ++position) {
      ahead += ValueOf(position, token) + Mix(ValueOf(position, token));
      const bool knows = static_cast<double>(Mix(static_cast<uint64_t>(position) * 77 + ahead) %
                                             1000) < 1000.0 * drafter_.knows;
      const int64_t last_row = sequence.first_position + rows.num_accepted - 1;
      const uint64_t digest = DigestAhead(sequence, last_row, position, ahead);
      FillRow(knows ? digest : Mix(digest + 1), row);
      if (edit_row && knows) edit_row(position, row);
      token = chooser.Choose(index, slot, row);
      CHECK_GE(token, 0);
      out.tokens.push_back(token);
      const bool sure = knows == drafter_.is_confident;
      out.confidence.push_back(sure ? 0.95F : 0.1F);
    }
  }

  static uint64_t ValueOf(int64_t position, int32_t token) {
    return Mix(static_cast<uint64_t>(position) * 1000003 + static_cast<uint64_t>(token) +
               0x9E3779B97F4A7C15ULL);
  }

  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }

  void Write(const model::SequenceRows& sequence, int64_t position, int32_t token) {
    const uint64_t value = ValueOf(position, token);
    const auto page = sequence.pages[static_cast<size_t>(position / kv::kPageTokens)];
    pages_[static_cast<size_t>(page)][static_cast<size_t>(position % kv::kPageTokens)] = value;
    slots_[static_cast<size_t>(sequence.slot)][static_cast<size_t>(position % kRing)] = Mix(value);
  }

  uint64_t Digest(const model::SequenceRows& sequence, int64_t position) const {
    return DigestAhead(sequence, position, position, 0);
  }

  // The digest at `position` if rows exist up to `last_row` only, and those behind it add `ahead`.
  uint64_t DigestAhead(const model::SequenceRows& sequence, int64_t last_row, int64_t position,
                       uint64_t ahead) const {
    uint64_t sum = static_cast<uint64_t>(position) + ahead;
    for (int64_t p = 0; p <= last_row; ++p) {
      const auto page = sequence.pages[static_cast<size_t>(p / kv::kPageTokens)];
      sum += pages_[static_cast<size_t>(page)][static_cast<size_t>(p % kv::kPageTokens)];
    }
    for (int64_t p = std::max<int64_t>(0, position - kWindow + 1); p <= last_row; ++p) {
      sum += slots_[static_cast<size_t>(sequence.slot)][static_cast<size_t>(p % kRing)];
    }
    return Mix(sum);
  }

  static void FillRow(uint64_t digest, std::span<float> row) {
    for (size_t v = 0; v < row.size(); ++v) {
      row[v] = static_cast<float>(Mix(digest + v) % 4096) / 512.0F - 4.0F;
    }
  }

  const FakeDrafter drafter_;
  std::vector<std::array<uint64_t, kv::kPageTokens>> pages_;
  std::vector<std::array<uint64_t, kRing>> slots_;
  std::vector<int64_t> known_;  // by slot: rows that the drafter was told of
  std::vector<model::SequenceRows> batch_;
};

}  // namespace fulgur::engine
