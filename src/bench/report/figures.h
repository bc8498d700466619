// The figures of the report. Each is absent if its data are.
#pragma once

#include <optional>

#include "bench/report/facts.h"
#include "bench/report/figure.h"
#include "bench/report/report_input.h"
#include "bench/report/text.h"

namespace fulgur::bench {

struct FigureContext {
  const Facts& facts;
  const ReportInput& input;
  Voice say;
};

std::optional<Figure> ThroughputFigure(const FigureContext& context);    // F1
std::optional<Figure> SpeedupFigure(const FigureContext& context);       // F2
std::optional<Figure> ParetoFigure(const FigureContext& context);        // F3
std::optional<Figure> TtftFigure(const FigureContext& context);          // F4
std::optional<Figure> TokenGapFigure(const FigureContext& context);      // F5
std::optional<Figure> UtilisationFigure(const FigureContext& context);   // F6
std::optional<Figure> RateFigure(const FigureContext& context);          // F7
std::optional<Figure> AcceptanceFigure(const FigureContext& context);    // F8
std::optional<Figure> RequestFigure(const FigureContext& context);       // F9
std::optional<Figure> TimelineFigure(const FigureContext& context);      // F10
std::optional<Figure> LatencyPartsFigure(const FigureContext& context);  // F11
std::optional<Figure> RepetitionFigure(const FigureContext& context);    // F12
std::optional<Figure> PromptLengthFigure(const FigureContext& context);  // F13
std::optional<Figure> AccuracyFigure(const FigureContext& context);      // F14

// Baseline, treatment, then references.
Hue HueOf(const Facts& facts, const SystemFacts& system);

// The places that no other beats both in speed for one user and in throughput: sorted by speed
// descending, each with more throughput than all before it.
struct ParetoPoint {
  const SystemFacts* system = nullptr;
  Place place;
  double per_user = 0.0;
  double throughput = 0.0;  // per device if the device counts are known, else of the system
  bool on_front = false;
};
// All measured points of baseline and treatment in a scenario, those on the front marked.
std::vector<ParetoPoint> ParetoPoints(const Facts& facts, const ScenarioFacts& scenario);
// Whether throughput can be given per device for every system that has any.
bool DevicesKnown(const Facts& facts);

}  // namespace fulgur::bench
