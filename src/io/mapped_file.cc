#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "fmt/format.h"

namespace fulgur::io {
namespace {

constexpr int64_t kReadBytes = int64_t{8} << 20;

absl::Status FileError(const std::string& path, std::string_view what) {
  const int error = errno;
  const std::string text = fmt::format("{}: {}: {}", path, what, std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(text) : absl::FailedPreconditionError(text);
}

int64_t PageSize() {
  static const int64_t size = sysconf(_SC_PAGESIZE);
  return size;
}

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return FileError(path, "cannot be opened");
  MappedFile file(path, descriptor, nullptr, 0);
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return FileError(path, "cannot be examined");
  if (!S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(fmt::format("{} is not a regular file", path));
  }
  if (status.st_size == 0) return file;
  void* data =
      mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) return FileError(path, "cannot be mapped into memory");
  file.data_ = static_cast<const std::byte*>(data);
  file.size_ = status.st_size;
  return file;
}

MappedFile::MappedFile(std::string path, int descriptor, const std::byte* data, int64_t size)
    : path_(std::move(path)), descriptor_(descriptor), data_(data), size_(size) {}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  Close();
  path_ = std::move(other.path_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

MappedFile::~MappedFile() { Close(); }

void MappedFile::Close() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), static_cast<size_t>(size_));
  if (descriptor_ >= 0) close(descriptor_);
}

void MappedFile::WillNeed(int64_t begin, int64_t end) const {
  const int64_t first = begin / PageSize() * PageSize();
  if (first >= end) return;
  madvise(const_cast<std::byte*>(data_ + first), static_cast<size_t>(end - first), MADV_WILLNEED);
}

void MappedFile::Drop(int64_t begin, int64_t end) const {
  const int64_t first = (begin + PageSize() - 1) / PageSize() * PageSize();
  const int64_t last = end == size_ ? end : end / PageSize() * PageSize();
  if (first >= last) return;
  madvise(const_cast<std::byte*>(data_ + first), static_cast<size_t>(last - first), MADV_DONTNEED);
}

absl::Status MappedFile::ReadThrough(int64_t begin, int64_t end) const {
  std::vector<std::byte> scratch(static_cast<size_t>(std::min(kReadBytes, end - begin)));
  while (begin < end) {
    const int64_t wanted = std::min(kReadBytes, end - begin);
    const ssize_t read = pread(descriptor_, scratch.data(), static_cast<size_t>(wanted), begin);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return FileError(path_, "cannot be read");
    if (read == 0)
      return absl::DataLossError(fmt::format("{} became shorter while it was read", path_));
    begin += read;
  }
  return absl::OkStatus();
}

}  // namespace fulgur::io
