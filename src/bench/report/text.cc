#include "bench/report/text.h"

#include <algorithm>

#include "base/check.h"

namespace fulgur::bench {

std::string Voice::operator()(const Text& text, TextArguments arguments) const {
  std::string filled;
  std::string_view rest = text.In(language_);
  while (!rest.empty()) {
    const size_t open = std::min(rest.find('{'), rest.size());
    filled += rest.substr(0, open);
    rest.remove_prefix(open);
    if (rest.empty()) break;
    const size_t close = rest.find('}');
    const std::string_view place = rest.substr(1, close - 1);
    const auto argument = std::find_if(arguments.begin(), arguments.end(),
                                       [&](const auto& given) { return given.first == place; });
    CHECK(argument != arguments.end());
    filled += argument->second;
    rest.remove_prefix(close + 1);
  }
  return filled;
}

std::string Voice::List(const std::vector<std::string>& parts) const {
  const bool english = language_ == Language::kEnglish;
  std::string list;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) {
      const bool last = i + 1 == parts.size();
      list += english ? (last ? " and " : ", ") : (last ? "和" : "、");
    }
    list += parts[i];
  }
  return list;
}

}  // namespace fulgur::bench
