#include "model/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/status_macros.h"
#include "fmt/format.h"
#include "io/json.h"
#include "model/checkpoint_problems.h"
#include "model/shard_index.h"
#include "model/tensor_names.h"

namespace fulgur::model {
namespace {

using Kind = CheckpointProblems::Kind;

absl::Status CheckFilesExist(const std::string& folder, const ShardIndex& shards) {
  std::vector<std::string> missing;
  for (const std::string& file : shards.files) {
    if (!std::filesystem::exists(std::filesystem::path(folder) / file))
      missing.push_back(io::Quoted(file));
  }
  if (missing.empty()) return absl::OkStatus();
  const size_t shown = std::min<size_t>(missing.size(), 3);
  return absl::NotFoundError(fmt::format(
      "{}: {} of the {} files that {} names are missing: {}{}; download the checkpoint again",
      folder, missing.size(), shards.files.size(), shards.path,
      fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      missing.size() > shown ? ", ..." : ""));
}

// Every tensor lies in the file that the index says, and the index knows every tensor.
absl::Status CheckIndex(const Checkpoint& checkpoint, const ShardIndex& shards) {
  if (shards.path.empty()) return absl::OkStatus();
  CheckpointProblems problems;
  std::map<std::string, std::string> left = shards.file_of_tensor;
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    const std::string file = checkpoint.FileOf(tensor);
    const auto entry = left.find(tensor.view.name);
    if (entry != left.end() && entry->second == file) {
      left.erase(entry);
      continue;
    }
    problems.Add(Kind::kUnexpected, fmt::format("{} in {}, which the index does not place there",
                                                io::Quoted(tensor.view.name), file));
  }
  for (const auto& [name, file] : left) {
    problems.Add(Kind::kMissing,
                 fmt::format("{}, which the index places in {}", io::Quoted(name), file));
  }
  return problems.ToStatus(checkpoint.folder());
}

}  // namespace

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& folder) {
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  ASSIGN_OR_RETURN(const ShardIndex shards, FindShards(folder));
  ASSIGN_OR_RETURN(checkpoint.config_, LoadConfig(folder));
  ASSIGN_OR_RETURN(checkpoint.quant_description_, QuantDescription::Load(folder));
  RETURN_IF_ERROR(CheckFilesExist(folder, shards));
  RETURN_IF_ERROR(checkpoint.OpenFiles(shards.files));
  RETURN_IF_ERROR(CheckIndex(checkpoint, shards));
  return checkpoint;
}

absl::Status Checkpoint::OpenFiles(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(io::SafetensorsFile file, io::SafetensorsFile::Open(folder_ + "/" + name));
    files_.push_back(std::move(file));
    RETURN_IF_ERROR(AddTensors(static_cast<int>(files_.size()) - 1));
  }
  return absl::OkStatus();
}

absl::Status Checkpoint::AddTensors(int file) {
  for (const io::TensorView& view : files_[static_cast<size_t>(file)].tensors()) {
    StoredTensor tensor{CanonicalName(view.name), file, view};
    const auto [entry, is_new] = index_of_name_.emplace(tensor.name, tensors_.size());
    if (!is_new) {
      const StoredTensor& other = tensors_[entry->second];
      return absl::InvalidArgumentError(fmt::format(
          "{}: tensor {} in {} and {} in {} are the same one", folder_, io::Quoted(other.view.name),
          FileOf(other), io::Quoted(view.name), FileOf(tensor)));
    }
    tensors_.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

const StoredTensor* Checkpoint::Find(const std::string& name) const {
  const auto entry = index_of_name_.find(name);
  return entry == index_of_name_.end() ? nullptr : &tensors_[entry->second];
}

std::string Checkpoint::FileOf(const StoredTensor& tensor) const {
  return std::filesystem::path(files_[static_cast<size_t>(tensor.file)].file().path())
      .filename()
      .string();
}

}  // namespace fulgur::model
