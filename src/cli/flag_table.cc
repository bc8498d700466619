#include "cli/flag_table.h"

#include <algorithm>

#include "base/check.h"
#include "cli/near_miss.h"
#include "cli/words.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

bool HasAlias(const FlagSpec& flag, std::string_view spelling) {
  const auto aliases = SplitWords(flag.aliases, ' ');
  return std::find(aliases.begin(), aliases.end(), spelling) != aliases.end();
}

}  // namespace

std::string NormalizeName(std::string_view name) {
  std::string normal(name);
  std::replace(normal.begin(), normal.end(), '_', '-');
  return normal;
}

std::vector<std::string_view> SplitChoices(std::string_view choices) {
  return SplitWords(choices, '|');
}

const FlagSpec* FlagTable::FindSpelling(std::string_view spelling) const {
  const std::string normal = NormalizeName(spelling);
  for (const FlagGroup& group : groups_) {
    for (const FlagSpec& flag : group.flags) {
      if (fmt::format("--{}", flag.name) == normal || HasAlias(flag, normal)) return &flag;
    }
  }
  return nullptr;
}

const FlagSpec& FlagTable::Get(std::string_view name) const {
  const FlagSpec* flag = FindSpelling(fmt::format("--{}", name));
  CHECK(flag != nullptr);
  return *flag;
}

std::optional<std::string> FlagTable::Suggest(std::string_view spelling) const {
  std::vector<std::string> spellings;
  for (const FlagGroup& group : groups_) {
    for (const FlagSpec& flag : group.flags) {
      spellings.push_back(fmt::format("--{}", flag.name));
      if (flag.type == FlagType::kBool) spellings.push_back(fmt::format("--no-{}", flag.name));
      for (std::string_view alias : SplitWords(flag.aliases, ' ')) {
        if (alias.starts_with("--")) spellings.emplace_back(alias);
      }
    }
  }
  const std::vector<std::string_view> known(spellings.begin(), spellings.end());
  const auto found = NearMiss(NormalizeName(spelling), known);
  return found ? std::optional<std::string>(*found) : std::nullopt;
}

}  // namespace fulgur::cli
