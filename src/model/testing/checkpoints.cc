#include "model/testing/checkpoints.h"

namespace fulgur::model::testing {

std::string CheckpointPath(const std::string& name, const std::string& suffix) {
  return std::string(FULGUR_TEST_CHECKPOINTS) + "/" + name + suffix;
}

}  // namespace fulgur::model::testing
