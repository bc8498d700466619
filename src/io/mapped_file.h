// A file mapped into memory for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fulgur::io {

// Read-only view of a regular file. The file must not be truncated by others while it is mapped:
// touching a page that is gone ends the process. Move-only; const members are thread-safe.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }

  std::string_view text() const { return {reinterpret_cast<const char*>(data_), bytes().size()}; }

  // Asks the kernel to start reading [begin, end). Returns at once.
  void WillNeed(int64_t begin, int64_t end) const;

  // Gives back the memory of the whole pages inside [begin, end). The bytes stay readable: they are
  // read from the file again when they are touched.
  void Drop(int64_t begin, int64_t end) const;

  // Reads [begin, end) with large sequential reads, so that it lies in the page cache afterwards.
  absl::Status ReadThrough(int64_t begin, int64_t end) const;

 private:
  MappedFile(std::string path, int descriptor, const std::byte* data, int64_t size);
  void Close();

  std::string path_;
  int descriptor_ = -1;
  const std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace fulgur::io
