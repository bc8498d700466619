// A figure as data: panels with axes and series. What is drawn from it is gnuplot's matter
// (gnuplot.h); its numbers can be had as CSV.
//
// Labels are in the language of the report already. A value that was not measured has no mark: gaps
// stay gaps.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fulgur::bench {

// Colours that people who see few colours can tell apart (Okabe and Ito), each with its own marker.
enum class Hue { kBaseline, kTreatment, kReference, kFourth, kGrey };

enum class Drawn {
  kLine,    // line with a marker at (x, y)
  kCurve,   // line without markers
  kDots,    // marker at (x, y)
  kSteps,   // staircase through (x, y)
  kBand,    // area between low and high
  kBars,    // box from x_low to x_high, low to high
  kSpread,  // whisker from low to high at x, dot at y
};

struct Mark {
  double x = 0.0;
  double y = 0.0;
  double low = 0.0;
  double high = 0.0;
  double x_low = 0.0;
  double x_high = 0.0;
};

struct Series {
  std::string name;  // in the key; empty: not there
  Drawn drawn = Drawn::kLine;
  Hue hue = Hue::kGrey;
  std::vector<Mark> marks;
  bool second_axis = false;  // y counts on the right-hand axis
  bool faint = false;        // lighter: a second kind of line in the same colour
};

struct Axis {
  std::string title;
  bool logarithmic = false;
  std::optional<double> from;
  std::optional<double> to;
  std::vector<std::pair<double, std::string>> ticks;  // empty: gnuplot chooses
};

// A word at a place of the plane, such as the concurrency beside a point.
struct Note {
  double x = 0.0;
  double y = 0.0;
  std::string text;
  bool below = false;  // below the place, else above it
};

// A grey stretch of the x axis, such as the window of a cell.
struct Shade {
  double x_from = 0.0;
  double x_to = 0.0;
  std::string label;
};

struct Panel {
  std::string title;
  Axis x;
  Axis y;
  std::optional<Axis> y2;
  std::vector<Series> series;
  std::vector<double> levels;  // dashed horizontal lines
  std::vector<double> limits;  // dashed vertical lines
  std::vector<Note> notes;
  std::vector<Shade> shades;
};

struct Figure {
  std::string id;  // "F1"
  std::string title;
  std::string caption;  // what to look at, and where the numbers are from
  std::vector<Panel> panels;
};

// The numbers of a figure: panel, series, x, y, low, high.
std::string FigureCsv(const Figure& figure);

}  // namespace fulgur::bench
