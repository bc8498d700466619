#include "engine/script.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "io/json.h"
#include "sched/survival_model.h"

namespace fulgur::engine {
namespace {

constexpr int64_t kMaxDelayMs = 3'600'000;
constexpr int64_t kMaxTokens = sched::kMaxDrafts + 1;

std::optional<ScriptFinish> FinishByName(std::string_view name) {
  if (name == "stop") return ScriptFinish::kStop;
  if (name == "length") return ScriptFinish::kLength;
  if (name == "error") return ScriptFinish::kError;
  if (name == "disconnect") return ScriptFinish::kDisconnect;
  return std::nullopt;
}

// One number, or a list of them.
absl::Status SetTokensPerStep(simdjson::dom::element value, std::vector<int64_t>& numbers) {
  numbers.clear();
  simdjson::dom::array list;
  const auto add = [&numbers](simdjson::dom::element one) {
    int64_t number = 0;
    const bool fits = one.get(number) == simdjson::SUCCESS && number >= 1 && number <= kMaxTokens;
    if (fits) numbers.push_back(number);
    return fits;
  };
  const bool is_list = value.get(list) == simdjson::SUCCESS;
  const bool good = is_list ? std::all_of(list.begin(), list.end(), add) : add(value);
  if (good && !numbers.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "`tokens_per_step` must be a whole number from 1 to %d, or a list of such", kMaxTokens));
}

// Sets one field; an error says what is accepted.
absl::Status SetField(std::string_view key, simdjson::dom::element value, ScriptLine& line) {
  std::string_view text;
  if (key == "match" || key == "text") {
    if (value.get(text) != simdjson::SUCCESS) {
      return absl::InvalidArgumentError(absl::StrFormat("`%s` must be a string", key));
    }
    (key == "match" ? line.match : line.text) = text;
    return absl::OkStatus();
  }
  if (key == "delay_ms") {
    if (value.get(line.delay_ms) == simdjson::SUCCESS && line.delay_ms >= 0 &&
        line.delay_ms <= kMaxDelayMs) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrFormat("`delay_ms` must be a whole number from 0 to %d", kMaxDelayMs));
  }
  if (key == "tokens_per_step") return SetTokensPerStep(value, line.tokens_per_step);
  if (key == "finish") {
    const bool is_text = value.get(text) == simdjson::SUCCESS;
    if (const auto finish = is_text ? FinishByName(text) : std::nullopt) {
      line.finish = *finish;
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "`finish` must be \"stop\", \"length\", \"error\" or \"disconnect\"");
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "unknown field %s; known are match, text, delay_ms, tokens_per_step and finish",
      io::Quoted(key)));
}

absl::StatusOr<ScriptLine> ParseLine(std::string_view text, const std::string& place) {
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::Parse(text, place));
  ASSIGN_OR_RETURN(const simdjson::dom::object object, io::RootObject(document, place));
  ScriptLine line;
  bool has_text = false;
  for (const auto& [key, value] : object) {
    has_text = has_text || key == "text";
    if (const absl::Status status = SetField(key, value, line); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: %s", place, status.message()));
    }
  }
  if (has_text) return line;
  return absl::InvalidArgumentError(absl::StrFormat("%s: the field `text` is missing", place));
}

}  // namespace

absl::StatusOr<std::vector<ScriptLine>> ParseScript(std::string_view text,
                                                    const std::string& path) {
  std::vector<ScriptLine> script;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    ASSIGN_OR_RETURN(ScriptLine parsed, ParseLine(line, absl::StrFormat("%s:%d", path, number)));
    script.push_back(std::move(parsed));
  }
  if (script.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s holds no answers; it needs JSON lines such as {\"text\": \"Hello\"}", path));
  }
  return script;
}

absl::StatusOr<std::vector<ScriptLine>> LoadScript(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(absl::StrFormat("--scripted-output %s cannot be read", path));
  }
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return ParseScript(text, path);
}

}  // namespace fulgur::engine
