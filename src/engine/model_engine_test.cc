#include "engine/model_engine.h"

#include <gmock/gmock.h>
#include <xxhash.h>

#include <cstring>
#include <future>
#include <map>
#include <random>

#include "base/machine.h"
#include "engine/engine_core.h"
#include "kv/layout.h"
#include "model/testing/tiny_model.h"

namespace fulgur::engine {
namespace {

using model::testing::MakeWeights;
using model::testing::Storage;
using model::testing::TinyConfig;
using ::testing::HasSubstr;

// Hash of a token history -> hash of the bits of the logits after it.
using LogitBits = std::map<uint64_t, uint64_t>;

// Passes steps on and remembers the bits of every row of logits. The same history must always give
// the same bits.
class RecordingRunner : public ModelRunner {
 public:
  RecordingRunner(std::unique_ptr<ModelRunner> inner, LogitBits& bits)
      : inner_(std::move(inner)), bits_(bits) {}

  int64_t VocabSize() const override { return inner_->VocabSize(); }

  absl::Status Forward(const model::StepBatch& batch, std::span<float> logits) override {
    const absl::Status status = inner_->Forward(batch, logits);
    std::span<const float> rest = logits;
    for (const model::SequenceRows& sequence : batch.sequences) {
      std::vector<int32_t>& history = histories_[sequence.slot];
      history.resize(static_cast<size_t>(sequence.first_position));
      for (int32_t i = 0; i < sequence.num_rows; ++i) {
        history.push_back(batch.tokens[static_cast<size_t>(sequence.first_row + i)]);
        if (i < sequence.num_rows - sequence.num_logit_rows) continue;
        Record(history, rest.first(static_cast<size_t>(VocabSize())));
        rest = rest.subspan(static_cast<size_t>(VocabSize()));
      }
    }
    return status;
  }

 private:
  void Record(const std::vector<int32_t>& history, std::span<const float> row) {
    const uint64_t key = XXH3_64bits(history.data(), history.size() * sizeof(int32_t));
    const uint64_t value = XXH3_64bits(row.data(), row.size_bytes());
    const auto [entry, fresh] = bits_.emplace(key, value);
    EXPECT_TRUE(fresh || entry->second == value) << "at length " << history.size();
  }

