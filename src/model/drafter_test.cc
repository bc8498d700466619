// Drafts of both kinds of drafters against those of an independent program (testdata/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "model/testing/test_model.h"
#include "model/testing/tiny_model.h"

namespace fulgur::model {
namespace {

using testing::MakeWeights;
using testing::StandardTokens;
using testing::Storage;
using testing::TestModel;
using testing::TestModelOptions;
using testing::TinyConfig;

constexpr double kTolerance = 2e-5;

TestModel MakeModel(DrafterKind kind, Precision precision = Precision::kReference,
                    Storage storage = Storage::kF32) {
  TestModelOptions options;
  options.precision = precision;
  options.lookahead = 5;
  options.ops =
      precision == Precision::kNative ? kernels::OpChoice::kAuto : kernels::OpChoice::kScalar;
  const ModelConfig config = TinyConfig(kind);
  return {config, MakeWeights(config, storage, precision == Precision::kReference), options};
}

nlohmann::json Golden(const std::string& kind, const std::string& mode) {
  std::ifstream file("src/model/testdata/golden_" + kind + "_tiny.json");
  return nlohmann::json::parse(file).at("modes").at(mode);
}

// Drafts behind the first `length` tokens of the standard input, which run in chunks.
TestModel::Proposal DraftsAfter(TestModel& model, int64_t length, int64_t chunk, int32_t num_drafts,
                                std::span<const int32_t> forced = {}) {
  const std::vector<int32_t> tokens = StandardTokens(model.model().config(), length + 1);
  TestModel::Proposal proposal;
  for (int64_t begin = 0; begin < length; begin += chunk) {
    const int64_t count = std::min(chunk, length - begin);
    model.Step(
        {{0, begin,
          std::span(tokens).subspan(static_cast<size_t>(begin), static_cast<size_t>(count))}});
    const bool last = begin + count == length;
    const DraftRows rows = {.sequence = 0,
                            .num_accepted = static_cast<int32_t>(count),
                            .next_token = tokens[static_cast<size_t>(begin + count)],
                            .num_drafts = last ? num_drafts : 0};
    proposal = model.Propose({&rows, 1}, last ? forced : std::span<const int32_t>());
  }
  return proposal;
}

void ExpectRow(std::span<const float> logits, const nlohmann::json& expected) {
  const auto best = std::max_element(logits.begin(), logits.end());
  EXPECT_EQ(best - logits.begin(), expected.at("argmax").get<int64_t>());
  EXPECT_NEAR(*best, expected.at("max").get<double>(), kTolerance);
  for (size_t i = 0; i < expected.at("logits").size(); ++i) {
    EXPECT_NEAR(logits[i], expected.at("logits")[i].get<double>(), kTolerance) << "token " << i;
  }
  double squares = 0;
  for (const float x : logits) squares += static_cast<double>(x) * x;
  EXPECT_NEAR(std::sqrt(squares), expected.at("logits_l2").get<double>(), 1e-4);
}

std::span<const float> Row(const TestModel& model, const TestModel::Proposal& proposal,
                           size_t draft) {
  const auto width = static_cast<size_t>(model.vocab_size());
  return std::span(proposal.logits).subspan(draft * width, width);
}

// First three and last three dims of the key that a draft block keeps of a position.
std::vector<float> KeyRow(const TestModel& model, int64_t block, int64_t position) {
  const kv::Layout& layout = model.store().layout();
  const kv::LayerLayout& place = layout.layer(TinyConfig().num_layers + block);
  const std::byte* row = model.store().slot(0) + place.window_offset +
                         position % layout.window_rows() * layout.row_bytes();
  const auto* values = reinterpret_cast<const float*>(row);
  const int64_t dim = TinyConfig().head_dim;
  return {values[0], values[1], values[2], values[dim - 3], values[dim - 2], values[dim - 1]};
}

void ExpectKeyRow(const std::vector<float>& row, const nlohmann::json& expected) {
  for (size_t i = 0; i < row.size(); ++i)
    EXPECT_NEAR(row[i], expected[i].get<double>(), kTolerance);
}

void ExpectDsparkEntry(TestModel& model, const nlohmann::json& entry, int64_t chunk) {
  const auto position = entry.at("P").get<int64_t>();
  std::vector<int32_t> forced;
  if (!entry.at("forced").is_null()) forced = entry.at("forced").get<std::vector<int32_t>>();
  const TestModel::Proposal proposal = DraftsAfter(model, position, chunk, 5, forced);
  ASSERT_EQ(proposal.drafts.tokens.size(), 5U);
  for (size_t slot = 0; slot < 5; ++slot) {
    SCOPED_TRACE("slot " + std::to_string(slot));
    const nlohmann::json& expected = entry.at("slots")[slot];
    ExpectRow(Row(model, proposal, slot), expected);
    EXPECT_NEAR(proposal.drafts.confidence[slot], expected.at("confidence").get<double>(),
                kTolerance);
  }
  for (int64_t stage = 0; stage < 3; ++stage) {
    ExpectKeyRow(KeyRow(model, stage, position - 1),
                 entry.at("context_row")[static_cast<size_t>(stage)]);
  }
}

// Contexts are never cold here: every row that stands has written its keys.
TEST(DsparkDrafter, GivesGoldenDrafts) {
  TestModel model = MakeModel(DrafterKind::kDspark);
  for (const nlohmann::json& entry : Golden("dspark", "A")) {
    if (entry.at("what") == "cold start") continue;
    for (const int64_t chunk : {512, 1, 7}) {
      SCOPED_TRACE("P " + entry.at("P").dump() + ", chunks of " + std::to_string(chunk));
      ExpectDsparkEntry(model, entry, chunk);
    }
  }
}

TEST(MtpDrafter, GivesGoldenDrafts) {
  TestModel model = MakeModel(DrafterKind::kMtp);
  for (const nlohmann::json& entry : Golden("mtp", "A")) {
    for (const int64_t chunk : {512, 1, 7}) {
      SCOPED_TRACE("t " + entry.at("t").dump() + ", chunks of " + std::to_string(chunk));
      const auto t = entry.at("t").get<int64_t>();
      const TestModel::Proposal proposal = DraftsAfter(model, t + 1, chunk, 2);
      ASSERT_EQ(proposal.drafts.tokens.size(), 2U);
      ExpectRow(Row(model, proposal, 0), entry.at("first"));
      ExpectRow(Row(model, proposal, 1), entry.at("second"));
      ExpectKeyRow(KeyRow(model, 0, t), entry.at("first").at("row"));
      ExpectKeyRow(KeyRow(model, 0, t + 1), entry.at("second").at("row"));
    }
  }
}

double Cosine(std::span<const float> a, std::span<const float> b) {
  double products = 0;
  double squares_a = 0;
  double squares_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    products += static_cast<double>(a[i]) * b[i];
    squares_a += static_cast<double>(a[i]) * a[i];
    squares_b += static_cast<double>(b[i]) * b[i];
  }
  return products / std::sqrt(squares_a * squares_b);
}

// Rounding in the main model alone moves what its drafter reads, and random weights amplify it: now
// and then a draft goes elsewhere, whatever the format, so that only the median of all says much.
TEST(Drafter, NativePrecisionStaysNear) {
  std::vector<double> cosines;
  for (const DrafterKind kind : {DrafterKind::kMtp, DrafterKind::kDspark}) {
    for (const Storage storage : {Storage::kBf16, Storage::kFp8Fp4, Storage::kInt8}) {
      TestModel exact = MakeModel(kind, Precision::kReference, storage);
      TestModel native = MakeModel(kind, Precision::kNative, storage);
      for (const int64_t length : {1, 2, 3, 16, 17, 40, 63}) {
        const std::vector<int32_t> forced = {7, 70, 300, 5, 90};
        const TestModel::Proposal a = DraftsAfter(exact, length, 64, 5, forced);
        const TestModel::Proposal b = DraftsAfter(native, length, 64, 5, forced);
        cosines.push_back(Cosine(a.logits, b.logits));
      }
    }
  }
  std::sort(cosines.begin(), cosines.end());
  EXPECT_GE(cosines[cosines.size() / 2], 0.98);
  EXPECT_GE(cosines[0], 0.7);
}

TEST(Drafter, ScratchIsAccountedFor) {
  for (const DrafterKind kind : {DrafterKind::kMtp, DrafterKind::kDspark}) {
    TestModel model = MakeModel(kind);
    EXPECT_EQ(
        model.model().scratch_bytes(),
        Model::ScratchBytes(TinyConfig(kind), Precision::kReference, model.model().limits(), 1));
  }
}

}  // namespace
}  // namespace fulgur::model
