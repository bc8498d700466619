// Small scanners for the texts of tools and of /proc.
#pragma once

#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fulgur::bench {

// The number that the whole word spells.
template <typename T>
std::optional<T> WholeNumber(std::string_view word) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

inline std::optional<double> FiniteNumber(std::string_view word) {
  const auto value = WholeNumber<double>(word);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// The parts between any of `separators`, without empty ones.
inline std::vector<std::string_view> SplitSkipEmpty(std::string_view text,
                                                    std::string_view separators) {
  std::vector<std::string_view> parts;
  for (size_t start = text.find_first_not_of(separators); start != std::string_view::npos;) {
    const size_t end = text.find_first_of(separators, start);
    parts.push_back(text.substr(start, end - start));
    start = text.find_first_not_of(separators, end);
  }
  return parts;
}

inline std::vector<std::string_view> WordsOf(std::string_view text) {
  return SplitSkipEmpty(text, " \t\r\n");
}

inline std::vector<std::string_view> LinesOf(std::string_view text) {
  return SplitSkipEmpty(text, "\n");
}

inline std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// The parts between single separators, empty ones too, trimmed.
inline std::vector<std::string_view> FieldsOf(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t end = text.find(separator);
    fields.push_back(Trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

// A file's text; empty if it cannot be read, as files of /proc come and go.
inline std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace fulgur::bench
