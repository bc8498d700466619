// Texts, writers, figures and findings, on the published comparison and on one that has everything.
#include "bench/report/report.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "bench/report/facts.h"
#include "bench/report/figures.h"
#include "bench/report/findings.h"
#include "bench/report/gnuplot.h"
#include "bench/report/html.h"
#include "bench/report/markdown.h"
#include "bench/report/published_comparison.h"
#include "bench/report/workbook.h"
#include "bench/report/write_report.h"
#include "bench/results/scenarios.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fulgur::bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Text kGreeting{"{name} has {count}", "{count} 属于 {name}"};

std::vector<std::string> Rules(const Comparison& comparison) {
  const Facts facts(comparison);
  const ReportInput input{comparison, {}, {}, {}, ""};
  std::vector<std::string> rules;
  for (const Finding& finding : FindFindings(facts, input, Voice(Language::kEnglish))) {
    rules.push_back(finding.rule);
  }
  return rules;
}

std::vector<std::string> FigureIds(const Document& document) {
  std::vector<std::string> ids;
  for (const Block& block : document.blocks) {
    if (const Picture* picture = std::get_if<Picture>(&block)) ids.push_back(picture->figure.id);
  }
  return ids;
}

std::string Content(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

TEST(TextTest, FillsPlacesInEitherOrder) {
  EXPECT_EQ(Voice(Language::kEnglish)(kGreeting, {{"count", "2"}, {"name", "{count}"}}),
            "{count} has 2");
  EXPECT_EQ(Voice(Language::kChinese)(kGreeting, {{"name", "A"}, {"count", "2"}}), "2 属于 A");
  EXPECT_EQ(Voice(Language::kEnglish).List({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(Voice(Language::kChinese).List({"a", "b", "c"}), "a、b和c");
}

TEST(FactsTest, AbsentIsADashAndZeroHasNoSign) {
  EXPECT_EQ(Fixed(std::nullopt, 2), kAbsent);
  EXPECT_EQ(Times(std::nullopt), kAbsent);
  EXPECT_EQ(SignedPercent(-0.2, 0), "0 %");
  EXPECT_EQ(SignedPercent(-9.2, 0), "-9 %");
  EXPECT_EQ(SignedPercent(95.6, 1), "+95.6 %");
}

TEST(MarkdownTest, TextIsNeverMarkup) {
  Document document;
  document.title = "a|b";
  document.Add(Paragraph{"<b> *x* `y` [l](u)\nnext", Tone::kPlain});
  EXPECT_EQ(MarkdownText(document, ""), "# a\\|b\n\n&lt;b&gt; \\*x\\* \\`y\\` \\[l\\](u) next\n");
}

TEST(MarkdownTest, AFenceIsLongerThanAnyInside) {
  Document document;
  document.Add(CodeBlock{"```\nx"});
  EXPECT_THAT(MarkdownText(document, ""), HasSubstr("````\n```\nx\n````"));
}

TEST(HtmlTest, TextIsNeverMarkup) {
  EXPECT_EQ(EscapeHtml("<a href=\"x\">&\x01"), "&lt;a href=&quot;x&quot;&gt;&amp; ");
}

TEST(GnuplotTest, LabelsAreQuoted) {
  Figure figure{"F1", "t", "", {}};
  Panel panel;
  panel.title = "it's `touch x`\n$(y)";
  panel.series.push_back({"s'", Drawn::kLine, Hue::kBaseline, {{1, 2, 0, 0, 0, 0}}, false, false});
  figure.panels.push_back(panel);
  const std::string script = GnuplotScript(figure);
  EXPECT_THAT(script, HasSubstr("set title 'it''s `touch x` $(y)'"));
  EXPECT_THAT(script, HasSubstr("title 's'''"));
}

TEST(GnuplotTest, DrawsAnElementWithIdsOfItsOwn) {
  const Comparison comparison = PublishedComparison();
  const ReportInput input{comparison, {}, {}, {}, ""};
  const Facts facts(comparison);
  const auto figure = ThroughputFigure({facts, input, Voice(Language::kChinese)});
  ASSERT_TRUE(figure.has_value());
  const auto svg = DrawFigure(*figure, "zh-F1-");
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_TRUE(svg->starts_with("<svg"));
  EXPECT_THAT(*svg, HasSubstr("并发"));
  EXPECT_THAT(*svg, HasSubstr("zh-F1-canvas"));
  EXPECT_THAT(*svg, Not(HasSubstr("gpPt")));
}

TEST(FiguresTest, PublishedNumbersAllowTwo) {
  const Comparison comparison = PublishedComparison();
  const Document document = MakeReport({comparison, {}, {}, {}, ""}, Language::kEnglish);
  EXPECT_THAT(FigureIds(document), ElementsAre("F1", "F2"));
}

TEST(FiguresTest, EachHasItsPlaceWhereAllDataAreThere) {
  const Comparison comparison = FullComparison();
  const ReportInput input{comparison, FullRequests(), FullAccuracy(), {}, ""};
  const Document document = MakeReport(input, Language::kChinese);
  EXPECT_THAT(FigureIds(document), ElementsAre("F1", "F2", "F12", "F5", "F4", "F11", "F13", "F6",
                                               "F3", "F10", "F8", "F14", "F9"));
}

// Two systems at four rates; the slow one keeps up to 4 requests per second, the fast one to 8.
Comparison RateComparison() {
  Comparison comparison = FullComparison();
  comparison.scenarios.clear();
  comparison.cells.clear();
  comparison.contrasts.clear();
  comparison.concurrencies = {kUnlimited};
  for (const double rate : {2.0, 4.0, 8.0, 16.0}) {
    const std::string id = JoinScenario({"chat", rate});
    comparison.scenarios.push_back({id, ScenarioLabels(id)});
    for (const SystemFacts& system : comparison.systems) {
      const double most = system.id == "fast" ? 8.0 : 4.0;
      CellFacts cell;
      cell.system = system.id;
      cell.scenario = id;
      cell.concurrency = kUnlimited;
      cell.metrics["fulgur_offered_request_rate"] = Scalar(rate, "requests/sec");
      cell.metrics["request_throughput"] = Scalar(std::min(rate, most), "requests/sec");
      MetricBlock& first = cell.metrics["time_to_first_token"];
      first.unit = "ms";
      first.percentiles = {{50, rate > most ? 4000.0 : 200.0}, {99, rate > most ? 9000.0 : 450.0}};
      comparison.cells.push_back(cell);
    }
  }
  return comparison;
}

TEST(FiguresTest, TimeToFirstTokenOverTheRateMarksTheKnee) {
  const Comparison comparison = RateComparison();
  const Facts facts(comparison);
  const ReportInput input{comparison, {}, {}, {}, ""};
  const auto figure = RateFigure({facts, input, Voice(Language::kEnglish)});
  ASSERT_TRUE(figure.has_value());
  EXPECT_THAT(figure->caption, HasSubstr("of which Quick still completed 95 %"));
  ASSERT_EQ(figure->panels.size(), 1u);
  const Panel& panel = figure->panels[0];
  EXPECT_EQ(panel.title, "Chat (128,256)");
  EXPECT_THAT(panel.limits, ElementsAre(8.0));
  EXPECT_TRUE(panel.y.logarithmic);
  ASSERT_EQ(panel.series.size(), 4u);
  EXPECT_EQ(panel.series[1].name, "Plain, p99");
  EXPECT_EQ(panel.series[1].marks.size(), 4u);
  EXPECT_EQ(panel.series[1].marks[2].y, 9000.0);
  EXPECT_THAT(FigureIds(MakeReport(input, Language::kChinese)), Contains("F7"));
}

TEST(FiguresTest, SteadyWindowIsShadedOverTime) {
  const Comparison comparison = FullComparison();
  const Facts facts(comparison);
  ReportInput input{comparison, FullRequests(), {}, {}, ""};
  const auto figure = TimelineFigure({facts, input, Voice(Language::kEnglish)});
  ASSERT_TRUE(figure.has_value());
  ASSERT_EQ(figure->panels.size(), 2u);
  ASSERT_EQ(figure->panels[0].shades.size(), 1u);
  // Sixteen start within 150 ms; the last full group starts after 24 s and loses its first 3.6 s
  // on.
  EXPECT_NEAR(figure->panels[0].shades[0].x_from, 0.15, 1e-6);
  EXPECT_NEAR(figure->panels[0].shades[0].x_to, 27.6, 0.3);
  input.requests[0].requests.resize(4);
  const auto brief = TimelineFigure({facts, input, Voice(Language::kEnglish)});
  EXPECT_THAT(brief->panels[0].shades, IsEmpty());
}

TEST(FindingsTest, PublishedComparison) {
  const Comparison comparison = PublishedComparison();
  EXPECT_THAT(Rules(comparison),
              ElementsAre("best_cell", "worst_cell", "regressions", "crossover", "itl_range",
                          "reference_range", "confounders", "util_change", "no_variance"));
  const auto advice = Advise(Facts(comparison), Voice(Language::kEnglish));
  EXPECT_THAT(advice, Contains(HasSubstr("not slower up to C = 4")));
  EXPECT_THAT(advice,
              Contains(HasSubstr("Coding Agent (16384,4096) alone: not slower up to C = 16")));
  EXPECT_THAT(advice, Contains(HasSubstr("repeat the baseline with engine equal")));
}

TEST(FindingsTest, WhatTheFullComparisonAdds) {
  EXPECT_THAT(Rules(FullComparison()),
              testing::IsSupersetOf({"errors", "invalid", "cohort", "tokens_per_busy_second"}));
}

TEST(FindingsTest, NothingIsSaidOfNothing) {
  Comparison comparison;
  EXPECT_THAT(Rules(comparison), IsEmpty());
  EXPECT_THAT(Advise(Facts(comparison), Voice(Language::kEnglish)),
              ElementsAre(HasSubstr("nothing can be advised")));
}

TEST(ReportTest, BothLanguagesHaveTheSameBlocks) {
  const Comparison comparison = FullComparison();
  const ReportInput input{comparison, FullRequests(), FullAccuracy(), {}, "fulgur"};
  const Document english = MakeReport(input, Language::kEnglish);
  const Document chinese = MakeReport(input, Language::kChinese);
  ASSERT_EQ(english.blocks.size(), chinese.blocks.size());
  for (size_t i = 0; i < english.blocks.size(); ++i) {
    EXPECT_EQ(english.blocks[i].index(), chinese.blocks[i].index()) << i;
  }
}

TEST(ReportTest, ASingleSystemIsEnough) {
  Comparison comparison = FullComparison();
  comparison.treatment.clear();
  std::erase_if(comparison.systems, [](const SystemFacts& s) { return s.id == "fast"; });
  std::erase_if(comparison.cells, [](const CellFacts& c) { return c.system == "fast"; });
  comparison.contrasts.clear();
  comparison.means.clear();
  const Document document = MakeReport({comparison, {}, {}, {}, ""}, Language::kEnglish);
  EXPECT_THAT(document.title, HasSubstr("Plain"));
  EXPECT_THAT(MarkdownText(document, ""), Not(HasSubstr("Quick")));
}

TEST(WorkbookTest, SheetNamesAreWhatExcelTakes) {
  EXPECT_EQ(SheetName("DSpark", "-ITL"), "DSpark-ITL");
  EXPECT_EQ(SheetName("a[b]:c*d?e/f\\g'h", "-ITL"), "a_b__c_d_e_f_g_h-ITL");
  EXPECT_EQ(SheetName(std::string(40, 'x'), "-TTFT"), std::string(26, 'x') + "-TTFT");
  EXPECT_EQ(SheetName("投机解码投机解码投机解码投机解码投机解码投机解码投机解码", "-TTFT"),
            "投机解码投机解码投机解码投机解码投机解码投机解码投机-TTFT");
}

TEST(WorkbookTest, EqualComparisonsGiveEqualFiles) {
  const std::filesystem::path folder = testing::TempDir();
  const Comparison comparison = FullComparison();
  for (const char* name : {"one.xlsx", "two.xlsx"}) {
    const auto status = WriteWorkbook(comparison, {Language::kEnglish}, folder / name);
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(Content(folder / "one.xlsx"), Content(folder / "two.xlsx"));
}

TEST(WorkbookTest, ExtraSheetsComeOnRequestOnly) {
  const std::filesystem::path folder = testing::TempDir();
  const Comparison comparison = FullComparison();
  CellSlices slices{"plain", "chat", 1, {{1'000'000'000, 2'000'000'000, true, {}}}};
  slices.slices[0].metrics["request_count"] = Scalar(9, "requests");
  const std::vector<CellSlices> all = {slices};
  const auto status =
      WriteWorkbook(comparison, {Language::kEnglish}, folder / "extra.xlsx", {true, &all});
  ASSERT_TRUE(status.ok()) << status;
  const auto five = WriteWorkbook(comparison, {Language::kEnglish}, folder / "five.xlsx");
  ASSERT_TRUE(five.ok()) << five;
  EXPECT_THAT(Content(folder / "extra.xlsx"), HasSubstr("xl/worksheets/sheet9.xml"));
  EXPECT_THAT(Content(folder / "five.xlsx"), Not(HasSubstr("xl/worksheets/sheet6.xml")));
}

TEST(WorkbookTest, AnEmptyComparisonIsAWorkbookToo) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "empty.xlsx";
  const auto status = WriteWorkbook(Comparison(), {Language::kEnglish, Language::kChinese}, file);
  EXPECT_TRUE(status.ok()) << status;
}

TEST(WriteReportTest, OneFileThatFailsDoesNotKeepTheRest) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "written";
  const Comparison comparison = PublishedComparison();
  ReportFiles files;
  files.workbook = "/proc/none/report.xlsx";
  files.markdown = folder / "report.md";
  const WrittenReport written = WriteReport({comparison, {}, {}, {}, ""}, files);
  EXPECT_THAT(written.problems, ElementsAre(HasSubstr("/proc/none")));
  EXPECT_TRUE(std::filesystem::exists(folder / "report.md"));
  EXPECT_TRUE(std::filesystem::exists(folder / "report.zh.md"));
  EXPECT_TRUE(std::filesystem::exists(folder / "report_files" / "F1.svg"));
}

}  // namespace
}  // namespace fulgur::bench
