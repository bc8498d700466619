#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/testing/test_model.h"
#include "model/testing/tiny_model.h"

namespace fulgur::model {
namespace {

using testing::MakeWeights;
using testing::StandardTokens;
using testing::Storage;
using testing::TestModel;
using testing::TinyConfig;

constexpr int64_t kPromptLength = 300;
constexpr float kTolerance = 2e-5F;

TestModel ReferenceModel() {
  return {TinyConfig(), MakeWeights(TinyConfig(), Storage::kF32, true), {}};
}

std::vector<int32_t> Prompt() { return StandardTokens(TinyConfig(), kPromptLength); }

// Logits of an independent fp64 program at some positions: see testdata/README.md.
nlohmann::json Golden() {
  std::ifstream file("src/model/testdata/golden_tiny.json");
  return nlohmann::json::parse(file).at("A");
}

void ExpectGoldenRow(const float* logits, int64_t position, const nlohmann::json& expected) {
  const int64_t vocabulary = TinyConfig().vocab_size;
  const auto best = std::max_element(logits, logits + vocabulary);
  EXPECT_EQ(best - logits, expected.at("argmax").get<int64_t>()) << "position " << position;
  EXPECT_NEAR(*best, expected.at("top").get<float>(), kTolerance) << "position " << position;
  for (size_t i = 0; i < expected.at("first").size(); ++i) {
    EXPECT_NEAR(logits[i], expected.at("first")[i].get<float>(), kTolerance)
        << "position " << position << ", token " << i;
  }
  double squares = 0;
  for (int64_t i = 0; i < vocabulary; ++i) squares += static_cast<double>(logits[i]) * logits[i];
  EXPECT_NEAR(std::sqrt(squares), expected.at("l2").get<double>(), 1e-4);
}

void ExpectGolden(const std::vector<float>& logits) {
  const nlohmann::json golden = Golden();
  for (const auto& [position, expected] : golden.items()) {
    const int64_t p = std::stoll(position);
    ExpectGoldenRow(logits.data() + p * TinyConfig().vocab_size, p, expected);
  }
}

TEST(Decoder, OneShotPrefillGivesGoldenLogits) {
  TestModel model = ReferenceModel();
  ExpectGolden(model.Run(0, Prompt(), {kPromptLength}));
}

TEST(Decoder, ChunkedPrefillGivesGoldenLogits) {
  TestModel model = ReferenceModel();
  int32_t sequence = 0;
  for (const int64_t chunk : {1, 7, 64, 129}) {
    SCOPED_TRACE(chunk);
    ExpectGolden(model.Run(sequence++, Prompt(), {chunk}));
  }
}

TEST(Decoder, DecodeAfterAnyPrefixEqualsPrefill) {
  TestModel model = ReferenceModel();
  const std::vector<int32_t> prompt = Prompt();
  const std::vector<float> whole = model.Run(0, prompt, {kPromptLength});
  const auto vocabulary = static_cast<size_t>(model.vocab_size());
  for (const size_t prefix : {1, 2, 3, 4, 5, 15, 16, 17, 35, 36, 127, 128, 129, 255, 256, 257}) {
    SCOPED_TRACE(prefix);
    model.Run(1, std::span(prompt).first(prefix), {kPromptLength});
    const std::vector<float> next =
        model.Step({{1, static_cast<int64_t>(prefix), std::span(prompt).subspan(prefix, 1)}});
    EXPECT_TRUE(std::equal(next.begin(), next.end(),
                           whole.begin() + static_cast<int64_t>(prefix * vocabulary)));
  }
}

TEST(Decoder, TwoSequencesInOneBatchKeepApart) {
  TestModel model = ReferenceModel();
  const std::vector<int32_t> prompt = Prompt();
  const auto first = std::span(prompt).first(170);
  const auto second = std::span(prompt).subspan(100, 140);
  const std::vector<float> alone = model.Run(0, first, {kPromptLength});
  const std::vector<float> other = model.Run(1, second, {kPromptLength});
  const std::vector<float> both = model.Step({{2, 0, first}, {3, 0, second}});
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), both.begin()));
  EXPECT_TRUE(
      std::equal(other.begin(), other.end(), both.begin() + static_cast<int64_t>(alone.size())));
}

// Rejected drafts leave rows behind in pages and rings; running the true tokens overwrites them.
// Across the ends of blocks of both ratios.
TEST(Decoder, RejectedDraftsLeaveNoTrace) {
  constexpr int64_t kDrafts = 5;
  TestModel model(TinyConfig(), MakeWeights(TinyConfig(), Storage::kF32, true),
                  {.lookahead = kDrafts});
  const std::vector<int32_t> prompt = Prompt();
  const std::vector<float> whole = model.Run(0, prompt, {kPromptLength});
  for (const size_t begin : {0, 11, 118, 246}) {
    model.Run(1, std::span(prompt).first(begin), {kPromptLength});
    for (size_t position = begin; position < begin + 12; ++position) {
      std::vector<int32_t> drafted(1 + kDrafts, 7);
      drafted[0] = prompt[position];
      const std::vector<float> step = model.Step({{1, static_cast<int64_t>(position), drafted}});
      EXPECT_TRUE(std::equal(step.begin(), step.begin() + model.vocab_size(),
                             whole.begin() + static_cast<int64_t>(position) * model.vocab_size()))
          << "position " << position;
    }
  }
}

// Dims [first, first + 3) of a compressed row in memory.
std::vector<float> CompressedRow(const TestModel& model, int64_t layer, int64_t entry,
                                 int64_t first) {
  const kv::Layout& layout = model.store().layout();
  const kv::LayerLayout& place = layout.layer(layer);
  const PageId page = model.pages(0)[static_cast<size_t>(entry / place.rows_per_page)];
  const std::byte* row = model.store().page(page) + place.rows_offset +
                         entry % place.rows_per_page * layout.row_bytes();
  const auto* values = reinterpret_cast<const float*>(row) + first;
  return {values, values + 3};
}

TEST(Decoder, CompressedRowsInMemory) {
  TestModel model = ReferenceModel();
  model.Run(0, Prompt(), {64});
  const auto expect = [&](int64_t layer, int64_t entry, int64_t first,
                          const std::vector<float>& expected) {
    EXPECT_THAT(CompressedRow(model, layer, entry, first),
                ::testing::Pointwise(::testing::FloatNear(1e-5F), expected))
        << "layer " << layer << ", entry " << entry;
  };
  expect(2, 0, 0, {0.753066F, -0.921639F, -0.165292F});
  expect(2, 0, 64, {-1.038542F, 1.000702F, 0.797010F});
  expect(2, 1, 64, {1.334433F, 0.189251F, 0.651752F});
  expect(2, 31, 0, {0.064264F, 0.354452F, 0.899876F});
  expect(2, 31, 64, {0.560201F, -0.797312F, 1.757932F});
  expect(3, 0, 0, {-0.397018F, -0.198960F, 0.955846F});
  expect(3, 0, 64, {0.360417F, -1.002770F, 0.767472F});
}

TEST(Decoder, ScratchIsAccountedFor) {
  TestModel model = ReferenceModel();
  EXPECT_EQ(model.model().scratch_bytes(),
            Model::ScratchBytes(TinyConfig(), Precision::kReference, model.model().limits(), 1));
}

}  // namespace
}  // namespace fulgur::model
