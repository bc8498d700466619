#include "bench/load/workload.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int kMaxUniqueTries = 16;
constexpr size_t kOpeningBytes = 80;  // about sixteen words
constexpr int64_t kUniqueFrom = 4;    // tokens; shorter prompts may repeat

int64_t Tokens(std::optional<int64_t> value) { return value.value_or(0); }

std::vector<size_t> Shuffled(size_t count, RandomStream& random) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

}  // namespace

Workload::Workload(WorkloadSpec spec, RequestShape shape, PromptText text)
    : spec_(std::move(spec)),
      shape_(std::move(shape)),
      text_(std::move(text)),
      profiling_{{spec_.seed, "lengths"}, {spec_.seed, "prompts"}, {spec_.seed, "delays"}},
      warmup_{{spec_.seed, "warmup-lengths"},
              {spec_.seed, "warmup-prompts"},
              {spec_.seed, "warmup-delays"}},
      order_(spec_.seed, "order") {
  size_t entries = 0;
  if (spec_.dataset)
    entries = std::max(spec_.dataset->sessions.size(), spec_.dataset->trace.size());
  if (spec_.pool) entries = static_cast<size_t>(*spec_.pool);
  if (spec_.order == PoolOrder::kShuffle) shuffled_ = Shuffled(entries, order_);
}

std::optional<int64_t> Workload::size() const {
  if (!spec_.dataset) return std::nullopt;
  return static_cast<int64_t>(
      std::max(spec_.dataset->sessions.size(), spec_.dataset->trace.size()));
}

size_t Workload::DatasetPosition(int64_t index) const {
  const size_t count = std::max(spec_.dataset->sessions.size(), spec_.dataset->trace.size());
  const size_t position = static_cast<size_t>(index) % count;
  return shuffled_.empty() ? position : shuffled_[position];
}

PlannedSession Workload::Make(int64_t index, bool warmup) {
  Streams& streams = warmup ? warmup_ : profiling_;
  PlannedSession session;
  if (spec_.dataset) {
    session = MakeFromDataset(index, warmup);
  } else if (spec_.pool && !warmup) {
    session = FromPool(index, streams);
  } else {
    session = MakeSynthetic(streams);
  }
  session.index = index;
  session.warmup = warmup;
  if (!warmup) {
    input_tokens_ += session.turns.back().input_tokens;
    shared_tokens_ += spec_.prefix.shared_system + (session.group ? spec_.prefix.length : 0);
  }
  session.id = fmt::format("{}{:06}", warmup ? "warmup_" : "session_", index);
  Complete(session);
  return session;
}

PlannedSession Workload::FromPool(int64_t index, Streams& streams) {
  const auto count = static_cast<size_t>(*spec_.pool);
  while (pool_.size() < count) pool_.push_back(MakeSynthetic(streams));
  const auto position = static_cast<size_t>(index) % count;
  switch (spec_.order) {
    case PoolOrder::kSequential:
      return pool_[position];
    case PoolOrder::kShuffle:
      return pool_[shuffled_[position]];
    case PoolOrder::kRandom:
      return pool_[order_.Below(count)];
  }
  return pool_[position];
}

// Two prompts that begin alike could meet in the server's prefix cache.
std::string Workload::UniqueText(int64_t tokens, RandomStream& random, int64_t& made) {
  SizedText sized;
  for (int i = 0; i < kMaxUniqueTries; ++i) {
    sized = text_.Make(tokens, random);
    const uint64_t opening = std::hash<std::string>()(sized.text.substr(0, kOpeningBytes));
    if (openings_.insert(opening).second || tokens < kUniqueFrom) break;
  }
  made = sized.tokens;
  if (text_.has_tokenizer() && !sized.exact) ++inexact_;
  return std::move(sized.text);
}

const std::string& Workload::SharedText(const std::string& name, int64_t tokens) {
  for (const auto& [key, text] : shared_texts_) {
    if (key == name) return text;
  }
  RandomStream random(spec_.seed, "shared/" + name);
  shared_texts_.emplace_back(name, text_.MakeBlock(tokens, random).text);
  return shared_texts_.back().second;
}

