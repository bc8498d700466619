// Requests that come from a file instead of being made up: prompts, conversations, traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/session.h"

namespace fulgur::bench {

// One line of a trace in Mooncake's format: equal ids at equal positions mean equal text.
struct TraceEntry {
  double timestamp_ms = 0.0;
  bool has_timestamp = false;
  int64_t input_length = 0;
  int64_t output_length = 0;
  std::vector<int64_t> hash_ids;
};

struct Dataset {
  std::vector<PlannedSession> sessions;  // texts, without bodies and token counts
  std::vector<TraceEntry> trace;         // instead, lengths only
  int64_t skipped_lines = 0;             // that could not be read
  std::string first_problem;             // of them, with the line number
};

// Reads JSON lines, each in one of these forms, told apart by its fields:
//   {"text": "..."}, also with "output_length"; {"prompt": "..."} likewise
//   {"session_id": "a", "turns": [{"text": "...", "delay": ms, "output_length": n}, ...]}, where a
//   turn may be a plain text
//   {"messages": [{"role": "user", "content": "..."}, ...]}
//   {"conversations": [{"from": "human", "value": "..."}, ...]}: ShareGPT's
//   {"timestamp": ms, "input_length": n, "output_length": m, "hash_ids": [...]}: Mooncake's
// A file that is one JSON array holds the same objects. Lines that cannot be read are skipped and
// counted; a file without any good line is an error.
absl::StatusOr<Dataset> ReadDataset(const std::string& path);
absl::StatusOr<Dataset> ParseDataset(std::string_view text, const std::string& path);

// Questions of many kinds to be answered in natural text, made for this program.
Dataset NaturalQuestions();

struct TraceOptions {
  double speedup = 1.0;
  double start_offset_ms = 0.0;  // what lies before is left out, the rest begins at 0
  std::optional<double> end_offset_ms;
  bool shift_to_zero = true;
  std::optional<int64_t> max_input;  // longer requests are cut, or left out
  bool skip_long = false;
  std::optional<int64_t> max_requests;
};

// The requests to be sent, in order of time.
std::vector<TraceEntry> SelectTrace(std::vector<TraceEntry> trace, const TraceOptions& options);

}  // namespace fulgur::bench
