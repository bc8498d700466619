#include "bench/results/trials.h"

#include "base/status_macros.h"
#include "fmt/format.h"
#include "io/json.h"

namespace fulgur::bench {

Trial TrialFromJson(const JsonObject& object) {
  Trial trial;
  trial.id = TextAt(object, "id");
  trial.change = TextAt(object, "change");
  trial.tag = TextAt(object, "tag");
  trial.delta_percent = NumberAt(object, "delta_percent");
  trial.errors = IntegerAt(object, "errors");
  trial.decision = TextAt(object, "decision");
  trial.reason = TextAt(object, "reason");
  return trial;
}

absl::StatusOr<std::vector<Trial>> ReadTrials(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::ReadFile(file.string()));
  ASSIGN_OR_RETURN(const JsonObject root, io::RootObject(document, file.string()));
  if (TextAt(root, "format") != kTrialsFormat) {
    return absl::InvalidArgumentError(
        fmt::format("{} has no \"format\": \"{}\"", file.string(), kTrialsFormat));
  }
  std::vector<Trial> trials;
  for (const JsonObject& object : ObjectsAt(root, "trials")) {
    trials.push_back(TrialFromJson(object));
  }
  return trials;
}

}  // namespace fulgur::bench
