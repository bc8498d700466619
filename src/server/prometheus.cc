#include "server/prometheus.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/json_writer.h"

namespace fulgur::server {

std::string MetricLabels(
    std::initializer_list<std::pair<std::string_view, std::string_view>> pairs) {
  std::string labels;
  for (auto [name, value] : pairs) {
    if (!labels.empty()) labels += ',';
    labels += name;
    labels += "=\"";
    for (char c : value) {
      if (c == '\n') {
        labels += "\\n";
        continue;
      }
      if (c == '"' || c == '\\') labels += '\\';
      labels += c;
    }
    labels += '"';
  }
  return labels;
}

std::string JoinLabels(std::string_view a, std::string_view b) {
  return fmt::format("{}{}{}", a, a.empty() || b.empty() ? "" : ",", b);
}

Histogram::Histogram(std::vector<double> upper_bounds)
    : upper_bounds_(std::move(upper_bounds)), counts_(upper_bounds_.size() + 1) {}

void Histogram::Observe(double value) {
  auto bucket = std::lower_bound(upper_bounds_.begin(), upper_bounds_.end(), value);
  ++counts_[static_cast<size_t>(bucket - upper_bounds_.begin())];
  sum_ += value;
}

std::vector<double> OneTwoFiveBuckets(int64_t limit) {
  std::vector<double> buckets;
  for (int64_t power = 1; power <= limit; power *= 10) {
    for (int64_t mantissa : {1, 2, 5}) {
      if (mantissa * power > limit) return buckets;
      buckets.push_back(static_cast<double>(mantissa * power));
    }
  }
  return buckets;
}

void Exposition::Header(std::string_view name, std::string_view help, std::string_view type) {
  FlushCreated();
  name_ = name;
  is_counter_ = type == "counter";
  std::string_view suffix = is_counter_ ? "_total" : "";
  out_ += fmt::format("# HELP {}{} {}\n# TYPE {}{} {}\n", name, suffix, help, name, suffix, type);
}

void Exposition::FlushCreated() {
  if (created_.empty()) return;
  out_ += fmt::format("# TYPE {}_created gauge\n", name_) + created_;
  created_.clear();
}

void Exposition::Gauge(std::string_view name, std::string_view help) {
  Header(name, help, "gauge");
}
void Exposition::Counter(std::string_view name, std::string_view help) {
  Header(name, help, "counter");
}
void Exposition::HistogramFamily(std::string_view name, std::string_view help) {
  Header(name, help, "histogram");
}

void Exposition::SummaryFamily(std::string_view name, std::string_view help) {
  Header(name, help, "summary");
}

void Exposition::Summary(std::string_view labels, int64_t count, double sum) {
  Sample("_count", labels, static_cast<double>(count));
  Sample("_sum", labels, sum);
}

void Exposition::Sample(std::string_view suffix, std::string_view labels, double value) {
  std::string braced = labels.empty() ? "" : fmt::format("{{{}}}", labels);
  out_ += fmt::format("{}{}{} {}\n", name_, suffix, braced, FormatNumber(value));
  if (suffix == "_total" || suffix == "_sum") {
    created_ += fmt::format("{}_created{} {}\n", name_, braced, FormatNumber(start_seconds_));
  }
}

void Exposition::Value(std::string_view labels, double value) {
  Sample(is_counter_ ? "_total" : "", labels, value);
}

void Exposition::Values(std::string_view labels, const Histogram& histogram) {
  int64_t count = 0;
  for (size_t i = 0; i < histogram.counts().size(); ++i) {
    count += histogram.counts()[i];
    bool last = i == histogram.upper_bounds().size();
    std::string bound = last ? "+Inf" : FormatNumber(histogram.upper_bounds()[i]);
    Sample("_bucket", JoinLabels(labels, MetricLabels({{"le", bound}})),
           static_cast<double>(count));
  }
  Sample("_count", labels, static_cast<double>(count));
  Sample("_sum", labels, histogram.sum());
}

void Exposition::Gauge(std::string_view name, std::string_view help, std::string_view labels,
                       double value) {
  Gauge(name, help);
  Value(labels, value);
}

void Exposition::Counter(std::string_view name, std::string_view help, std::string_view labels,
                         double value) {
  Counter(name, help);
  Value(labels, value);
}

std::string Exposition::Take() {
  FlushCreated();
  return std::move(out_);
}

}  // namespace fulgur::server
