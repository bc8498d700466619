#include "model/tensor_names.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace fulgur::model {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kAliases = {{
    {"self_attn", "attn"},
    {"mlp", "ffn"},
    {"weight_scale_inv", "scale"},
    {"e_score_correction_bias", "bias"},
}};

}  // namespace

std::string CanonicalName(std::string_view name) {
  std::vector<std::string> parts = absl::StrSplit(std::string(name), '.');
  if (parts.size() > 1 && parts.front() == "model") parts.erase(parts.begin());
  for (std::string& part : parts) {
    for (const auto& [alias, official] : kAliases) {
      if (part == alias) part = official;
    }
  }
  return absl::StrJoin(parts, ".");
}

std::string SiblingName(std::string_view weight, std::string_view part) {
  const size_t dot = weight.rfind('.');
  return std::string(weight.substr(0, dot + 1)).append(part);
}

}  // namespace fulgur::model
