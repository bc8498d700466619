// Counts what a decoding step allocates: nothing but the token list of each event that leaves it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "engine/engine_core.h"
#include "engine/fake_runner.h"

namespace {
std::atomic<int64_t> num_allocations{0};
}  // namespace

void* operator new(size_t size) {
  ++num_allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace fulgur::engine {
namespace {

sample::SamplingParams Params(int kind) {
  sample::SamplingParams params;
  params.max_tokens = 700;
  params.ignore_eos = true;
  if (kind == 0) params.temperature = 0.0F;
  if (kind == 2) params.top_k = 10, params.top_p = 0.9F;
  if (kind == 3) params.top_p = 0.8F, params.min_p = 0.01F;
  if (kind == 4) params.repetition_penalty = 1.2F, params.frequency_penalty = 0.1F;
  if (kind == 5) params.logit_bias = {{3, 1.0F}}, params.bad_words = {{1, 2}};
  return params;
}

TEST(StepAllocation, DecodingAllocatesNothingButEvents) {
  constexpr int64_t kSequences = 6;
  constexpr int64_t kPages = 24;
  FakeRunner runner(kPages, kSequences);
  EngineCore core({.limits = {.max_num_seqs = kSequences,
                              .max_num_batched_tokens = 256,
                              .max_model_len = 1024,
                              .max_logit_rows = kSequences + 1},
                   .num_pages = kPages,
                   .num_slots = kSequences,
                   .seed = 1},
                  runner);
  int64_t num_events = 0;
  for (int i = 0; i < kSequences; ++i) {
    Request request;
    request.prompt = {1, 2, i};
    request.params = Params(i);
    core.Add(
        static_cast<RequestId>(i), std::move(request),
        [&num_events](const RequestEvent&) { ++num_events; }, Clock::now());
  }
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(core.Step().ok());
  const int64_t events_before = num_events;
  const int64_t before = num_allocations;
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(core.Step().ok());  // over two page boundaries
  EXPECT_EQ(num_events - events_before, 600 * kSequences);
  EXPECT_EQ(num_allocations - before, num_events - events_before);
}

}  // namespace
}  // namespace fulgur::engine
