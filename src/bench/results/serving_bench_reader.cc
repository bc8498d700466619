#include "bench/results/serving_bench_reader.h"

#include <string>
#include <utility>

#include "bench/results/derive.h"
#include "bench/results/error_groups.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

struct Family {
  const char* suffix;  // of the keys
  const char* tag;     // aiperf's name of what they mean
};

constexpr Family kFamilies[] = {{"ttft_ms", "time_to_first_token"},
                                {"tpot_ms", "inter_token_latency"},
                                {"itl_ms", "inter_chunk_latency"},
                                {"e2el_ms", "request_latency"},
                                {"e2e_latency_ms", "request_latency"}};

void ReadFamily(const JsonObject& root, const Family& family, MetricMap& metrics) {
  MetricBlock block;
  block.unit = "ms";
  block.avg = NumberAt(root, fmt::format("mean_{}", family.suffix));
  block.std = NumberAt(root, fmt::format("std_{}", family.suffix));
  block.max = NumberAt(root, fmt::format("max_{}", family.suffix));
  if (const auto median = NumberAt(root, fmt::format("median_{}", family.suffix))) {
    block.percentiles[50] = *median;
  }
  for (const int q : kPercentiles) {
    const auto value = NumberAt(root, fmt::format("p{}_{}", q, family.suffix));
    if (value) block.percentiles[q] = *value;
  }
  if (block.avg || !block.percentiles.empty()) metrics[family.tag] = std::move(block);
}

void ReadScalars(const JsonObject& root, MetricMap& metrics) {
  const auto scalar = [&](const char* key, const char* tag, std::string_view unit) {
    if (const auto value = NumberAt(root, key)) metrics[tag] = Scalar(*value, unit);
  };
  scalar("completed", "request_count", "requests");
  scalar("failed", "error_request_count", "requests");
  scalar("duration", "benchmark_duration", "sec");
  scalar("total_input_tokens", "total_isl", "tokens");
  scalar("total_output_tokens", "total_osl", "tokens");
  scalar("request_throughput", "request_throughput", "requests/sec");
  scalar("request_goodput", "goodput", "requests/sec");
  scalar("output_throughput", "output_token_throughput", "tokens/sec");
  scalar("input_throughput", "input_token_throughput", "tokens/sec");
  scalar("total_throughput", "total_token_throughput", "tokens/sec");
  scalar("total_token_throughput", "total_token_throughput", "tokens/sec");
  scalar("spec_decode_acceptance_length", "spec_decode_acceptance_length", "tokens");
  scalar("accept_length", "spec_decode_acceptance_length", "tokens");
  scalar("spec_decode_acceptance_rate", "spec_decode_draft_acceptance_rate", "%");
  scalar("spec_decode_draft_tokens", "total_draft_tokens", "tokens");
  scalar("spec_decode_accepted_tokens", "total_accepted_draft_tokens", "tokens");
  scalar("spec_decode_num_drafts", "total_spec_decode_steps", "count");
  const auto rates = NumbersAt(root, "spec_decode_per_position_acceptance_rates");
  for (size_t i = 0; rates && i < rates->size(); ++i) {
    metrics[fmt::format("fulgur_acceptance_rate_position_{}", i + 1)] =
        Scalar((*rates)[i], "ratio");
  }
}

// The lists of a detailed file, one entry a request; failed ones included.
struct Details {
  std::vector<double> input_lengths, output_lengths, first_tokens, latencies, starts;
  std::vector<std::vector<double>> gaps;
  std::vector<std::string> errors;
};

std::optional<Details> ReadDetails(const JsonObject& root) {
  Details details;
  const auto inputs = NumbersAt(root, "input_lens");
  const auto outputs = NumbersAt(root, "output_lens");
  const auto first_tokens = NumbersAt(root, "ttfts");
  const auto gaps = ArrayAt(root, "itls");
  if (!inputs || !outputs || !first_tokens || !gaps) return std::nullopt;
  details.input_lengths = *inputs;
  details.output_lengths = *outputs;
  details.first_tokens = *first_tokens;
  for (const JsonElement element : *gaps) {
    JsonArray list;
    if (element.get(list) != simdjson::SUCCESS) return std::nullopt;
    std::vector<double> values;
    for (const JsonElement gap : list) values.push_back(NumberOf(gap).value_or(0.0));
    details.gaps.push_back(std::move(values));
  }
  details.latencies = NumbersAt(root, "latencies").value_or(std::vector<double>());
  details.starts = NumbersAt(root, "start_times").value_or(std::vector<double>());
  details.errors = TextsAt(root, "errors");
  return details;
}

bool SameLength(const Details& details) {
  const size_t n = details.output_lengths.size();
  return details.input_lengths.size() == n && details.first_tokens.size() == n &&
         details.gaps.size() == n && (details.latencies.empty() || details.latencies.size() == n) &&
         (details.errors.empty() || details.errors.size() == n) &&
         (details.starts.empty() || details.starts.size() == n);
}

// Older files lack the latencies; first token plus all gaps is the same up to the last message.
double LatencySeconds(const Details& details, size_t i) {
  if (!details.latencies.empty()) return details.latencies[i];
  double latency = details.first_tokens[i];
  for (const double gap : details.gaps[i]) latency += gap;
  return latency;
}

