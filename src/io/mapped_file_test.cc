#include "io/mapped_file.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fulgur::io {
namespace {

using ::testing::HasSubstr;

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string Text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, ShowsTheBytesOfTheFile) {
  const auto file = MappedFile::Open(WriteFile("mapped_small", "hello"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Text(*file), "hello");
}

TEST(MappedFile, AcceptsAnEmptyFile) {
  const auto file = MappedFile::Open(WriteFile("mapped_empty", ""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size(), 0);
}

TEST(MappedFile, StaysValidWhenMoved) {
  auto opened = MappedFile::Open(WriteFile("mapped_moved", "first"));
  ASSERT_TRUE(opened.ok());
  MappedFile file = *std::move(opened);
  MappedFile other = std::move(file);
  EXPECT_EQ(Text(other), "first");
}

TEST(MappedFile, ReadsTheSameBytesAfterDropping) {
  std::string text(3 << 20, 'x');
  for (size_t i = 0; i < text.size(); i += 97) text[i] = static_cast<char>('a' + i % 26);
  const auto file = MappedFile::Open(WriteFile("mapped_large", text));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(Text(*file), text);
  file->Drop(5, file->size());
  file->WillNeed(17, file->size());
  EXPECT_TRUE(file->ReadThrough(0, file->size()).ok());
  EXPECT_EQ(Text(*file), text);
}

TEST(MappedFile, NamesAFileThatItCannotOpen) {
  const auto missing = MappedFile::Open("/nonexistent/model.safetensors");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("/nonexistent/model.safetensors"));
  const auto folder = MappedFile::Open("/tmp");
  EXPECT_THAT(folder.status().message(), HasSubstr("/tmp is not a regular file"));
}

TEST(MappedFile, ReportsAFileThatBecameShorter) {
  const std::string path = WriteFile("mapped_cut", std::string(9000, 'x'));
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(truncate(path.c_str(), 100), 0);
  EXPECT_THAT(file->ReadThrough(0, file->size()).message(), HasSubstr("became shorter"));
}

}  // namespace
}  // namespace fulgur::io
