// The safetensors file format: 8 bytes with the length of a JSON header, the header with name,
// type, shape and place of every tensor, then the bytes of the tensors without gaps.
// Format: https://github.com/huggingface/safetensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/mapped_file.h"
#include "tensor/dtype.h"

namespace fulgur::io {

// A tensor as it lies in a file: row-major, little-endian, at any alignment.
struct TensorView {
  std::string name;
  tensor::DType type = tensor::DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

// "[2, 3]".
std::string ShapeText(std::span<const int64_t> shape);

// The tensors of a file's bytes, in file order. Nothing in a header is trusted: the header lies
// inside the file, is flat JSON without duplicate names, every type is known, no size overflows,
// and the tensors cover the data exactly once. Errors are one sentence with `path` and the tensor.
absl::StatusOr<std::vector<TensorView>> ParseSafetensors(std::span<const std::byte> file,
                                                         std::string_view path);

// An opened file; the views of its tensors live as long as it does. Move-only.
class SafetensorsFile {
 public:
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const MappedFile& file() const { return file_; }
  const std::vector<TensorView>& tensors() const { return tensors_; }

 private:
  SafetensorsFile(MappedFile file, std::vector<TensorView> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}

  MappedFile file_;
  std::vector<TensorView> tensors_;
};

// Writes `tensors` in the given order; their bytes must fit type and shape.
absl::Status WriteSafetensors(const std::string& path, std::span<const TensorView> tensors);

}  // namespace fulgur::io
