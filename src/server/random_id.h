// Random names for requests and calls.
#pragma once

#include <string>

namespace fulgur::server {

// `digits` lower-case hex digits. Callable from any thread.
std::string RandomHex(int digits);

}  // namespace fulgur::server
