#include "bench/load/dataset.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/status_macros.h"
#include "fmt/format.h"
#include "io/json.h"

namespace fulgur::bench {
namespace {

constexpr int64_t kMaxLength = 1 << 24;
constexpr double kMaxTimeMs = 1e12;
constexpr int64_t kNsPerMs = 1'000'000;

using Object = simdjson::dom::object;

std::optional<std::string> TextField(Object object, std::string_view key) {
  std::string_view text;
  if (object[key].get(text) != simdjson::SUCCESS) return std::nullopt;
  return std::string(text);
}

std::optional<double> NumberField(Object object, std::string_view key) {
  double value = 0.0;
  if (object[key].get(value) != simdjson::SUCCESS || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> LengthField(Object object, std::string_view key) {
  const auto value = NumberField(object, key);
  if (!value || *value < 1 || *value > static_cast<double>(kMaxLength)) return std::nullopt;
  return static_cast<int64_t>(*value);
}

PlannedTurn UserTurn(std::string text) {
  PlannedTurn turn;
  turn.messages.push_back({"user", std::move(text)});
  return turn;
}

// A turn is {"text", "delay", "output_length"} or a plain text.
std::optional<PlannedTurn> ReadTurn(simdjson::dom::element element) {
  std::string_view plain;
  if (element.get(plain) == simdjson::SUCCESS) return UserTurn(std::string(plain));
  Object object;
  if (element.get(object) != simdjson::SUCCESS) return std::nullopt;
  auto text = TextField(object, "text");
  if (!text) text = TextField(object, "content");
  if (!text) return std::nullopt;
  PlannedTurn turn = UserTurn(std::move(*text));
  turn.output_tokens = LengthField(object, "output_length");
  const double delay_ms = std::clamp(NumberField(object, "delay").value_or(0.0), 0.0, 1e9);
  turn.delay_ns = static_cast<int64_t>(delay_ms * static_cast<double>(kNsPerMs));
  return turn;
}

bool ReadTurns(simdjson::dom::array turns, PlannedSession& session) {
  for (const simdjson::dom::element element : turns) {
    std::optional<PlannedTurn> turn = ReadTurn(element);
    if (!turn) return false;
    session.turns.push_back(std::move(*turn));
  }
  return !session.turns.empty();
}

// One request that carries a whole conversation.
bool ReadMessages(simdjson::dom::array messages, PlannedSession& session) {
  PlannedTurn turn;
  for (const simdjson::dom::element element : messages) {
    Object object;
    if (element.get(object) != simdjson::SUCCESS) return false;
    auto role = TextField(object, "role");
    auto content = TextField(object, "content");
    if (!role || !content) return false;
    turn.messages.push_back({std::move(*role), std::move(*content)});
  }
  if (turn.messages.empty()) return false;
  session.turns.push_back(std::move(turn));
  return true;
}

// ShareGPT: what people said to a model. The first message is sent.
bool ReadShareGpt(simdjson::dom::array messages, PlannedSession& session) {
  Object first;
  if (messages.at(0).get(first) != simdjson::SUCCESS) return false;
  auto value = TextField(first, "value");
  if (!value || value->empty()) return false;
  session.turns.push_back(UserTurn(std::move(*value)));
  return true;
}

bool ReadTraceEntry(Object object, Dataset& dataset) {
  TraceEntry entry;
  const auto input = LengthField(object, "input_length");
  if (!input) return false;
  entry.input_length = *input;
  entry.output_length = LengthField(object, "output_length").value_or(1);
  if (const auto time = NumberField(object, "timestamp"); time && std::fabs(*time) < kMaxTimeMs) {
    entry.timestamp_ms = *time;
    entry.has_timestamp = true;
  }
  simdjson::dom::array ids;
  if (object["hash_ids"].get(ids) == simdjson::SUCCESS) {
    for (const simdjson::dom::element element : ids) {
      int64_t id = 0;
      if (element.get(id) != simdjson::SUCCESS) return false;
      entry.hash_ids.push_back(id);
    }
  }
  dataset.trace.push_back(std::move(entry));
  return true;
}

bool ReadSession(Object object, PlannedSession& session) {
  session.id = TextField(object, "session_id").value_or("");
  simdjson::dom::array list;
  if (object["turns"].get(list) == simdjson::SUCCESS) return ReadTurns(list, session);
  if (object["messages"].get(list) == simdjson::SUCCESS) {
    if (!ReadMessages(list, session)) return false;
  } else if (object["conversations"].get(list) == simdjson::SUCCESS) {
    if (!ReadShareGpt(list, session)) return false;
  } else {
    auto text = TextField(object, "text");
    if (!text) text = TextField(object, "prompt");
    if (!text) return false;
    session.turns.push_back(UserTurn(std::move(*text)));
  }
  session.turns.back().output_tokens = LengthField(object, "output_length");
  return true;
}

bool ReadEntry(simdjson::dom::element element, Dataset& dataset) {
  Object object;
  if (element.get(object) != simdjson::SUCCESS) return false;
  if (LengthField(object, "input_length")) return ReadTraceEntry(object, dataset);
  PlannedSession session;
  if (!ReadSession(object, session)) return false;
  if (const auto time = NumberField(object, "timestamp"); time && std::fabs(*time) < kMaxTimeMs) {
    session.at_ns = static_cast<int64_t>(*time * static_cast<double>(kNsPerMs));
  }
  dataset.sessions.push_back(std::move(session));
  return true;
}

void Skip(const std::string& place, Dataset& dataset) {
  if (dataset.skipped_lines++ == 0) {
    dataset.first_problem =
        fmt::format("{}: neither a prompt, a conversation nor a line of a trace", place);
  }
}

absl::Status ReadArray(std::string_view text, const std::string& path, Dataset& dataset) {
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::Parse(text, path));
  simdjson::dom::array array;
  if (document.root().get(array) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(fmt::format("{} is not a JSON array", path));
  }
  int64_t number = 0;
  for (const simdjson::dom::element element : array) {
    ++number;
    if (!ReadEntry(element, dataset)) Skip(fmt::format("{}, entry {}", path, number), dataset);
  }
  return absl::OkStatus();
}

void ReadLines(std::string_view text, const std::string& path, Dataset& dataset) {
  simdjson::dom::parser parser;
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    simdjson::dom::element element;
    if (parser.parse(line.data(), line.size()).get(element) != simdjson::SUCCESS ||
        !ReadEntry(element, dataset)) {
      Skip(fmt::format("{}:{}", path, number), dataset);
    }
  }
}

}  // namespace

absl::StatusOr<Dataset> ParseDataset(std::string_view text, const std::string& path) {
  Dataset dataset;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '[') {
    RETURN_IF_ERROR(ReadArray(text, path, dataset));
  } else {
    ReadLines(text, path, dataset);
  }
  if (dataset.sessions.empty() && dataset.trace.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "--input-file {} holds no request; it needs JSON lines such as {{\"text\": \"Hello\"}}{}",
        path, dataset.first_problem.empty() ? "" : "; " + dataset.first_problem));
  }
  if (!dataset.sessions.empty() && !dataset.trace.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("--input-file {} mixes texts with lines of a trace", path));
  }
  return dataset;
}

