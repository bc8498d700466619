#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "sample/noise.h"
#include "sample/order.h"

namespace fulgur::sample {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

bool EndsWith(std::span<const int32_t> tokens, std::span<const int32_t> suffix) {
  return suffix.size() <= tokens.size() &&
         std::equal(suffix.begin(), suffix.end(), tokens.end() - static_cast<long>(suffix.size()));
}

// Keeps the token with the largest score + noise.
class Race {
 public:
  explicit Race(const PositionNoise& noise) : noise_(noise) {}

  void Enter(int32_t token, float score) { Enter(token, score, noise_.Gumbel(token)); }

  // The same with the token's random bits at hand; the logarithms are only taken if it may win.
  void EnterBits(int32_t token, float score, uint32_t bits) {
    if (score + PositionNoise::GumbelBound(bits) < best_) return;
    Enter(token, score, PositionNoise::GumbelFromBits(bits));
  }

  bool CanWin(float score) const { return score + kMaxGumbel >= best_; }
  int32_t winner() const { return winner_; }

 private:
  void Enter(int32_t token, float score, double gumbel) {
    const double value = score + gumbel;
    if (value < best_ || (value == best_ && token > winner_)) return;
    best_ = value;
    winner_ = token;
  }

  const PositionNoise& noise_;
  double best_ = -std::numeric_limits<double>::infinity();
  int32_t winner_ = std::numeric_limits<int32_t>::max();
};

// All tokens with a score of at least `floor` take part. `favourite`, the best of them, enters
// first: few others can then still win.
int32_t RaceAll(std::span<const float> scores, float floor, int32_t favourite,
                const PositionNoise& noise) {
  Race race(noise);
  race.Enter(favourite, scores[static_cast<size_t>(favourite)]);
  for (size_t first = 0; first < scores.size(); first += 4) {
    const auto block = scores.subspan(first, std::min<size_t>(4, scores.size() - first));
    const float best = *std::max_element(block.begin(), block.end());
    if (best < floor || best == kMasked || !race.CanWin(best)) continue;
    const auto bits = noise.Block(static_cast<uint32_t>(first / 4));
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] < floor || block[i] == kMasked) continue;
      race.EnterBits(static_cast<int32_t>(first + i), block[i], bits[i]);
    }
  }
  return race.winner();
}

int32_t RaceAmong(std::span<const float> scores, std::span<const int32_t> tokens,
                  const PositionNoise& noise) {
  Race race(noise);
  for (const int32_t token : tokens) race.Enter(token, scores[static_cast<size_t>(token)]);
  return race.winner();
}

}  // namespace

Sampler::Sampler(int64_t vocab_size)
    : scores_(static_cast<size_t>(vocab_size)), counts_(static_cast<size_t>(vocab_size), 0) {}

absl::StatusOr<int32_t> Sampler::Sample(std::span<const float> logits,
                                        const TokenContext& context) {
  if (HasNonFinite(logits)) {
    return absl::InternalError("the model computed a logit that is not a finite number");
  }
  Process(logits, context);
  const int32_t best = ArgMax(scores_);
  if (scores_[static_cast<size_t>(best)] == kMasked) {
    return absl::InvalidArgumentError(
        "allowed_token_ids, bad_words and min_tokens together leave no token to choose");
  }
  const SamplingParams& params = context.params;
  if (params.temperature < kGreedyTemperature) return best;

  for (float& score : scores_) score /= params.temperature;
  const PositionNoise noise(context.seed, context.position());
  float floor = kMasked;
  if (Truncate(params, floor)) return RaceAmong(scores_, kept_, noise);
  return RaceAll(scores_, floor, best, noise);
}

void Sampler::Process(std::span<const float> logits, const TokenContext& context) {
  const SamplingParams& params = context.params;
  if (params.allowed_token_ids.empty()) {
    std::copy(logits.begin(), logits.end(), scores_.begin());
  } else {
    MaskAllBut(logits, params.allowed_token_ids);
  }
  MaskBadWords(context);
  MaskStops(context);
  for (const auto& [token, bias] : params.logit_bias) scores_[static_cast<size_t>(token)] += bias;
  Penalize(context);
}

void Sampler::MaskAllBut(std::span<const float> logits, std::span<const int32_t> allowed) {
  std::fill(scores_.begin(), scores_.end(), kMasked);
  for (const int32_t token : allowed) {
    scores_[static_cast<size_t>(token)] = logits[static_cast<size_t>(token)];
  }
}

