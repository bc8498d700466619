#include "server/random_id.h"

#include <random>

namespace fulgur::server {

std::string RandomHex(int digits) {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  std::string text;
  while (digits-- > 0) text += "0123456789abcdef"[generator() & 15];
  return text;
}

}  // namespace fulgur::server
