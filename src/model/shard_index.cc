#include "model/shard_index.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/status_macros.h"
#include "fmt/format.h"
#include "io/json.h"
#include "io/mapped_file.h"

namespace fulgur::model {
namespace {

absl::Status IndexError(const std::string& path, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", path, problem));
}

bool IsPlainName(std::string_view name) {
  return !name.empty() && name.find('/') == name.npos && name != "." && name != "..";
}

absl::StatusOr<std::vector<std::string>> FileNames(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) {
    return absl::NotFoundError(
        fmt::format("the checkpoint folder {} cannot be read: {}", folder, error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> WithSuffix(const std::vector<std::string>& names,
                                    std::string_view suffix) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (std::string_view(name).ends_with(suffix)) found.push_back(name);
  }
  return found;
}

}  // namespace

absl::StatusOr<ShardIndex> ParseShardIndex(std::string_view json, const std::string& path) {
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::Parse(json, path));
  ASSIGN_OR_RETURN(const simdjson::dom::object root, io::RootObject(document, path));
  simdjson::dom::object map;
  if (root["weight_map"].get(map) != simdjson::SUCCESS) {
    return IndexError(path, "has no object \"weight_map\"");
  }
  ShardIndex index;
  index.path = path;
  std::set<std::string> files;
  for (const auto& [tensor, value] : map) {
    std::string_view file;
    if (value.get(file) != simdjson::SUCCESS || !IsPlainName(file)) {
      return IndexError(path,
                        fmt::format("weight_map places {} in {}; expected the name of a file "
                                    "in the same folder",
                                    io::Quoted(tensor), io::Shortened(simdjson::minify(value))));
    }
    if (!index.file_of_tensor.emplace(tensor, file).second) {
      return IndexError(path, fmt::format("weight_map names {} twice", io::Quoted(tensor)));
    }
    files.emplace(file);
  }
  index.files.assign(files.begin(), files.end());
  return index;
}

absl::StatusOr<ShardIndex> FindShards(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, FileNames(folder));
  const std::vector<std::string> indices = WithSuffix(names, ".safetensors.index.json");
  if (indices.size() > 1) {
    return absl::InvalidArgumentError(fmt::format("{} has {} index files ({}); leave one of them",
                                                  folder, indices.size(),
                                                  fmt::join(indices, ", ")));
  }
  if (indices.size() == 1) {
    const std::string path = folder + "/" + indices[0];
    ASSIGN_OR_RETURN(const io::MappedFile file, io::MappedFile::Open(path));
    return ParseShardIndex(file.text(), path);
  }
  ShardIndex index;
  index.files = WithSuffix(names, ".safetensors");
  if (index.files.empty()) {
    return absl::NotFoundError(fmt::format("{} has no *.safetensors files", folder));
  }
  return index;
}

}  // namespace fulgur::model