PlannedSession Workload::MakeSynthetic(Streams& streams) {
  PlannedSession session;
  session.input_is_estimated = !text_.has_tokenizer();
  const int64_t turns = DrawLength(spec_.turns.turns, streams.lengths);
  int64_t known = spec_.prefix.shared_system + spec_.prefix.user_context;
  for (int64_t t = 0; t < turns; ++t) {
    const struct DrawnLengths lengths = DrawLengths(spec_.lengths, streams.lengths);
    PlannedTurn turn;
    if (t == 0 && spec_.prefix.shared_system > 0) {
      turn.messages.push_back({"system", SharedText("system", spec_.prefix.shared_system)});
    }
    std::string prefix;
    int64_t prefix_tokens = 0;
    if (t == 0 && spec_.prefix.groups > 0) {
      session.group =
          static_cast<int64_t>(streams.prompts.Below(static_cast<uint64_t>(spec_.prefix.groups)));
      prefix = SharedText(fmt::format("group{}", *session.group), spec_.prefix.length);
      prefix_tokens = spec_.prefix.length;
    }
    if (t == 0 && spec_.prefix.user_context > 0) {
      int64_t made = 0;
      prefix += UniqueText(spec_.prefix.user_context, streams.prompts, made);
    }
    const int64_t own =
        std::max<int64_t>(1, lengths.input - (t == 0 ? spec_.template_overhead : 0));
    int64_t made = 0;
    const std::string text = UniqueText(own, streams.prompts, made);
    turn.messages.push_back({"user", prefix + text});
    known += prefix_tokens + made;
    turn.input_tokens = known;
    if (lengths.output > 0) turn.output_tokens = lengths.output;
    if (t > 0 && spec_.turns.delay_ms.mean > 0) {
      const double ms = std::max(
          0.0, spec_.turns.delay_ms.mean + spec_.turns.delay_ms.stddev * streams.delays.Normal());
      turn.delay_ns =
          static_cast<int64_t>(ms * spec_.turns.delay_ratio * static_cast<double>(kNsPerMs));
    }
    session.turns.push_back(std::move(turn));
  }
  return session;
}

PlannedSession Workload::MakeFromDataset(int64_t index, bool warmup) {
  const size_t position = DatasetPosition(index);
  if (!spec_.dataset->trace.empty()) {
    PlannedSession session = MakeFromTrace(spec_.dataset->trace[position]);
    if (warmup) session.at_ns.reset();
    return session;
  }
  PlannedSession session = spec_.dataset->sessions[position];
  session.input_is_estimated = !text_.has_tokenizer();
  int64_t known = 0;
  for (PlannedTurn& turn : session.turns) {
    if (!turn.output_tokens) turn.output_tokens = spec_.default_output_tokens;
    // Warm-up must not fill the prefix cache with what is measured later.
    if (warmup) {
      turn.messages.back().content = "(warm-up) " + turn.messages.back().content;
    }
    for (const ChatMessage& message : turn.messages) known += text_.Count(message.content);
    turn.input_tokens = known;
  }
  return session;
}

PlannedSession Workload::MakeFromTrace(const TraceEntry& entry) {
  std::string prompt;
  int64_t left = entry.input_length;
  size_t block = 0;
  while (left > 0) {
    const int64_t tokens = std::min(left, spec_.trace_block_tokens);
    // Blocks without an id are this request's own.
    const std::string name = block < entry.hash_ids.size()
                                 ? fmt::format("block/{}", entry.hash_ids[block])
                                 : fmt::format("own/{}/{}", profiling_.prompts.Next(), block);
    RandomStream random(spec_.seed, name);
    prompt += text_.MakeBlock(tokens, random).text;
    left -= tokens;
    ++block;
  }
  PlannedTurn turn;
  turn.messages.push_back({"user", std::move(prompt)});
  turn.input_tokens = entry.input_length;
  turn.output_tokens = entry.output_length;
  PlannedSession session;
  session.input_is_estimated = !text_.has_tokenizer();
  if (entry.has_timestamp) {
    session.at_ns = static_cast<int64_t>(entry.timestamp_ms * static_cast<double>(kNsPerMs));
  }
  session.turns.push_back(std::move(turn));
  return session;
}

PlannedSession Workload::MakePrefixWarmup(int64_t group) {
  PlannedTurn turn;
  if (spec_.prefix.shared_system > 0) {
    turn.messages.push_back({"system", SharedText("system", spec_.prefix.shared_system)});
  }
  turn.messages.push_back({"user", SharedText(fmt::format("group{}", group), spec_.prefix.length)});
  turn.input_tokens = spec_.prefix.shared_system + spec_.prefix.length;
  turn.output_tokens = 1;
  PlannedSession session;
  session.index = group;
  session.id = fmt::format("prefix_{:06}", group);
  session.warmup = true;
  session.group = group;
  session.input_is_estimated = !text_.has_tokenizer();
  session.turns.push_back(std::move(turn));
  Complete(session);
  return session;
}

std::optional<double> Workload::expected_hits() const {
  if (shared_tokens_ == 0 || input_tokens_ == 0) return std::nullopt;
  return static_cast<double>(shared_tokens_) / static_cast<double>(input_tokens_);
}

// Cuts outputs to the model's limit and makes the bodies that are known before the run.
void Workload::Complete(PlannedSession& session) {
  for (PlannedTurn& turn : session.turns) {
    const int64_t room =
        spec_.max_model_len.value_or(0) - turn.input_tokens - spec_.template_overhead;
    if (spec_.max_model_len && Tokens(turn.output_tokens) > std::max<int64_t>(room, 1)) {
      turn.output_tokens = std::max<int64_t>(room, 1);
      ++clipped_;
    }
  }
  PlannedTurn& first = session.turns.front();
  first.body = MakeBody(shape_, first.messages, first.output_tokens);
  if (session.turns.size() == 1) first.messages.clear();  // the body says it all
}

}  // namespace fulgur::bench
