#include "engine/local_engine.h"

#include <gmock/gmock.h>
#include <time.h>

#include <atomic>
#include <random>
#include <thread>

#include "engine/fake_runner.h"
#include "engine/mailbox.h"

namespace fulgur::engine {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

Request Greedy(std::vector<int32_t> prompt, int64_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.params.temperature = 0.0F;
  request.params.max_tokens = max_tokens;
  request.params.ignore_eos = true;
  return request;
}

struct Rig {
  explicit Rig(sched::SchedulerLimits limits = {.max_num_seqs = 8, .max_num_batched_tokens = 64},
               int64_t num_pages = 16) {
    auto owned = std::make_unique<FakeRunner>(num_pages, limits.max_num_seqs);
    runner = owned.get();
    limits.max_model_len = num_pages * kv::kPageTokens;
    limits.max_logit_rows = limits.max_num_seqs + 8;
    LocalEngineOptions options{.core = {.limits = limits,
                                        .num_pages = num_pages,
                                        .num_slots = limits.max_num_seqs,
                                        .eos_tokens = {0},
                                        .seed = 1}};
    options.max_queued_requests = 100;
    auto created = CreateLocalEngine(options, std::move(owned));
    EXPECT_TRUE(created.ok()) << created.status();
    engine = *std::move(created);
  }

  // Stats are published after the events of a step.
  EngineStats WaitUntilFree() {
    for (int i = 0; i < 2000; ++i) {
      const EngineStats stats = engine->Stats();
      if (stats.pages_used == 0 && stats.num_running == 0 && stats.num_waiting == 0) return stats;
      std::this_thread::sleep_for(1ms);
    }
    ADD_FAILURE() << "memory is still in use";
    return engine->Stats();
  }

  FakeRunner* runner = nullptr;
  Mailbox mail;
  std::unique_ptr<Engine> engine;  // first to go: its thread writes to the mailbox
};

TEST(LocalEngine, AnswersAndFreesEverything) {
  Rig s;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(s.engine->Submit(Greedy({1, i}, 10), s.mail.Sink(i)).ok());
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(s.mail.WaitForEnd(i).finish, FinishReason::kLength);
    EXPECT_EQ(s.mail.tokens(i).size(), 10U);
  }
  const EngineStats stats = s.WaitUntilFree();
  EXPECT_EQ(stats.generation_tokens, 200);
  EXPECT_EQ(stats.num_finished[static_cast<size_t>(FinishReason::kLength)], 20);
  EXPECT_TRUE(s.engine->Health().ok());
  EXPECT_EQ(s.engine->VocabSize(), FakeRunner::kVocab);
  EXPECT_EQ(s.engine->MaxModelLen(), 16 * kv::kPageTokens);
}

