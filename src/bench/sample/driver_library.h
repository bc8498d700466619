// A driver's library, opened at run time: machines without the driver run the same program.
#pragma once

#include <dlfcn.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fmt/format.h"

namespace fulgur::bench {

class DriverLibrary {
 public:
  // The first of `paths` that can be loaded. It stays loaded until the process ends: drivers start
  // threads that do not survive dlclose.
  static absl::StatusOr<DriverLibrary> Open(const std::vector<std::string>& paths) {
    std::string reason;
    for (const std::string& path : paths) {
      if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return DriverLibrary(handle);
      const char* error = dlerror();
      if (error != nullptr && reason.empty()) reason = error;
    }
    return absl::NotFoundError(fmt::format("cannot load {}: {}", paths.front(), reason));
  }

  // The function of that name as `Function`; null if the driver is too old to have it.
  template <typename Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  explicit DriverLibrary(void* handle) : handle_(handle) {}

  void* handle_;
};

}  // namespace fulgur::bench
