#include "io/safetensors.h"

#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fulgur::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::span<const std::byte> Bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// A file with the given header text, header length field and data size.
std::string FileWith(std::string_view header, uint64_t length, size_t data_bytes) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + std::string(header) + std::string(data_bytes, '\0');
}

std::string FileWith(std::string_view header, size_t data_bytes) {
  return FileWith(header, header.size(), data_bytes);
}

absl::Status Parse(const std::string& file) {
  return ParseSafetensors(Bytes(file), "x.safetensors").status();
}

TEST(Safetensors, ReadsWhatItWrites) {
  const std::string path = ::testing::TempDir() + "written.safetensors";
  const std::string a = "0123456789ab";
  const std::string b = "xy";
  const std::vector<TensorView> tensors = {
      {"a.weight", tensor::DType::kF32, {3, 1}, Bytes(a)},
      {"b", tensor::DType::kF8E4M3, {2}, Bytes(b)},
      {"empty", tensor::DType::kI64, {0, 7}, {}},
      {"scalar", tensor::DType::kBool, {}, Bytes("\1")},
  };
  ASSERT_TRUE(WriteSafetensors(path, tensors).ok());
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors().size(), 4U);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorView& read = file->tensors()[i];
    EXPECT_EQ(read.name, tensors[i].name);
    EXPECT_EQ(read.type, tensors[i].type);
    EXPECT_EQ(read.shape, tensors[i].shape);
    EXPECT_EQ(std::vector(read.bytes.begin(), read.bytes.end()),
              std::vector(tensors[i].bytes.begin(), tensors[i].bytes.end()));
  }
}

TEST(Safetensors, ReadsTensorsInFileOrderAndMetadata) {
  const auto tensors =
      ParseSafetensors(Bytes(FileWith(R"({"__metadata__":{"format":"pt"},)"
                                      R"("b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]},)"
                                      R"("a":{"dtype":"I8","shape":[3],"data_offsets":[0,3]}}   )",
                                      5)),
                       "x.safetensors");
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 2U);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[1].name, "b");
  EXPECT_THAT((*tensors)[1].shape, ElementsAre(2));
}

TEST(Safetensors, AcceptsAFileWithoutTensors) {
  const auto tensors = ParseSafetensors(Bytes(FileWith("{}", 0)), "x.safetensors");
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_THAT(*tensors, IsEmpty());
}

struct HostileFile {
  const char* name;
  std::string file;
  const char* error;
};

std::string Deep(int levels) {
  return std::string(static_cast<size_t>(levels), '[') +
         std::string(static_cast<size_t>(levels), ']');
}

std::string OneTensor(std::string_view fields, size_t data_bytes) {
  return FileWith(R"({"w":{)" + std::string(fields) + "}}", data_bytes);
}

