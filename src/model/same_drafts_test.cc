// Drafts are bit for bit the same whatever happened before: prompts in chunks, drafts accepted and
// rejected in any pattern, other sequences in the batch, steps without drafts, restarts and moves
// to other slots, more workers.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "base/machine.h"
#include "model/testing/test_model.h"
#include "model/testing/tiny_model.h"

namespace fulgur::model {
namespace {

using testing::MakeWeights;
using testing::Storage;
using testing::TestModel;
using testing::TestModelOptions;
using testing::TinyConfig;

constexpr int32_t kSequences = 3;
constexpr int32_t kDrafts = 5;

struct Case {
  std::string name;
  DrafterKind kind;
  Storage storage;
  Precision precision;
  kernels::OpChoice ops;
};

TestModel MakeModel(const Case& c, int num_workers) {
  TestModelOptions options;
  options.precision = c.precision;
  options.ops = c.ops;
  options.num_workers = num_workers;
  options.lookahead = kDrafts;
  options.max_sequences = kSequences + 1;
  options.max_position = 512;
  const ModelConfig config = TinyConfig(c.kind);
  return {config, MakeWeights(config, c.storage, c.precision == Precision::kReference), options};
}

using Tokens = std::vector<int32_t>;

int64_t Draw(std::mt19937& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

std::vector<Tokens> RandomTexts(std::mt19937& random) {
  std::vector<Tokens> texts(kSequences);
  for (Tokens& text : texts) {
    text.resize(static_cast<size_t>(Draw(random, 20, 70)));
    for (int32_t& token : text) token = static_cast<int32_t>(Draw(random, 0, 511));
  }
  return texts;
}

// The drafts behind every prefix of a text, computed one token at a time and alone.
std::vector<TestModel::Proposal> DraftsOfPrefixes(TestModel& model, const Tokens& text) {
  std::vector<TestModel::Proposal> proposals(1);
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    model.Step({{0, static_cast<int64_t>(i), std::span(text).subspan(i, 1)}});
    const DraftRows rows = {0, 1, text[i + 1], kDrafts};
    proposals.push_back(model.Propose({&rows, 1}));
  }
  return proposals;
}

// A sequence on its way through its text.
struct Progress {
  int32_t slot = 0;
  size_t done = 0;
};

// The next rows of a sequence: a part of the text, or true and false drafts behind one token.
struct NextRows {
  Tokens tokens;
  int32_t num_accepted = 0;
};

NextRows DrawRows(const Tokens& text, size_t done, std::mt19937& random) {
  const auto left = static_cast<int64_t>(text.size() - 1 - done);
  NextRows rows;
  if (Draw(random, 0, 2) == 0) {
    rows.num_accepted = static_cast<int32_t>(Draw(random, 1, std::min<int64_t>(left, 40)));
  } else {
    rows.num_accepted = static_cast<int32_t>(Draw(random, 1, std::min<int64_t>(left, 1 + kDrafts)));
  }
  const auto first = text.begin() + static_cast<int64_t>(done);
  rows.tokens.assign(first, first + rows.num_accepted);
  while (rows.num_accepted <= kDrafts && rows.tokens.size() <= kDrafts && Draw(random, 0, 2) > 0) {
    rows.tokens.push_back(static_cast<int32_t>(Draw(random, 0, 511)));
  }
  return rows;
}

void ExpectDrafts(const TestModel::Proposal& found, const std::vector<DraftRows>& rows,
                  const std::vector<const TestModel::Proposal*>& expected) {
  size_t draft = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t slot = 0; slot < static_cast<size_t>(rows[i].num_drafts); ++slot, ++draft) {
      constexpr size_t kWidth = 512;
      ASSERT_TRUE(std::equal(found.logits.begin() + static_cast<int64_t>(draft * kWidth),
                             found.logits.begin() + static_cast<int64_t>((draft + 1) * kWidth),
                             expected[i]->logits.begin() + static_cast<int64_t>(slot * kWidth)))
          << "slot " << slot;
      ASSERT_EQ(found.drafts.tokens[draft], expected[i]->drafts.tokens[slot]);
      ASSERT_EQ(found.drafts.confidence[draft], expected[i]->drafts.confidence[slot]);
    }
  }
}

