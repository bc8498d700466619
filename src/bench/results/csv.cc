#include "bench/results/csv.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

// Takes one field off the front of `text`; what follows it is ',' or a line end or nothing.
absl::StatusOr<std::string> TakeField(std::string_view& text, std::string_view source) {
  std::string field;
  if (!text.starts_with('"')) {
    const size_t end = std::min(text.find_first_of(",\r\n"), text.size());
    field = text.substr(0, end);
    text.remove_prefix(end);
    return field;
  }
  text.remove_prefix(1);
  while (true) {
    const size_t quote = text.find('"');
    if (quote == std::string_view::npos) {
      return absl::DataLossError(fmt::format("{} has a quoted field without an end", source));
    }
    field += text.substr(0, quote);
    text.remove_prefix(quote + 1);
    if (!text.starts_with('"')) break;
    field += '"';
    text.remove_prefix(1);
  }
  const size_t end = std::min(text.find_first_of(",\r\n"), text.size());
  text.remove_prefix(end);
  return field;
}

}  // namespace

absl::StatusOr<std::vector<std::vector<std::string>>> ParseCsv(std::string_view text,
                                                               std::string_view source) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row;
  while (!text.empty()) {
    if (row.empty() && (text.front() == '\r' || text.front() == '\n')) {
      text.remove_prefix(1);
      continue;
    }
    ASSIGN_OR_RETURN(std::string field, TakeField(text, source));
    row.push_back(std::move(field));
    if (text.starts_with(',')) {
      text.remove_prefix(1);
      if (!text.empty() && text.front() != '\r' && text.front() != '\n') continue;
      row.emplace_back();
    }
    rows.push_back(std::exchange(row, {}));
  }
  if (!row.empty()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace fulgur::bench
