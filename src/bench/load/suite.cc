#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "base/status_macros.h"
#include "bench/load/run_options.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMaxInteger = 1e12;

struct Shipped {
  std::string_view name;
  std::string_view help;
  std::string_view json;
};

constexpr std::string_view kSeed = R"({
  "format": "fulgur-suite/1", "name": "seed",
  "defaults": {"concurrency": [1, 4, 8, 16], "extra": {"ignore_eos": true, "min_tokens": "osl"}},
  "scenarios": [
    {"id": "chat", "isl": {"mean": 128}, "osl": {"mean": 256}, "requests": 300},
    {"id": "sum", "isl": {"mean": 1024}, "osl": {"mean": 128}, "requests": 200},
    {"id": "coding", "seq_dist": "16384|1024,4096|256:100", "requests": 50,
     "min_requests_per_slot": 5}
  ]})";

constexpr std::string_view kSmoke = R"({
  "format": "fulgur-suite/1", "name": "smoke",
  "defaults": {"concurrency": [1, 2], "extra": {"ignore_eos": true, "min_tokens": "osl"}},
  "scenarios": [{"id": "smoke", "isl": {"mean": 32}, "osl": {"mean": 16}, "requests": 8}]})";

constexpr std::string_view kNatural = R"({
  "format": "fulgur-suite/1", "name": "natural",
  "defaults": {"concurrency": [1, 4, 8, 16]},
  "scenarios": [{"id": "natural", "dataset": "natural", "max_tokens": 2048, "requests": 32}]})";

constexpr std::string_view kPrefix90 = R"({
  "format": "fulgur-suite/1", "name": "prefix90",
  "defaults": {"concurrency": [1, 4, 8, 16], "extra": {"ignore_eos": true, "min_tokens": "osl"}},
  "scenarios": [{"id": "prefix90", "isl": {"mean": 3277}, "osl": {"mean": 1024}, "requests": 32,
                 "prefix": {"groups": 1, "length": 29491, "warm": true}}]})";

constexpr std::string_view kNightly = R"({
  "format": "fulgur-suite/1", "name": "nightly",
  "defaults": {"extra": {"ignore_eos": true, "min_tokens": "osl"}},
  "scenarios": [
    {"id": "mid-c100", "isl": {"mean": 3500}, "osl": {"mean": 1500}, "requests": 400,
     "concurrency": [100]},
    {"id": "mid-rate12", "isl": {"mean": 3500}, "osl": {"mean": 1500}, "requests": 2048,
     "concurrency": [1024], "rate": 12},
    {"id": "long-prefix90", "isl": {"mean": 6554}, "osl": {"mean": 1024}, "requests": 256,
     "concurrency": [128], "rate": 4.7, "prefix": {"groups": 4, "length": 58982, "warm": true}},
    {"id": "long-rate2.5", "isl": {"mean": 131072}, "osl": {"mean": 1024}, "requests": 128,
     "concurrency": [128], "rate": 2.5}
  ]})";

constexpr std::array<Shipped, 5> kShipped = {{
    {"seed", "chat, summarisation and coding at 1, 4, 8 and 16 users", kSeed},
    {"smoke", "8 short requests at 1 and 2 users: does everything work?", kSmoke},
    {"natural", "32 real questions, answers end by themselves: for speculation", kNatural},
    {"prefix90", "32768 tokens of which 90 % are shared", kPrefix90},
    {"nightly", "large loads with arrival rates, as vLLM-Ascend tests nightly", kNightly},
}};

// Reads fields of one JSON object; the first mistake stays.
class Fields {
 public:
  Fields(const Json& object, std::string place) : object_(object), place_(std::move(place)) {}

