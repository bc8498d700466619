// From a figure to gnuplot's commands. Panels are placed by hand in pixels so that titles, tick
// labels and the common key never meet.
#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "bench/report/gnuplot.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr int kWidth = 960;
constexpr int kMostColumns = 3;
constexpr int kRowHeight = 380;
constexpr int kSingleRowHeight = 470;
constexpr int kTitleHeight = 34;  // above a panel
constexpr int kBelowHeight = 62;  // below a panel: tick labels and axis title
constexpr int kLeftWidth = 90;    // tick labels and title of y
constexpr int kRightWidth = 18;
constexpr int kSecondAxisWidth = 72;
constexpr int kKeyLineHeight = 26;

struct HueStyle {
  const char* colour;
  const char* faint;
  int marker;
};

const HueStyle& StyleOf(Hue hue) {
  static constexpr HueStyle kStyles[] = {{"#0072B2", "#7FB8D8", 5},
                                         {"#D55E00", "#EAAE7F", 7},
                                         {"#009E73", "#7FCEB9", 9},
                                         {"#CC79A7", "#E5BCD3", 13},
                                         {"#666666", "#B2B2B2", 11}};
  return kStyles[static_cast<size_t>(hue)];
}

const char* ColourOf(const Series& series) {
  const HueStyle& style = StyleOf(series.hue);
  return series.faint ? style.faint : style.colour;
}

// Single quotes: gnuplot reads what is inside as it is, a quote is written twice.
std::string Quoted(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return absl::StrCat("'", absl::StrReplaceAll(line, {{"'", "''"}}), "'");
}

// Characters of twice the width of a Latin letter, which gnuplot takes for single ones.
size_t WideCharacters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0xE3 && static_cast<unsigned char>(c) < 0xF0;
  }));
}

size_t TextWidth(std::string_view text) {  // in Latin letters
  const auto letters = static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
  return letters + WideCharacters(text);
}

std::string AxisCommands(const char* name, const Axis& axis) {
  std::string commands;
  if (axis.logarithmic) absl::StrAppend(&commands, "set logscale ", name, "\n");
  absl::StrAppend(&commands, "set ", name, "range [",
                  axis.from ? fmt::format("{:.9g}", *axis.from) : "*", ":",
                  axis.to ? fmt::format("{:.9g}", *axis.to) : "*", "]\n");
  absl::StrAppend(&commands, "set ", name, "label ", Quoted(axis.title), "\n");
  if (axis.ticks.empty()) {
    absl::StrAppend(&commands, "set ", name, "tics autofreq nomirror\n");
    return commands;
  }
  absl::StrAppend(&commands, "set ", name, "tics nomirror (");
  for (size_t i = 0; i < axis.ticks.size(); ++i) {
    absl::StrAppend(&commands, i > 0 ? ", " : "", Quoted(axis.ticks[i].second),
                    fmt::format(" {:.9g}", axis.ticks[i].first));
  }
  return absl::StrCat(commands, ")\n");
}

std::string DataBlock(const Series& series, size_t number) {
  std::string block = absl::StrCat("$d", number, " << EOD\n");
  for (const Mark& mark : series.marks) {
    if (std::isnan(mark.x)) {
      block += "\n";  // a gap in the line
      continue;
    }
    block += fmt::format("{:.9g} {:.9g} {:.9g} {:.9g} {:.9g} {:.9g}\n", mark.x, mark.y, mark.low,
                         mark.high, mark.x_low, mark.x_high);
  }
  return block + "EOD\n";
}

// How gnuplot draws a series; `key` is the same look without the data.
std::string Look(const Series& series) {
  const char* colour = ColourOf(series);
  const int marker = StyleOf(series.hue).marker;
  switch (series.drawn) {
    case Drawn::kLine:
      return fmt::format("with linespoints lc rgb '{}' lw 2 pt {} ps 0.9", colour, marker);
    case Drawn::kCurve:
      return fmt::format("with lines lc rgb '{}' lw 2", colour);
    case Drawn::kDots:
      return fmt::format("with points lc rgb '{}' pt {} ps 0.7", colour, marker);
    case Drawn::kSteps:
      return fmt::format("with steps lc rgb '{}' lw 2 dt 2", colour);
    case Drawn::kBand:
      return fmt::format("with filledcurves fc rgb '{}' fs transparent solid 0.18 noborder",
                         colour);
    case Drawn::kBars:
      return fmt::format("with boxxyerror fc rgb '{0}' fs solid 0.85 border lc rgb '{0}'", colour);
    case Drawn::kSpread:
      return fmt::format("with yerrorbars lc rgb '{}' lw 2 pt {} ps 0.8", colour, marker);
  }
  return "";
}

