#include "model/checkpoint_problems.h"

#include <string_view>
#include <utility>

#include "fmt/format.h"

namespace fulgur::model {
namespace {

constexpr size_t kShown = 3;
constexpr std::array<std::string_view, 5> kKindText = {"missing", "unexpected", "of a wrong shape",
                                                       "of a wrong type", "unsupported"};

}  // namespace

void CheckpointProblems::Add(Kind kind, std::string detail) {
  Group& group = groups_[static_cast<size_t>(kind)];
  ++group.count;
  if (group.first.size() < kShown) group.first.push_back(std::move(detail));
}

absl::Status CheckpointProblems::ToStatus(const std::string& folder) const {
  int64_t total = 0;
  std::string text;
  for (size_t kind = 0; kind < groups_.size(); ++kind) {
    const Group& group = groups_[kind];
    if (group.count == 0) continue;
    total += group.count;
    text += fmt::format("{}{} {}: {}{}", text.empty() ? "" : "; ", group.count, kKindText[kind],
                        fmt::join(group.first, ", "),
                        group.count > static_cast<int64_t>(kShown) ? ", ..." : "");
  }
  if (total == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: {} tensor{} not what config.json describes ({})", folder, total,
                  total == 1 ? " is" : "s are", text));
}

}  // namespace fulgur::model