std::vector<HostileFile> HostileFiles() {
  return {
      {"Empty", "", "has 0 bytes and is no safetensors file"},
      {"OnlyALength", std::string(7, '\0'), "has 7 bytes and is no safetensors file"},
      {"NoHeader", FileWith("", 0), "does not start with '{'"},
      {"HeaderLongerThanFile", FileWith("{}", 3, 0), "announces a header of 3 bytes"},
      {"HeaderOfExabytes", FileWith("{}", ~uint64_t{0}, 0),
       "announces a header of 18446744073709551615 bytes"},
      {"HeaderLengthWrapsAround", FileWith("{}", uint64_t{0} - 8, 100), "announces a header"},
      {"NotJson", FileWith("{nonsense}", 0), "the header is not valid JSON"},
      {"TwoDocuments", FileWith("{}{}", 0), "the header is not valid JSON"},
      {"NotUtf8", FileWith("{\"\xff\xfe\":1}", 0), "the header is not valid JSON"},
      {"LeadingSpace", FileWith(" {}", 0), "does not start with '{'"},
      {"DeepJson", FileWith("{\"w\":" + Deep(100000) + "}", 0), "nests JSON deeper than"},
      {"DeepMetadata", FileWith("{\"__metadata__\":{\"a\":" + Deep(10) + "}}", 0),
       "nests JSON deeper than"},
      {"MetadataIsAList", FileWith(R"({"__metadata__":[]})", 0), "is not a JSON object"},
      {"TensorIsANumber", FileWith(R"({"w":1})", 0), "tensor \"w\" is not a JSON object"},
      {"NoType", OneTensor(R"("shape":[1],"data_offsets":[0,1])", 1), "has no dtype"},
      {"UnknownType", OneTensor(R"("dtype":"F64","shape":[1],"data_offsets":[0,8])", 8),
       "unsupported dtype \"F64\""},
      {"NoShape", OneTensor(R"("dtype":"U8","data_offsets":[0,1])", 1), "has no list shape"},
      {"NoOffsets", OneTensor(R"("dtype":"U8","shape":[1])", 1), "has no list data_offsets"},
      {"ThreeOffsets", OneTensor(R"("dtype":"U8","shape":[1],"data_offsets":[0,1,1])", 1),
       "not two numbers"},
      {"NegativeSize", OneTensor(R"("dtype":"U8","shape":[-1],"data_offsets":[0,1])", 1),
       "has \"-1\" in shape"},
      {"FractionalSize", OneTensor(R"("dtype":"U8","shape":[1.5],"data_offsets":[0,1])", 1),
       "has \"1.5\" in shape"},
      {"HugeSize",
       OneTensor(R"("dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1])", 1),
       "in shape"},
      {"SizeOverflows",
       OneTensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])", 0),
       "absurd shape [4294967296, 4294967296]"},
      {"TypeOverflows",
       OneTensor(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])", 0),
       "absurd shape"},
      {"ManyDimensions",
       OneTensor(R"("dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1])", 1),
       "has more than 8 numbers in shape"},
      {"OffsetsReversed", OneTensor(R"("dtype":"U8","shape":[1],"data_offsets":[1,0])", 1),
       "outside the file"},
      {"OffsetsOutside", OneTensor(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])", 1),
       "outside the file's 1 bytes of data"},
      {"OffsetsFarOutside",
       OneTensor(R"("dtype":"U8","shape":[9223372036854775807],)"
                 R"("data_offsets":[0,9223372036854775807])",
                 1),
       "outside the file"},
      {"SizeDisagrees", OneTensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,1])", 1),
       "of type F32 and shape [1] needs 4 bytes"},
      {"DataWithoutTensor", FileWith("{}", 3), "3 bytes of data that belong to no tensor"},
      {"HoleAtTheStart", OneTensor(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])", 2),
       "leaves a hole"},
      {"Overlap",
       FileWith(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                3),
       "tensor \"b\" overlaps another tensor"},
      {"SameBytesTwice",
       FileWith(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                2),
       "overlaps another tensor"},
      {"DuplicateName",
       FileWith(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                2),
       "tensor \"a\" appears twice"},
      {"DuplicateNameInDisguise",
       FileWith(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                R"("\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                2),
       "tensor \"a\" appears twice"},
      {"ControlCharactersInName", FileWith("{\"a\\u001b\\n\":1}", 0), "\"a\\x1b\\n\""},
  };
}

class HostileSafetensors : public ::testing::TestWithParam<HostileFile> {};

TEST_P(HostileSafetensors, IsRefusedWithOneSentence) {
  const absl::Status status = Parse(GetParam().file);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().error));
  EXPECT_THAT(std::string(status.message()), HasSubstr("x.safetensors"));
  EXPECT_LT(status.message().size(), 400U);
}

INSTANTIATE_TEST_SUITE_P(Table, HostileSafetensors, ::testing::ValuesIn(HostileFiles()),
                         [](const auto& info) { return std::string(info.param.name); });

// Every prefix of a valid file, and every file with one byte changed, is read or refused.
TEST(Safetensors, SurvivesCutAndDamagedFiles) {
  const std::string file =
      FileWith(R"({"a":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]}})", 4);
  ASSERT_TRUE(Parse(file).ok());
  for (size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(Parse(file.substr(0, size)).ok());
  for (size_t i = 0; i < file.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = file;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      (void)Parse(damaged);
    }
  }
}

}  // namespace
}  // namespace fulgur::io