void Copy(const TestModel& model, int32_t from, int32_t to) {
  model.store().CopySlot(from, to);
  for (size_t i = 0; i < model.pages(from).size(); ++i) {
    model.store().CopyPage(model.pages(from)[i], model.pages(to)[i]);
  }
}

class SameDrafts : public ::testing::TestWithParam<Case> {
 protected:
  // Runs all texts to their ends in random steps; every draft must be as expected.
  void RunMixed(TestModel& model, const std::vector<Tokens>& texts,
                const std::vector<std::vector<TestModel::Proposal>>& expected,
                std::mt19937& random) {
    std::vector<Progress> progress;
    for (int32_t s = 0; s < kSequences; ++s) progress.push_back({s, 0});
    int32_t free_slot = kSequences;
    while (true) {
      std::vector<NextRows> next;
      std::vector<size_t> chosen;
      for (size_t s = 0; s < kSequences; ++s) {
        if (progress[s].done + 1 == texts[s].size()) continue;
        if (Draw(random, 0, 19) == 0) {  // preempted, and taken up again elsewhere
          std::swap(progress[s].slot, free_slot);
          progress[s].done = 0;
        }
        if (Draw(random, 0, 9) == 0) {  // moved as it is
          Copy(model, progress[s].slot, free_slot);
          std::swap(progress[s].slot, free_slot);
        }
        if (Draw(random, 0, 3) == 0 && !chosen.empty()) continue;
        chosen.push_back(s);
        next.push_back(DrawRows(texts[s], progress[s].done, random));
      }
      if (chosen.empty()) return;
      std::vector<TestModel::Rows> step;
      std::vector<DraftRows> rows;
      std::vector<const TestModel::Proposal*> wanted;
      for (size_t i = 0; i < chosen.size(); ++i) {
        Progress& p = progress[chosen[i]];
        step.push_back({p.slot, static_cast<int64_t>(p.done), next[i].tokens});
        p.done += static_cast<size_t>(next[i].num_accepted);
        const auto drafts = static_cast<int32_t>(Draw(random, 0, 1) * Draw(random, 1, kDrafts));
        rows.push_back(
            {static_cast<int32_t>(i), next[i].num_accepted, texts[chosen[i]][p.done], drafts});
        wanted.push_back(&expected[chosen[i]][p.done]);
      }
      model.Step(step);
      ExpectDrafts(model.Propose(rows), rows, wanted);
      if (HasFatalFailure()) return;
    }
  }
};

TEST_P(SameDrafts, WhateverHappenedBefore) {
  if (!kernels::Supports(base::DetectMachine(), GetParam().ops)) {
    GTEST_SKIP() << "this machine lacks the instructions";
  }
  const unsigned seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<Tokens> texts = RandomTexts(random);
  TestModel alone = MakeModel(GetParam(), 1);
  std::vector<std::vector<TestModel::Proposal>> expected;
  for (const Tokens& text : texts) expected.push_back(DraftsOfPrefixes(alone, text));
  for (const int workers : {1, 2}) {
    TestModel model = MakeModel(GetParam(), workers);
    RunMixed(model, texts, expected, random);
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const auto& [kind, name] :
       {std::pair(DrafterKind::kMtp, "Mtp"), std::pair(DrafterKind::kDspark, "Dspark")}) {
    const std::string prefix = name;
    cases.push_back({prefix + "Reference", kind, Storage::kF32, Precision::kReference,
                     kernels::OpChoice::kScalar});
    for (const auto& [ops, table] : {std::pair(kernels::OpChoice::kScalar, "Scalar"),
                                     std::pair(kernels::OpChoice::kAuto, "Auto")}) {
      for (const auto& [storage, format] :
           {std::pair(Storage::kFp8Fp4, "Fp8Fp4"), std::pair(Storage::kInt8, "Int8")}) {
        cases.push_back({prefix + table + format, kind, storage, Precision::kNative, ops});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Drafters, SameDrafts, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fulgur::model
