// The sections of the report. Private to it.
#pragma once

#include <string>
#include <vector>

#include "bench/report/document.h"
#include "bench/report/facts.h"
#include "bench/report/figures.h"
#include "bench/report/findings.h"
#include "bench/report/report_input.h"
#include "bench/report/text.h"

namespace fulgur::bench {

struct ReportContext {
  const ReportInput& input;
  Facts facts;
  Voice say;
  Document& document;

  void Section(const char* anchor, const Text& heading);
  void Say(const Text& text, TextArguments arguments = {}, Tone tone = Tone::kPlain);
  void Show(std::optional<Figure> figure);
  // Rows in which only the label is set are left out; without rows the section says so.
  bool Show(Table table);
  std::string Label(const SystemFacts* system) const;
  std::string Label(const Place& place) const;
  FigureContext figures() const { return {facts, input, say}; }
  std::string VerdictText(const Contrast* contrast) const;
};

Tone ToneOf(Verdict verdict);

// report_results.cc
void AddSummary(ReportContext& context);
void AddBackground(ReportContext& context);
void AddThroughput(ReportContext& context);
void AddItl(ReportContext& context);
void AddTtft(ReportContext& context);
void AddFindings(ReportContext& context);
void AddConclusion(ReportContext& context);
void AddPareto(ReportContext& context);

// report_details.cc
void AddUtilisation(ReportContext& context);
void AddSpeculation(ReportContext& context);
void AddAccuracy(ReportContext& context);
void AddMethod(ReportContext& context);
void AddValidity(ReportContext& context);
void AddReproduction(ReportContext& context);
void AddAppendix(ReportContext& context);

}  // namespace fulgur::bench
