#include "server/json_writer.h"

#include <array>
#include <charconv>

namespace fulgur::server {

namespace {

template <typename T>
std::string Shortest(T value) {
  std::array<char, 32> buffer;
  auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string FormatNumber(double value) { return Shortest(value); }
std::string FormatNumber(float value) { return Shortest(value); }

}  // namespace fulgur::server
