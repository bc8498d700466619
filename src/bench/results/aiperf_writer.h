// Writes a run in the form of aiperf's artifact folder, so that tools made for aiperf read it.
//
// Files: profile_export_aiperf.json (schema 1.4), profile_export_aiperf.csv, profile_export.jsonl,
// inputs.json. Our own fulgur_run.json is in run_file.h. Format: github.com/ai-dynamo/aiperf,
// release 0.13.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/results/run_plan.h"
#include "bench/stats/cell.h"
#include "bench/stats/record.h"
#include "bench/stats/time_slice.h"

namespace fulgur::bench {

// Writes profile_export_aiperf.json. `cell` carries metrics, warm-up metrics, errors, phases and
// flags; its "profiling" phase gives start_time and end_time (UTC).
absl::Status WriteAiperfSummary(const std::filesystem::path& file, const RunPlan& plan,
                                const Cell& cell);

// Writes the same metrics as aiperf's CSV tables.
absl::Status WriteAiperfCsv(const std::filesystem::path& file, const Cell& cell);

// Writes profile_export_aiperf_timeslices.json.
absl::Status WriteAiperfTimeSlices(const std::filesystem::path& file,
                                   const std::vector<TimeSlice>& slices);

// Appends one line per request to profile_export.jsonl while the run goes on. One thread.
class RecordWriter {
 public:
  static absl::StatusOr<RecordWriter> Open(const std::filesystem::path& file);

  absl::Status Append(const RequestRecord& record);
  absl::Status Close();

 private:
  RecordWriter(std::filesystem::path file, std::ofstream stream)
      : file_(std::move(file)), stream_(std::move(stream)) {}

  std::filesystem::path file_;
  std::ofstream stream_;
  bool saw_warmup_ = false;
};

// Writes inputs.json one session at a time. One thread.
class InputsWriter {
 public:
  static absl::StatusOr<InputsWriter> Open(const std::filesystem::path& file);

  // Each payload is the JSON text of one request body of the session.
  absl::Status Append(const std::string& session_id, const std::vector<std::string>& payloads);
  absl::Status Close();

 private:
  InputsWriter(std::filesystem::path file, std::ofstream stream)
      : file_(std::move(file)), stream_(std::move(stream)) {}

  std::filesystem::path file_;
  std::ofstream stream_;
  bool first_ = true;
};

// Groups failed records by code, type and message, in order of first appearance.
std::vector<ErrorGroup> GroupErrors(const std::vector<RequestRecord>& records);

}  // namespace fulgur::bench
