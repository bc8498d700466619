#include "bench/report/findings.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/report/figures.h"
#include "bench/report/finding_texts.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr char kWeightedTag[] = "fulgur_per_user_token_weighted";

struct Spot {
  Place place;
  const Contrast* contrast = nullptr;
};

// Headline contrasts with data, in the order of the tables.
std::vector<Spot> MeasuredSpots(const Facts& facts) {
  std::vector<Spot> spots;
  for (const Place& place : facts.places()) {
    const Contrast* contrast = facts.Find(place);
    if (contrast != nullptr && contrast->speedup) spots.push_back({place, contrast});
  }
  return spots;
}

class Finder {
 public:
  Finder(const Facts& facts, const ReportInput& input, Voice say)
      : facts_(facts), input_(input), say_(say), spots_(MeasuredSpots(facts)) {}

  std::vector<Finding> Find() {
    Extremes();
    Regressions();
    Crossovers();
    ItlRange();
    ArithmeticAgainstWeighted();
    References();
    Confounders();
    Utilisation();
    Errors();
    Invalid();
    SmallSamples();
    NoVariance();
    Cohorts();
    Repetition();
    Accuracy();
    return std::move(findings_);
  }

 private:
  void Add(std::string rule, std::string text, Tone tone = Tone::kPlain) {
    findings_.push_back({std::move(rule), std::move(text), tone});
  }

  std::string Label(const Place& place) const { return facts_.PlaceLabel(place, say_.language()); }

  void Extremes() {
    if (spots_.empty()) return;
    const auto [worst, best] = std::minmax_element(
        spots_.begin(), spots_.end(),
        [](const Spot& a, const Spot& b) { return *a.contrast->speedup < *b.contrast->speedup; });
    Add("best_cell",
        say_(finding::kBestCell, {{"speedup", Times(best->contrast->speedup)},
                                  {"place", Label(best->place)},
                                  {"baseline", Fixed(best->contrast->baseline, 2)},
                                  {"treatment", Fixed(best->contrast->treatment, 2)}}));
    if (spots_.size() > 1) {
      Add("worst_cell", say_(finding::kWorstCell, {{"speedup", Times(worst->contrast->speedup)},
                                                   {"place", Label(worst->place)}}));
    }
  }

  void Regressions() {
    std::vector<std::string> list;
    for (const Spot& spot : spots_) {
      if (spot.contrast->verdict != Verdict::kRegression) continue;
      list.push_back(absl::StrCat(Label(spot.place), " (",
                                  SignedPercent(spot.contrast->delta_percent, 0), ")"));
    }
    if (list.empty()) return;
    Add("regressions",
        say_(finding::kRegressions, {{"count", absl::StrCat(list.size())},
                                     {"all", absl::StrCat(spots_.size())},
                                     {"list", say_.List(list)}}),
        Tone::kBad);
  }

  void Crossovers() {
    for (const ScenarioFacts& scenario : facts_.comparison().scenarios) {
      std::vector<const Spot*> line;
      for (const Spot& spot : spots_) {
        if (spot.place.scenario == &scenario) line.push_back(&spot);
      }
      Crossover(scenario, line);
    }
  }

  // Where a speed-up that falls throughout passes 1: linear over log2 of the concurrency.
  void Crossover(const ScenarioFacts& scenario, const std::vector<const Spot*>& line) {
    for (size_t i = 1; i < line.size(); ++i) {
      if (*line[i]->contrast->speedup >= *line[i - 1]->contrast->speedup) return;
    }
    for (size_t i = 1; i < line.size(); ++i) {
      const double before = *line[i - 1]->contrast->speedup;
      const double after = *line[i]->contrast->speedup;
      const bool limited = line[i - 1]->place.concurrency != kUnlimited;
      if (before < 1.0 || after >= 1.0 || !limited) continue;
      const auto low = static_cast<double>(line[i - 1]->place.concurrency);
      const auto high = static_cast<double>(line[i]->place.concurrency);
      const double part = (before - 1.0) / (before - after);
      const double crossing = std::exp2(std::log2(low) + part * std::log2(high / low));
      Add("crossover",
          say_(finding::kCrossover, {{"scenario", facts_.ScenarioLabel(scenario, say_.language())},
                                     {"concurrency", Fixed(crossing, 1)},
                                     {"low", Fixed(low, 0)},
                                     {"high", Fixed(high, 0)}}));
    }
  }

