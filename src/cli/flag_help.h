// Help texts made from a flag table: for the terminal, and as a page of the docs.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/flag_table.h"

namespace fulgur::cli {

enum class Language { kEnglish, kChinese };

// All flags that do something, by group.
std::string HelpForUsedFlags(const FlagTable& table);

// --help=TOPIC: a flag, a group, `all`, or `listgroup`. Errors suggest a topic.
absl::StatusOr<std::string> HelpForTopic(const FlagTable& table, std::string_view topic);

// The docs page of `fulgur serve`: every flag with type, default, effect and meaning.
std::string FlagsPage(const FlagTable& table, std::span<const EnvironmentVariable> environment,
                      Language language);

// "used", "no effect" or "refused".
std::string_view EffectName(FlagEffect effect, Language language);

}  // namespace fulgur::cli
