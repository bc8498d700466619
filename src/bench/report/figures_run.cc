// F6, F8 to F10, F13, F14: what happened during the runs, drafts, prompts, accuracy.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "bench/report/figure_texts.h"
#include "bench/report/figures.h"

namespace fulgur::bench {
namespace {

constexpr double kNsPerSecond = 1e9;

// Acceptance by position that DSpark's authors' nightly tests hold for k = 7.
constexpr double kPublishedAcceptance[] = {0.88, 0.74, 0.58, 0.49, 0.40, 0.30, 0.18};
constexpr double kPublishedTolerance = 0.03;

Mark Gap() {
  const double none = std::numeric_limits<double>::quiet_NaN();
  return {none, none, none, none, none, none};
}

// A line over time that breaks where a value is missing.
Series Line(const UtilisationSummary& summary, double per_unit, const std::string& name, Hue hue,
            std::optional<double> UtilisationPoint::*value) {
  Series series{name, Drawn::kCurve, hue, {}, false, false};
  for (const UtilisationPoint& point : summary.series) {
    if (const auto y = point.*value) {
      series.marks.push_back({point.seconds / per_unit, *y, *y, *y, 0, 0});
    } else if (!series.marks.empty()) {
      series.marks.push_back(Gap());
    }
  }
  const bool any = std::any_of(series.marks.begin(), series.marks.end(),
                               [](const Mark& mark) { return !std::isnan(mark.x); });
  if (!any) series.marks.clear();
  return series;
}

Series SpreadBand(const UtilisationSummary& summary, double per_unit, const std::string& name,
                  Hue hue) {
  Series band{name, Drawn::kBand, hue, {}, false, false};
  for (const UtilisationPoint& point : summary.series) {
    if (!point.busy_min_device || !point.busy_max_device) continue;
    band.marks.push_back({point.seconds / per_unit, *point.busy_max_device, *point.busy_min_device,
                          *point.busy_max_device, 0, 0});
  }
  return band;
}

// Cells shorter than this share of the picture have no room for a label.
constexpr double kLabelledShare = 0.025;

void ShadeCells(const FigureContext& context, const SystemFacts& system, double per_unit,
                Panel& panel) {
  const UtilisationSummary& summary = *system.utilisation;
  const double whole = summary.series.back().seconds / per_unit;
  for (const Place& place : context.facts.places()) {
    const CellFacts* cell = context.facts.Cell(&system, place);
    if (cell == nullptr) continue;
    for (const PhaseWindow& phase : cell->phases) {
      if (phase.name != "profiling") continue;
      const auto at = [&](int64_t wall_ns) {
        return static_cast<double>(wall_ns - summary.wall_start_ns) / kNsPerSecond / per_unit;
      };
      const double from = std::clamp(at(phase.wall_start_ns), 0.0, whole);
      const double to = std::clamp(at(phase.wall_end_ns), 0.0, whole);
      if (to <= from) continue;
      const bool labelled = to - from >= kLabelledShare * whole;
      panel.shades.push_back(
          {from, to,
           labelled ? absl::StrCat(place.scenario->id, " ", ConcurrencyName(place.concurrency))
                    : ""});
    }
  }
}

constexpr double kAboveLabels = 132.0;  // leaves room for the labels of cells above 100 %

// Its highest value stands where 100 % is.
void AddMemory(const FigureContext& context, const UtilisationSummary& summary, double per_unit,
               Panel& panel) {
  constexpr double kMbPerGb = 1024.0;
  Series memory = Line(summary, per_unit, context.say(figure::kDeviceMemory), Hue::kGrey,
                       &UtilisationPoint::memory_mb);
  if (memory.marks.empty()) return;
  double most = 0.0;
  for (Mark& mark : memory.marks) {
    mark.y /= kMbPerGb;
    if (!std::isnan(mark.y)) most = std::max(most, mark.y);
  }
  memory.second_axis = true;
  panel.y2 = {context.say(figure::kGigabytes), false, 0.0, {}, {}};
  if (most > 0) panel.y2->to = most * kAboveLabels / 100.0;
  panel.series.push_back(memory);
}

std::optional<Panel> UtilisationPanel(const FigureContext& context, const SystemFacts& system) {
  if (!system.utilisation || system.utilisation->series.size() < 2) return std::nullopt;
  const UtilisationSummary& summary = *system.utilisation;
  constexpr double kSecondsPerMinute = 60.0;
  const bool minutes = summary.series.back().seconds > 10 * kSecondsPerMinute;
  const double per_unit = minutes ? kSecondsPerMinute : 1.0;
  Panel panel;
  panel.title = system.label;
  panel.x = {context.say(minutes ? figure::kMinutes : figure::kSeconds),
             false,
             0.0,
             summary.series.back().seconds / per_unit,
             {}};
  panel.y = {context.say(figure::kPercent), false, 0.0, kAboveLabels, {}};
  for (int percent = 0; percent <= 100; percent += 20) {
    panel.y.ticks.emplace_back(percent, absl::StrCat(percent));
  }
  const Series candidates[] = {
      SpreadBand(summary, per_unit, context.say(figure::kBusySpread), Hue::kBaseline),
      Line(summary, per_unit, context.say(figure::kBusy), Hue::kBaseline,
           &UtilisationPoint::busy_mean),
      Line(summary, per_unit, context.say(figure::kCpu), Hue::kTreatment,
           &UtilisationPoint::cpu_percent)};
  for (const Series& series : candidates) {
    if (!series.marks.empty()) panel.series.push_back(series);
  }
  if (panel.series.empty()) return std::nullopt;
  AddMemory(context, summary, per_unit, panel);
  ShadeCells(context, system, per_unit, panel);
  return panel;
}

// The acceptance rate at a draft position, counted from 1.
std::optional<double> AcceptanceAt(const FigureContext& context, const SystemFacts* system,
                                   const Place& place, int position) {
  return context.facts.Value(system, place,
                             absl::StrCat("fulgur_acceptance_rate_position_", position));
}

const CellRequests* RequestsOf(const FigureContext& context, const SystemFacts* system,
                               const Place& place) {
  if (system == nullptr) return nullptr;
  for (const CellRequests& cell : context.input.requests) {
    if (cell.system == system->id && cell.scenario == place.scenario->id &&
        cell.concurrency == place.concurrency && !cell.requests.empty()) {
      return &cell;
    }
  }
  return nullptr;
}

// The place with the highest concurrency whose requests of the treatment (else of any system) are
// known, by which the shape of a run is shown.
std::optional<Place> ShownPlace(const FigureContext& context) {
  std::optional<Place> shown;
  for (const SystemFacts* system : context.facts.systems()) {
    for (const Place& place : context.facts.places()) {
      if (RequestsOf(context, system, place) == nullptr) continue;
      if (!shown || place.concurrency > shown->concurrency) shown = place;
    }
  }
  return shown;
}

std::vector<const RequestLine*> ValidByStart(const CellRequests& cell) {
  std::vector<const RequestLine*> lines;
  for (const RequestLine& line : cell.requests) {
    if (line.valid() && line.metrics.Has("time_to_first_token")) lines.push_back(&line);
  }
  std::sort(lines.begin(), lines.end(),
            [](const RequestLine* a, const RequestLine* b) { return a->start_ns < b->start_ns; });
  return lines;
}

struct RequestTimes {  // seconds from the start of the run
  double scheduled, start, first, end;
};

RequestTimes TimesOf(const RequestLine& line, int64_t origin_ns) {
  const double start = static_cast<double>(line.start_ns - origin_ns) / kNsPerSecond;
  const double first = start + line.metrics.Get("time_to_first_token", 0.0) / 1000.0;
  const double end = start + line.metrics.Get("request_latency", 0.0) / 1000.0;
  const double scheduled =
      line.scheduled_ns
          ? std::min(start, static_cast<double>(*line.scheduled_ns - origin_ns) / kNsPerSecond)
          : start;
  return {scheduled, start, first, end};
}

constexpr size_t kShownRequests = 200;

Panel RequestPanel(const FigureContext& context, const SystemFacts& system,
                   const CellRequests& cell) {
  Panel panel;
  panel.title = system.label;
  panel.x = {context.say(figure::kSeconds), false, 0.0, {}, {}};
  Series queued{context.say(figure::kQueued), Drawn::kBars, Hue::kGrey, {}, false, false};
  Series prefill{context.say(figure::kPrefill), Drawn::kBars, Hue::kFourth, {}, false, false};
  Series decode{context.say(figure::kDecode), Drawn::kBars, Hue::kReference, {}, false, false};
  const auto lines = ValidByStart(cell);
  for (size_t i = 0; i < std::min(lines.size(), kShownRequests); ++i) {
    const RequestTimes times = TimesOf(*lines[i], lines.front()->start_ns);
    const double y = static_cast<double>(i) + 1;
    const auto box = [y](double from, double to) {
      return Mark{(from + to) / 2, y, y - 0.4, y + 0.4, from, to};
    };
    if (times.start > times.scheduled) queued.marks.push_back(box(times.scheduled, times.start));
    prefill.marks.push_back(box(times.start, times.first));
    decode.marks.push_back(box(times.first, times.end));
  }
  panel.y = {context.say(figure::kRequest),
             false,
             0.0,
             static_cast<double>(std::min(lines.size(), kShownRequests)) + 1,
             {}};
  panel.series = {queued, prefill, decode};
  return panel;
}

// Adds `amount` spread evenly over [from, to) to buckets of `width` seconds.
void Spread(std::vector<double>& buckets, double width, double from, double to, double amount) {
  if (to <= from) return;
  const auto bucket_of = [&](double time) {
    return std::min(static_cast<size_t>(std::max(0.0, time) / width), buckets.size() - 1);
  };
  for (size_t i = bucket_of(from); i <= bucket_of(to); ++i) {
    const double low = std::max(from, static_cast<double>(i) * width);
    const double high = std::min(to, static_cast<double>(i + 1) * width);
    if (high > low) buckets[i] += amount * (high - low) / (to - from);
  }
}

constexpr double kSteadyPercent = 95.0;  // of the highest number of requests in flight
constexpr int kFewestLatencies = 3;      // in a window that shows a steady state

// From the first to the last moment that is nearly full; absent if that is too short.
std::optional<Shade> SteadyWindow(const std::vector<RequestTimes>& requests) {
  std::vector<std::pair<double, int>> changes;  // an end goes before a start at the same moment
  double latencies = 0.0;
  for (const RequestTimes& request : requests) {
    changes.emplace_back(request.start, 1);
    changes.emplace_back(request.end, -1);
    latencies += request.end - request.start;
  }
  std::sort(changes.begin(), changes.end());
  int in_flight = 0;
  int most = 0;
  for (const auto& [time, step] : changes) most = std::max(most, in_flight += step);
  std::optional<Shade> window;
  in_flight = 0;
  for (const auto& [time, step] : changes) {
    const bool full = in_flight >= kSteadyPercent / 100.0 * most;  // until this moment
    in_flight += step;
    if (full && window) window->x_to = time;
    if (!window && in_flight >= kSteadyPercent / 100.0 * most) window = Shade{time, time, ""};
  }
  const double mean = latencies / static_cast<double>(std::max<size_t>(requests.size(), 1));
  if (!window || window->x_to - window->x_from < kFewestLatencies * mean) return std::nullopt;
  return window;
}

Panel TimelinePanel(const FigureContext& context, const SystemFacts& system,
                    const CellRequests& cell) {
  Panel panel;
  panel.title = system.label;
  panel.x = {context.say(figure::kSeconds), false, 0.0, {}, {}};
  panel.y = {context.say(figure::kTokensPerSecond), false, 0.0, {}, {}};
  panel.y2 = {context.say(figure::kInFlight), false, 0.0, {}, {}};
  const auto lines = ValidByStart(cell);
  std::vector<RequestTimes> requests;
  double end = 0.0;
  for (const RequestLine* line : lines) {
    requests.push_back(TimesOf(*line, lines.front()->start_ns));
    end = std::max(end, requests.back().end);
  }
  if (const auto steady = SteadyWindow(requests)) panel.shades.push_back(*steady);
  constexpr double kMostBuckets = 400;
  const double width = std::max(end > 20 ? 1.0 : end / 20, end / kMostBuckets);
  std::vector<double> tokens(static_cast<size_t>(end / width) + 1, 0.0);
  std::vector<double> busy_seconds(tokens.size(), 0.0);
  for (size_t i = 0; i < lines.size(); ++i) {
    const RequestTimes& times = requests[i];
    Spread(tokens, width, times.first, times.end,
           lines[i]->metrics.Get("output_sequence_length", 0.0));
    Spread(busy_seconds, width, times.start, times.end, times.end - times.start);
  }
  Series rate{system.label, Drawn::kCurve, HueOf(context.facts, system), {}, false, false};
  Series flight{context.say(figure::kInFlight), Drawn::kCurve, Hue::kGrey, {}, true, true};
  for (size_t i = 0; i < tokens.size(); ++i) {
    const double x = (static_cast<double>(i) + 0.5) * width;
    rate.marks.push_back({x, tokens[i] / width, 0, 0, 0, 0});
    flight.marks.push_back({x, busy_seconds[i] / width, 0, 0, 0, 0});
  }
  panel.series = {flight, rate};
  return panel;
}

}  // namespace

std::optional<Figure> UtilisationFigure(const FigureContext& context) {
  Figure figure{"F6", context.say(figure::kF6), context.say(figure::kF6Caption), {}};
  for (const SystemFacts* system : context.facts.systems()) {
    if (const auto panel = UtilisationPanel(context, *system)) figure.panels.push_back(*panel);
  }
  if (figure.panels.empty()) return std::nullopt;
  return figure;
}

std::optional<Figure> AcceptanceFigure(const FigureContext& context) {
  Figure figure{"F8", context.say(figure::kF8), context.say(figure::kF8Caption), {}};
  const SystemFacts* system = context.facts.treatment();
  for (const ScenarioFacts& scenario : context.facts.comparison().scenarios) {
    Panel panel;
    panel.x = {context.say(figure::kPosition), false, 0.4, 7.6, {}};
    panel.y = {context.say(figure::kRate), false, 0.0, 1.0, {}};
    Series bars{
        system != nullptr ? system->label : "", Drawn::kBars, Hue::kTreatment, {}, false, false};
    for (const Place& place : context.facts.places()) {
      if (place.scenario != &scenario || !bars.marks.empty()) continue;
      for (int position = 1; const auto rate = AcceptanceAt(context, system, place, position);
           ++position) {
        const double x = position;
        bars.marks.push_back({x, *rate, 0, *rate, x - 0.35, x + 0.35});
        panel.x.ticks.emplace_back(x, absl::StrCat(position));
        panel.x.to = std::max(*panel.x.to, x + 0.6);
      }
      panel.title = context.facts.PlaceLabel(place, context.say.language());
    }
    if (bars.marks.empty()) continue;
    Series golden{context.say(figure::kGolden), Drawn::kSpread, Hue::kGrey, {}, false, false};
    for (size_t i = 0; i < std::size(kPublishedAcceptance); ++i) {
      const double y = kPublishedAcceptance[i];
      const auto x = static_cast<double>(i + 1);
      golden.marks.push_back({x, y, y - kPublishedTolerance, y + kPublishedTolerance, x, x});
    }
    panel.series = {bars, golden};
    figure.panels.push_back(panel);
  }
  if (figure.panels.empty()) return std::nullopt;
  return figure;
}

std::optional<Figure> RequestFigure(const FigureContext& context) {
  const auto place = ShownPlace(context);
  if (!place) return std::nullopt;
  Figure figure{"F9",
                context.say(figure::kF9),
                context.say(figure::kF9Caption,
                            {{"count", absl::StrCat(kShownRequests)},
                             {"place", context.facts.PlaceLabel(*place, context.say.language())}}),
                {}};
  for (const SystemFacts* system : context.facts.systems()) {
    const CellRequests* cell = RequestsOf(context, system, *place);
    if (cell == nullptr || ValidByStart(*cell).empty()) continue;
    figure.panels.push_back(RequestPanel(context, *system, *cell));
  }
  if (figure.panels.empty()) return std::nullopt;
  return figure;
}

std::optional<Figure> TimelineFigure(const FigureContext& context) {
  const auto place = ShownPlace(context);
  if (!place) return std::nullopt;
  Figure figure{"F10",
                absl::StrCat(context.say(figure::kF10), ", ",
                             context.facts.PlaceLabel(*place, context.say.language())),
                context.say(figure::kF10Caption, {{"share", Fixed(kSteadyPercent, 0)},
                                                  {"count", absl::StrCat(kFewestLatencies)}}),
                {}};
  for (const SystemFacts* system : context.facts.systems()) {
    const CellRequests* cell = RequestsOf(context, system, *place);
    if (cell == nullptr || ValidByStart(*cell).size() < 2) continue;
    figure.panels.push_back(TimelinePanel(context, *system, *cell));
  }
  if (figure.panels.empty()) return std::nullopt;
  return figure;
}

std::optional<Figure> PromptLengthFigure(const FigureContext& context) {
  Figure figure{"F13", context.say(figure::kF13), context.say(figure::kF13Caption), {}};
  Panel panel;
  panel.x = {context.say(figure::kPromptTokens), false, 0.0, {}, {}};
  panel.y = {context.say(figure::kMilliseconds), false, 0.0, {}, {}};
  std::set<double> lengths;
  for (const SystemFacts* system : context.facts.systems()) {
    Series dots{system->label, Drawn::kDots, HueOf(context.facts, *system), {}, false, false};
    for (const Place& place : context.facts.places()) {
      const CellRequests* cell = RequestsOf(context, system, place);
      if (cell == nullptr) continue;
      for (const RequestLine* line : ValidByStart(*cell)) {
        if (!line->metrics.Has("input_sequence_length")) continue;
        const double x = line->metrics.Get("input_sequence_length", 0.0);
        const double y = line->metrics.Get("time_to_first_token", 0.0);
        dots.marks.push_back({x, y, y, y, x, x});
        lengths.insert(x);
      }
    }
    panel.series.push_back(dots);
  }
  // With a handful of fixed lengths there is no relation to see.
  constexpr size_t kFewestLengths = 8;
  if (lengths.size() < kFewestLengths) return std::nullopt;
  figure.panels.push_back(panel);
  return figure;
}

std::optional<Figure> AccuracyFigure(const FigureContext& context) {
  if (context.input.accuracy.empty()) return std::nullopt;
  Figure figure{"F14", context.say(figure::kF14), context.say(figure::kF14Caption), {}};
  Panel panel;
  panel.y = {context.say(figure::kScore), false, 0.0, 100.0, {}};
  std::vector<std::string> datasets;
  for (const AccuracyScore& score : context.input.accuracy) {
    if (std::find(datasets.begin(), datasets.end(), score.dataset) == datasets.end()) {
      datasets.push_back(score.dataset);
      panel.x.ticks.emplace_back(static_cast<double>(datasets.size()), score.dataset);
    }
  }
  double shift = -0.1;
  for (const SystemFacts* system : context.facts.systems()) {
    Series series{system->label, Drawn::kSpread, HueOf(context.facts, *system), {}, false, false};
    for (const AccuracyScore& score : context.input.accuracy) {
      if (score.system != system->id) continue;
      const auto at = std::find(datasets.begin(), datasets.end(), score.dataset);
      const double x = static_cast<double>(at - datasets.begin()) + 1 + shift;
      series.marks.push_back({x, score.score, score.low.value_or(score.score),
                              score.high.value_or(score.score), x, x});
    }
    panel.series.push_back(series);
    shift += 0.1;
  }
  panel.x.from = 0.4;
  panel.x.to = static_cast<double>(datasets.size()) + 0.6;
  figure.panels.push_back(panel);
  return figure;
}

}  // namespace fulgur::bench
