// Rules on single requests.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "bench/results/lint_rules.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

std::vector<const RequestLine*> ValidByStart(const Result& result) {
  std::vector<const RequestLine*> lines;
  for (const RequestLine& line : result.requests) {
    if (line.valid()) lines.push_back(&line);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const RequestLine* a, const RequestLine* b) {
    return a->start_ns < b->start_ns;
  });
  return lines;
}

// TTFT + ITL x (tokens - 1) is the latency, or with tokens of the first message left out, somewhat
// less than one more.
bool LatencyAddsUp(const RequestMetrics& metrics, bool per_chunk) {
  const double latency = metrics.Get("request_latency", 0.0);
  const double decode = latency - metrics.Get("time_to_first_token", 0.0);
  const double itl = metrics.Get("inter_token_latency", 0.0);
  const double tokens = metrics.Get("output_sequence_length", 0.0);
  const double tolerance = 1e-6 * latency + 1e-6;
  if (!per_chunk) return std::fabs(decode - itl * (tokens - 1)) <= tolerance;
  if (itl <= 0) return decode <= tolerance;
  const double first_chunk = tokens - decode / itl;
  return first_chunk >= 1 - 1e-3 && first_chunk < tokens &&
         std::fabs(first_chunk - std::round(first_chunk)) < 1e-2;
}

void CheckAddition(const Result& result, const std::vector<const RequestLine*>& lines,
                   std::vector<LintFinding>& into) {
  int64_t checked = 0;
  int64_t wrong = 0;
  for (const RequestLine* line : lines) {
    if (!line->metrics.Has("inter_token_latency")) continue;
    ++checked;
    if (!LatencyAddsUp(line->metrics, result.plan.per_chunk_usage)) ++wrong;
  }
  if (checked == 0) return;
  into.push_back(
      {"L8", wrong == 0 ? Severity::kPass : Severity::kFail,
       fmt::format("first token and inter-token latencies do not add up to the latency in "
                   "{} of {} requests",
                   wrong, checked)});
}

void CheckUsage(const std::vector<const RequestLine*>& lines, std::vector<LintFinding>& into) {
  const auto with =
      static_cast<size_t>(std::count_if(lines.begin(), lines.end(), [](const RequestLine* line) {
        return line->metrics.Has("usage_completion_tokens");
      }));
  if (2 * with <= lines.size()) return;
  const size_t without = lines.size() - with;
  into.push_back(
      {"L17", without == 0 ? Severity::kPass : Severity::kWarn,
       fmt::format("{} of {} answers that count as good lack the server's token counts: an "
                   "error inside the stream, or a cut one",
                   without, lines.size())});
}

void CheckTimes(const Result& result, std::vector<LintFinding>& into) {
  int64_t backwards = 0;
  for (const RequestLine& line : result.requests) {
    const auto& gaps = line.metrics.inter_chunk_latency_ms;
    const bool bad = line.end_ns < line.start_ns ||
                     (line.scheduled_ns && *line.scheduled_ns > line.start_ns + 1'000'000'000) ||
                     std::any_of(gaps.begin(), gaps.end(), [](double gap) { return gap < 0; });
    if (bad) ++backwards;
  }
  if (backwards == 0) return;
  into.push_back({"T2", Severity::kFail,
                  fmt::format("{} of {} requests end before they start: the clock jumped",
                              backwards, result.requests.size())});
}

void CheckMerging(const std::vector<const RequestLine*>& lines, std::vector<LintFinding>& into) {
  size_t all = 0;
  size_t together = 0;
  for (const RequestLine* line : lines) {
    for (const double gap : line->metrics.inter_chunk_latency_ms) {
      ++all;
      if (gap < 0.001) ++together;
    }
  }
  if (all == 0 || 5 * together <= all) return;
  into.push_back(
      {"P19", Severity::kWarn,
       fmt::format("{} of {} messages arrived together with the one before: something on "
                   "the way merges them, so gaps between messages say little",
                   together, all)});
}

double Correlation(const std::vector<std::pair<double, double>>& points) {
  const auto n = static_cast<double>(points.size());
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  for (const auto& [a, b] : points) {
    x += a;
    y += b;
    xx += a * a;
    yy += b * b;
    xy += a * b;
  }
  const double spread = (xx - x * x / n) * (yy - y * y / n);
  return spread > 0 ? (xy - x * y / n) / std::sqrt(spread) : 0.0;
}

// With equal lengths a closed loop runs in lock-step: C requests start together, and the last of
// them waits for the prompts of all others, again and again.
void CheckCohorts(const Result& result, const std::vector<const RequestLine*>& lines,
                  std::vector<LintFinding>& into) {
  const auto width =
      static_cast<size_t>(std::clamp<int64_t>(result.cell.concurrency.value_or(0), 0, 1 << 20));
  if (width < 4 || lines.size() < 5 * width) return;
  std::vector<std::pair<double, double>> points;
  double first = 0, last = 0, groups = 0;
  for (size_t i = 0; i + width <= lines.size(); i += width) {
    for (size_t k = 0; k < width; ++k) {
      points.emplace_back(static_cast<double>(k),
                          lines[i + k]->metrics.Get("time_to_first_token", 0.0));
    }
    first += points[points.size() - width].second;
    last += points.back().second;
    groups += 1;
  }
  if (first <= 0 || groups < 5) return;
  const double ratio = last / first;
  const double correlation = Correlation(points);
  const bool lock_step = ratio > 1.3 && correlation > 0.5;
  into.push_back(
      {"P14", lock_step ? Severity::kWarn : Severity::kPass,
       fmt::format("time to first token of the last in {} consecutive starts is {:.2f} "
                   "times that of the first (correlation {:.2f}){}",
                   width, ratio, correlation,
                   lock_step ? ": requests run in lock-step, so stagger the start or vary "
                               "the lengths"
                             : "")});
}

}  // namespace

void LintRequests(const Result& result, std::vector<LintFinding>& into) {
  if (result.requests.empty()) return;
  const auto lines = ValidByStart(result);
  CheckAddition(result, lines, into);
  CheckUsage(lines, into);
  CheckTimes(result, into);
  CheckMerging(lines, into);
  CheckCohorts(result, lines, into);
}

}  // namespace fulgur::bench
