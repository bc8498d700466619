#include "engine/scripted_engine.h"

#include <gmock/gmock.h>

#include <mutex>
#include <random>
#include <string>
#include <utility>

#include "engine/mailbox.h"

namespace fulgur::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr int32_t kEos = 1;

// Every byte is a token.
std::vector<int32_t> Tokenize(std::string_view text) {
  std::vector<int32_t> tokens;
  for (const char c : text) tokens.push_back(static_cast<uint8_t>(c));
  return tokens;
}

std::unique_ptr<Engine> Replay(std::vector<ScriptLine> script) {
  return CreateScriptedEngine({.script = std::move(script),
                               .tokenize = Tokenize,
                               .eos_token = kEos,
                               .max_model_len = 1000,
                               .vocab_size = 256});
}

Request Ask(std::string key, int64_t max_tokens = 100) {
  Request request;
  request.prompt = {5, 6};
  request.params.max_tokens = max_tokens;
  request.script_key = std::move(key);
  return request;
}

ScriptLine Line(std::string match, std::string text, ScriptFinish finish = ScriptFinish::kStop) {
  return {.match = std::move(match), .text = std::move(text), .finish = finish};
}

TEST(Script, ReadsEveryField) {
  const auto script = ParseScript(
      "{\"match\": \"weather\", \"text\": \"a\\nb\", \"delay_ms\": 5, \"finish\": \"length\", "
      "\"tokens_per_step\": [4, 1]}\n"
      "\n  \r\n{\"text\": \"\"}\r\n",
      "s.jsonl");
  ASSERT_TRUE(script.ok()) << script.status();
  ASSERT_EQ(script->size(), 2U);
  EXPECT_EQ((*script)[0].match, "weather");
  EXPECT_EQ((*script)[0].text, "a\nb");
  EXPECT_EQ((*script)[0].delay_ms, 5);
  EXPECT_EQ((*script)[0].finish, ScriptFinish::kLength);
  EXPECT_THAT((*script)[0].tokens_per_step, ElementsAre(4, 1));
  EXPECT_EQ((*script)[1].finish, ScriptFinish::kStop);
  EXPECT_THAT((*script)[1].tokens_per_step, ElementsAre(1));
}

TEST(Script, ErrorsNameLineAndField) {
  const auto expect = [](const char* text, const char* error) {
    const auto script = ParseScript(text, "s.jsonl");
    EXPECT_THAT(std::string(script.status().message()), HasSubstr(error)) << text;
  };
  expect("{\"text\": \"x\"}\n{\"txt\": \"x\"}", "s.jsonl:2: unknown field");
  expect("{\"match\": \"x\"}", "s.jsonl:1: the field `text` is missing");
  expect("{\"text\": 3}", "`text` must be a string");
  expect("{\"text\": \"\", \"delay_ms\": -1}", "`delay_ms` must be");
  expect("{\"text\": \"\", \"delay_ms\": 1.5}", "`delay_ms` must be");
  expect("{\"text\": \"\", \"finish\": \"crash\"}", "`finish` must be");
  for (const char* steps : {"0", "1.5", "[]", "[2, 0]", "\"2\"", "[[2]]", "1000"}) {
    expect(("{\"text\": \"\", \"tokens_per_step\": " + std::string(steps) + "}").c_str(),
           "s.jsonl:1: `tokens_per_step` must be a whole number from 1 to");
  }
  expect("{\"text\": ", "s.jsonl:1");
  expect("[1]", "s.jsonl:1");
  expect("\n", "holds no answers");
  EXPECT_THAT(std::string(LoadScript("/no/such/file").status().message()),
              HasSubstr("--scripted-output /no/such/file"));
  EXPECT_THAT(std::string(LoadScript("/dev/null").status().message()),
              HasSubstr("/dev/null holds no answers"));
}

// Damaged files give an error or a script, whatever the damage.
TEST(Script, SurvivesDamage) {
  const std::string good =
      "{\"match\": \"w\\u00e9\", \"text\": \"a\\nb\", \"delay_ms\": 5, \"finish\": \"stop\"}\n"
      "{\"text\": [1, {\"a\": null}], \"delay_ms\": 1e99}\n";
  std::mt19937 rng(8);
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (uint32_t edits = 1 + rng() % 4; edits > 0; --edits) {
      text[rng() % text.size()] = static_cast<char>(rng());
      if (rng() % 4 == 0) text.resize(1 + rng() % text.size());
    }
    const auto script = ParseScript(text, "s.jsonl");
    if (!script.ok()) {
      EXPECT_EQ(script.status().code(), absl::StatusCode::kInvalidArgument) << text;
    }
  }
}

