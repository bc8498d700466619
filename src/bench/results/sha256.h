// SHA-256 of bytes, for provenance and for seeds.
#pragma once

#include <string>
#include <string_view>

namespace fulgur::bench {

std::string Sha256(std::string_view bytes);     // 32 raw bytes
std::string Sha256Hex(std::string_view bytes);  // 64 lower-case digits

}  // namespace fulgur::bench
