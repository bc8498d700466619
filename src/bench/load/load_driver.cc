#include "bench/load/load_driver.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "bench/load/clock.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kWatchNs = 20 * kNsPerMs;
constexpr int64_t kRetryNs = 1 * kNsPerMs;
constexpr int64_t kStallNs = 60'000 * kNsPerMs;
constexpr int64_t kFewestForLimit = 20;

int64_t RandomSeed() {
  std::random_device device;
  return static_cast<int64_t>(device());
}

}  // namespace

struct LoadDriver::Conversation {
  int64_t id = 0;
  PlannedSession session;
  std::optional<int64_t> user;
  size_t turn = 0;
  std::string correlation_id;
  std::vector<ChatMessage> history;  // only of conversations with several turns
  int64_t history_tokens = 0;        // of answers
  std::unique_ptr<Exchange> exchange;
  std::optional<CallId> call;  // the request under way
  bool prefilling = false;
  int64_t scheduled_ns = 0;
};

LoadDriver::LoadDriver(HttpClient& client, SessionQueue& sessions, LoadSpec spec,
                       Transport transport, LoadHooks hooks, LiveCounts& live)
    : client_(client),
      sessions_(sessions),
      spec_(std::move(spec)),
      transport_(std::move(transport)),
      hooks_(std::move(hooks)),
      live_(live),
      lag_(client),
      ids_(RandomSeed(), "ids"),
      cancels_(spec_.seed, "cancel") {}

LoadDriver::~LoadDriver() = default;

// Timers may still be set when a cell ends.
void LoadDriver::At(int64_t time_ns, std::function<void()> task) {
  client_.RunAt(time_ns, [alive = std::weak_ptr<bool>(alive_), task = std::move(task)] {
    if (!alive.expired()) task();
  });
}

void LoadDriver::Post(std::function<void()> task) {
  client_.Post([alive = std::weak_ptr<bool>(alive_), task = std::move(task)] {
    if (!alive.expired()) task();
  });
}

LoadOutcome LoadDriver::Run() {
  Post([this] { Begin(); });
  client_.Run();
  return outcome_;
}

// ---- Phases
// --------------------------------------------------------------------------------------

void LoadDriver::Begin() {
  const int64_t now = MonotonicNs();
  last_event_ns_ = now;
  warmup_left_ = spec_.warmup_requests;
  Watch();
  if (warmup_left_ == 0) return BeginProfiling();
  outcome_.warmup_wall_start_ns = WallNs();
  const bool closed = spec_.mode == LoadMode::kClosed;
  const int64_t slots = closed ? spec_.concurrency : spec_.warmup_concurrency;
  for (int64_t i = 0; i < slots; ++i) SlotFree(now);
}

void LoadDriver::BeginProfiling() {
  const int64_t now = MonotonicNs();
  if (outcome_.warmup_wall_start_ns != 0) outcome_.warmup_wall_end_ns = WallNs();
  outcome_.began = true;
  outcome_.window.start_ns = now;
  outcome_.wall_start_ns = WallNs();
  live_.profiling_start_ns = now;
  lag_.Start();
  switch (spec_.mode) {
    case LoadMode::kClosed:
      return BeginClosedLoop(now);
    case LoadMode::kOpen:
      return ScheduleArrivals();
    case LoadMode::kSchedule:
      return ScheduleNextOfTrace();
    case LoadMode::kBurst:
      return BeginBurst(now);
    case LoadMode::kUserCentric:
      return BeginUsers(now);
  }
}

// Slots that the warm-up left go on by themselves; without a warm-up they start here.
void LoadDriver::BeginClosedLoop(int64_t now) {
  const int64_t slots =
      spec_.warmup_requests > 0 ? std::exchange(waiting_slots_, 0) : spec_.concurrency;
  for (int64_t i = 0; i < slots; ++i) {
    if (spec_.ramp_ns == 0) {
      SlotFree(now);
      continue;
    }
    const int64_t at = now + spec_.ramp_ns * i / slots;
    ++delayed_;
    At(at, [this, at] {
      --delayed_;
      SlotFree(at);
    });
  }
}

void LoadDriver::ScheduleArrivals() {
  const int64_t start = outcome_.window.start_ns;
  const int64_t now = MonotonicNs();
  while (!stopping_ && next_arrival_ < spec_.arrivals.size() &&
         start + spec_.arrivals[next_arrival_] <= now) {
    AddPending(
        {.scheduled_ns = start + spec_.arrivals[next_arrival_++], .session = {}, .user = {}});
  }
  if (stopping_ || closing_ || next_arrival_ == spec_.arrivals.size()) return CheckDone();
  At(start + spec_.arrivals[next_arrival_], [this] { ScheduleArrivals(); });
}

