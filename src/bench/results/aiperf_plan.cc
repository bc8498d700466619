#include "bench/results/aiperf_plan.h"

#include <string>
#include <utility>

#include "bench/results/strings.h"

namespace fulgur::bench {
namespace {

std::optional<LengthSpec> LengthAt(const JsonObject& object, const char* key) {
  const auto spec = ObjectAt(object, key);
  if (!spec) return std::nullopt;
  const auto mean = NumberAt(*spec, "mean");
  if (!mean) return std::nullopt;
  return LengthSpec{*mean, NumberAt(*spec, "stddev").value_or(0.0)};
}

void ReadEndpoint(const JsonObject& config, RunPlan& plan) {
  if (const auto models = ObjectAt(config, "models")) {
    for (const JsonObject& model : ObjectsAt(*models, "items")) {
      plan.models.push_back(TextAt(model, "name"));
    }
  }
  const auto endpoint = ObjectAt(config, "endpoint");
  if (!endpoint) return;
  if (plan.models.empty()) plan.models = TextsAt(*endpoint, "model_names");
  plan.urls = TextsAt(*endpoint, "urls");
  if (plan.urls.empty() && FieldAt(*endpoint, "url")) plan.urls = {TextAt(*endpoint, "url")};
  plan.endpoint_type = TextAt(*endpoint, "type");
  plan.streaming = BoolAt(*endpoint, "streaming").value_or(false);
  plan.per_chunk_usage = BoolAt(*endpoint, "per_chunk_usage").value_or(false);
}

void AddExtras(const JsonObject& extras, RunPlan& plan) {
  for (const auto field : extras) {
    plan.extra[std::string(field.key)] = simdjson::minify(field.value);
  }
}

// Release 0.1 keeps pairs of name and value.
void AddExtraPairs(const JsonArray& pairs, RunPlan& plan) {
  for (const JsonElement element : pairs) {
    JsonArray pair;
    JsonElement value;
    std::string_view name;
    if (element.get(pair) == simdjson::SUCCESS && pair.at(0).get(name) == simdjson::SUCCESS &&
        pair.at(1).get(value) == simdjson::SUCCESS) {
      plan.extra[std::string(name)] = simdjson::minify(value);
    }
  }
}

void ReadExtras(const JsonObject& config, RunPlan& plan) {
  for (const char* parent : {"endpoint", "input"}) {
    const auto object = ObjectAt(config, parent);
    if (!object) continue;
    if (const auto extras = ObjectAt(*object, "extra")) AddExtras(*extras, plan);
    if (const auto pairs = ArrayAt(*object, "extra")) AddExtraPairs(*pairs, plan);
  }
}

void ReadSequences(const JsonObject& prompts, RunPlan& plan) {
  for (const JsonObject& pair : ObjectsAt(prompts, "sequence_distribution")) {
    const auto input = LengthAt(pair, "isl");
    const auto output = LengthAt(pair, "osl");
    if (!input || !output) continue;
    plan.sequence_distribution.push_back(
        {*input, *output, NumberAt(pair, "probability").value_or(1.0)});
  }
}

void ReadDataset(const JsonObject& config, RunPlan& plan) {
  if (const auto datasets = ArrayAt(config, "datasets")) {
    JsonObject dataset;
    if (datasets->at(0).get(dataset) != simdjson::SUCCESS) return;
    plan.dataset_entries = IntegerAt(dataset, "entries");
    plan.random_seed = IntegerAt(dataset, "random_seed");
    const auto prompts = ObjectAt(dataset, "prompts");
    if (!prompts) return;
    ReadSequences(*prompts, plan);
    // Beside a distribution the plain lengths are defaults that nothing uses.
    if (!plan.sequence_distribution.empty()) return;
    plan.input_length = LengthAt(*prompts, "isl");
    plan.output_length = LengthAt(*prompts, "osl");
    return;
  }
  const auto input = ObjectAt(config, "input");
  if (!input) return;
  plan.random_seed = IntegerAt(*input, "random_seed");
  if (const auto prompt = ObjectAt(*input, "prompt")) {
    plan.input_length = LengthAt(*prompt, "input_tokens");
    plan.output_length = LengthAt(*prompt, "output_tokens");
  }
}

PlannedPhase ReadPhase(const JsonObject& object) {
  PlannedPhase phase;
  phase.name = TextAt(object, "name");
  phase.type = TextAt(object, "type");
  phase.requests = IntegerAt(object, "requests");
  phase.duration_s = NumberAt(object, "duration");
  phase.concurrency = IntegerAt(object, "concurrency");
  phase.rate = NumberAt(object, "rate");
  return phase;
}

void ReadPhases(const JsonObject& config, RunPlan& plan) {
  for (const JsonObject& object : ObjectsAt(config, "phases")) {
    plan.phases.push_back(ReadPhase(object));
  }
  const auto load = ObjectAt(config, "loadgen");
  if (!plan.phases.empty() || !load) return;
  PlannedPhase phase;
  phase.name = "profiling";
  phase.requests = IntegerAt(*load, "request_count");
  phase.concurrency = IntegerAt(*load, "concurrency");
  phase.rate = NumberAt(*load, "request_rate");
  if (phase.rate) phase.type = "poisson";
  plan.phases.push_back(std::move(phase));
}

void ReadObjectives(const JsonObject& config, RunPlan& plan) {
  const auto objectives = ObjectAt(config, "slos");
  if (!objectives) return;
  for (const auto field : *objectives) {
    if (const auto limit = NumberOf(field.value)) plan.objectives[std::string(field.key)] = *limit;
  }
}

void ReadRunInfo(const JsonObject& root, RunPlan& plan) {
  const auto info = ObjectAt(root, "run_info");
  if (!info) return;
  if (const auto seed = IntegerAt(*info, "random_seed")) plan.random_seed = seed;
  const auto trial = IntegerAt(*info, "trial").value_or(0);
  plan.trial = trial >= 0 && trial < 1'000'000 ? static_cast<int32_t>(trial) : 0;
  plan.command_line = TextAt(*info, "cli_command");
}

}  // namespace

RunPlan ReadRunPlan(const JsonObject& root) {
  RunPlan plan;
  plan.benchmark_id = TextAt(root, "benchmark_id");
  plan.endpoint_type.clear();
  if (const auto config = ObjectAt(root, "input_config")) {
    plan.command_line = TextAt(*config, "cli_command");
    ReadEndpoint(*config, plan);
    ReadExtras(*config, plan);
    ReadDataset(*config, plan);
    ReadPhases(*config, plan);
    ReadObjectives(*config, plan);
    if (const auto tokenizer = ObjectAt(*config, "tokenizer")) {
      plan.tokenizer = TextAt(*tokenizer, "name");
    }
  }
  ReadRunInfo(root, plan);
  return plan;
}

std::optional<int64_t> PlannedConcurrency(const RunPlan& plan) {
  for (const PlannedPhase& phase : plan.phases) {
    if (phase.name == "profiling" && phase.concurrency) return phase.concurrency;
  }
  const std::vector<std::string_view> words = Words(plan.command_line, " =");
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--concurrency") return ParseInteger(words[i + 1]);
  }
  return std::nullopt;
}

}  // namespace fulgur::bench