const char* Columns(Drawn drawn) {
  switch (drawn) {
    case Drawn::kBand:
      return "1:3:4";
    case Drawn::kBars:
      return "1:2:5:6:3:4";
    case Drawn::kSpread:
      return "1:2:3:4";
    default:
      return "1:2";
  }
}

// Four panels stand two by two.
int ColumnsFor(int panels) { return panels == 4 ? 2 : std::min(panels, kMostColumns); }

struct Frame {
  double left, right, top, bottom;  // of the plot's border, in parts of the picture
};

std::string Margins(const Frame& frame) {
  return fmt::format(
      "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\nset tmargin at screen {:.5f}\n"
      "set bmargin at screen {:.5f}\n",
      frame.left, frame.right, frame.top, frame.bottom);
}

std::string Decorations(const Panel& panel) {
  std::string commands;
  for (double level : panel.levels) {
    commands += fmt::format(
        "set arrow from graph 0, first {0:.9g} to graph 1, first {0:.9g} nohead lc rgb '#444444' "
        "dt 2 lw 1.2 back\n",
        level);
  }
  for (double limit : panel.limits) {
    commands += fmt::format(
        "set arrow from first {0:.9g}, graph 0 to first {0:.9g}, graph 1 nohead lc rgb '#444444' "
        "dt 2 lw 1.2 back\n",
        limit);
  }
  for (size_t i = 0; i < panel.shades.size(); ++i) {
    const Shade& shade = panel.shades[i];
    commands += fmt::format(
        "set object rectangle from first {:.9g}, graph 0 to first {:.9g}, graph 1 fc rgb "
        "'{}' fs solid noborder behind\n",
        shade.x_from, shade.x_to, i % 2 == 0 ? "#F0F0F0" : "#E2E8EE");
    if (shade.label.empty()) continue;
    commands += fmt::format(
        "set label {} at first {:.9g}, graph 0.98 right rotate by 90 font ',11' tc rgb '#555555'\n",
        Quoted(shade.label), (shade.x_from + shade.x_to) / 2);
  }
  for (const Note& note : panel.notes) {
    commands += fmt::format("set label {} at first {:.9g}, first {:.9g} font ',11' offset {}\n",
                            Quoted(note.text), note.x, note.y, note.below ? "0.4,-0.7" : "0.6,0.5");
  }
  return commands;
}

std::string PanelCommands(const Panel& panel, const Frame& frame, size_t first_block) {
  std::string commands = "reset\n";
  commands += "set border 3 lc rgb '#888888'\nset grid lc rgb '#DDDDDD' lw 0.6\nunset key\n";
  commands += "set tics font ',12' scale 0.5\nset style fill solid\n";
  commands += Margins(frame);
  commands += absl::StrCat("set title ", Quoted(panel.title), " font ',13' offset 0,-0.4\n");
  commands += AxisCommands("x", panel.x) + AxisCommands("y", panel.y);
  if (panel.y2) {
    commands += "set border 11\n" + AxisCommands("y2", *panel.y2) + "set y2label offset -1.5,0\n";
  }
  commands += Decorations(panel);
  std::string plots;
  for (size_t i = 0; i < panel.series.size(); ++i) {
    const Series& series = panel.series[i];
    if (series.marks.empty()) continue;
    absl::StrAppend(&plots, plots.empty() ? "plot " : ", ", "$d", first_block + i, " using ",
                    Columns(series.drawn), series.second_axis ? " axes x1y2 " : " ", Look(series),
                    " notitle");
  }
  return commands + plots + "\n";
}

// Every name once, in order of appearance.
std::vector<const Series*> KeyEntries(const Figure& figure) {
  std::vector<const Series*> entries;
  std::set<std::string> names;
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      if (series.name.empty() || series.marks.empty()) continue;
      if (names.insert(series.name).second) entries.push_back(&series);
    }
  }
  return entries;
}

struct KeyLayout {
  size_t columns = 1;
  size_t lines = 0;
  size_t extra_width = 0;  // that gnuplot does not see in wide characters
};

KeyLayout LayOutKey(const std::vector<const Series*>& entries) {
  KeyLayout layout;
  if (entries.empty()) return layout;
  size_t widest = 0;
  for (const Series* series : entries) {
    widest = std::max(widest, TextWidth(series->name));
    layout.extra_width = std::max(layout.extra_width, WideCharacters(series->name));
  }
  constexpr double kLetterWidth = 8.4;
  constexpr double kSampleWidth = 60;
  const double entry_width = static_cast<double>(widest) * kLetterWidth + kSampleWidth;
  layout.columns =
      std::clamp<size_t>(static_cast<size_t>((kWidth - 60) / entry_width), 1, entries.size());
  layout.lines = (entries.size() + layout.columns - 1) / layout.columns;
  return layout;
}