absl::StatusOr<Dataset> ReadDataset(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || std::filesystem::is_directory(path) || !(text << file.rdbuf())) {
    return absl::NotFoundError(fmt::format("--input-file {} cannot be read", path));
  }
  return ParseDataset(std::move(text).str(), path);
}

std::vector<TraceEntry> SelectTrace(std::vector<TraceEntry> trace, const TraceOptions& options) {
  std::stable_sort(trace.begin(), trace.end(), [](const TraceEntry& a, const TraceEntry& b) {
    return a.timestamp_ms < b.timestamp_ms;
  });
  std::vector<TraceEntry> selected;
  for (TraceEntry& entry : trace) {
    if (entry.timestamp_ms < options.start_offset_ms) continue;
    if (options.end_offset_ms && entry.timestamp_ms > *options.end_offset_ms) continue;
    if (options.max_input && entry.input_length > *options.max_input) {
      if (options.skip_long) continue;
      entry.input_length = *options.max_input;
    }
    selected.push_back(std::move(entry));
    if (options.max_requests && static_cast<int64_t>(selected.size()) == *options.max_requests) {
      break;
    }
  }
  if (selected.empty()) return selected;
  const double origin = options.shift_to_zero ? selected.front().timestamp_ms : 0.0;
  for (TraceEntry& entry : selected) {
    entry.timestamp_ms = (entry.timestamp_ms - origin) / options.speedup;
  }
  return selected;
}

}  // namespace fulgur::bench