void LoadDriver::ScheduleNextOfTrace() {
  if (stopping_ || closing_) return CheckDone();
  std::optional<PlannedSession> session = sessions_.TryTake();
  if (!session) {
    exhausted_ = sessions_.AtEnd();
    if (exhausted_) return CheckDone();
    ++outcome_.starved;
    return At(MonotonicNs() + kRetryNs, [this] { ScheduleNextOfTrace(); });
  }
  const int64_t at = outcome_.window.start_ns + session->at_ns.value_or(0);
  ++delayed_;
  At(at, [this, at, shared = std::make_shared<PlannedSession>(std::move(*session))] {
    --delayed_;
    AddPending({.scheduled_ns = at, .session = std::move(*shared), .user = {}});
    ScheduleNextOfTrace();
  });
}

void LoadDriver::BeginBurst(int64_t now) {
  for (int64_t i = 0; i < spec_.concurrency; ++i) {
    AddPending({.scheduled_ns = now, .session = {}, .user = {}});
  }
}

void LoadDriver::BeginUsers(int64_t now) {
  for (int64_t user = 0; user < spec_.concurrency; ++user) {
    const int64_t at =
        now + static_cast<int64_t>(static_cast<double>(user) / spec_.user_rate * 1e9);
    ++delayed_;
    At(at, [this, at, user] {
      --delayed_;
      AddPending({.scheduled_ns = at, .session = {}, .user = user});
    });
  }
}