  void Number(const char* key, double& value, double least) {
    const auto found = Find(key);
    if (found == object_.end()) return;
    if (!found->is_number() || !(found->get<double>() >= least)) {
      return Fail(key, fmt::format("a number, at least {}", least));
    }
    value = found->get<double>();
  }
  void Integer(const char* key, int64_t& value, int64_t least) {
    double number = static_cast<double>(value);
    Number(key, number, static_cast<double>(least));
    if (number > kMaxInteger) return Fail(key, fmt::format("at most {:g}", kMaxInteger));
    value = std::llround(number);
  }
  void Integer(const char* key, std::optional<int64_t>& value, int64_t least) {
    if (!object_.contains(key)) return;
    int64_t number = least;
    Integer(key, number, least);
    value = number;
  }
  void String(const char* key, std::string& value) {
    const auto found = Find(key);
    if (found == object_.end()) return;
    if (!found->is_string()) return Fail(key, "a text");
    value = found->get<std::string>();
  }
  void Bool(const char* key, bool& value) {
    const auto found = Find(key);
    if (found == object_.end()) return;
    if (!found->is_boolean()) return Fail(key, "true or false");
    value = found->get<bool>();
  }
  void Integers(const char* key, std::vector<int64_t>& values) {
    const auto found = Find(key);
    if (found == object_.end()) return;
    values.clear();
    for (const Json& entry : *found) {
      if (!entry.is_number_integer() || entry.get<int64_t>() < 1) {
        return Fail(key, "a list of whole numbers from 1");
      }
      values.push_back(entry.get<int64_t>());
    }
    if (values.empty()) Fail(key, "a list of whole numbers from 1");
  }
  void Law(const char* key, LengthLaw& law) {
    const Json* object = Object(key);
    if (object == nullptr) return;
    Fields fields(*object, fmt::format("{}, {}", place_, key));
    fields.Number("mean", law.mean, 0.0);
    fields.Number("stddev", law.stddev, 0.0);
    Take(fields.Done());
  }
  // Null if it is not there.
  const Json* Object(const char* key) {
    const auto found = Find(key);
    if (found == object_.end()) return nullptr;
    if (!found->is_object()) {
      Fail(key, "an object");
      return nullptr;
    }
    return &*found;
  }
  void Take(const absl::Status& status) { status_.Update(status); }

  // The first mistake, also a field that nobody asked for.
  absl::Status Done() {
    for (const auto& [key, value] : object_.items()) {
      if (!known_.contains(key)) {
        status_.Update(absl::InvalidArgumentError(
            fmt::format("{}: the field \"{}\" is not known", place_, key)));
      }
    }
    return status_;
  }

 private:
  Json::const_iterator Find(const char* key) {
    known_.insert(key);
    return object_.find(key);
  }
  void Fail(const char* key, const std::string& accepted) {
    status_.Update(
        absl::InvalidArgumentError(fmt::format("{}: \"{}\" must be {}", place_, key, accepted)));
  }

  const Json& object_;
  std::string place_;
  std::set<std::string> known_;
  absl::Status status_;
};

absl::Status ReadPrefix(const Json& json, const std::string& place, Scenario& scenario) {
  Fields fields(json, place);
  fields.Integer("groups", scenario.prefix.groups, 1);
  fields.Integer("length", scenario.prefix.length, 1);
  fields.Integer("shared_system", scenario.prefix.shared_system, 0);
  fields.Integer("user_context", scenario.prefix.user_context, 0);
  fields.Bool("warm", scenario.warm_prefixes);
  return fields.Done();
}

