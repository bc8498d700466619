// The real model with its drafters: the same text with and without drafts.
#include <gtest/gtest.h>

#include <future>
#include <random>
#include <string>

#include "base/machine.h"
#include "engine/engine_core.h"
#include "engine/model_engine.h"
#include "model/testing/tiny_model.h"

namespace fulgur::engine {
namespace {

using model::DrafterKind;
using model::testing::MakeWeights;
using model::testing::Storage;
using model::testing::TinyConfig;

constexpr int64_t kPages = 6;
constexpr int64_t kSeqs = 4;

struct Texts {
  std::vector<std::vector<int32_t>> tokens;
  SpeculationStats stats;
};

ModelEngineOptions Options(DrafterKind drafter, const SpeculationOptions& speculation) {
  ModelEngineOptions options;
  options.limits = {.max_num_seqs = kSeqs,
                    .max_num_batched_tokens = 64,
                    .max_model_len = kPages * kv::kPageTokens,
                    .max_logit_rows = kSeqs * 8 + 16,
                    .watermark = 0.0};
  options.max_drafts = drafter == DrafterKind::kNone ? 0 : speculation.num_drafts;
  options.speculation = speculation;
  return options;
}

Texts Answer(const std::vector<Request>& requests, DrafterKind drafter,
             const SpeculationOptions& speculation) {
  const ModelEngineOptions options = Options(drafter, speculation);
  const model::ModelConfig config = TinyConfig(drafter);
  auto runner = CreateModelRunner(options, config, MakeWeights(config, Storage::kFp8Fp4, false),
                                  {.num_pages = kPages, .num_slots = kSeqs}, base::DetectMachine());
  EXPECT_TRUE(runner.ok()) << runner.status();
  EngineCore core({.limits = options.limits,
                   .num_pages = kPages,
                   .num_slots = kSeqs,
                   .seed = 1,
                   .speculation = speculation},
                  **runner);
  Texts result;
  result.tokens.resize(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    auto& tokens = result.tokens[i];
    core.Add(
        i, requests[i],
        [&tokens](const RequestEvent& event) {
          for (const OutputToken& token : event.tokens) tokens.push_back(token.token);
        },
        Clock::now());
  }
  while (core.HasWork()) {
    EXPECT_TRUE(core.Step().ok());
    core.CheckInvariants();
  }
  result.stats = core.Stats().speculation;
  return result;
}

std::vector<Request> RandomRequests(uint32_t seed, int count) {
  std::mt19937 rng(seed);
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request request;
    request.prompt.resize(1 + rng() % (i % 4 == 0 ? 200 : 20));
    for (int32_t& token : request.prompt) token = static_cast<int32_t>(rng() % 512);
    request.params.max_tokens = 1 + static_cast<int64_t>(rng() % 60);
    request.params.seed = rng();
    request.params.temperature = i % 3 == 0 ? 0.0F : 0.9F;
    if (i % 5 == 1) request.params.repetition_penalty = 1.3F;
    if (i % 5 == 2) request.params.top_p = 0.9F;
    if (i % 7 == 3) request.max_drafts = static_cast<int32_t>(rng() % 3);
    requests.push_back(std::move(request));
  }
  return requests;
}

class ModelSpeculation : public ::testing::TestWithParam<DrafterKind> {};

TEST_P(ModelSpeculation, SaysTheSameWithAndWithoutDrafts) {
  const std::vector<Request> requests = RandomRequests(3, 40);
  const Texts plain = Answer(requests, DrafterKind::kNone, {});
  for (const int32_t num_drafts : {1, 3, 5}) {
    const Texts fixed = Answer(requests, GetParam(), {.num_drafts = num_drafts, .adaptive = false});
    EXPECT_EQ(fixed.tokens, plain.tokens) << num_drafts << " drafts";
    EXPECT_GT(fixed.stats.verified_tokens, 500);
  }
  sched::CostTable costs;
  costs.forward = {{1, 10.0}, {40, 14.0}};
  costs.max_drafts = 5;
  const Texts adaptive =
      Answer(requests, GetParam(), {.num_drafts = 5, .adaptive = true, .costs = costs});
  EXPECT_EQ(adaptive.tokens, plain.tokens);
  EXPECT_GT(adaptive.stats.verified_tokens, 0);
}

// With costs measured at the start, as a server has them.
TEST_P(ModelSpeculation, AnEngineMeasuresAndAnswers) {
  const std::vector<Request> requests = RandomRequests(4, 6);
  const Texts plain = Answer(requests, DrafterKind::kNone, {});
  ModelEngineOptions options = Options(GetParam(), {.num_drafts = 4});
  options.memory = {
      .num_pages = kPages, .max_num_seqs = kSeqs, .max_model_len = kPages * kv::kPageTokens};
  const model::ModelConfig config = TinyConfig(GetParam());
  auto engine = CreateModelEngine(options, config, MakeWeights(config, Storage::kFp8Fp4, false),
                                  base::DetectMachine());
  ASSERT_TRUE(engine.ok()) << engine.status();
  for (size_t i = 0; i < requests.size(); ++i) {
    std::vector<int32_t> tokens;
    std::promise<void> done;
    ASSERT_TRUE(engine->engine
                    ->Submit(requests[i],
                             [&](const RequestEvent& event) {
                               for (const auto& token : event.tokens) tokens.push_back(token.token);
                               if (event.finish) done.set_value();
                             })
                    .ok());
    done.get_future().wait();
    EXPECT_EQ(tokens, plain.tokens[i]);
  }
  const SpeculationStats stats = engine->engine->Stats().speculation;
  EXPECT_GT(stats.steps[0] + stats.steps[1] + stats.steps[2], 0);
  EXPECT_GT(stats.predicted_forward_seconds, 0.0);
}

INSTANTIATE_TEST_SUITE_P(Drafters, ModelSpeculation,
                         ::testing::Values(DrafterKind::kMtp, DrafterKind::kDspark),
                         [](const auto& test) {
                           return std::string(test.param == DrafterKind::kMtp ? "mtp" : "dspark");
                         });

}  // namespace
}  // namespace fulgur::engine
