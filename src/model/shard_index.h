// Which safetensors files make up a checkpoint folder.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fulgur::model {

struct ShardIndex {
  std::string path;                // of the index file; empty if the folder has none
  std::vector<std::string> files;  // names inside the folder, sorted, each once
  std::map<std::string, std::string> file_of_tensor;  // as in the index's weight_map
};

// Parses the text of an index file ("weight_map": tensor to file). File names must be plain names.
absl::StatusOr<ShardIndex> ParseShardIndex(std::string_view json, const std::string& path);

// The folder's single *.safetensors.index.json, or without one all its *.safetensors files.
absl::StatusOr<ShardIndex> FindShards(const std::string& folder);

}  // namespace fulgur::model
