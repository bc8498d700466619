#include "bench/sample/npu_smi_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include "bench/sample/text_scan.h"

namespace fulgur::bench {
namespace {

// The cells of a table line "| a | b |"; none for other lines.
std::vector<std::string_view> Cells(std::string_view line) {
  line = Trimmed(line);
  if (line.size() < 2 || line.front() != '|' || line.back() != '|') return {};
  return FieldsOf(line.substr(1, line.size() - 2), '|');
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool IsHealth(std::string_view cell) {
  const std::string word = Lower(cell);
  return word == "ok" || word == "warning" || word == "alarm" || word == "critical" ||
         word == "unknown";
}

bool IsValue(std::string_view cell) {
  return !cell.empty() &&
         (cell[0] == '-' || cell.starts_with("NA") || (cell[0] >= '0' && cell[0] <= '9'));
}

// The last "used / total" of a cell, whatever the spaces.
std::optional<std::pair<double, double>> LastPair(std::string_view cell) {
  const size_t slash = cell.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto before = WordsOf(cell.substr(0, slash));
  const auto after = WordsOf(cell.substr(slash + 1));
  if (before.empty() || after.empty()) return std::nullopt;
  const auto used = FiniteNumber(before.back());
  const auto total = FiniteNumber(after.front());
  if (!used || !total) return std::nullopt;
  return std::pair(*used, *total);
}

// The first line of a chip: card, name, health, power, temperature.
std::optional<DeviceRow> ParseHead(const std::vector<std::string_view>& cells) {
  for (size_t i = 1; i + 1 < cells.size(); ++i) {
    if (!IsHealth(cells[i]) || !IsValue(cells[i + 1])) continue;
    const auto first = WordsOf(cells[0]);
    if (first.empty() || !WholeNumber<int>(first[0])) return std::nullopt;
    DeviceRow row;
    row.device.kind = "ascend";
    row.device.card = WholeNumber<int>(first[0]);
    row.device.name = std::string(i > 1 ? cells[1] : first.size() > 1 ? first[1] : "");
    const auto values = WordsOf(cells[i + 1]);
    row.reading.power_w = FiniteNumber(values[0]);
    if (values.size() > 1) row.reading.temperature_c = FiniteNumber(values[1]);
    return row;
  }
  return std::nullopt;
}

// The second line: chip and physical number, bus, load, memory. False if it is something else.
bool AddDeviceLine(const std::vector<std::string_view>& cells, DeviceRow& row) {
  if (cells.size() < 2) return false;
  const auto memory = LastPair(cells.back());
  if (!memory) return false;
  row.reading.memory_used_mb = memory->first;
  row.device.memory_total_mb = memory->second;
  row.reading.utilisation_percent = FiniteNumber(WordsOf(cells.back()).front());
  const auto ids = WordsOf(cells[0]);
  if (!ids.empty()) row.device.chip = WholeNumber<int>(ids[0]);
  if (ids.size() > 1) row.device.physical = WholeNumber<int>(ids[1]);
  for (std::string_view cell : cells) {
    if (std::count(cell.begin(), cell.end(), ':') == 2) row.device.bus = std::string(cell);
  }
  return true;
}

// The driver's numbers if every chip has its own, else the order of the table.
void NumberDevices(std::vector<DeviceRow>& rows) {
  std::set<int> numbers;
  for (const DeviceRow& row : rows) {
    if (row.device.physical) numbers.insert(*row.device.physical);
  }
  const bool all_known = numbers.size() == rows.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].device.id = all_known ? *rows[i].device.physical : static_cast<int>(i);
  }
}

// Column names end with ")" or are followed by two spaces: "AI Core(%)" is one name.
std::vector<std::string> ColumnNames(std::string_view line) {
  std::vector<std::string> names;
  std::string name;
  for (size_t i = 0; i <= line.size(); ++i) {
    const char c = i < line.size() ? line[i] : ' ';
    if (c != ' ' ||
        (!name.empty() && i + 1 < line.size() && line[i + 1] != ' ' && name.back() != ')')) {
      name.push_back(c);
    } else if (!name.empty()) {
      names.push_back(Lower(name));
      name.clear();
    }
  }
  return names;
}

}  // namespace

std::vector<DeviceRow> ParseNpuSmiTable(std::string_view text) {
  std::vector<DeviceRow> rows;
  std::set<std::pair<std::optional<int>, std::optional<int>>> seen;
  std::optional<DeviceRow> head;
  for (std::string_view line : LinesOf(text)) {
    if (line.find("Process id") != std::string_view::npos) break;
    const auto cells = Cells(line);
    if (cells.empty()) continue;
    if (auto next = ParseHead(cells)) {
      head = std::move(next);
    } else if (head && AddDeviceLine(cells, *head)) {
      const auto key = std::pair(head->device.card, head->device.chip);
      if (seen.insert(key).second) rows.push_back(*head);
      head.reset();
    }
  }
  NumberDevices(rows);
  return rows;
}

std::optional<NpuWatchParser::Row> NpuWatchParser::ParseLine(std::string_view line) {
  line = Trimmed(line);
  if (Lower(line.substr(0, 5)) == "npuid") {
    columns_ = ColumnNames(line);
    return std::nullopt;
  }
  const auto words = WordsOf(line);
  if (columns_.empty() || words.size() != columns_.size() || !WholeNumber<int>(words[0])) {
    return std::nullopt;
  }
  Row row;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& column = columns_[i];
    if (column.starts_with("npuid")) row.card = WholeNumber<int>(words[i]).value_or(0);
    if (column.starts_with("chipid")) row.chip = WholeNumber<int>(words[i]).value_or(0);
    if (column == "pwr(w)") row.reading.power_w = FiniteNumber(words[i]);
    if (column == "temp(c)") row.reading.temperature_c = FiniteNumber(words[i]);
    if (column == "ai core(%)") row.reading.utilisation_percent = FiniteNumber(words[i]);
    if (column == "memory(%)") row.memory_percent = FiniteNumber(words[i]);
  }
  return row;
}

std::optional<DeviceRow> ParseNvidiaSmiLine(std::string_view line) {
  static const size_t num_fields = FieldsOf(kNvidiaSmiFields, ',').size();
  const auto cells = FieldsOf(line, ',');
  if (cells.size() != num_fields) return std::nullopt;
  const auto index = WholeNumber<int>(cells[0]);
  if (!index) return std::nullopt;
  DeviceRow row;
  row.device.id = *index;
  row.device.kind = "nvidia";
  row.device.physical = index;
  row.device.name = std::string(cells[7]);
  row.device.memory_total_mb = FiniteNumber(cells[4]);
  row.reading.utilisation_percent = FiniteNumber(cells[2]);
  row.reading.memory_used_mb = FiniteNumber(cells[3]);
  row.reading.power_w = FiniteNumber(cells[5]);
  row.reading.temperature_c = FiniteNumber(cells[6]);
  return row;
}

}  // namespace fulgur::bench