RequestLine LineOf(const Details& details, size_t i) {
  RequestLine line;
  line.session = static_cast<int64_t>(i);
  if (!details.errors.empty() && !details.errors[i].empty()) {
    line.error = RequestError{std::nullopt, details.errors[i], details.errors[i]};
    return line;
  }
  if (details.output_lengths[i] <= 0) {
    line.error = RequestError{std::nullopt, "no output", "the answer has no token"};
    return line;
  }
  auto& values = line.metrics.values;
  const double first_ms = details.first_tokens[i] * 1000.0;
  const double latency_ms = LatencySeconds(details, i) * 1000.0;
  values["input_sequence_length"] = details.input_lengths[i];
  values["output_sequence_length"] = details.output_lengths[i];
  values["time_to_first_token"] = first_ms;
  values["request_latency"] = latency_ms;
  values["decode_duration"] = latency_ms - first_ms;
  for (const double gap : details.gaps[i]) {
    line.metrics.inter_chunk_latency_ms.push_back(gap * 1000.0);
  }
  if (details.output_lengths[i] < 2) return line;
  const double per_token = (latency_ms - first_ms) / (details.output_lengths[i] - 1);
  values["inter_token_latency"] = per_token;
  if (per_token > 0) values["output_token_throughput_per_user"] = 1000.0 / per_token;
  return line;
}

void GroupErrorsOf(Result& result) {
  ErrorGrouper grouper;
  for (const RequestLine& line : result.requests) {
    if (line.error) grouper.Add({line.error->code, line.error->type, line.error->message, 1});
  }
  result.cell.errors = grouper.TakeGroups();
}

// Statistics over requests replace the few that the file has: same numbers, more of them.
void UseDetails(const JsonObject& root, Result& result) {
  const auto details = ReadDetails(root);
  if (!details) return;
  if (!SameLength(*details)) {
    result.problems.push_back(fmt::format(
        "{}: the lists over requests differ in length and are left out", result.cell.source));
    return;
  }
  for (size_t i = 0; i < details->output_lengths.size(); ++i) {
    result.requests.push_back(LineOf(*details, i));
  }
  SummarizeRequests(result);
  GroupErrorsOf(result);
}

void SetLoad(const JsonObject& root, Result& result) {
  Cell& cell = result.cell;
  const auto set = [&](const char* key, const char* field) {
    const std::string text = TextAt(root, field);
    if (!text.empty()) cell.environment[key] = text;
  };
  set("model", "model_id");
  set("backend", "backend");
  set("dataset", "dataset_name");
  cell.concurrency = IntegerAt(root, "max_concurrency");
  PlannedPhase phase;
  phase.name = "profiling";
  phase.requests = IntegerAt(root, "num_prompts");
  phase.concurrency = cell.concurrency;
  phase.rate = NumberAt(root, "request_rate");
  if (phase.rate) {
    phase.type = NumberAt(root, "burstiness").value_or(1.0) == 1.0 ? "poisson" : "gamma";
    cell.environment["request_rate"] = fmt::format("{}", *phase.rate);
  }
  cell.environment["load"] = phase.type;
  result.plan.phases.push_back(phase);
  result.plan.models = {TextAt(root, "model_id")};
}

// The chat client of vLLM up to 0.32 takes a message with nothing but a role for the first token.
// 0.33 began to keep latencies in every file.
void SetVersion(const JsonObject& root, Cell& cell) {
  if (cell.kind == ResultKind::kSglang) {
    cell.tool_version = "SGLang";
  } else if (FieldAt(root, "latencies")) {
    cell.tool_version = "vLLM 0.33 or later";
  } else {
    cell.tool_version = "vLLM before 0.33";
    if (TextAt(root, "backend").find("chat") != std::string::npos) {
      cell.environment["first_token"] = "first message with choices, even if it has no text";
    }
  }
  cell.environment["load_tool"] = cell.tool_version;
}

}  // namespace

bool IsServingBench(const JsonObject& root) {
  return NumberAt(root, "duration") && NumberAt(root, "completed") &&
         (FieldAt(root, "mean_ttft_ms") || FieldAt(root, "request_throughput"));
}

Result ReadServingBench(const JsonObject& root, const std::filesystem::path& file) {
  Result result;
  Cell& cell = result.cell;
  const bool sglang = FieldAt(root, "mean_e2e_latency_ms") ||
                      FieldAt(root, "total_output_tokens_retokenized") ||
                      FieldAt(root, "sharegpt_output_len");
  cell.kind = sglang ? ResultKind::kSglang : ResultKind::kVllmBench;
  cell.source = file.string();
  SetVersion(root, cell);
  SetLoad(root, result);
  ReadScalars(root, cell.metrics);
  for (const Family& family : kFamilies) ReadFamily(root, family, cell.metrics);
  result.window_s = NumberAt(root, "duration");
  UseDetails(root, result);
  MarkHarmonicRate(result);
  DeriveMetrics(result);
  return result;
}

}  // namespace fulgur::bench
