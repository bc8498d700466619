// A checkpoint folder as published on Hugging Face: config.json, the tensors of one or many
// safetensors files, and what its descriptors say of their quantisation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "io/safetensors.h"
#include "model/config.h"
#include "model/quant_description.h"

namespace fulgur::model {

// A tensor of a checkpoint; the bytes are mapped from files()[file] and live as long as the
// Checkpoint.
struct StoredTensor {
  std::string name;  // canonical
  int file = 0;
  io::TensorView view;
};

// Opened for reading; nothing of the data has been read. Move-only; const members are thread-safe.
class Checkpoint {
 public:
  // Maps all files that the index names (or all *.safetensors files of a folder without index) and
  // checks headers and index against each other. Which tensors a model needs is no matter here
  // (inventory.h).
  static absl::StatusOr<Checkpoint> Open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const ModelConfig& config() const { return config_; }
  const QuantDescription& quant_description() const { return quant_description_; }
  const std::vector<io::SafetensorsFile>& files() const { return files_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }

  // The tensor of that canonical name, or null.
  const StoredTensor* Find(const std::string& name) const;

  // File name of a tensor, without the folder.
  std::string FileOf(const StoredTensor& tensor) const;

 private:
  Checkpoint() = default;

  absl::Status OpenFiles(const std::vector<std::string>& names);
  absl::Status AddTensors(int file);

  std::string folder_;
  ModelConfig config_;
  QuantDescription quant_description_;
  std::vector<io::SafetensorsFile> files_;
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string, size_t> index_of_name_;
};

}  // namespace fulgur::model
