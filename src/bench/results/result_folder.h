// Finds the results of one system: a folder, a single file, or a manifest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/results/comparison.h"
#include "bench/results/reference_reader.h"
#include "bench/results/result.h"

namespace fulgur::bench {

inline constexpr std::string_view kManifestFormat = "fulgur-manifest/1";

struct FoundResult {
  Result result;  // scenario and concurrency filled in from the file, else from the path
  Provenance provenance;
  int64_t modified_s = 0;  // to tell the latest
  bool repeated = false;   // one of several runs of the same cell, as told by its folder
};

struct SystemResults {
  std::vector<FoundResult> results;
  std::optional<ReferenceFacts> reference;
  std::vector<std::string> problems;  // one sentence for each file or entry that was skipped
};

// A manifest is {"format": "fulgur-manifest/1", "results": [{"system", "scenario", "concurrency",
// "path"}]}; it overrides what paths and files say. Entries of other systems are left out.
//
// In a folder, files that are known to hold no result are passed over in silence; a damaged or
// foreign .json file is a problem. An error if nothing is readable at all.
absl::StatusOr<SystemResults> FindResults(const std::filesystem::path& path,
                                          const std::string& system);

// The files in a folder that may hold a result, in order of their paths.
std::vector<std::filesystem::path> CandidateFiles(const std::filesystem::path& folder,
                                                  std::vector<std::string>& problems);

}  // namespace fulgur::bench
