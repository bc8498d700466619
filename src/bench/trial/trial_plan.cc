#include "bench/trial/trial_plan.h"

#include <algorithm>
#include <set>
#include <span>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "io/json.h"

namespace fulgur::bench {
namespace {

using Element = simdjson::dom::element;
using Object = simdjson::dom::object;

constexpr int64_t kFewestBaseRuns = 4;
constexpr int64_t kMostRounds = 100;

constexpr std::string_view kPlanFields[] = {
    "format", "url", "start",        "stop",     "health", "start_limit_s",
    "base",   "run", "stop_limit_s", "variants", "metric", "threshold_percent",
    "rounds", "note"};
constexpr std::string_view kVariantFields[] = {"id", "change", "set", "note"};

absl::Status Mistake(std::string_view field, std::string_view accepted) {
  return absl::InvalidArgumentError(fmt::format("\"{}\" must be {}", field, accepted));
}

absl::Status RefuseUnknown(const Object& object, std::span<const std::string_view> known) {
  for (const auto& [key, value] : object) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return absl::InvalidArgumentError(
          fmt::format("unknown field {}; known are {}", io::Quoted(key), fmt::join(known, ", ")));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadText(const Object& object, std::string_view field, bool needed,
                      std::string& text) {
  Element value;
  if (object[field].get(value) != simdjson::SUCCESS) {
    return needed ? Mistake(field, "there, a text") : absl::OkStatus();
  }
  std::string_view found;
  if (value.get(found) != simdjson::SUCCESS || (needed && found.empty())) {
    return Mistake(field, needed ? "a text that is not empty" : "a text");
  }
  text = found;
  return absl::OkStatus();
}

absl::Status ReadNumber(const Object& object, std::string_view field, double low, double high,
                        double& number) {
  Element value;
  if (object[field].get(value) != simdjson::SUCCESS) return absl::OkStatus();
  double found = 0.0;
  if (value.get(found) != simdjson::SUCCESS || found < low || found > high) {
    return Mistake(field, fmt::format("a number from {:g} to {:g}", low, high));
  }
  number = found;
  return absl::OkStatus();
}

bool IsVariableName(std::string_view name) {
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

absl::Status ReadSettings(const Object& object, std::string_view field, Settings& settings) {
  Object values;
  if (object[field].get(values) != simdjson::SUCCESS) {
    return Mistake(field, "an object of environment variables and their texts");
  }
  for (const auto& [name, value] : values) {
    if (!IsVariableName(name)) {
      return absl::InvalidArgumentError(
          fmt::format("{} in \"{}\" is no name for an environment variable; letters, digits and _ "
                      "are accepted",
                      io::Quoted(name), field));
    }
    std::string_view text;
    const bool is_text = value.get(text) == simdjson::SUCCESS;
    if (!is_text && !value.is_number()) {
      return Mistake(fmt::format("{}.{}", field, name), "a text or a number");
    }
    if (is_text && text.find('\0') != std::string_view::npos) {
      return Mistake(fmt::format("{}.{}", field, name), "without zero bytes");
    }
    settings[std::string(name)] = is_text ? std::string(text) : simdjson::minify(value);
  }
  return absl::OkStatus();
}

absl::Status ReadWords(const Object& object, std::string_view field,
                       std::vector<std::string>& words) {
  simdjson::dom::array list;
  if (object[field].get(list) != simdjson::SUCCESS) {
    return Mistake(field, "a list of flags of `fulgur bench run`, each word a text");
  }
  for (const Element value : list) {
    std::string_view word;
    if (value.get(word) != simdjson::SUCCESS) return Mistake(field, "a list of texts");
    words.emplace_back(word);
  }
  return absl::OkStatus();
}

bool IsFolderName(std::string_view id) {
  if (id.empty() || id == "base") return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
  });
}

absl::StatusOr<Variant> ReadVariant(const Object& object, const Settings& base) {
  Variant variant;
  RETURN_IF_ERROR(RefuseUnknown(object, kVariantFields));
  RETURN_IF_ERROR(ReadText(object, "id", /*needed=*/true, variant.id));
  if (!IsFolderName(variant.id)) {
    return Mistake("id", "of letters, digits, _ and -, and other than \"base\"");
  }
  variant.change = variant.id;
  RETURN_IF_ERROR(ReadText(object, "change", /*needed=*/false, variant.change));
  RETURN_IF_ERROR(ReadSettings(object, "set", variant.set));
  bool differs = false;
  for (const auto& [name, value] : variant.set) {
    const auto found = base.find(name);
    if (found == base.end()) {
      return absl::InvalidArgumentError(
          fmt::format("variant {} sets {}, which \"base\" does not have; give the base its value "
                      "too, even if that is empty",
                      variant.id, name));
    }
    differs = differs || found->second != value;
  }
  if (differs) return variant;
  return absl::InvalidArgumentError(
      fmt::format("variant {} changes nothing; its \"set\" must differ from \"base\"", variant.id));
}

absl::Status ReadVariants(const Object& object, TrialPlan& plan) {
  simdjson::dom::array list;
  if (object["variants"].get(list) != simdjson::SUCCESS || list.size() == 0) {
    return Mistake("variants", "a list of at least one {\"id\", \"change\", \"set\"}");
  }
  std::set<std::string> ids;
  for (const Element value : list) {
    Object entry;
    if (value.get(entry) != simdjson::SUCCESS) return Mistake("variants", "a list of objects");
    ASSIGN_OR_RETURN(Variant variant, ReadVariant(entry, plan.base));
    if (!ids.insert(variant.id).second) {
      return absl::InvalidArgumentError(
          fmt::format("two variants have the id {}; ids must differ", variant.id));
    }
    plan.variants.push_back(std::move(variant));
  }
  return absl::OkStatus();
}

absl::Status ReadServer(const Object& object, ServerCommands& server) {
  constexpr double kDay = 86400.0;
  RETURN_IF_ERROR(ReadText(object, "url", /*needed=*/true, server.url));
  RETURN_IF_ERROR(ReadText(object, "start", /*needed=*/true, server.start));
  RETURN_IF_ERROR(ReadText(object, "stop", /*needed=*/false, server.stop));
  RETURN_IF_ERROR(ReadText(object, "health", /*needed=*/false, server.health));
  if (!server.health.starts_with('/')) return Mistake("health", "a path such as /health");
  RETURN_IF_ERROR(ReadNumber(object, "start_limit_s", 1.0, kDay, server.start_limit_s));
  return ReadNumber(object, "stop_limit_s", 1.0, kDay, server.stop_limit_s);
}

absl::Status ReadRounds(const Object& object, TrialPlan& plan) {
  Element value;
  if (object["rounds"].get(value) != simdjson::SUCCESS) return absl::OkStatus();
  int64_t rounds = 0;
  if (value.get(rounds) != simdjson::SUCCESS || rounds < 1 || rounds > kMostRounds) {
    return Mistake("rounds", fmt::format("a whole number from 1 to {}", kMostRounds));
  }
  plan.rounds = rounds;
  return absl::OkStatus();
}

absl::Status FillPlan(const Object& object, TrialPlan& plan) {
  std::string format;
  RETURN_IF_ERROR(ReadText(object, "format", /*needed=*/false, format));
  if (format != kTrialPlanFormat) return Mistake("format", fmt::format("\"{}\"", kTrialPlanFormat));
  RETURN_IF_ERROR(RefuseUnknown(object, kPlanFields));
  RETURN_IF_ERROR(ReadServer(object, plan.server));
  RETURN_IF_ERROR(ReadSettings(object, "base", plan.base));
  RETURN_IF_ERROR(ReadWords(object, "run", plan.run));
  RETURN_IF_ERROR(ReadText(object, "metric", /*needed=*/false, plan.metric));
  double percent = plan.threshold * 100.0;
  RETURN_IF_ERROR(ReadNumber(object, "threshold_percent", 0.1, 50.0, percent));
  plan.threshold = percent / 100.0;
  RETURN_IF_ERROR(ReadRounds(object, plan));
  return ReadVariants(object, plan);
}

absl::StatusOr<TrialPlan> PlanOf(const io::JsonDocument& document, const std::string& source) {
  ASSIGN_OR_RETURN(const Object object, io::RootObject(document, source));
  TrialPlan plan;
  const absl::Status status = FillPlan(object, plan);
  if (status.ok()) return plan;
  return absl::InvalidArgumentError(fmt::format("{}: {}", source, std::string(status.message())));
}

}  // namespace

int64_t TrialPlan::Rounds() const {
  const int64_t count = std::max<int64_t>(1, static_cast<int64_t>(variants.size()));
  return rounds.value_or((kFewestBaseRuns - 1 + count - 1) / count);
}

Settings TrialPlan::SettingsOf(const Variant* variant) const {
  Settings settings = base;
  if (variant == nullptr) return settings;
  for (const auto& [name, value] : variant->set) settings[name] = value;
  return settings;
}

absl::StatusOr<TrialPlan> ParseTrialPlan(std::string_view text, const std::string& source) {
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::Parse(text, source));
  return PlanOf(document, source);
}

absl::StatusOr<TrialPlan> ReadTrialPlan(const std::string& file) {
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::ReadFile(file));
  return PlanOf(document, file);
}

absl::Status KeepVariants(const std::vector<std::string_view>& ids, TrialPlan& plan) {
  std::vector<Variant> kept;
  for (const std::string_view id : ids) {
    const auto found = std::find_if(plan.variants.begin(), plan.variants.end(),
                                    [id](const Variant& variant) { return variant.id == id; });
    if (found == plan.variants.end()) {
      std::vector<std::string> known;
      for (const Variant& variant : plan.variants) known.push_back(variant.id);
      return absl::InvalidArgumentError(
          fmt::format("there is no variant {}; there are {}", id, fmt::join(known, ", ")));
    }
    kept.push_back(*found);
  }
  plan.variants = std::move(kept);
  return absl::OkStatus();
}

}  // namespace fulgur::bench
