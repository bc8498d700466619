#include "bench/report/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/report/gnuplot.h"
#include "bench/report/report_sections.h"
#include "bench/report/report_texts.h"

namespace fulgur::bench {

namespace {

bool Absent(const TableCell& cell) { return cell.text.empty() || cell.text == kAbsent; }

// Columns of numbers in which nothing was measured.
void DropEmptyColumns(Table& table) {
  for (size_t column = table.header.size(); column-- > table.text_columns;) {
    const bool empty = std::all_of(table.rows.begin(), table.rows.end(),
                                   [&](const auto& row) { return Absent(row[column]); });
    if (!empty) continue;
    const auto at = static_cast<std::ptrdiff_t>(column);
    table.header.erase(table.header.begin() + at);
    for (auto& row : table.rows) row.erase(row.begin() + at);
  }
}

}  // namespace

void ReportContext::Section(const char* anchor, const Text& heading) {
  document.Add(Heading{2, anchor, say(heading)});
}

void ReportContext::Say(const Text& text, TextArguments arguments, Tone tone) {
  document.Add(Paragraph{say(text, arguments), tone});
}

void ReportContext::Show(std::optional<Figure> figure) {
  if (figure) document.Add(Picture{*std::move(figure), ""});
}

bool ReportContext::Show(Table table) {
  const size_t labels = table.text_columns;
  std::erase_if(table.rows, [labels](const std::vector<TableCell>& row) {
    return row.size() > labels &&
           std::all_of(row.begin() + static_cast<std::ptrdiff_t>(labels), row.end(), Absent);
  });
  if (table.rows.empty()) return false;
  DropEmptyColumns(table);
  document.Add(std::move(table));
  return true;
}

std::string ReportContext::Label(const SystemFacts* system) const {
  return system != nullptr ? system->label : std::string(kAbsent);
}

std::string ReportContext::Label(const Place& place) const {
  return facts.PlaceLabel(place, say.language());
}

std::string ReportContext::VerdictText(const Contrast* contrast) const {
  if (contrast == nullptr) return say(report::kNotAvailable);
  const Text* const texts[] = {&report::kImproved, &report::kNeutral, &report::kRegression,
                               &report::kNoise, &report::kNotAvailable};
  std::string verdict = say(*texts[static_cast<size_t>(contrast->verdict)]);
  if (contrast->note.empty() || contrast->verdict == Verdict::kNotAvailable) return verdict;
  const std::string note =
      contrast->note == "no variance" ? say(report::kNoVariance) : contrast->note;
  return absl::StrCat(verdict, say.language() == Language::kEnglish ? " (" : "（", note,
                      say.language() == Language::kEnglish ? ")" : "）");
}

Tone ToneOf(Verdict verdict) {
  if (verdict == Verdict::kImproved) return Tone::kGood;
  return verdict == Verdict::kRegression ? Tone::kBad : Tone::kPlain;
}

Document MakeReport(const ReportInput& input, Language language) {
  Document document;
  document.language = language;
  ReportContext context{input, Facts(input.comparison), Voice(language), document};
  const auto systems = context.facts.systems();
  const bool both = context.facts.baseline() != nullptr && context.facts.treatment() != nullptr;
  document.title =
      both ? context.say(report::kTitle, {{"treatment", context.Label(context.facts.treatment())},
                                          {"baseline", context.Label(context.facts.baseline())}})
           : context.say(report::kTitleOfOne,
                         {{"system", context.Label(systems.empty() ? nullptr : systems.front())}});
  AddSummary(context);
  AddBackground(context);
  AddThroughput(context);
  AddItl(context);
  AddTtft(context);
  AddUtilisation(context);
  AddFindings(context);
  AddConclusion(context);
  AddPareto(context);
  AddSpeculation(context);
  AddAccuracy(context);
  AddMethod(context);
  AddValidity(context);
  AddReproduction(context);
  AddAppendix(context);
  return document;
}

std::vector<std::string> DrawPictures(Document& document) {
  std::vector<std::string> problems;
  const char* prefix = document.language == Language::kEnglish ? "en" : "zh";
  for (Block& block : document.blocks) {
    Picture* picture = std::get_if<Picture>(&block);
    if (picture == nullptr) continue;
    auto svg = DrawFigure(picture->figure, absl::StrCat(prefix, "-", picture->figure.id, "-"));
    if (svg.ok()) {
      picture->svg = *std::move(svg);
      continue;
    }
    std::string problem(svg.status().message());
    if (std::find(problems.begin(), problems.end(), problem) == problems.end()) {
      problems.push_back(std::move(problem));
    }
  }
  return problems;
}

}  // namespace fulgur::bench
