#include "bench/sample/host_text.h"

#include <algorithm>

#include "bench/sample/text_scan.h"

namespace fulgur::bench {
namespace {

// user nice system idle iowait irq softirq steal; later fields are guests, counted in user.
constexpr size_t kNumCpuFields = 8;
constexpr size_t kIdle = 3;
constexpr size_t kIoWait = 4;

std::optional<CpuTimes> ParseCpuLine(const std::vector<std::string_view>& words) {
  CpuTimes times;
  for (size_t i = 0; i < kNumCpuFields && i + 1 < words.size(); ++i) {
    const auto jiffies = WholeNumber<int64_t>(words[i + 1]);
    if (!jiffies) return std::nullopt;
    times.total += *jiffies;
    if (i == kIdle || i == kIoWait) times.idle += *jiffies;
  }
  return times;
}

}  // namespace

std::optional<CpuTable> ParseProcStat(std::string_view text) {
  CpuTable table;
  bool found = false;
  for (std::string_view line : LinesOf(text)) {
    if (!line.starts_with("cpu")) break;  // the long interrupt counters follow
    const auto words = WordsOf(line);
    const auto times = ParseCpuLine(words);
    if (!times) continue;
    if (words[0] == "cpu") {
      table.all = *times;
      found = true;
    } else if (const auto core = WholeNumber<int>(words[0].substr(3))) {
      table.cores[*core] = *times;
    }
  }
  return found ? std::optional(table) : std::nullopt;
}

std::optional<double> BusyPercent(const CpuTimes& before, const CpuTimes& after) {
  const int64_t total = after.total - before.total;
  const int64_t idle = std::max<int64_t>(after.idle - before.idle, 0);
  if (total <= 0) return std::nullopt;
  return 100.0 * static_cast<double>(std::max<int64_t>(total - idle, 0)) /
         static_cast<double>(total);
}

std::map<std::string, double> ParseMegabytes(std::string_view text) {
  std::map<std::string, double> values;
  for (std::string_view line : LinesOf(text)) {
    const auto words = WordsOf(line);
    if (words.size() != 3 || words[2] != "kB" || !words[0].ends_with(':')) continue;
    const auto kb = WholeNumber<int64_t>(words[1]);
    if (kb)
      values.emplace(words[0].substr(0, words[0].size() - 1), static_cast<double>(*kb) / 1024);
  }
  return values;
}

std::map<std::string, NetBytes> ParseNetDev(std::string_view text) {
  constexpr size_t kTxBytes = 8;  // after the eight received values
  std::map<std::string, NetBytes> interfaces;
  for (std::string_view line : LinesOf(text)) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto words = WordsOf(line.substr(colon + 1));
    if (words.size() <= kTxBytes) continue;
    const auto rx = WholeNumber<uint64_t>(words[0]);
    const auto tx = WholeNumber<uint64_t>(words[kTxBytes]);
    if (rx && tx) interfaces[std::string(Trimmed(line.substr(0, colon)))] = {*rx, *tx};
  }
  return interfaces;
}

std::optional<ProcessStat> ParseProcessStat(std::string_view text) {
  // The program's name may hold spaces and brackets: fields are counted behind its last bracket.
  const size_t bracket = text.rfind(')');
  if (bracket == std::string_view::npos) return std::nullopt;
  const auto words = WordsOf(text.substr(bracket + 1));
  constexpr size_t kFirst = 3;  // number of the first word here, as proc(5) counts
  constexpr size_t kParent = 4 - kFirst, kUser = 14 - kFirst, kSystem = 15 - kFirst;
  constexpr size_t kStart = 22 - kFirst;
  if (words.size() <= kStart) return std::nullopt;
  const auto parent = WholeNumber<int>(words[kParent]);
  const auto user = WholeNumber<int64_t>(words[kUser]);
  const auto system = WholeNumber<int64_t>(words[kSystem]);
  const auto start = WholeNumber<int64_t>(words[kStart]);
  if (!parent || !user || !system || !start) return std::nullopt;
  return ProcessStat{*parent, *user + *system, *start};
}

std::optional<int64_t> FindCounter(std::string_view text, std::string_view name) {
  for (std::string_view line : LinesOf(text)) {
    const auto words = WordsOf(line);
    if (words.size() == 2 && words[0] == name) return WholeNumber<int64_t>(words[1]);
  }
  return std::nullopt;
}

std::optional<std::string> ParseOwnCgroup(std::string_view text) {
  for (std::string_view line : LinesOf(text)) {
    if (line.starts_with("0::")) return std::string(Trimmed(line.substr(3)));
  }
  return std::nullopt;
}

}  // namespace fulgur::bench