void LoadDriver::Watch() {
  if (done_) return;
  const int64_t now = MonotonicNs();
  if (hooks_.interrupted && hooks_.interrupted() && !outcome_.interrupted) {
    outcome_.interrupted = true;
    Stop("interrupted");
  }
  const int64_t elapsed = outcome_.began ? now - outcome_.window.start_ns : 0;
  if (spec_.duration_ns && outcome_.began && elapsed >= *spec_.duration_ns) {
    if (!std::exchange(closing_, true)) {
      pending_.clear();
      CheckDone();
    }
    if (elapsed >= *spec_.duration_ns + spec_.grace_ns && !stopping_) Stop("");
  }
  if (!conversations_.empty() && now - last_event_ns_ > kStallNs && !warned_of_stall_) {
    warned_of_stall_ = true;
    hooks_.warn(fmt::format("no byte of any answer for {} s, {} requests wait; the server may hang",
                            kStallNs / 1'000'000'000, live_.in_flight.load()));
  }
  if (!done_) At(now + kWatchNs, [this] { Watch(); });
}

void LoadDriver::Stop(std::string reason) {
  stopping_ = true;
  if (outcome_.stopped_because.empty()) outcome_.stopped_because = std::move(reason);
  pending_.clear();
  std::vector<CallId> calls;
  std::vector<int64_t> thinking;
  for (const auto& [id, conversation] : conversations_) {
    if (conversation->call)
      calls.push_back(*conversation->call);
    else
      thinking.push_back(id);
  }
  for (const CallId call : calls) client_.Cancel(call);
  for (const int64_t id : thinking) conversations_.erase(id);
  CheckDone();
}

void LoadDriver::CheckDone() {
  if (done_ || !conversations_.empty() || !pending_.empty()) return;
  if (!stopping_) {
    const bool all_arrived =
        spec_.mode == LoadMode::kOpen && next_arrival_ == spec_.arrivals.size();
    const bool all_sent = delayed_ == 0 && (exhausted_ || all_arrived);
    if (in_warmup() || (!all_sent && !closing_)) return;
  }
  done_ = true;
  lag_.Stop();
  if (outcome_.window.end_ns == 0) outcome_.window.end_ns = MonotonicNs();
  outcome_.wall_end_ns =
      outcome_.wall_start_ns + (outcome_.window.end_ns - outcome_.window.start_ns);
  client_.Stop();
}

// ---- Sending
// -------------------------------------------------------------------------------------

// A user of a closed loop, or of the warm-up, is ready for its next request.
void LoadDriver::SlotFree(int64_t now) {
  if (stopping_) return CheckDone();
  if (warmup_left_ > 0) {
    --warmup_left_;
    return AddPending({.scheduled_ns = now, .session = {}, .user = {}});
  }
  if (in_warmup()) {
    // Too few warm-up requests for all slots: then nothing overlaps.
    const bool wait = spec_.drain_after_warmup || spec_.mode != LoadMode::kClosed ||
                      spec_.warmup_requests < spec_.concurrency;
    ++waiting_slots_;
    if (!wait || (conversations_.empty() && pending_.empty())) BeginProfiling();
    return;
  }
  int64_t at = now;
  if (spec_.stagger && warmup_done_ > 0 && staggered_ < spec_.concurrency) {
    const int64_t latency = warmup_latency_ns_ / warmup_done_;
    at = std::max(now, outcome_.window.start_ns + latency * staggered_++ / spec_.concurrency);
  }
  if (at <= now) return AddPending({.scheduled_ns = now, .session = {}, .user = {}});
  ++delayed_;
  At(at, [this, at] {
    --delayed_;
    AddPending({.scheduled_ns = at, .session = {}, .user = {}});
  });
}

void LoadDriver::AddPending(Pending pending) {
  if (stopping_ || closing_) return CheckDone();
  const int64_t scheduled = pending.scheduled_ns;
  pending_.push_back(std::move(pending));
  const size_t waiting = pending_.size();
  Pump();
  // Only a send that nothing but this program held back tells about this program.
  if (waiting == 1 && pending_.empty() && outcome_.began && !exhausted_) {
    lag_.AddSend(std::max<int64_t>(0, MonotonicNs() - scheduled));
  }
}

void LoadDriver::Pump() {
  while (!pending_.empty()) {
    const auto running = static_cast<int64_t>(conversations_.size());
    if (spec_.concurrency > 0 && running >= spec_.concurrency && !in_warmup()) return;
    if (spec_.prefill_concurrency > 0 && prefilling_ >= spec_.prefill_concurrency) return;
    if (!TakeSession(pending_.front())) return;
    Pending pending = std::move(pending_.front());
    pending_.pop_front();
    StartConversation(std::move(pending));
  }
}

// False: there is no session, yet or ever.
bool LoadDriver::TakeSession(Pending& pending) {
  if (pending.session) return true;
  if (!exhausted_) pending.session = sessions_.TryTake();
  if (pending.session) return true;
  exhausted_ = exhausted_ || sessions_.AtEnd();
  if (exhausted_) {
    pending_.clear();
    CheckDone();
    return false;
  }
  ++outcome_.starved;
  if (!std::exchange(retry_planned_, true)) {
    At(MonotonicNs() + kRetryNs, [this] {
      retry_planned_ = false;
      Pump();
    });
  }
  return false;
}

void LoadDriver::StartConversation(Pending pending) {
  auto conversation = std::make_unique<Conversation>();
  conversation->id = next_id_++;
  conversation->session = std::move(*pending.session);
  conversation->user = pending.user;
  conversation->correlation_id = NewId();
  Conversation& started = *conversation;
  conversations_.emplace(started.id, std::move(conversation));
  StartTurn(started, pending.scheduled_ns);
}

void LoadDriver::StartTurn(Conversation& conversation, int64_t scheduled_ns) {
  PlannedTurn& turn = conversation.session.turns[conversation.turn];
  if (conversation.session.turns.size() > 1) {
    conversation.history.insert(conversation.history.end(), turn.messages.begin(),
                                turn.messages.end());
  }
  if (turn.body.empty()) {
    turn.body = MakeBody(transport_.shape, conversation.history, turn.output_tokens);
  }
  RequestRecord record;
  record.session = conversation.session.index;
  record.turn = static_cast<int32_t>(conversation.turn);
  record.warmup = conversation.session.warmup;
  record.request_id = NewId();
  record.conversation_id = conversation.session.id;
  record.scheduled_ns = scheduled_ns;
  if (!conversation.session.input_is_estimated && turn.input_tokens > 0) {
    record.input_tokens = turn.input_tokens + conversation.history_tokens;
  }
  record.requested_output_tokens = turn.output_tokens;
  HttpCall call = MakeCall(conversation);
  call.headers.emplace_back("X-Request-ID", record.request_id);
  call.body = std::move(turn.body);
  conversation.scheduled_ns = scheduled_ns;
  conversation.prefilling = true;
  ++prefilling_;
  ++live_.in_flight;
  const int64_t id = conversation.id;
  conversation.exchange = std::make_unique<Exchange>(
      std::move(record), transport_.shape.streaming, reader_,
      Exchange::Callbacks{
          .on_first_output =
              [this, id](int64_t) {
                Conversation& self = *conversations_.at(id);
                if (!std::exchange(self.prefilling, false)) return;
                --prefilling_;
                if (spec_.prefill_concurrency > 0) Post([this] { Pump(); });
              },
          .on_output =
              [this](int64_t tokens) {
                last_event_ns_ = MonotonicNs();
                if (!in_warmup()) live_.output_tokens += tokens;
              },
          .on_end = [this, id](FinishedRequest done) { OnRequestEnd(id, std::move(done)); }});
  conversation.call = client_.Start(std::move(call), conversation.exchange.get());
  PlanCancellation(id);
}

HttpCall LoadDriver::MakeCall(const Conversation& conversation) const {
  HttpCall call;
  call.target = static_cast<size_t>(conversation.session.index) % transport_.num_targets;
  call.path = transport_.paths[call.target];
  call.headers = transport_.headers;
  call.headers.emplace_back("X-Correlation-ID", conversation.correlation_id);
  if (!transport_.session_header.empty()) {
    call.headers.emplace_back(transport_.session_header, conversation.correlation_id);
  }
  call.conversation = conversation.correlation_id;
  call.timeout_ns = spec_.timeout_ns;
  return call;
}

void LoadDriver::PlanCancellation(int64_t conversation_id) {
  if (spec_.cancellation_percent <= 0.0 || in_warmup()) return;
  if (cancels_.Uniform() * 100.0 >= spec_.cancellation_percent) return;
  const CallId call = *conversations_.at(conversation_id)->call;
  At(MonotonicNs() + spec_.cancellation_delay_ns, [this, call] { client_.Cancel(call); });
}

// ---- Ends
// ----------------------------------------------------------------------------------------

void LoadDriver::OnRequestEnd(int64_t id, FinishedRequest finished) {
  Conversation& conversation = *conversations_.at(id);
  conversation.call.reset();
  if (std::exchange(conversation.prefilling, false)) --prefilling_;
  // The exchange calls this: it must live until it has returned.
  client_.Post([exchange = std::shared_ptr<Exchange>(std::move(conversation.exchange))] {});
  last_event_ns_ = MonotonicNs();
  // What the end of the run cuts off did not fail.
  if (stopping_ && finished.record.cancelled) finished.record.error.reset();
  Account(finished);
  const bool goes_on = ContinueConversation(conversation, finished);
  hooks_.on_request(std::move(finished));
  if (!goes_on) EndConversation(id);
}

void LoadDriver::Account(FinishedRequest& finished) {
  const RequestRecord& record = finished.record;
  --live_.in_flight;
  if (record.warmup) {
    ++warmup_done_;
    warmup_latency_ns_ += record.end_ns - record.start_ns;
    return;
  }
  outcome_.window.end_ns = std::max(outcome_.window.end_ns, record.end_ns);
  ++finished_;
  ++live_.done;
  if (!record.error) return;
  ++failed_;
  ++live_.failed;
  if (!spec_.failure_limit || stopping_ || finished_ < kFewestForLimit) return;
  if (static_cast<double>(failed_) > *spec_.failure_limit * static_cast<double>(finished_)) {
    Post([this] {
      if (stopping_) return;
      Stop(fmt::format("{} of {} requests failed, more than the limit of {:.0f} %", failed_,
                       finished_, *spec_.failure_limit * 100.0));
    });
  }
}

bool LoadDriver::ContinueConversation(Conversation& conversation, const FinishedRequest& finished) {
  ++conversation.turn;
  if (stopping_ || finished.record.error || finished.record.cancelled) return false;
  if (conversation.turn >= conversation.session.turns.size()) return false;
  // Reasoning is left out: the model's template drops it from earlier turns.
  conversation.history.push_back({"assistant", finished.text});
  conversation.history_tokens += finished.record.usage.completion_tokens.value_or(0);
  const int64_t id = conversation.id;
  const int64_t at = MonotonicNs() + conversation.session.turns[conversation.turn].delay_ns;
  At(at, [this, id, at] {
    const auto found = conversations_.find(id);
    if (found != conversations_.end()) StartTurn(*found->second, at);
  });
  return true;
}

void LoadDriver::EndConversation(int64_t id) {
  const auto found = conversations_.find(id);
  const std::unique_ptr<Conversation> ended = std::move(found->second);
  conversations_.erase(found);
  const int64_t now = MonotonicNs();
  if (stopping_) return CheckDone();
  if (in_warmup() || (spec_.mode == LoadMode::kClosed)) {
    SlotFree(now);
  } else if (spec_.mode == LoadMode::kUserCentric) {
    const auto period =
        static_cast<int64_t>(static_cast<double>(spec_.concurrency) / spec_.user_rate * 1e9);
    const int64_t next = ended->scheduled_ns + period;
    if (!exhausted_) {
      ++delayed_;
      At(std::max(now, next), [this, next, user = ended->user] {
        --delayed_;
        AddPending({.scheduled_ns = next, .session = {}, .user = user});
      });
    }
  } else if (spec_.mode == LoadMode::kBurst && conversations_.empty() && pending_.empty() &&
             !exhausted_) {
    BeginBurst(now);
  }
  Pump();
  CheckDone();
}

// A random UUID (RFC 9562, version 4).
std::string LoadDriver::NewId() {
  const uint64_t high = (ids_.Next() & ~0xf000ULL) | 0x4000ULL;
  const uint64_t low = (ids_.Next() & ~(0xc0ULL << 56)) | (0x80ULL << 56);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffffULL);
}

}  // namespace fulgur::bench
