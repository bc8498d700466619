// F4, F5, F7, F11, F12: distributions and parts of latencies, over the rate and over repetitions.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "bench/report/figure_texts.h"
#include "bench/report/figures.h"
#include "bench/results/scenarios.h"

namespace fulgur::bench {
namespace {

// A cumulative distribution through minimum, percentiles and maximum; empty with fewer than five
// points, which show no shape.
std::vector<Mark> Cumulative(const CellFacts* cell, std::string_view tag) {
  if (cell == nullptr) return {};
  const auto block = cell->metrics.find(std::string(tag));
  if (block == cell->metrics.end()) return {};
  std::vector<Mark> marks;
  const auto add = [&marks](std::optional<double> value, double share) {
    if (value && *value > 0) marks.push_back({*value, share, share, share, *value, *value});
  };
  add(block->second.min, 0.0);
  for (const auto& [percentile, value] : block->second.percentiles) add(value, percentile);
  add(block->second.max, 100.0);
  constexpr size_t kFewest = 5;
  return marks.size() < kFewest ? std::vector<Mark>() : marks;
}

// The highest concurrency of a scenario at which a distribution of every system that has any can
// be drawn.
std::optional<Place> WidestPlace(const FigureContext& context, const ScenarioFacts& scenario,
                                 std::string_view tag) {
  std::optional<Place> best;
  size_t most = 0;
  for (const Place& place : context.facts.places()) {
    if (place.scenario != &scenario) continue;
    size_t curves = 0;
    for (const SystemFacts* system : context.facts.systems()) {
      curves += Cumulative(context.facts.Cell(system, place), tag).empty() ? 0 : 1;
    }
    if (curves > 0 && curves >= most) {
      best = place;
      most = curves;
    }
  }
  return best;
}

std::optional<Panel> CumulativePanel(const FigureContext& context, const ScenarioFacts& scenario,
                                     std::string_view tag, const Text& y_title) {
  const auto place = WidestPlace(context, scenario, tag);
  if (!place) return std::nullopt;
  Panel panel;
  panel.title = context.facts.PlaceLabel(*place, context.say.language());
  panel.x = {context.say(figure::kMilliseconds), true, {}, {}, {}};
  panel.y = {context.say(y_title), false, 0.0, 100.0, {}};
  for (const SystemFacts* system : context.facts.systems()) {
    Series series{system->label,
                  Drawn::kCurve,
                  HueOf(context.facts, *system),
                  Cumulative(context.facts.Cell(system, *place), tag),
                  false,
                  false};
    if (!series.marks.empty()) panel.series.push_back(series);
  }
  double low = panel.series.front().marks.front().x;
  double high = low;
  for (const Series& series : panel.series) {
    low = std::min(low, series.marks.front().x);
    high = std::max(high, series.marks.back().x);
  }
  // Where all values lie within a decade the axis shows plain numbers.
  panel.x.logarithmic = high > 10 * low;
  if (!panel.x.logarithmic) {
    const double room = std::max(0.05 * (high - low), 0.01 * high);
    panel.x.from = std::max(0.0, low - room);
    panel.x.to = high + room;
  }
  return panel;
}

struct LatencyPart {
  const Text* name;
  const char* tag;
  Hue hue;
};

constexpr LatencyPart kParts[] = {{&figure::kQueued, "credit_to_start_latency", Hue::kGrey},
                                  {&figure::kPrefill, "time_to_first_token", Hue::kFourth},
                                  {&figure::kDecode, "decode_duration", Hue::kReference}};

// The mean decode time: as the file says, or request latency without the time to first token.
std::optional<double> Part(const FigureContext& context, const SystemFacts* system,
                           const Place& place, const LatencyPart& part) {
  const auto value = context.facts.Value(system, place, part.tag);
  if (value || part.tag != std::string_view("decode_duration")) return value;
  const auto whole = context.facts.Value(system, place, "request_latency");
  const auto first = context.facts.Value(system, place, "time_to_first_token");
  if (!whole || !first) return std::nullopt;
  return *whole - *first;
}

void AddStack(const FigureContext& context, const SystemFacts* system, const Place& place, double x,
              std::vector<Series>& series) {
  double base = 0.0;
  for (size_t i = 0; i < std::size(kParts); ++i) {
    const auto part = Part(context, system, place, kParts[i]);
    if (!part || *part <= 0) continue;
    const double seconds = *part / 1000.0;
    series[i].marks.push_back({x, base + seconds, base, base + seconds, x - 0.17, x + 0.17});
    base += seconds;
  }
}

Panel PartsPanel(const FigureContext& context, const ScenarioFacts& scenario) {
  Panel panel;
  panel.title = context.facts.ScenarioLabel(scenario, context.say.language());
  panel.x.title = context.say(figure::kConcurrency);
  panel.y = {context.say(figure::kLatencySeconds), false, 0.0, {}, {}};
  for (const LatencyPart& part : kParts) {
    panel.series.push_back({context.say(*part.name), Drawn::kBars, part.hue, {}, false, false});
  }
  double index = 1.0;
  for (const Place& place : context.facts.places()) {
    if (place.scenario != &scenario) continue;
    panel.x.ticks.emplace_back(index, ConcurrencyName(place.concurrency));
    AddStack(context, context.facts.baseline(), place, index - 0.2, panel.series);
    AddStack(context, context.facts.treatment(), place, index + 0.2, panel.series);
    index += 1.0;
  }
  panel.x.from = 0.4;
  panel.x.to = index - 0.4;
  return panel;
}

constexpr const char* kOffered = "fulgur_offered_request_rate";
constexpr double kKeptUpPercent = 95.0;

// The highest offered rate whose requests still came back at nearly that rate.
std::optional<double> Knee(const FigureContext& context, const SystemFacts* system,
                           const std::vector<Place>& places) {
  std::optional<double> knee;
  for (const Place& place : places) {
    const auto offered = context.facts.Value(system, place, kOffered);
    const auto achieved = context.facts.Value(system, place, "request_throughput");
    if (!offered || !achieved || *achieved < kKeptUpPercent / 100.0 * *offered) continue;
    knee = std::max(knee.value_or(*offered), *offered);
  }
  return knee;
}

void AddRateLines(const FigureContext& context, const SystemFacts& system,
                  const std::vector<Place>& places, Panel& panel) {
  for (const char* statistic : {"p50", "p99"}) {
    const bool half = statistic == std::string_view("p50");
    Series line{context.say(half ? figure::kHalf : figure::kTail, {{"system", system.label}}),
                Drawn::kLine,
                HueOf(context.facts, system),
                {},
                false,
                half};
    for (const Place& place : places) {
      const auto x = context.facts.Value(&system, place, kOffered);
      const auto y = context.facts.Value(&system, place, "time_to_first_token", statistic);
      if (x && y && *y > 0) line.marks.push_back({*x, *y, *y, *y, *x, *x});
    }
    std::sort(line.marks.begin(), line.marks.end(),
              [](const Mark& a, const Mark& b) { return a.x < b.x; });
    constexpr size_t kFewest = 2;
    if (line.marks.size() >= kFewest) panel.series.push_back(line);
  }
}

// Open-loop cells by what was sent, whatever the rate.
std::map<std::string, std::vector<Place>> PlacesByLoad(const Facts& facts) {
  std::map<std::string, std::vector<Place>> loads;
  for (const Place& place : facts.places()) {
    const ScenarioName name = SplitScenario(place.scenario->id);
    if (name.rate) loads[name.base].push_back(place);
  }
  return loads;
}

// Waiting grows by decades beyond the knee; the last marker stands off the border.
void Scale(Panel& panel) {
  double low = panel.series.front().marks.front().y;
  double high = low;
  double fastest = 0.0;
  for (const Series& series : panel.series) {
    for (const Mark& mark : series.marks) {
      low = std::min(low, mark.y);
      high = std::max(high, mark.y);
      fastest = std::max(fastest, mark.x);
    }
  }
  panel.x.to = fastest * 1.05;
  panel.y.logarithmic = high > 10 * low;
  if (!panel.y.logarithmic) panel.y.from = 0.0;
}

bool Empty(const Panel& panel) {
  return std::all_of(panel.series.begin(), panel.series.end(),
                     [](const Series& series) { return series.marks.empty(); });
}

}  // namespace

std::optional<Figure> TtftFigure(const FigureContext& context) {
  Figure figure{"F4", context.say(figure::kF4), context.say(figure::kF4Caption), {}};
  for (const ScenarioFacts& scenario : context.facts.comparison().scenarios) {
    const auto panel =
        CumulativePanel(context, scenario, "time_to_first_token", figure::kShareBelow);
    if (panel) figure.panels.push_back(*panel);
  }
  if (figure.panels.empty()) return std::nullopt;
  return figure;
}

std::optional<Figure> TokenGapFigure(const FigureContext& context) {
  Figure figure{"F5", context.say(figure::kF5), context.say(figure::kF5Caption), {}};
  const std::pair<const char*, const Text*> kinds[] = {{"inter_token_latency", &figure::kItlPanel},
                                                       {"inter_chunk_latency", &figure::kIclPanel}};
  for (const auto& [tag, title] : kinds) {
    for (const ScenarioFacts& scenario : context.facts.comparison().scenarios) {
      auto panel = CumulativePanel(context, scenario, tag, figure::kShareOfGaps);
      if (!panel) continue;
      panel->title = context.say(*title, {{"place", panel->title}});
      figure.panels.push_back(*panel);
    }
  }
  if (figure.panels.empty()) return std::nullopt;
  return figure;
}

std::optional<Figure> RateFigure(const FigureContext& context) {
  const auto systems = context.facts.systems();
  const SystemFacts* judged = context.facts.treatment();
  if (judged == nullptr && !systems.empty()) judged = systems.front();
  if (judged == nullptr) return std::nullopt;
  Figure figure{"F7",
                context.say(figure::kF7),
                context.say(figure::kF7Caption,
                            {{"system", judged->label}, {"share", Fixed(kKeptUpPercent, 0)}}),
                {}};
  for (const auto& [load, places] : PlacesByLoad(context.facts)) {
    Panel panel;
    const auto labels = ScenarioLabels(load);
    panel.title = labels.at(context.say.language() == Language::kEnglish ? "en" : "zh");
    panel.x = {context.say(figure::kRateAxis), false, 0.0, {}, {}};
    panel.y = {context.say(figure::kMilliseconds), false, {}, {}, {}};
    for (const SystemFacts* system : systems) AddRateLines(context, *system, places, panel);
    if (panel.series.empty()) continue;
    Scale(panel);
    if (const auto knee = Knee(context, judged, places)) panel.limits.push_back(*knee);
    figure.panels.push_back(panel);
  }
  if (figure.panels.empty()) return std::nullopt;
  return figure;
}

std::optional<Figure> LatencyPartsFigure(const FigureContext& context) {
  const Facts& facts = context.facts;
  const auto label = [](const SystemFacts* system) {
    return system != nullptr ? system->label : std::string(kAbsent);
  };
  Figure figure{"F11",
                context.say(figure::kF11),
                context.say(figure::kF11Caption, {{"baseline", label(facts.baseline())},
                                                  {"treatment", label(facts.treatment())}}),
                {}};
  for (const ScenarioFacts& scenario : facts.comparison().scenarios) {
    const Panel panel = PartsPanel(context, scenario);
    // The first token alone is in another figure.
    if (!Empty(panel) && !panel.series.back().marks.empty()) figure.panels.push_back(panel);
  }
  if (figure.panels.empty()) return std::nullopt;
  return figure;
}

std::optional<Figure> RepetitionFigure(const FigureContext& context) {
  Figure figure{"F12", context.say(figure::kF12), context.say(figure::kF12Caption), {}};
  for (const ScenarioFacts& scenario : context.facts.comparison().scenarios) {
    Panel panel;
    panel.title = context.facts.ScenarioLabel(scenario, context.say.language());
    panel.x.title = context.say(figure::kConcurrency);
    panel.y = {context.say(figure::kUserRate), false, 0.0, {}, {}};
    double shift = -0.15;
    double last = 1.0;
    for (const SystemFacts* system : context.facts.systems()) {
      Series series{system->label, Drawn::kSpread, HueOf(context.facts, *system), {}, false, false};
      double index = 1.0;
      panel.x.ticks.clear();
      for (const Place& place : context.facts.places()) {
        if (place.scenario != &scenario) continue;
        panel.x.ticks.emplace_back(index, ConcurrencyName(place.concurrency));
        const CellFacts* cell = context.facts.Cell(system, place);
        const auto mean = context.facts.Value(system, place, kHeadlineTag);
        if (cell != nullptr && mean && cell->repetitions > 1) {
          const auto std = cell->repetition_std.find(std::string(kHeadlineTag));
          const double spread = std == cell->repetition_std.end() ? 0.0 : std->second;
          series.marks.push_back(
              {index + shift, *mean, *mean - spread, *mean + spread, index, index});
        }
        index += 1.0;
      }
      last = index;
      shift += 0.15;
      panel.series.push_back(series);
    }
    panel.x.from = 0.4;
    panel.x.to = last - 0.4;
    if (!Empty(panel)) figure.panels.push_back(panel);
  }
  if (figure.panels.empty()) return std::nullopt;
  return figure;
}

}  // namespace fulgur::bench