  void ItlRange() {
    std::vector<double> changes;
    for (const Place& place : facts_.places()) {
      const auto before = facts_.Value(facts_.baseline(), place, "inter_token_latency");
      const auto after = facts_.Value(facts_.treatment(), place, "inter_token_latency");
      if (before && after && *before > 0) changes.push_back((*after - *before) / *before * 100);
    }
    if (changes.size() < 2) return;
    const auto [low, high] = std::minmax_element(changes.begin(), changes.end());
    Add("itl_range", say_(finding::kItlRange, {{"low", SignedPercent(*low, 0)},
                                               {"high", SignedPercent(*high, 0)},
                                               {"count", absl::StrCat(changes.size())}}));
  }

  // The place where the two means of the speed differ most, if by more than 3 %.
  void ArithmeticAgainstWeighted() {
    constexpr double kNoticed = 0.03;
    double largest = kNoticed;
    std::string text;
    for (const Spot& spot : spots_) {
      const auto before = facts_.Value(facts_.baseline(), spot.place, kWeightedTag);
      const auto after = facts_.Value(facts_.treatment(), spot.place, kWeightedTag);
      if (!before || !after || *before <= 0) continue;
      const double weighted = *after / *before;
      const double excess = *spot.contrast->speedup / weighted - 1;
      if (excess <= largest) continue;
      largest = excess;
      text = say_(finding::kWeighted, {{"place", Label(spot.place)},
                                       {"arithmetic", Times(spot.contrast->speedup)},
                                       {"weighted", Times(weighted)}});
    }
    if (!text.empty()) Add("arith_vs_weighted", text, Tone::kWarning);
  }

  void References() {
    for (const SystemFacts* reference : facts_.references()) {
      std::vector<double> ratios;
      for (const Place& place : facts_.places()) {
        const auto value = facts_.Value(facts_.treatment(), place, kHeadlineTag);
        const auto base = facts_.Value(reference, place, kHeadlineTag);
        if (value && base && *base > 0) ratios.push_back(*value / *base);
      }
      if (ratios.empty()) continue;
      const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
      Add("reference_range",
          say_(finding::kReferenceRange, {{"treatment", facts_.treatment()->label},
                                          {"low", Fixed(*low, 2)},
                                          {"high", Fixed(*high, 2)},
                                          {"system", reference->label},
                                          {"count", absl::StrCat(ratios.size())}}));
    }
  }

  void Confounders() {
    const auto names = ConfounderNames(facts_.comparison());
    if (names.empty()) return;
    Add("confounders", say_(finding::kConfounders, {{"list", say_.List(names)}}), Tone::kWarning);
  }

  void Utilisation() {
    const SystemFacts* before = facts_.baseline();
    const SystemFacts* after = facts_.treatment();
    if (before == nullptr || after == nullptr || !before->utilisation || !after->utilisation) {
      return;
    }
    if (before->utilisation->busy_avg && after->utilisation->busy_avg) {
      Add("util_change",
          say_(finding::kUtilisation, {{"baseline", before->label},
                                       {"treatment", after->label},
                                       {"before", Fixed(before->utilisation->busy_avg, 1)},
                                       {"after", Fixed(after->utilisation->busy_avg, 1)}}));
    }
    TokensPerBusySecond();
  }

  void TokensPerBusySecond() {
    std::vector<double> changes;
    for (const Place& place : facts_.places()) {
      const auto per_second = [&](const SystemFacts* system) -> std::optional<double> {
        const CellFacts* cell = facts_.Cell(system, place);
        if (cell == nullptr || !cell->utilisation) return std::nullopt;
        return cell->utilisation->tokens_per_busy_device_second;
      };
      const auto before = per_second(facts_.baseline());
      const auto after = per_second(facts_.treatment());
      if (before && after && *before > 0) changes.push_back((*after / *before - 1) * 100);
    }
    if (changes.empty()) return;
    const auto [low, high] = std::minmax_element(changes.begin(), changes.end());
    Add("tokens_per_busy_second",
        say_(finding::kTokensPerBusy, {{"low", SignedPercent(*low, 0)},
                                       {"high", SignedPercent(*high, 0)},
                                       {"count", absl::StrCat(changes.size())}}));
  }