TEST(ScriptedEngine, TheFirstMatchWins) {
  Mailbox mail;
  const auto engine =
      Replay({Line("", "default"), Line("sun", "A"), Line("sunny", "B"), Line("", "other")});
  ASSERT_TRUE(engine->Submit(Ask("is it sunny?"), mail.Sink(0)).ok());
  ASSERT_TRUE(engine->Submit(Ask("rain"), mail.Sink(1)).ok());
  EXPECT_EQ(mail.WaitForEnd(0).finish, FinishReason::kStop);
  EXPECT_EQ(mail.WaitForEnd(0).stop_token, kEos);
  EXPECT_THAT(mail.tokens(0), ElementsAre('A', kEos));
  mail.WaitForEnd(1);
  EXPECT_EQ(mail.tokens(1).size(), 8U);
}

TEST(ScriptedEngine, WithoutAMatchItRefuses) {
  Mailbox mail;
  const auto engine = Replay({Line("sun", "A")});
  EXPECT_EQ(engine->Submit(Ask("rain"), mail.Sink(0)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine->Submit(Ask("sun", 2000), mail.Sink(0)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ScriptedEngine, EveryKindOfEnd) {
  Mailbox mail;
  const auto engine = Replay({Line("length", "ab", ScriptFinish::kLength),
                              Line("error", "ab", ScriptFinish::kError),
                              Line("disconnect", "ab", ScriptFinish::kDisconnect), Line("", "")});
  const std::vector<std::string> keys = {"length", "error", "disconnect", "empty"};
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(engine->Submit(Ask(keys[static_cast<size_t>(i)]), mail.Sink(i)).ok());
  }
  EXPECT_EQ(mail.WaitForEnd(0).finish, FinishReason::kLength);
  EXPECT_EQ(mail.WaitForEnd(1).finish, FinishReason::kError);
  EXPECT_FALSE(mail.WaitForEnd(1).error.empty());
  EXPECT_EQ(mail.WaitForEnd(2).finish, FinishReason::kAbort);
  EXPECT_TRUE(mail.WaitForEnd(2).disconnect);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(mail.tokens(i), ElementsAre('a', 'b'));
  mail.WaitForEnd(3);
  EXPECT_THAT(mail.tokens(3), ElementsAre(kEos));
}

TEST(ScriptedEngine, LimitsHold) {
  Mailbox mail;
  const auto engine = Replay({Line("", "abc")});
  ASSERT_TRUE(engine->Submit(Ask("", 2), mail.Sink(0)).ok());
  Request stop = Ask("");
  stop.params.stop_token_ids = {'b'};
  ASSERT_TRUE(engine->Submit(std::move(stop), mail.Sink(1)).ok());
  Request patient = Ask("");
  patient.params.min_tokens = 6;
  ASSERT_TRUE(engine->Submit(std::move(patient), mail.Sink(2)).ok());
  Request endless = Ask("", 8);
  endless.params.ignore_eos = true;
  ASSERT_TRUE(engine->Submit(std::move(endless), mail.Sink(3)).ok());
  EXPECT_EQ(mail.WaitForEnd(0).finish, FinishReason::kLength);
  EXPECT_THAT(mail.tokens(0), ElementsAre('a', 'b'));
  EXPECT_EQ(mail.WaitForEnd(1).stop_token, 'b');
  EXPECT_EQ(mail.WaitForEnd(2).finish, FinishReason::kStop);
  EXPECT_THAT(mail.tokens(2), ElementsAre('a', 'b', 'c', 'a', 'b', 'c', kEos));
  EXPECT_EQ(mail.WaitForEnd(3).finish, FinishReason::kLength);
  EXPECT_THAT(mail.tokens(3), ElementsAre('a', 'b', 'c', 'a', 'b', 'c', 'a', 'b'));
}

TEST(ScriptedEngine, LogprobsAreThoseOfACertainToken) {
  const auto engine = Replay({Line("", "a")});
  std::vector<RequestEvent> events;
  std::mutex mutex;
  Mailbox mail;
  Request request = Ask("");
  request.params.num_logprobs = 2;
  request.params.num_prompt_logprobs = 0;
  ASSERT_TRUE(engine
                  ->Submit(std::move(request),
                           [&, sink = mail.Sink(0)](const RequestEvent& event) {
                             {
                               const std::lock_guard lock(mutex);
                               events.push_back(event);
                             }
                             sink(event);
                           })
                  .ok());
  mail.WaitForEnd(0);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(events[0].tokens[0].logprob->rank, 1);
  EXPECT_EQ(events[0].tokens[0].alternatives.size(), 1U);
  ASSERT_EQ(events[0].prompt_logprobs.size(), 2U);
  EXPECT_TRUE(events[0].prompt_logprobs[0].empty());
  EXPECT_EQ(events[0].prompt_logprobs[1][0].token, 6);
}

TEST(ScriptedEngine, DelayIsPerToken) {
  Mailbox mail;
  const auto engine = Replay({{.match = "", .text = "abcd", .delay_ms = 20}});
  const auto start = Clock::now();
  ASSERT_TRUE(engine->Submit(Ask(""), mail.Sink(0)).ok());
  mail.WaitForEnd(0);
  EXPECT_GE(Clock::now() - start, 95ms);  // five tokens with the last
  EXPECT_EQ(mail.num_events(0), 5);
}

TEST(ScriptedEngine, SeveralTokensCanComeAtOnce) {
  Mailbox mail;
  const auto engine =
      Replay({{.match = "", .text = "abcdefgh", .delay_ms = 20, .tokens_per_step = {4, 1, 2}}});
  const auto start = Clock::now();
  ASSERT_TRUE(engine->Submit(Ask(""), mail.Sink(0)).ok());
  mail.WaitForEnd(0);
  EXPECT_GE(Clock::now() - start, 75ms);  // abcd, e, fg, h with the last
  EXPECT_EQ(mail.num_events(0), 4);
  EXPECT_EQ(mail.tokens(0).size(), 9U);
  EXPECT_EQ(mail.tokens(0).back(), kEos);
  // What would have come behind a limit is not said, not even in the middle of a step.
  ASSERT_TRUE(engine->Submit(Ask("", 6), mail.Sink(1)).ok());
  EXPECT_EQ(mail.WaitForEnd(1).finish, FinishReason::kLength);
  EXPECT_THAT(mail.tokens(1), ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  engine->Shutdown(/*drain=*/true);
  const SpeculationStats stats = engine->Stats().speculation;
  EXPECT_EQ(stats.num_drafts, 3);
  EXPECT_EQ(stats.rounds, 7);
  EXPECT_EQ(stats.verified_tokens, 21);
  EXPECT_EQ(stats.accepted_tokens, 15 - 7);
  EXPECT_EQ(stats.accepted_per_slot[0], 2 + 1 + 1);  // steps of at least two tokens
}

TEST(ScriptedEngine, AScriptOfSingleTokensDraftsNothing) {
  Mailbox mail;
  const auto engine = Replay({Line("", "abc")});
  ASSERT_TRUE(engine->Submit(Ask(""), mail.Sink(0)).ok());
  mail.WaitForEnd(0);
  EXPECT_EQ(engine->Stats().speculation.method, SpeculationStats::Method::kNone);
}

TEST(ScriptedEngine, AbortAndDeadlineEndAStream) {
  Mailbox mail;
  const auto engine = Replay({{.match = "", .text = "abcd", .delay_ms = 60000}});
  const auto id = engine->Submit(Ask(""), mail.Sink(0));
  engine->Abort(*id);
  EXPECT_EQ(mail.WaitForEnd(0).finish, FinishReason::kAbort);
  Request late = Ask("");
  late.deadline = Clock::now() + 10ms;
  ASSERT_TRUE(engine->Submit(std::move(late), mail.Sink(1)).ok());
  EXPECT_THAT(mail.WaitForEnd(1).error, HasSubstr("deadline"));
  ASSERT_TRUE(engine->Submit(Ask(""), mail.Sink(2)).ok());
  engine->Shutdown(/*drain=*/false);
  EXPECT_EQ(mail.WaitForEnd(2).finish, FinishReason::kAbort);
  EXPECT_EQ(engine->Stats().num_running, 0);
}

TEST(ScriptedEngine, DrainLetsStreamsEnd) {
  Mailbox mail;
  const auto engine = Replay({{.match = "", .text = "abcd", .delay_ms = 5}});
  ASSERT_TRUE(engine->Submit(Ask(""), mail.Sink(0)).ok());
  engine->Shutdown(/*drain=*/true);
  EXPECT_EQ(mail.WaitForEnd(0).finish, FinishReason::kStop);
  EXPECT_EQ(engine->Submit(Ask(""), mail.Sink(1)).status().code(), absl::StatusCode::kUnavailable);
}

TEST(ScriptedEngine, ThousandsOfStreamsShareOneThread) {
  Mailbox mail;
  const auto engine = Replay({{.match = "", .text = "abcdefghij", .delay_ms = 10}});
  const auto start = Clock::now();
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(engine->Submit(Ask(""), mail.Sink(i)).ok());
  for (int i = 0; i < 3000; ++i) {
    mail.WaitForEnd(i);
    ASSERT_EQ(mail.tokens(i).size(), 11U);
  }
  EXPECT_LT(Clock::now() - start, 10s);
}

}  // namespace
}  // namespace fulgur::engine