  const std::unique_ptr<ModelRunner> inner_;
  LogitBits& bits_;
  std::map<model::StateSlot, std::vector<int32_t>> histories_;
};

struct RunShape {
  int64_t max_num_seqs = 1;
  int64_t max_num_batched_tokens = 2048;
  int64_t num_pages = 4;
  int num_threads = 1;
  uint32_t arrivals = 0;  // 0: all at once, else a seed for when they come
};

struct RunResult {
  std::vector<std::vector<int32_t>> tokens;
  int64_t num_preemptions = 0;
};

RunResult RunRequests(const std::vector<Request>& requests, const RunShape& shape,
                      LogitBits& bits) {
  ModelEngineOptions options;
  options.limits = {.max_num_seqs = shape.max_num_seqs,
                    .max_num_batched_tokens = shape.max_num_batched_tokens,
                    .max_model_len = shape.num_pages * kv::kPageTokens,
                    .max_logit_rows = shape.max_num_seqs + 32,
                    .watermark = 0.0};
  options.num_threads = shape.num_threads;
  const MemoryPlan plan{.num_pages = shape.num_pages, .num_slots = shape.max_num_seqs};
  auto runner =
      CreateModelRunner(options, TinyConfig(), MakeWeights(TinyConfig(), Storage::kFp8Fp4, false),
                        plan, base::DetectMachine());
  EXPECT_TRUE(runner.ok()) << runner.status();
  RecordingRunner recorder(*std::move(runner), bits);
  EngineCore core({.limits = options.limits,
                   .num_pages = plan.num_pages,
                   .num_slots = plan.num_slots,
                   .seed = 1},
                  recorder);
  std::mt19937 rng(shape.arrivals);
  RunResult result;
  result.tokens.resize(requests.size());
  size_t sent = 0;
  while (sent < requests.size() || core.HasWork()) {
    while (sent < requests.size() && (shape.arrivals == 0 || rng() % 4 == 0)) {
      auto& tokens = result.tokens[sent];
      core.Add(
          sent, requests[sent],
          [&tokens](const RequestEvent& event) {
            for (const OutputToken& token : event.tokens) tokens.push_back(token.token);
          },
          Clock::now());
      ++sent;
    }
    EXPECT_TRUE(core.Step().ok());
    core.CheckInvariants();
  }
  result.num_preemptions = core.Stats().num_preemptions;
  EXPECT_EQ(core.Stats().pages_used, 0);
  EXPECT_EQ(core.Stats().slots_used, 0);
  return result;
}

std::vector<Request> MakeRequests(uint32_t seed) {
  std::mt19937 rng(seed);
  const auto vocab_size = static_cast<uint32_t>(TinyConfig().vocab_size);
  std::vector<Request> requests;
  for (const size_t length : {1U, 3U, 4U, 5U, 127U, 128U, 129U, 255U, 256U, 300U}) {
    Request request;
    for (size_t i = 0; i < length; ++i) {
      request.prompt.push_back(static_cast<int32_t>(rng() % vocab_size));
    }
    request.params.max_tokens = 20;
    request.params.seed = rng();
    request.params.temperature = length % 2 == 0 ? 0.0F : 1.0F;
    if (length % 3 == 0) request.params.num_prompt_logprobs = 1;
    requests.push_back(std::move(request));
  }
  return requests;
}

// Requests alone, in batches, with prompts in chunks of any size, with one and two threads, and
// after preemption: the same bits of logits and the same tokens, in native precision.
TEST(ModelEngine, SameBitsHoweverComputed) {
  const std::vector<Request> requests = MakeRequests(11);
  LogitBits bits;
  RunResult alone;
  for (const Request& request : requests) {
    alone.tokens.push_back(RunRequests({request}, {}, bits).tokens[0]);
  }
  const std::vector<RunShape> shapes = {
      {.max_num_seqs = 10, .max_num_batched_tokens = 2048, .num_pages = 30},
      {.max_num_seqs = 10, .max_num_batched_tokens = 37, .num_pages = 30},
      {.max_num_seqs = 3, .max_num_batched_tokens = 64, .num_pages = 30, .arrivals = 5},
      {.max_num_seqs = 5, .max_num_batched_tokens = 101, .num_pages = 30, .num_threads = 2},
      {.max_num_seqs = 4,
       .max_num_batched_tokens = 200,
       .num_pages = 30,
       .num_threads = 2,
       .arrivals = 6},
  };
  for (const RunShape& shape : shapes) {
    EXPECT_EQ(RunRequests(requests, shape, bits).tokens, alone.tokens);
  }
}

TEST(ModelEngine, SameBitsAfterPreemption) {
  std::vector<Request> requests = MakeRequests(12);
  std::erase_if(requests, [](const Request& r) { return r.prompt.size() < 200; });
  LogitBits bits;
  const RunResult roomy = RunRequests(requests, {.max_num_seqs = 4, .num_pages = 20}, bits);
  const RunResult tight = RunRequests(
      requests, {.max_num_seqs = 4, .max_num_batched_tokens = 300, .num_pages = 3}, bits);
  EXPECT_GT(tight.num_preemptions, 0);
  EXPECT_EQ(tight.tokens, roomy.tokens);
}

ModelEngineOptions SmallOptions() {
  ModelEngineOptions options;
  options.limits = {.max_num_seqs = 4, .max_num_batched_tokens = 128, .max_model_len = 1024};
  options.memory = {.kv_cache_bytes = 64 << 20, .max_num_seqs = 4, .max_model_len = 1024};
  return options;
}

TEST(ModelEngine, AnswersFromWeightsToTokens) {
  auto created =
      CreateModelEngine(SmallOptions(), TinyConfig(),
                        MakeWeights(TinyConfig(), Storage::kBf16, false), base::DetectMachine());
  ASSERT_TRUE(created.ok()) << created.status();
  Engine& engine = *created->engine;
  EXPECT_EQ(engine.MaxModelLen(), 1024);
  std::promise<RequestEvent> end;
  int tokens = 0;
  Request request;
  request.prompt = {1, 2, 3};
  request.params.max_tokens = 8;
  const auto id = engine.Submit(request, [&](const RequestEvent& event) {
    tokens += static_cast<int>(event.tokens.size());
    if (event.finish) end.set_value(event);
  });
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(end.get_future().get().finish, FinishReason::kLength);
  EXPECT_EQ(tokens, 8);
}

TEST(ModelEngine, SaysWhatDoesNotFit) {
  ModelEngineOptions options = SmallOptions();
  options.memory.kv_cache_bytes = 1000;
  const auto created =
      CreateModelEngine(options, TinyConfig(), MakeWeights(TinyConfig(), Storage::kBf16, false),
                        base::DetectMachine());
  EXPECT_EQ(created.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(created.status().message()), HasSubstr("--max-num-seqs 4"));
}

}  // namespace
}  // namespace fulgur::engine