// The common key: an empty plot at the bottom of the picture.
std::string KeyCommands(const std::vector<const Series*>& entries, const KeyLayout& layout,
                        double height) {
  const double strip = static_cast<double>(layout.lines * kKeyLineHeight) / height;
  std::string commands = "reset\nunset border\nunset tics\nset xrange [0:1]\nset yrange [0:1]\n";
  commands += Margins({0.03, 0.99, strip + 6 / height, 6 / height});
  commands += fmt::format(
      "set key at graph 0.5, graph 0.5 center center horizontal Left reverse samplen 2 maxcols {} "
      "width {} font ',13'\n",
      layout.columns, layout.extra_width);
  std::string plots;
  for (const Series* series : entries) {
    Series sample = *series;
    // Whiskers and lines read better in the key as the marker alone.
    if (sample.drawn == Drawn::kSpread) sample.drawn = Drawn::kDots;
    const bool area = sample.drawn == Drawn::kBars || sample.drawn == Drawn::kBand;
    const char* columns = area ? "(NaN):(NaN):(NaN):(NaN)" : "(NaN):(NaN)";
    std::string look = Look(sample);
    if (area) {
      look = fmt::format("with boxxyerror fc rgb '{}' fs {} noborder", ColourOf(sample),
                         sample.drawn == Drawn::kBand ? "transparent solid 0.25" : "solid 0.85");
    }
    absl::StrAppend(&plots, plots.empty() ? "plot " : ", ", "'+' using ", columns, " ", look,
                    " title ", Quoted(series->name));
  }
  return commands + plots + "\n";
}

std::vector<Frame> PlacePanels(const Figure& figure, double key_height, double height) {
  const int count = static_cast<int>(figure.panels.size());
  const int columns = ColumnsFor(count);
  const int rows = (count + columns - 1) / columns;
  const double row_height = (height - key_height) / rows;
  const double column_width = static_cast<double>(kWidth) / columns;
  std::vector<Frame> frames;
  for (int i = 0; i < count; ++i) {
    const int row = i / columns;
    const double x = (i % columns) * column_width;
    const double y_top = row * row_height;
    const int right = figure.panels[static_cast<size_t>(i)].y2 ? kSecondAxisWidth : kRightWidth;
    frames.push_back({(x + kLeftWidth) / kWidth, (x + column_width - right) / kWidth,
                      1 - (y_top + kTitleHeight) / height,
                      1 - (y_top + row_height - kBelowHeight) / height});
  }
  return frames;
}

}  // namespace

std::string GnuplotScript(const Figure& figure) {
  const auto entries = KeyEntries(figure);
  const KeyLayout key = LayOutKey(entries);
  const int count = static_cast<int>(figure.panels.size());
  const int rows = (count + ColumnsFor(count) - 1) / ColumnsFor(count);
  const int panels_height = rows == 1 ? kSingleRowHeight : rows * kRowHeight;
  const int key_height = static_cast<int>(key.lines) * kKeyLineHeight + 8;
  const int height = panels_height + key_height;

  std::string script = fmt::format(
      "set encoding utf8\nset terminal svg size {},{} dynamic font 'FULGUR_FONT,13' noenhanced "
      "background rgb 'white'\n",
      kWidth, height);
  std::string drawing;
  size_t block = 0;
  const auto frames = PlacePanels(figure, key_height, height);
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    const Panel& panel = figure.panels[i];
    drawing += PanelCommands(panel, frames[i], block);
    for (const Series& series : panel.series) script += DataBlock(series, block++);
  }
  script += "set multiplot\n" + drawing;
  if (!entries.empty()) script += KeyCommands(entries, key, height);
  return script + "unset multiplot\n";
}

std::string FigureCsv(const Figure& figure) {
  const auto field = [](const std::string& text) {
    return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
  };
  std::string csv = "panel,series,x,y,low,high\n";
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      for (const Mark& mark : series.marks) {
        if (std::isnan(mark.x)) continue;
        csv += fmt::format("{},{},{:.9g},{:.9g},{:.9g},{:.9g}\n", field(panel.title),
                           field(series.name), mark.x, mark.y, mark.low, mark.high);
      }
    }
  }
  return csv;
}

}  // namespace fulgur::bench
