// Element types of tensors, named as in the safetensors format.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fulgur::tensor {

enum class DType { kF32, kF16, kBf16, kF8E4M3, kF8E8M0, kI8, kU8, kI32, kI64, kBool };

constexpr int64_t ByteSize(DType type) {
  switch (type) {
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBf16:
      return 2;
    case DType::kF8E4M3:
    case DType::kF8E8M0:
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

// The safetensors spelling, such as "BF16" or "F8_E4M3".
constexpr std::string_view Name(DType type) {
  switch (type) {
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBf16:
      return "BF16";
    case DType::kF8E4M3:
      return "F8_E4M3";
    case DType::kF8E8M0:
      return "F8_E8M0";
    case DType::kI8:
      return "I8";
    case DType::kU8:
      return "U8";
    case DType::kI32:
      return "I32";
    case DType::kI64:
      return "I64";
    case DType::kBool:
      return "BOOL";
  }
  return "?";
}

// The type of a safetensors spelling; nothing if it is not one of ours.
constexpr std::optional<DType> ParseDType(std::string_view name) {
  for (DType type : {DType::kF32, DType::kF16, DType::kBf16, DType::kF8E4M3, DType::kF8E8M0,
                     DType::kI8, DType::kU8, DType::kI32, DType::kI64, DType::kBool}) {
    if (Name(type) == name) return type;
  }
  return std::nullopt;
}

}  // namespace fulgur::tensor