absl::StatusOr<Scenario> ReadScenario(const Json& json, const std::string& place) {
  if (!json.is_object()) return absl::InvalidArgumentError(place + " must be an object");
  Scenario scenario;
  Fields fields(json, place);
  std::string mix, corpus;
  double duration = 0.0, rate = 0.0;
  fields.String("id", scenario.id);
  fields.Object("label");  // for reports
  fields.Law("isl", scenario.lengths[0].input);
  fields.Law("osl", scenario.lengths[0].output);
  fields.String("seq_dist", mix);
  fields.Integer("requests", scenario.requests, 1);
  fields.Integer("min_requests_per_slot", scenario.min_requests_per_slot, 0);
  fields.Integers("concurrency", scenario.concurrency);
  fields.Number("duration_s", duration, 0.0);
  fields.Number("rate", rate, 0.0);
  fields.Number("burstiness", scenario.arrivals.burstiness, 0.01);
  fields.String("dataset", scenario.dataset);
  fields.String("corpus", corpus);
  fields.Integer("max_tokens", scenario.default_output_tokens, 1);
  fields.Law("turns", scenario.turns.turns);
  fields.Law("turn_delay_ms", scenario.turns.delay_ms);
  if (const Json* extra = fields.Object("extra")) scenario.extra = *extra;
  if (const Json* prefix = fields.Object("prefix")) {
    fields.Take(ReadPrefix(*prefix, place + ", prefix", scenario));
  }
  RETURN_IF_ERROR(fields.Done());
  if (!mix.empty()) {
    ASSIGN_OR_RETURN(scenario.lengths, ParseLengthMix(mix));
  }
  if (corpus == "prose") scenario.corpus = Corpus::kProse;
  if (corpus == "code") scenario.corpus = Corpus::kCode;
  if (duration > 0.0) scenario.duration_s = duration;
  if (rate > 0.0) {
    scenario.rate = rate;
    scenario.mode = LoadMode::kOpen;
    scenario.arrivals.rate = rate;
    scenario.arrivals.pattern =
        scenario.arrivals.burstiness == 1.0 ? ArrivalPattern::kPoisson : ArrivalPattern::kGamma;
  }
  return scenario;
}

absl::Status ReadDefaults(const Json& json, const std::string& source, Suite& suite) {
  Fields fields(json, source + ", defaults");
  std::string order;
  fields.Integers("concurrency", suite.concurrency);
  fields.Integer("seed", suite.seed, 0);
  fields.String("order", order);
  if (const Json* extra = fields.Object("extra")) suite.extra = *extra;
  if (order == "scenario-major") suite.order = CellOrder::kScenarioMajor;
  if (order == "concurrency-major") suite.order = CellOrder::kConcurrencyMajor;
  if (order == "random") suite.order = CellOrder::kRandom;
  return fields.Done();
}

}  // namespace

absl::StatusOr<Suite> ParseSuite(std::string_view text, const std::string& source) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("format", Json()) != "fulgur-suite/1") {
    return absl::InvalidArgumentError(
        fmt::format("--suite {}: not a JSON object with \"format\": \"fulgur-suite/1\"", source));
  }
  Suite suite;
  suite.name = source;
  Fields fields(json, source);
  std::string format;
  fields.String("format", format);
  fields.String("name", suite.name);
  if (const Json* defaults = fields.Object("defaults")) {
    fields.Take(ReadDefaults(*defaults, source, suite));
  }
  const Json scenarios = json.value("scenarios", Json());
  if (!scenarios.is_array()) {
    return absl::InvalidArgumentError(source + ": \"scenarios\" must be a list of objects");
  }
  for (size_t i = 0; i < scenarios.size(); ++i) {
    ASSIGN_OR_RETURN(Scenario scenario,
                     ReadScenario(scenarios[i], fmt::format("{}, scenario {}", source, i + 1)));
    suite.scenarios.push_back(std::move(scenario));
  }
  if (suite.scenarios.empty()) {
    return absl::InvalidArgumentError(source + ": \"scenarios\" is missing or empty");
  }
  return suite;
}

absl::StatusOr<Suite> LoadSuite(const std::string& name) {
  for (const Shipped& shipped : kShipped) {
    if (shipped.name == name) return ParseSuite(shipped.json, name);
  }
  std::ifstream file(name, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    std::string names;
    for (const Shipped& shipped : kShipped) names += fmt::format("{}, ", shipped.name);
    return absl::NotFoundError(
        fmt::format("--suite {}: neither a file nor one of {}which are shipped", name, names));
  }
  return ParseSuite(text.str(), name);
}

std::string RateId(const std::string& id, double rate) {
  return fmt::format("{}-rate{:.4g}", id, rate);
}

std::vector<std::pair<std::string, std::string>> ShippedSuites() {
  std::vector<std::pair<std::string, std::string>> suites;
  suites.reserve(std::size(kShipped));
  for (const Shipped& shipped : kShipped) suites.emplace_back(shipped.name, shipped.help);
  return suites;
}

}  // namespace fulgur::bench
