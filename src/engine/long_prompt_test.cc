// A prompt of more than 200,000 tokens through engine and model: all of its memory is found again,
// whatever the chunks.
#include <gtest/gtest.h>

#include <future>
#include <random>

#include "base/machine.h"
#include "engine/model_engine.h"
#include "model/testing/tiny_model.h"

namespace fulgur::engine {
namespace {

using model::testing::TinyConfig;

constexpr int64_t kPromptTokens = 200'500;
constexpr int64_t kOutputTokens = 8;
constexpr int64_t kMaxModelLen = 200'704;

// Ratios 0, 0, 4 and 128: every kind of attention, and as little work as possible.
model::ModelConfig OneLayerOfEachKind() {
  model::ModelConfig config = TinyConfig();
  config.num_layers = 4;
  config.compress_ratios.resize(4);
  config.max_position = kMaxModelLen;
  return config;
}

struct Answer {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
};

Answer AnswerTo(const Request& request, int64_t max_num_batched_tokens) {
  ModelEngineOptions options;
  options.limits = {.max_num_seqs = 1,
                    .max_num_batched_tokens = max_num_batched_tokens,
                    .max_model_len = kMaxModelLen};
  options.memory = {.kv_cache_bytes = 4LL << 30, .max_num_seqs = 1, .max_model_len = kMaxModelLen};
  options.num_threads = 2;
  const model::ModelConfig config = OneLayerOfEachKind();
  auto created = CreateModelEngine(options, config,
                                   MakeWeights(config, model::testing::Storage::kFp8Fp4, false),
                                   base::DetectMachine());
  EXPECT_TRUE(created.ok()) << created.status();
  Answer answer;
  std::promise<FinishReason> end;
  const auto id = created->engine->Submit(request, [&](const RequestEvent& event) {
    for (const OutputToken& token : event.tokens) {
      answer.tokens.push_back(token.token);
      for (const TokenLogprob& entry : token.alternatives) answer.logprobs.push_back(entry.logprob);
    }
    if (event.finish) end.set_value(*event.finish);
  });
  EXPECT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(end.get_future().get(), FinishReason::kLength);
  return answer;
}

TEST(LongPrompt, ChunksDoNotMatterAt200kTokens) {
  std::mt19937 rng(3);
  const auto vocab_size = static_cast<uint32_t>(TinyConfig().vocab_size);
  Request request;
  for (int64_t i = 0; i < kPromptTokens; ++i) {
    request.prompt.push_back(static_cast<int32_t>(rng() % vocab_size));
  }
  request.params.temperature = 0.0F;
  request.params.max_tokens = kOutputTokens;
  request.params.num_logprobs = 20;
  const Answer large = AnswerTo(request, 2048);
  ASSERT_EQ(large.tokens.size(), static_cast<size_t>(kOutputTokens));
  const Answer odd = AnswerTo(request, 1543);
  EXPECT_EQ(large.tokens, odd.tokens);
  EXPECT_EQ(large.logprobs, odd.logprobs);
}

}  // namespace
}  // namespace fulgur::engine
