#include "io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "fmt/format.h"
#include "io/json.h"
#include "nlohmann/json.hpp"

namespace fulgur::io {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's reference reader
constexpr int kHeaderDepth = 6;                   // object of objects of arrays, and some air
constexpr size_t kMaxRank = 8;

absl::Status FileError(std::string_view path, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("{} {}", path, problem));
}

// One header entry, before its bytes are known to exist.
struct Entry {
  std::string name;
  tensor::DType type = tensor::DType::kF32;
  std::vector<int64_t> shape;
  int64_t begin = 0;
  int64_t end = 0;
};

class HeaderReader {
 public:
  HeaderReader(std::string_view path, int64_t data_bytes) : path_(path), data_bytes_(data_bytes) {}

  absl::StatusOr<std::vector<Entry>> Read(std::string_view header);

 private:
  absl::StatusOr<Entry> ReadEntry(std::string_view name, element value) const;
  absl::StatusOr<tensor::DType> ReadType(std::string_view name, object fields) const;
  absl::StatusOr<std::vector<int64_t>> ReadIntegers(std::string_view name, object fields,
                                                    const char* key) const;
  absl::Status CheckSize(const Entry& entry) const;
  absl::Status CheckCoverage(const std::vector<Entry>& entries) const;

  absl::Status TensorError(std::string_view name, std::string_view problem) const {
    return absl::InvalidArgumentError(
        fmt::format("{}: tensor {} {}", path_, Quoted(name), problem));
  }

  std::string_view path_;
  int64_t data_bytes_;
};

absl::StatusOr<std::vector<Entry>> HeaderReader::Read(std::string_view header) {
  const std::string source = fmt::format("{}: the header", path_);
  ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(header, source, kHeaderDepth));
  ASSIGN_OR_RETURN(const object root, RootObject(document, source));
  std::vector<Entry> entries;
  absl::flat_hash_set<std::string_view> names;
  for (const auto& [name, value] : root) {
    if (!names.insert(name).second) return TensorError(name, "appears twice in the header");
    if (name == "__metadata__") {
      if (!value.is_object()) return TensorError(name, "is not a JSON object");
      continue;
    }
    ASSIGN_OR_RETURN(Entry entry, ReadEntry(name, value));
    RETURN_IF_ERROR(CheckSize(entry));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  RETURN_IF_ERROR(CheckCoverage(entries));
  return entries;
}

absl::StatusOr<Entry> HeaderReader::ReadEntry(std::string_view name, element value) const {
  object fields;
  if (value.get(fields) != simdjson::SUCCESS) return TensorError(name, "is not a JSON object");
  Entry entry;
  entry.name = std::string(name);
  ASSIGN_OR_RETURN(entry.type, ReadType(name, fields));
  ASSIGN_OR_RETURN(entry.shape, ReadIntegers(name, fields, "shape"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, ReadIntegers(name, fields, "data_offsets"));
  if (offsets.size() != 2) return TensorError(name, "has data_offsets that are not two numbers");
  entry.begin = offsets[0];
  entry.end = offsets[1];
  return entry;
}

absl::StatusOr<tensor::DType> HeaderReader::ReadType(std::string_view name, object fields) const {
  std::string_view text;
  if (fields["dtype"].get(text) != simdjson::SUCCESS) return TensorError(name, "has no dtype");
  const std::optional<tensor::DType> type = tensor::ParseDType(text);
  if (!type.has_value()) {
    return TensorError(name, fmt::format("has the unsupported dtype {}", Quoted(text)));
  }
  return *type;
}

absl::StatusOr<std::vector<int64_t>> HeaderReader::ReadIntegers(std::string_view name,
                                                                object fields,
                                                                const char* key) const {
  array list;
  if (fields[key].get(list) != simdjson::SUCCESS) {
    return TensorError(name, fmt::format("has no list {}", key));
  }
  std::vector<int64_t> numbers;
  for (const element item : list) {
    int64_t number = 0;
    if (item.get(number) != simdjson::SUCCESS || number < 0) {
      return TensorError(name, fmt::format("has {} in {}; accepted are integers from 0 to 2^63 - 1",
                                           Quoted(simdjson::minify(item)), key));
    }
    if (numbers.size() == kMaxRank) {
      return TensorError(name, fmt::format("has more than {} numbers in {}", kMaxRank, key));
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::Status HeaderReader::CheckSize(const Entry& entry) const {
  int64_t bytes = tensor::ByteSize(entry.type);
  for (const int64_t size : entry.shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      return TensorError(entry.name,
                         fmt::format("has the absurd shape {}", ShapeText(entry.shape)));
    }
  }
  const std::string offsets = fmt::format("data_offsets [{}, {}]", entry.begin, entry.end);
  if (entry.begin > entry.end || entry.end > data_bytes_) {
    return TensorError(entry.name, fmt::format("has {} outside the file's {} bytes of data",
                                               offsets, data_bytes_));
  }
  if (entry.end - entry.begin != bytes) {
    return TensorError(
        entry.name, fmt::format("of type {} and shape {} needs {} bytes but has {}",
                                tensor::Name(entry.type), ShapeText(entry.shape), bytes, offsets));
  }
  return absl::OkStatus();
}

absl::Status HeaderReader::CheckCoverage(const std::vector<Entry>& entries) const {
  int64_t covered = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < covered) return TensorError(entry.name, "overlaps another tensor");
    if (entry.begin > covered) {
      return TensorError(entry.name,
                         fmt::format("starts at byte {} of the data and leaves a hole from byte {}",
                                     entry.begin, covered));
    }
    covered = entry.end;
  }
  if (covered != data_bytes_) {
    return FileError(path_,
                     fmt::format("has {} bytes of data that belong to no tensor; it may be damaged",
                                 data_bytes_ - covered));
  }
  return absl::OkStatus();
}

uint64_t HeaderLength(std::span<const std::byte> file) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  return length;
}