TEST(LocalEngine, RefusesAtOnce) {
  Rig s;
  EXPECT_EQ(s.engine->Submit(Greedy({}, 10), s.mail.Sink(0)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(s.mail.num_ends(), 0U);
}

TEST(LocalEngine, AbortFreesMemoryAtTheNextStep) {
  Rig s;
  const auto id = s.engine->Submit(Greedy({1, 2}, 4000), s.mail.Sink(0));
  s.mail.WaitForTokens(0, 3);
  s.engine->Abort(*id);
  EXPECT_EQ(s.mail.WaitForEnd(0).finish, FinishReason::kAbort);
  s.engine->Abort(*id);
  s.engine->Abort(123456);
  s.WaitUntilFree();
}

TEST(LocalEngine, AnIdleEngineSleeps) {
  Rig s;
  ASSERT_TRUE(s.engine->Submit(Greedy({1}, 2), s.mail.Sink(0)).ok());
  s.mail.WaitForEnd(0);
  s.WaitUntilFree();
  const auto cpu = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double before = cpu();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(cpu() - before, 0.05);
  EXPECT_EQ(s.engine->Stats().seconds_in_step, 0.0);
}

TEST(LocalEngine, DrainFinishesWhatRuns) {
  Rig s;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(s.engine->Submit(Greedy({1, i}, 50), s.mail.Sink(i)).ok());
  }
  s.engine->Shutdown(/*drain=*/true);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(s.mail.WaitForEnd(i).finish, FinishReason::kLength);
  EXPECT_EQ(s.engine->Submit(Greedy({1}, 2), s.mail.Sink(99)).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(LocalEngine, ShutdownAbortsWhatRuns) {
  Rig s;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(s.engine->Submit(Greedy({1, i}, 4000), s.mail.Sink(i)).ok());
  }
  s.mail.WaitForTokens(0, 1);
  s.engine->Shutdown(/*drain=*/false);
  EXPECT_EQ(s.mail.num_ends(), 20U);
  EXPECT_EQ(s.mail.WaitForEnd(0).finish, FinishReason::kAbort);
  EXPECT_EQ(s.engine->Stats().pages_used, 0);
}

TEST(LocalEngine, ADrainCanBeCutShort) {
  Rig s;
  s.runner->before_step = [](const model::StepBatch&) {
    std::this_thread::sleep_for(5ms);
    return absl::OkStatus();
  };
  ASSERT_TRUE(s.engine->Submit(Greedy({1}, 4000), s.mail.Sink(0)).ok());
  std::thread drain([&] { s.engine->Shutdown(true); });
  s.mail.WaitForTokens(0, 2);
  s.engine->Shutdown(false);
  drain.join();
  EXPECT_EQ(s.mail.WaitForEnd(0).finish, FinishReason::kAbort);
}

TEST(LocalEngine, AFailedStepKillsTheEngineAndEndsEveryRequest) {
  for (const bool throws : {false, true}) {
    Rig s({.max_num_seqs = 2, .max_num_batched_tokens = 64});
    int steps = 0;
    std::atomic<bool> all_in{false};
    s.runner->before_step = [&](const model::StepBatch&) -> absl::Status {
      while (!all_in) std::this_thread::sleep_for(1ms);
      if (++steps < 5) return absl::OkStatus();
      if (throws) throw std::bad_alloc();
      return absl::InternalError("the power went away");
    };
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(s.engine->Submit(Greedy({1, i}, 100), s.mail.Sink(i)).ok());
    }
    all_in = true;
    for (int i = 0; i < 5; ++i) {
      const RequestEvent end = s.mail.WaitForEnd(i);
      EXPECT_EQ(end.finish, FinishReason::kError);
      EXPECT_THAT(end.error, HasSubstr(throws ? "bad_alloc" : "the power went away"));
    }
    const absl::Status refused = s.engine->Submit(Greedy({1}, 2), s.mail.Sink(9)).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("the engine failed"));
    EXPECT_FALSE(s.engine->Health().ok());
    s.WaitUntilFree();
  }
}

TEST(LocalEngine, TheQueueIsBounded) {
  Rig s({.max_num_seqs = 1, .max_num_batched_tokens = 64});
  int accepted = 0;
  absl::Status refused;
  for (int i = 0; i < 150; ++i) {
    const auto id = s.engine->Submit(Greedy({1}, 4000), s.mail.Sink(i));
    if (id.ok()) {
      ++accepted;
    } else {
      refused = id.status();
    }
  }
  EXPECT_GE(accepted, 100);
  EXPECT_LE(accepted, 102);  // one may run, and the count of those waiting lags by a step
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("queue is full"));
}

TEST(LocalEngine, AHangIsVisible) {
  Rig s;
  std::atomic<bool> hang{true};
  s.runner->before_step = [&](const model::StepBatch&) {
    while (hang) std::this_thread::sleep_for(1ms);
    return absl::OkStatus();
  };
  ASSERT_TRUE(s.engine->Submit(Greedy({1}, 2), s.mail.Sink(0)).ok());
  double age = 0.0;
  for (int i = 0; i < 2000 && age < 0.05; ++i) {
    std::this_thread::sleep_for(1ms);
    age = s.engine->Stats().seconds_in_step;
  }
  EXPECT_GE(age, 0.05);
  hang = false;
  s.mail.WaitForEnd(0);
}

// Many clients that come, go and hang up, while others read the statistics.
TEST(LocalEngine, SurvivesACrowd) {
  Rig s({.max_num_seqs = 6, .max_num_batched_tokens = 40, .watermark = 0.0}, 6);
  constexpr int kClients = 4;
  constexpr int kRequests = 25;
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      std::mt19937 rng(static_cast<uint32_t>(client));
      for (int i = 0; i < kRequests; ++i) {
        const int key = client * kRequests + i;
        const auto size = static_cast<size_t>(1 + rng() % 400);
        const auto id =
            s.engine->Submit(Greedy(std::vector<int32_t>(size, client + 1), 60), s.mail.Sink(key));
        ASSERT_TRUE(id.ok()) << id.status();
        if (rng() % 3 == 0) s.engine->Abort(*id);
        if (rng() % 5 == 0) std::this_thread::sleep_for(1ms);
        const EngineStats stats = s.engine->Stats();
        EXPECT_GE(stats.pages_used, 0);
        EXPECT_LE(stats.pages_used, stats.pages_total);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (int key = 0; key < kClients * kRequests; ++key) s.mail.WaitForEnd(key);
  s.WaitUntilFree();
}

}  // namespace
}  // namespace fulgur::engine
