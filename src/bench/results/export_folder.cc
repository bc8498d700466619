#include "bench/results/export_folder.h"

#include <string>

#include "base/status_macros.h"
#include "bench/results/aiperf_writer.h"
#include "bench/results/lint.h"
#include "bench/results/request_lines.h"
#include "bench/results/run_file.h"
#include "bench/results/text_file.h"
#include "fmt/format.h"

namespace fulgur::bench {

absl::Status ExportFolder(const Result& result, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::UnavailableError(
        fmt::format("{} cannot be created: {}", folder.string(), error.message()));
  }
  const Cell& cell = result.cell;
  RETURN_IF_ERROR(WriteAiperfSummary(folder / "profile_export_aiperf.json", result.plan, cell));
  RETURN_IF_ERROR(WriteAiperfCsv(folder / "profile_export_aiperf.csv", cell));
  RETURN_IF_ERROR(
      WriteRunFile(folder / "fulgur_run.json", result.plan, cell, Lint(result, LintOptions())));
  if (result.requests.empty()) return absl::OkStatus();
  std::string lines;
  for (const RequestLine& line : result.requests) lines += RequestLineToJson(line, 0) + "\n";
  return WriteTextFile(folder / "profile_export.jsonl", lines);
}

}  // namespace fulgur::bench
