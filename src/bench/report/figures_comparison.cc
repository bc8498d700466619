// F1 to F3: throughput per user, speed-up, Pareto front.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/report/figure_texts.h"
#include "bench/report/figures.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

Axis ConcurrencyAxis(const FigureContext& context) {
  Axis axis{context.say(figure::kConcurrency), true, {}, {}, {}};
  std::vector<int64_t> concurrencies = context.facts.comparison().concurrencies;
  std::erase(concurrencies, kUnlimited);
  for (int64_t concurrency : concurrencies) {
    axis.ticks.emplace_back(static_cast<double>(concurrency), absl::StrCat(concurrency));
  }
  if (concurrencies.empty()) return axis;
  constexpr double kRoom = 1.25;
  axis.from = static_cast<double>(concurrencies.front()) / kRoom;
  axis.to = static_cast<double>(concurrencies.back()) * kRoom;
  return axis;
}

std::vector<Place> PlacesOf(const Facts& facts, const ScenarioFacts& scenario) {
  std::vector<Place> places;
  for (const Place& place : facts.places()) {
    if (place.scenario == &scenario) places.push_back(place);
  }
  return places;
}

void AddThroughput(const FigureContext& context, const SystemFacts& system,
                   const std::vector<Place>& places, Panel& panel) {
  Series line{system.label, Drawn::kLine, HueOf(context.facts, system), {}, false, false};
  Series band{"", Drawn::kBand, line.hue, {}, false, false};
  for (const Place& place : places) {
    const auto mean = context.facts.Value(&system, place, kHeadlineTag);
    if (!mean || place.concurrency == kUnlimited) continue;
    const auto x = static_cast<double>(place.concurrency);
    line.marks.push_back({x, *mean, *mean, *mean, x, x});
    const auto low = context.facts.Value(&system, place, kHeadlineTag, "p25");
    const auto high = context.facts.Value(&system, place, kHeadlineTag, "p75");
    if (low && high) band.marks.push_back({x, *mean, *low, *high, x, x});
  }
  if (band.marks.size() > 1) panel.series.push_back(band);
  if (!line.marks.empty()) panel.series.push_back(line);
}

// The treatment's bars of one scenario, standing on 1.
Panel SpeedupPanel(const FigureContext& context, const ScenarioFacts& scenario) {
  Panel panel;
  panel.title = context.facts.ScenarioLabel(scenario, context.say.language());
  Series faster{context.say(figure::kFaster), Drawn::kBars, Hue::kReference, {}, false, false};
  Series slower{context.say(figure::kSlower), Drawn::kBars, Hue::kTreatment, {}, false, false};
  Series whiskers{"", Drawn::kSpread, Hue::kGrey, {}, false, false};
  panel.x.title = context.say(figure::kConcurrency);
  double index = 1.0;
  for (const Place& place : PlacesOf(context.facts, scenario)) {
    panel.x.ticks.emplace_back(index, ConcurrencyName(place.concurrency));
    const Contrast* contrast = context.facts.Find(place);
    if (contrast != nullptr && contrast->speedup) {
      const double speedup = *contrast->speedup;
      const Mark bar{index,        speedup,     std::min(1.0, speedup), std::max(1.0, speedup),
                     index - 0.32, index + 0.32};
      (speedup >= 1.0 ? faster : slower).marks.push_back(bar);
      const double top = contrast->interval ? std::max(contrast->interval->high, speedup) : speedup;
      const double bottom =
          contrast->interval ? std::min(contrast->interval->low, speedup) : speedup;
      const bool below = speedup < 1.0;
      panel.notes.push_back({index - 0.32, below ? bottom : top, Times(speedup), below});
      if (contrast->interval) {
        whiskers.marks.push_back(
            {index, speedup, contrast->interval->low, contrast->interval->high, index, index});
      }
    }
    index += 1.0;
  }
  panel.x.from = 0.4;
  panel.x.to = index - 0.4;
  panel.series = {faster, slower, whiskers};
  return panel;
}

double HighestMark(const Panel& panel) {
  double highest = 1.0;
  for (const Series& series : panel.series) {
    for (const Mark& mark : series.marks) highest = std::max({highest, mark.y, mark.high});
  }
  return highest;
}

void AddFront(const FigureContext& context, const std::vector<ParetoPoint>& points, Panel& panel) {
  Series front{context.say(figure::kFront), Drawn::kSteps, Hue::kGrey, {}, false, false};
  std::vector<const ParetoPoint*> on_front;
  for (const ParetoPoint& point : points) {
    if (point.on_front) on_front.push_back(&point);
  }
  std::sort(on_front.begin(), on_front.end(),
            [](const ParetoPoint* a, const ParetoPoint* b) { return a->per_user < b->per_user; });
  // Right of a point of the front the best throughput is that of the next one.
  for (size_t i = 0; i < on_front.size(); ++i) {
    const double y = on_front[i]->throughput;
    front.marks.push_back({on_front[i]->per_user, y, y, y, 0, 0});
    if (i + 1 < on_front.size()) {
      const double below = on_front[i + 1]->throughput;
      front.marks.push_back({on_front[i]->per_user, below, below, below, 0, 0});
    }
  }
  front.drawn = Drawn::kCurve;
  front.faint = true;
  if (front.marks.size() > 1) panel.series.insert(panel.series.begin(), front);
}

}  // namespace

