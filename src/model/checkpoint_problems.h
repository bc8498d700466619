// Collects everything that is wrong with the tensors of a checkpoint into one error.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace fulgur::model {

class CheckpointProblems {
 public:
  enum class Kind { kMissing, kUnexpected, kWrongShape, kWrongType, kUnsupported };

  // `detail` names the tensor, what was expected and its file.
  void Add(Kind kind, std::string detail);

  // OK if nothing was added; otherwise one sentence with the counts and the first of each kind.
  absl::Status ToStatus(const std::string& folder) const;

 private:
  struct Group {
    int64_t count = 0;
    std::vector<std::string> first;
  };
  std::array<Group, 5> groups_;
};

}  // namespace fulgur::model