absl::StatusOr<std::string_view> HeaderText(std::span<const std::byte> file,
                                            std::string_view path) {
  const auto size = static_cast<int64_t>(file.size());
  if (size < kLengthBytes) {
    return FileError(path, fmt::format("has {} bytes and is no safetensors file", size));
  }
  const uint64_t length = HeaderLength(file);
  if (length > static_cast<uint64_t>(std::min(kMaxHeaderBytes, size - kLengthBytes))) {
    return FileError(path, fmt::format("announces a header of {} bytes, but the file has {} bytes "
                                       "and headers are limited to {}",
                                       length, size, kMaxHeaderBytes));
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
  if (!text.starts_with('{')) return FileError(path, "has a header that does not start with '{'");
  return text;
}

}  // namespace

std::string ShapeText(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

absl::StatusOr<std::vector<TensorView>> ParseSafetensors(std::span<const std::byte> file,
                                                         std::string_view path) {
  ASSIGN_OR_RETURN(const std::string_view header, HeaderText(file, path));
  const std::span<const std::byte> data = file.subspan(kLengthBytes + header.size());
  HeaderReader reader(path, static_cast<int64_t>(data.size()));
  ASSIGN_OR_RETURN(std::vector<Entry> entries, reader.Read(header));
  std::vector<TensorView> tensors;
  tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    const auto bytes = data.subspan(static_cast<size_t>(entry.begin),
                                    static_cast<size_t>(entry.end - entry.begin));
    tensors.push_back({std::move(entry.name), entry.type, std::move(entry.shape), bytes});
  }
  return tensors;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  ASSIGN_OR_RETURN(std::vector<TensorView> tensors, ParseSafetensors(file.bytes(), path));
  return SafetensorsFile(std::move(file), std::move(tensors));
}

absl::Status WriteSafetensors(const std::string& path, std::span<const TensorView> tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  size_t offset = 0;
  for (const TensorView& tensor : tensors) {
    const size_t end = offset + tensor.bytes.size();
    header[tensor.name] = {{"dtype", tensor::Name(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  const uint64_t length = text.size();
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(&length), sizeof(length));
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  for (const TensorView& tensor : tensors) {
    out.write(reinterpret_cast<const char*>(tensor.bytes.data()),
              static_cast<std::streamsize>(tensor.bytes.size()));
  }
  out.close();
  if (!out) return absl::FailedPreconditionError(fmt::format("{} cannot be written", path));
  return absl::OkStatus();
}

}  // namespace fulgur::io
