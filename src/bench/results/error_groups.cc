#include "bench/results/error_groups.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "bench/results/json_fields.h"
#include "io/json.h"

namespace fulgur::bench {
namespace {

constexpr size_t kLongest = 200;

std::string InnerMessage(std::string_view message) {
  if (!message.starts_with('{')) return std::string(message);
  const auto document = io::JsonDocument::Parse(message, "the message");
  JsonObject root;
  if (!document.ok() || document->root().get(root) != simdjson::SUCCESS) {
    return std::string(message);
  }
  const auto error = ObjectAt(root, "error");
  const std::string inner = TextAt(error.value_or(root), "message");
  return inner.empty() ? std::string(message) : inner;
}

// Cuts between characters, not inside one.
std::string Cut(std::string text) {
  if (text.size() <= kLongest) return text;
  size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

void ErrorGrouper::Add(const ErrorGroup& error) {
  const auto [place, is_new] =
      places_.emplace(Key(error.code, error.type, error.message), groups_.size());
  if (is_new) {
    groups_.push_back(error);
  } else {
    groups_[place->second].count += error.count;
  }
}

std::string MaskedMessage(std::string_view message) {
  std::string masked;
  bool in_number = false;
  for (const char letter : InnerMessage(message)) {
    const bool digit = absl::ascii_isdigit(static_cast<unsigned char>(letter));
    if (!digit) masked += letter;
    if (digit && !in_number) masked += '#';
    in_number = digit;
  }
  return Cut(std::move(masked));
}

std::vector<ErrorGroup> GroupForPeople(const std::vector<ErrorGroup>& errors) {
  ErrorGrouper grouper;
  for (const ErrorGroup& error : errors) {
    grouper.Add({error.code, error.type, MaskedMessage(error.message), error.count});
  }
  std::vector<ErrorGroup> groups = grouper.TakeGroups();
  std::stable_sort(groups.begin(), groups.end(),
                   [](const ErrorGroup& a, const ErrorGroup& b) { return a.count > b.count; });
  return groups;
}

std::string CodeName(const ErrorGroup& group) {
  if (group.code) return std::to_string(*group.code);
  return group.type.empty() ? "no code" : group.type;
}

}  // namespace fulgur::bench
