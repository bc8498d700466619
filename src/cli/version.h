// The version of this program.
#pragma once

#include <string_view>

namespace fulgur::cli {

// Such as "0.1.0".
std::string_view Version();

}  // namespace fulgur::cli
