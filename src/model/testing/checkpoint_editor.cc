#include "model/testing/checkpoint_editor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "model/testing/checkpoints.h"

namespace fulgur::model::testing {
namespace {

constexpr const char* kCopiedFiles[] = {"config.json", "quant_model_description.json"};

Checkpoint OpenSource(const std::string& name) {
  absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(CheckpointPath(name));
  if (!checkpoint.ok()) std::cerr << checkpoint.status() << "\n";
  CHECK(checkpoint.ok());
  return *std::move(checkpoint);
}

}  // namespace

CheckpointEditor::CheckpointEditor(const std::string& name) : source_(OpenSource(name)) {
  for (const StoredTensor& tensor : source_.tensors()) tensors_.push_back(tensor.view);
}

io::TensorView& CheckpointEditor::Find(const std::string& name) {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const io::TensorView& view) { return view.name == name; });
  CHECK(found != tensors_.end());
  return *found;
}

void CheckpointEditor::Remove(const std::function<bool(const std::string&)>& chosen) {
  std::erase_if(tensors_, [&](const io::TensorView& view) { return chosen(view.name); });
}

void CheckpointEditor::Rename(const std::function<std::string(const std::string&)>& new_name) {
  for (io::TensorView& view : tensors_) view.name = new_name(view.name);
}

void CheckpointEditor::Set(const std::string& name, tensor::DType type, std::vector<int64_t> shape,
                           std::vector<std::byte> bytes) {
  Remove([&](const std::string& other) { return other == name; });
  bytes_.push_back(std::move(bytes));
  tensors_.push_back({name, type, std::move(shape), bytes_.back()});
}

void CheckpointEditor::SetZeros(const std::string& name, tensor::DType type,
                                std::vector<int64_t> shape) {
  int64_t size = tensor::ByteSize(type);
  for (const int64_t n : shape) size *= n;
  Set(name, type, std::move(shape), std::vector<std::byte>(static_cast<size_t>(size)));
}

void CheckpointEditor::ReplaceText(const std::string& file, const std::string& from,
                                   const std::string& to) {
  CHECK(CopiedText(file).find(from) != std::string::npos);
  replacements_.push_back({file, from, to});
}

std::string CheckpointEditor::CopiedText(const std::string& file) const {
  std::ostringstream text;
  text << std::ifstream(source_.folder() + "/" + file).rdbuf();
  std::string copied = text.str();
  for (const Replacement& replacement : replacements_) {
    if (replacement.file != file) continue;
    const size_t at = copied.find(replacement.from);
    copied.replace(at, replacement.from.size(), replacement.to);
  }
  return copied;
}

absl::StatusOr<Checkpoint> CheckpointEditor::Write() const {
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("edited_checkpoint." + std::to_string(getpid())))
          .string();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const char* file : kCopiedFiles) {
    if (!std::filesystem::exists(source_.folder() + "/" + file)) continue;
    std::ofstream(folder + "/" + file) << CopiedText(file);
  }
  RETURN_IF_ERROR(io::WriteSafetensors(folder + "/model.safetensors", tensors_));
  absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(folder);
  std::filesystem::remove_all(folder);  // what is mapped stays readable
  return checkpoint;
}

}  // namespace fulgur::model::testing