void Sampler::MaskBadWords(const TokenContext& context) {
  for (const std::vector<int32_t>& word : context.params.bad_words) {
    if (word.empty()) continue;
    if (EndsWith(context.output, std::span(word).first(word.size() - 1))) {
      scores_[static_cast<size_t>(word.back())] = kMasked;
    }
  }
}

void Sampler::MaskStops(const TokenContext& context) {
  if (static_cast<int64_t>(context.output.size()) >= context.params.min_tokens) return;
  const auto mask = [this](int32_t token) { scores_[static_cast<size_t>(token)] = kMasked; };
  std::for_each(context.eos_tokens.begin(), context.eos_tokens.end(), mask);
  const auto& stops = context.params.stop_token_ids;
  std::for_each(stops.begin(), stops.end(), mask);
}

void Sampler::Penalize(const TokenContext& context) {
  const SamplingParams& params = context.params;
  const float repetition = params.repetition_penalty;
  const bool counted = params.frequency_penalty != 0.0F || params.presence_penalty != 0.0F;
  if (repetition == 1.0F && !counted) return;

  // counts_ marks the tokens already dealt with, so that each is penalised once.
  const auto repeat = [&](int32_t token) {
    int32_t& seen = counts_[static_cast<size_t>(token)];
    if (seen++ != 0 || repetition == 1.0F) return;
    float& score = scores_[static_cast<size_t>(token)];
    score = score > 0.0F ? score / repetition : score * repetition;
  };
  const auto clear = [&](int32_t token) { counts_[static_cast<size_t>(token)] = 0; };
  std::for_each(context.prompt.begin(), context.prompt.end(), repeat);
  std::for_each(context.output.begin(), context.output.end(), repeat);
  std::for_each(context.prompt.begin(), context.prompt.end(), clear);
  std::for_each(context.output.begin(), context.output.end(), clear);
  if (!counted) return;

  for (const int32_t token : context.output) ++counts_[static_cast<size_t>(token)];
  for (const int32_t token : context.output) {
    int32_t& count = counts_[static_cast<size_t>(token)];
    if (count == 0) continue;
    float& score = scores_[static_cast<size_t>(token)];
    score -= params.frequency_penalty * static_cast<float>(count);
    score -= params.presence_penalty;
    count = 0;
  }
}

bool Sampler::Truncate(const SamplingParams& params, float& floor) {
  const bool top_k = params.top_k > 0 && static_cast<size_t>(params.top_k) < scores_.size();
  if (params.min_p > 0.0F) {
    floor = scores_[static_cast<size_t>(ArgMax(scores_))] + std::log(params.min_p);
  }
  if (top_k) {
    TopIndices(scores_, params.top_k, kept_);
    // Masked tokens come last in the order.
    while (scores_[static_cast<size_t>(kept_.back())] < floor ||
           scores_[static_cast<size_t>(kept_.back())] == kMasked) {
      kept_.pop_back();
    }
  }
  if (params.top_p < 1.0F) KeepTopP(params.top_p, floor, top_k);
  return top_k || params.top_p < 1.0F;
}

void Sampler::KeepTopP(float top_p, float floor, bool listed) {
  const float max = scores_[static_cast<size_t>(ArgMax(scores_))];
  const auto weight = [&](int32_t token) {
    return static_cast<double>(std::exp(scores_[static_cast<size_t>(token)] - max));
  };
  double total = 0.0;
  if (listed) {
    for (const int32_t token : kept_) total += weight(token);
  } else {
    for (const float score : scores_) total += score >= floor ? std::exp(score - max) : 0.0F;
  }
  // A token stays while those before it have less than top_p. Few do as a rule, so the order is
  // only worked out as far as needed.
  const double wanted = top_p * total;
  for (int64_t count = 64;; count *= 8) {
    if (!listed) TopIndices(scores_, count, kept_);
    double mass = 0.0;
    size_t kept = 0;
    while (kept < kept_.size() && mass < wanted &&
           scores_[static_cast<size_t>(kept_[kept])] >= floor) {
      mass += weight(kept_[kept++]);
    }
    const bool all_seen = listed || kept_.size() == scores_.size();
    if (kept < kept_.size() || all_seen) {
      kept_.resize(std::max<size_t>(kept, 1));
      return;
    }
  }
}

}  // namespace fulgur::sample
