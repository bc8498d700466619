#include "cli/version.h"

namespace fulgur::cli {

std::string_view Version() { return FULGUR_VERSION; }

}  // namespace fulgur::cli
