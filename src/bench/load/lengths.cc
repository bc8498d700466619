#include "bench/load/lengths.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "fmt/format.h"
#include "io/json.h"

namespace fulgur::bench {
namespace {

constexpr int kMaxRedraws = 100;
constexpr double kMaxLength = 1 << 24;

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(
      fmt::format("--seq-dist: \"{}\" is not ISL,OSL:WEIGHT, where a length may be MEAN|STDDEV; "
                  "entries are separated by ';', such as 16384|1024,4096|256:100",
                  what));
}

bool IsLength(double value) { return value >= 1.0 && value <= kMaxLength; }

absl::StatusOr<LengthLaw> ParseLaw(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('|', 1));
  LengthLaw law;
  if (!absl::SimpleAtod(parts.first, &law.mean) || !IsLength(law.mean)) return Malformed(text);
  if (text.find('|') == std::string_view::npos) return law;
  if (!absl::SimpleAtod(parts.second, &law.stddev) || !(law.stddev >= 0.0)) return Malformed(text);
  return law;
}

absl::StatusOr<LengthPairLaw> ParseEntry(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  const std::vector<std::string> lengths = absl::StrSplit(parts[0], ',');
  LengthPairLaw pair;
  if (parts.size() != 2 || lengths.size() != 2 || !absl::SimpleAtod(parts[1], &pair.weight) ||
      !(pair.weight > 0.0)) {
    return Malformed(text);
  }
  ASSIGN_OR_RETURN(pair.input, ParseLaw(lengths[0]));
  ASSIGN_OR_RETURN(pair.output, ParseLaw(lengths[1]));
  return pair;
}

std::optional<double> Number(simdjson::dom::object object, std::string_view key) {
  double value = 0.0;
  if (object[key].get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

absl::StatusOr<std::vector<LengthPairLaw>> ParseJsonMix(const std::string& text) {
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::Parse(text, "--seq-dist"));
  simdjson::dom::array pairs;
  if (document.root()["pairs"].get(pairs) != simdjson::SUCCESS) return Malformed(text);
  std::vector<LengthPairLaw> mix;
  for (const simdjson::dom::element element : pairs) {
    simdjson::dom::object object;
    if (element.get(object) != simdjson::SUCCESS) return Malformed(text);
    const LengthPairLaw pair{
        .input = {Number(object, "isl").value_or(0), Number(object, "isl_stddev").value_or(0)},
        .output = {Number(object, "osl").value_or(0), Number(object, "osl_stddev").value_or(0)},
        .weight = Number(object, "prob").value_or(0)};
    if (!IsLength(pair.input.mean) || !IsLength(pair.output.mean) || !(pair.weight > 0)) {
      return Malformed(text);
    }
    mix.push_back(pair);
  }
  if (mix.empty()) return Malformed(text);
  return mix;
}

// "[(a,b):w,(c,d):w]" -> "a,b:w;c,d:w".
std::string WithoutBrackets(std::string text) {
  if (!text.starts_with('[') || !text.ends_with(']')) return text;
  text = text.substr(1, text.size() - 2);
  return absl::StrReplaceAll(text, {{",(", ";"}, {"(", ""}, {")", ""}});
}

}  // namespace

int64_t DrawLength(const LengthLaw& law, RandomStream& random) {
  if (law.range_ratio > 0.0) {
    const double low = std::floor(law.mean * (1.0 - law.range_ratio));
    const double high = std::ceil(law.mean * (1.0 + law.range_ratio));
    const auto choices = static_cast<uint64_t>(high - low) + 1;
    return std::max<int64_t>(
        1, static_cast<int64_t>(low) + static_cast<int64_t>(random.Below(choices)));
  }
  if (law.stddev <= 0.0) return std::max<int64_t>(1, std::llround(law.mean));
  for (int i = 0; i < kMaxRedraws; ++i) {
    const double value = law.mean + law.stddev * random.Normal();
    if (value > 0.0) return static_cast<int64_t>(std::ceil(value));
  }
  return 1;
}

DrawnLengths DrawLengths(const std::vector<LengthPairLaw>& mix, RandomStream& random) {
  double total = 0.0;
  for (const LengthPairLaw& pair : mix) total += pair.weight;
  double left = mix.size() > 1 ? random.Uniform() * total : 0.0;
  const LengthPairLaw* chosen = &mix.back();
  for (const LengthPairLaw& pair : mix) {
    left -= pair.weight;
    if (left < 0.0) {
      chosen = &pair;
      break;
    }
  }
  DrawnLengths lengths;
  lengths.input = DrawLength(chosen->input, random);
  if (chosen->output.mean > 0.0) lengths.output = DrawLength(chosen->output, random);
  return lengths;
}

absl::StatusOr<std::vector<LengthPairLaw>> ParseLengthMix(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  if (text.starts_with('{')) return ParseJsonMix(text);
  std::vector<LengthPairLaw> mix;
  for (const std::string& entry :
       std::vector<std::string>(absl::StrSplit(WithoutBrackets(text), ';', absl::SkipEmpty()))) {
    ASSIGN_OR_RETURN(const LengthPairLaw pair, ParseEntry(entry));
    mix.push_back(pair);
  }
  if (mix.empty()) return Malformed(text);
  return mix;
}

}  // namespace fulgur::bench
