// For tests: the folder of recorded result files and reading one of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/results/result_reader.h"
#include "bench/results/statistic.h"
#include "bench/results/strings.h"
#include "gmock/gmock.h"

namespace fulgur::bench {

inline const std::filesystem::path kTestData = "src/bench/results/testdata";

inline std::vector<Result> ReadAll(const std::filesystem::path& file) {
  auto results = ReadResultFile(file);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? *std::move(results) : std::vector<Result>();
}

inline Result ReadOne(const std::filesystem::path& file) {
  auto results = ReadAll(file);
  EXPECT_EQ(results.size(), 1U) << file;
  return results.empty() ? Result() : results.front();
}

}  // namespace fulgur::bench