Hue HueOf(const Facts& facts, const SystemFacts& system) {
  if (&system == facts.baseline()) return Hue::kBaseline;
  if (&system == facts.treatment()) return Hue::kTreatment;
  const auto& references = facts.references();
  return !references.empty() && &system == references.front() ? Hue::kReference : Hue::kFourth;
}

std::optional<Figure> ThroughputFigure(const FigureContext& context) {
  Figure figure{"F1", context.say(figure::kF1), context.say(figure::kF1Caption), {}};
  for (const ScenarioFacts& scenario : context.facts.comparison().scenarios) {
    Panel panel;
    panel.title = context.facts.ScenarioLabel(scenario, context.say.language());
    panel.x = ConcurrencyAxis(context);
    panel.y = {context.say(figure::kUserRate), false, 0.0, {}, {}};
    const auto places = PlacesOf(context.facts, scenario);
    for (const SystemFacts* system : context.facts.systems()) {
      AddThroughput(context, *system, places, panel);
    }
    if (!panel.series.empty()) figure.panels.push_back(panel);
  }
  if (figure.panels.empty()) return std::nullopt;
  return figure;
}

std::optional<Figure> SpeedupFigure(const FigureContext& context) {
  const double threshold = context.facts.comparison().threshold;
  Figure figure{"F2",
                context.say(figure::kF2),
                context.say(figure::kF2Caption, {{"threshold", Fixed(threshold * 100, 0)}}),
                {}};
  double highest = 1.0;
  bool any = false;
  for (const ScenarioFacts& scenario : context.facts.comparison().scenarios) {
    Panel panel = SpeedupPanel(context, scenario);
    any = any || !panel.notes.empty();
    highest = std::max(highest, HighestMark(panel));
    panel.levels = {1.0 - threshold, 1.0, 1.0 + threshold};
    figure.panels.push_back(panel);
  }
  if (!any) return std::nullopt;
  for (Panel& panel : figure.panels) {
    panel.y = {context.say(figure::kSpeedup), false, 0.0, highest * 1.12, {}};
  }
  return figure;
}

bool DevicesKnown(const Facts& facts) {
  bool any = false;
  for (const SystemFacts* system : {facts.baseline(), facts.treatment()}) {
    if (system == nullptr) continue;
    if (!system->devices) return false;
    any = true;
  }
  return any;
}

std::vector<ParetoPoint> ParetoPoints(const Facts& facts, const ScenarioFacts& scenario) {
  std::vector<ParetoPoint> points;
  const bool per_device = DevicesKnown(facts);
  for (const SystemFacts* system : {facts.baseline(), facts.treatment()}) {
    if (system == nullptr) continue;
    for (const Place& place : PlacesOf(facts, scenario)) {
      const auto user = facts.Value(system, place, kHeadlineTag);
      const auto rate =
          per_device ? facts.RatePerDevice(system, place) : facts.SystemRate(system, place);
      if (user && rate) points.push_back({system, place, *user, *rate, false});
    }
  }
  std::sort(points.begin(), points.end(), [](const ParetoPoint& a, const ParetoPoint& b) {
    return a.per_user != b.per_user ? a.per_user > b.per_user : a.throughput > b.throughput;
  });
  double best = 0.0;
  for (ParetoPoint& point : points) {
    point.on_front = point.throughput > best;
    best = std::max(best, point.throughput);
  }
  return points;
}

std::optional<Figure> ParetoFigure(const FigureContext& context) {
  Figure figure{"F3", context.say(figure::kF3), context.say(figure::kF3Caption), {}};
  for (const ScenarioFacts& scenario : context.facts.comparison().scenarios) {
    const auto points = ParetoPoints(context.facts, scenario);
    if (points.empty()) continue;
    Panel panel;
    panel.title = context.facts.ScenarioLabel(scenario, context.say.language());
    panel.x = {context.say(figure::kUserRate), false, 0.0, {}, {}};
    panel.y = {context.say(DevicesKnown(context.facts) ? figure::kDeviceRate : figure::kSystemRate),
               false,
               0.0,
               {},
               {}};
    double farthest = 0.0;
    for (const SystemFacts* system : {context.facts.baseline(), context.facts.treatment()}) {
      if (system == nullptr) continue;
      Series series{system->label, Drawn::kLine, HueOf(context.facts, *system), {}, false, false};
      for (const ParetoPoint& point : points) {
        if (point.system != system) continue;
        series.marks.push_back({point.per_user, point.throughput, 0, 0, 0, 0});
        panel.notes.push_back({point.per_user, point.throughput,
                               ConcurrencyName(point.place.concurrency),
                               system == context.facts.baseline()});
        farthest = std::max(farthest, point.per_user);
      }
      std::sort(series.marks.begin(), series.marks.end(),
                [&](const Mark& a, const Mark& b) { return a.x != b.x ? a.x < b.x : a.y > b.y; });
      panel.series.push_back(series);
    }
    panel.x.to = farthest * 1.15;
    AddFront(context, points, panel);
    figure.panels.push_back(panel);
  }
  if (figure.panels.empty()) return std::nullopt;
  return figure;
}

}  // namespace fulgur::bench