  template <typename Visit>
  void EachCell(const Visit& visit) const {
    for (const SystemFacts* system : facts_.systems()) {
      for (const Place& place : facts_.places()) {
        if (const CellFacts* cell = facts_.Cell(system, place)) visit(*system, place, *cell);
      }
    }
  }

  void Errors() {
    EachCell([this](const SystemFacts& system, const Place& place, const CellFacts& cell) {
      if (cell.errors.value_or(0) == 0) return;
      Add("errors",
          say_(finding::kErrors, {{"system", system.label},
                                  {"place", Label(place)},
                                  {"count", absl::StrCat(*cell.errors)},
                                  {"codes", ErrorCodes(cell)}}),
          Tone::kWarning);
    });
  }

  void Invalid() {
    EachCell([this](const SystemFacts& system, const Place& place, const CellFacts& cell) {
      if (cell.valid) return;
      Add("invalid",
          say_(finding::kInvalid, {{"system", system.label},
                                   {"place", Label(place)},
                                   {"reasons", absl::StrJoin(cell.reasons, " ")}}),
          Tone::kBad);
    });
  }

  void SmallSamples() {
    constexpr double kEnough = 100;
    size_t count = 0;
    double least = kEnough;
    std::string where;
    EachCell([&](const SystemFacts& system, const Place& place, const CellFacts&) {
      const auto n = facts_.Requests(&system, place);
      const bool shown = facts_.Value(&system, place, "time_to_first_token", "p99").has_value();
      if (!n || !shown || *n >= kEnough) return;
      ++count;
      if (*n >= least) return;
      least = *n;
      where = absl::StrCat(system.label, ", ", Label(place));
    });
    if (count == 0) return;
    Add("small_n",
        say_(finding::kSmallSample,
             {{"count", absl::StrCat(count)}, {"least", Fixed(least, 0)}, {"place", where}}));
  }

  void NoVariance() {
    const auto count = std::count_if(spots_.begin(), spots_.end(), [](const Spot& spot) {
      return spot.contrast->note == "no variance";
    });
    if (count == 0) return;
    Add("no_variance", say_(finding::kNoVariance, {{"count", absl::StrCat(count)}}),
        Tone::kWarning);
  }

  void Cohorts() {
    EachCell([this](const SystemFacts& system, const Place& place, const CellFacts& cell) {
      for (const LintFinding& lint : cell.lint) {
        if (lint.rule != "P14" || lint.severity == Severity::kPass) continue;
        Add("cohort",
            say_(finding::kLint,
                 {{"system", system.label}, {"place", Label(place)}, {"text", lint.text}}),
            Tone::kWarning);
      }
    });
  }

  void Repetition() {
    constexpr double kMuch = 0.3;
    EachCell([this](const SystemFacts& system, const Place& place, const CellFacts&) {
      const auto share = facts_.Value(&system, place, "fulgur_output_repetition");
      if (!share || *share <= kMuch) return;
      Add("repetition",
          say_(finding::kRepetition, {{"place", absl::StrCat(system.label, ", ", Label(place))},
                                      {"share", Fixed(share, 2)}}),
          Tone::kWarning);
    });
  }

  const AccuracyScore* ScoreOf(const SystemFacts* system, const std::string& dataset) const {
    for (const AccuracyScore& score : input_.accuracy) {
      if (system != nullptr && score.system == system->id && score.dataset == dataset) {
        return &score;
      }
    }
    return nullptr;
  }

  void Accuracy() {
    for (const AccuracyScore& after : input_.accuracy) {
      if (facts_.treatment() == nullptr || after.system != facts_.treatment()->id) continue;
      const AccuracyScore* before = ScoreOf(facts_.baseline(), after.dataset);
      if (before == nullptr || !before->low || !before->high || !after.low || !after.high) continue;
      if (*after.high >= *before->low && *before->high >= *after.low) continue;
      Add("accuracy_drop",
          say_(finding::kAccuracyDrop,
               {{"dataset", after.dataset},
                {"points", fmt::format("{:+.1f}", after.score - before->score)}}),
          Tone::kBad);
    }
  }

  const Facts& facts_;
  const ReportInput& input_;
  Voice say_;
  std::vector<Spot> spots_;
  std::vector<Finding> findings_;
};

bool NotSlower(Verdict verdict) {
  return verdict != Verdict::kRegression && verdict != Verdict::kNotAvailable;
}

