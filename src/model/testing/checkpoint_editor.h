// Changes a checkpoint tensor by tensor and writes the result to a folder of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "model/checkpoint.h"

namespace fulgur::model::testing {

class CheckpointEditor {
 public:
  // Starts from all tensors of the checkpoint `name` (checkpoints.h).
  explicit CheckpointEditor(const std::string& name);

  // The tensor of that name; it must exist.
  io::TensorView& Find(const std::string& name);

  void Remove(const std::function<bool(const std::string&)>& chosen);
  void Rename(const std::function<std::string(const std::string&)>& new_name);

  // Adds or replaces a tensor with the given bytes.
  void Set(const std::string& name, tensor::DType type, std::vector<int64_t> shape,
           std::vector<std::byte> bytes);
  // The same with zeros.
  void SetZeros(const std::string& name, tensor::DType type, std::vector<int64_t> shape);

  // Replaces text in config.json or quant_model_description.json when they are copied.
  void ReplaceText(const std::string& file, const std::string& from, const std::string& to);

  // Writes the folder, all tensors in one file without index, and opens it.
  absl::StatusOr<Checkpoint> Write() const;

 private:
  struct Replacement {
    std::string file, from, to;
  };

  std::string CopiedText(const std::string& file) const;

  Checkpoint source_;
  std::vector<io::TensorView> tensors_;
  std::deque<std::vector<std::byte>> bytes_;
  std::vector<Replacement> replacements_;
};

}  // namespace fulgur::model::testing
