#include "sample/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "base/status_macros.h"
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

  // Four tokens, of one block of the noise.
  void EnterBlock(std::span<const float> scores, size_t first, const Cut& cut) {
    const auto bits = noise_.Block(static_cast<uint32_t>(first / 4));
    for (size_t i = 0; i < 4 && first + i < scores.size(); ++i) {
      const float score = scores[first + i];
      const auto token = static_cast<int32_t>(first + i);
      // The logarithms are only taken for the few that may win.
      if (score + PositionNoise::GumbelBound(bits[i]) < best_ || !cut.Keeps(score, token)) continue;
      Enter(token, score, PositionNoise::GumbelFromBits(bits[i]));
    }
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

constexpr size_t kPiece = 16;

float MaxOfPiece(const float* values) {
  std::array<float, 4> lanes = {values[0], values[1], values[2], values[3]};
  for (size_t i = 4; i < kPiece; i += 4) {
    for (size_t lane = 0; lane < 4; ++lane) {
      const float value = values[i + lane];
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  }
  return std::max(std::max(lanes[0], lanes[1]), std::max(lanes[2], lanes[3]));
}

// All tokens that the cut keeps take part. `favourite`, the best of them, enters first: then few
// others can win, and most pieces of the row need no noise at all.
int32_t RunRace(std::span<const float> scores, const Cut& cut, int32_t favourite,
                const PositionNoise& noise) {
  Race race(noise);
  race.Enter(favourite, scores[static_cast<size_t>(favourite)]);
  size_t first = 0;
  for (; first + kPiece <= scores.size(); first += kPiece) {
    const float best = MaxOfPiece(&scores[first]);
    if (best < cut.score || !race.CanWin(best)) continue;
    for (size_t i = 0; i < kPiece; i += 4) race.EnterBlock(scores, first + i, cut);
  }
  for (; first < scores.size(); first += 4) race.EnterBlock(scores, first, cut);
  return race.winner();
}

}  // namespace

Sampler::Sampler(int64_t vocab_size)
    : scores_(static_cast<size_t>(vocab_size)), counts_(static_cast<size_t>(vocab_size), 0) {}

absl::StatusOr<int32_t> Sampler::Shape(std::span<const float> logits, const TokenContext& context) {
  if (HasNonFinite(logits)) {
    return absl::InternalError("the model computed a logit that is not a finite number");
  }
  Process(logits, context);
  const int32_t best = ArgMax(scores_);
  if (scores_[static_cast<size_t>(best)] == kMasked) {
    return absl::InvalidArgumentError(
        "the requested format, allowed_token_ids, bad_words and min_tokens together leave no token "
        "to choose");
  }
  if (context.params.greedy()) return best;
  // Relative to the best, so that no temperature overflows.
  const float top = scores_[static_cast<size_t>(best)];
  for (float& score : scores_) score = (score - top) / context.params.temperature;
  return best;
}

absl::StatusOr<int32_t> Sampler::Sample(std::span<const float> logits,
                                        const TokenContext& context) {
  ASSIGN_OR_RETURN(const int32_t best, Shape(logits, context));
  if (context.params.greedy()) return best;
  const Cut cut = Truncate(scores_, context.params, truncation_);
  return RunRace(scores_, cut, best, PositionNoise(context.seed, context.position()));
}

absl::Status Sampler::Distribution(std::span<const float> logits, const TokenContext& context,
                                   std::span<float> probabilities) {
  ASSIGN_OR_RETURN(const int32_t best, Shape(logits, context));
  std::fill(probabilities.begin(), probabilities.end(), 0.0F);
  if (context.params.greedy()) {
    probabilities[static_cast<size_t>(best)] = 1.0F;
    return absl::OkStatus();
  }
  const Cut cut = Truncate(scores_, context.params, truncation_);
  double sum = 0.0;
  for (size_t v = 0; v < scores_.size(); ++v) {
    if (!cut.Keeps(scores_[v], static_cast<int32_t>(v))) continue;
    probabilities[v] = std::exp(scores_[v]);
    sum += probabilities[v];
  }
  const auto scale = static_cast<float>(1.0 / sum);
  for (float& probability : probabilities) probability *= scale;
  return absl::OkStatus();
}

void Sampler::Process(std::span<const float> logits, const TokenContext& context) {
  const SamplingParams& params = context.params;
  if (params.allowed_token_ids.empty()) {
    std::copy(logits.begin(), logits.end(), scores_.begin());
  } else {
    MaskAllBut(logits, params.allowed_token_ids);
  }
  MaskOutsideFormat(context);
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

void Sampler::MaskOutsideFormat(const TokenContext& context) {
  if (!context.allowed) return;
  constexpr size_t kWordBits = AllowedTokens::kWordBits;
  const std::span<const uint64_t> bits = context.allowed->bits;
  const auto ends = [&](size_t token) {
    return context.allowed->end &&
           std::find(context.eos_tokens.begin(), context.eos_tokens.end(),
                     static_cast<int32_t>(token)) != context.eos_tokens.end();
  };
  for (size_t first = 0; first < scores_.size(); first += kWordBits) {
    const size_t word = first / kWordBits;
    const uint64_t allowed = word < bits.size() ? bits[word] : 0;
    if (allowed == std::numeric_limits<uint64_t>::max()) continue;
    const size_t last = std::min(first + kWordBits, scores_.size());
    for (size_t token = first; token < last; ++token) {
      if (((allowed >> (token - first)) & 1) == 0 && !ends(token)) scores_[token] = kMasked;
    }
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

}  // namespace fulgur::sample