// The largest concurrency up to which no place is slower and above which each tested one has a
// slower place; nothing if the verdicts go to and fro.
struct Limit {
  bool monotone = true;
  bool any_data = false;
  bool any_slower = false;
  std::optional<int64_t> concurrency;
};

Limit LimitOf(const Facts& facts, const ScenarioFacts* scenario) {
  Limit limit;
  for (int64_t concurrency : facts.comparison().concurrencies) {
    if (concurrency == kUnlimited) continue;
    bool data = false;
    bool slower = false;
    for (const Place& place : facts.places()) {
      if (place.concurrency != concurrency || (scenario && place.scenario != scenario)) continue;
      const Contrast* contrast = facts.Find(place);
      if (contrast == nullptr || contrast->verdict == Verdict::kNotAvailable) continue;
      data = true;
      slower = slower || !NotSlower(contrast->verdict);
    }
    if (!data) continue;
    limit.any_data = true;
    if (slower) {
      limit.any_slower = true;
    } else if (limit.any_slower) {
      limit.monotone = false;
    } else {
      limit.concurrency = concurrency;
    }
  }
  return limit;
}

void AdviseOnConcurrency(const Facts& facts, Voice say, std::vector<std::string>& advice) {
  const Limit limit = LimitOf(facts, nullptr);
  if (!limit.any_data) {
    advice.push_back(say(finding::kNoAdvice));
    return;
  }
  const std::string treatment = facts.treatment()->label;
  if (!limit.any_slower) {
    advice.push_back(say(finding::kOnEverywhere,
                         {{"treatment", treatment}, {"baseline", facts.baseline()->label}}));
    return;
  }
  if (!limit.monotone) {
    advice.push_back(say(finding::kNotMonotone));
  } else if (!limit.concurrency) {
    advice.push_back(say(finding::kOnNowhere, {{"treatment", treatment}}));
  } else {
    advice.push_back(say(finding::kOnUpTo, {{"treatment", treatment},
                                            {"concurrency", absl::StrCat(*limit.concurrency)}}));
  }
  if (facts.comparison().scenarios.size() < 2) return;
  for (const ScenarioFacts& scenario : facts.comparison().scenarios) {
    const Limit alone = LimitOf(facts, &scenario);
    if (!alone.monotone || !alone.concurrency) continue;
    advice.push_back(
        say(finding::kScenarioLimit, {{"scenario", facts.ScenarioLabel(scenario, say.language())},
                                      {"concurrency", absl::StrCat(*alone.concurrency)}}));
  }
}

void AdviseOnThroughput(const Facts& facts, Voice say, std::vector<std::string>& advice) {
  if (!DevicesKnown(facts)) return;
  std::optional<ParetoPoint> best;
  for (const ScenarioFacts& scenario : facts.comparison().scenarios) {
    for (const ParetoPoint& point : ParetoPoints(facts, scenario)) {
      if (!best || point.throughput > best->throughput) best = point;
    }
  }
  if (!best) return;
  advice.push_back(
      say(finding::kBestThroughput, {{"system", best->system->label},
                                     {"place", facts.PlaceLabel(best->place, say.language())},
                                     {"rate", Fixed(best->throughput, 1)},
                                     {"user", Fixed(best->per_user, 1)}}));
}

}  // namespace

std::vector<Finding> FindFindings(const Facts& facts, const ReportInput& input, Voice say) {
  return Finder(facts, input, say).Find();
}

std::vector<std::string> Advise(const Facts& facts, Voice say) {
  std::vector<std::string> advice;
  AdviseOnConcurrency(facts, say, advice);
  AdviseOnThroughput(facts, say, advice);
  const auto names = ConfounderNames(facts.comparison());
  if (!names.empty()) {
    advice.push_back(say(finding::kAttribution, {{"list", say.List(names)}}));
  }
  return advice;
}

std::vector<std::string> ConfounderNames(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const Confounder& confounder : comparison.confounders) names.push_back(confounder.key);
  return names;
}

std::string ErrorCodes(const CellFacts& cell) {
  std::vector<std::string> codes;
  for (const auto& [code, count] : cell.errors_by_code) {
    codes.push_back(absl::StrCat(count, " x ", code));
  }
  return codes.empty() ? std::string(kAbsent) : absl::StrJoin(codes, ", ");
}

}  // namespace fulgur::bench
