#include "text/utf8.h"

#include <algorithm>

namespace fulgur::text {
namespace {

// What may follow a lead byte (Unicode, table 3-7): the number of bytes, the range of the second
// byte, and the lead byte's payload.
struct Lead {
  size_t length;
  uint8_t second_min;
  uint8_t second_max;
  uint32_t payload;
};

Lead ReadLead(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0, byte};
  if (byte < 0xC2) return {0, 0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF, byte & 0x1Fu};
  if (byte < 0xF0) {
    const uint8_t min = byte == 0xE0 ? 0xA0 : 0x80;
    const uint8_t max = byte == 0xED ? 0x9F : 0xBF;
    return {3, min, max, byte & 0x0Fu};
  }
  if (byte > 0xF4) return {0, 0, 0, 0};
  const uint8_t min = byte == 0xF0 ? 0x90 : 0x80;
  const uint8_t max = byte == 0xF4 ? 0x8F : 0xBF;
  return {4, min, max, byte & 0x07u};
}

}  // namespace

Utf8Step DecodeUtf8(std::string_view bytes) {
  using Kind = Utf8Step::Kind;
  const Lead lead = ReadLead(static_cast<uint8_t>(bytes[0]));
  if (lead.length == 0) return {Kind::kInvalid, 0, 1};
  uint32_t code_point = lead.payload;
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {Kind::kPartial, 0, i};
    const auto byte = static_cast<uint8_t>(bytes[i]);
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {Kind::kInvalid, 0, i};
    code_point = code_point << 6 | (byte & 0x3Fu);
  }
  return {Kind::kCharacter, code_point, lead.length};
}

bool IsValidUtf8(std::string_view bytes) { return ValidUtf8Prefix(bytes) == bytes.size(); }

size_t ValidUtf8Prefix(std::string_view bytes) {
  size_t length = 0;
  while (length < bytes.size()) {
    const Utf8Step step = DecodeUtf8(bytes.substr(length));
    if (step.kind != Utf8Step::Kind::kCharacter) break;
    length += step.length;
  }
  return length;
}

void AppendUtf8(uint32_t code_point, std::string* out) {
  const auto append = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    append(code_point);
  } else if (code_point < 0x800) {
    append(0xC0 | code_point >> 6);
    append(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    append(0xE0 | code_point >> 12);
    append(0x80 | (code_point >> 6 & 0x3F));
    append(0x80 | (code_point & 0x3F));
  } else {
    append(0xF0 | code_point >> 18);
    append(0x80 | (code_point >> 12 & 0x3F));
    append(0x80 | (code_point >> 6 & 0x3F));
    append(0x80 | (code_point & 0x3F));
  }
}

void Utf8Assembler::Push(std::string_view bytes, std::string* out) {
  // Only a held-back beginning needs joining; the rest is read where it lies.
  while (!partial_.empty() && !bytes.empty()) {
    partial_.push_back(bytes.front());
    bytes.remove_prefix(1);
    const Utf8Step step = DecodeUtf8(partial_);
    if (step.kind == Utf8Step::Kind::kPartial) continue;
    if (step.kind == Utf8Step::Kind::kCharacter) {
      out->append(partial_);
      partial_.clear();
      continue;
    }
    out->append(kReplacementCharacter);
    // The byte that broke the character may begin another one.
    const std::string rest = partial_.substr(step.length);
    partial_.clear();
    Push(rest, out);
  }
  while (!bytes.empty()) {
    const auto ascii = std::find_if(bytes.begin(), bytes.end(), [](char c) { return c < 0; });
    const auto ascii_length = static_cast<size_t>(ascii - bytes.begin());
    out->append(bytes.substr(0, ascii_length));
    bytes.remove_prefix(ascii_length);
    if (bytes.empty()) return;
    const Utf8Step step = DecodeUtf8(bytes);
    if (step.kind == Utf8Step::Kind::kPartial) {
      partial_.assign(bytes);
      return;
    }
    out->append(step.kind == Utf8Step::Kind::kCharacter ? bytes.substr(0, step.length)
                                                        : kReplacementCharacter);
    bytes.remove_prefix(step.length);
  }
}

void Utf8Assembler::Finish(std::string* out) {
  if (!partial_.empty()) out->append(kReplacementCharacter);
  partial_.clear();
}

std::string RepairUtf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  Utf8Assembler assembler;
  assembler.Push(bytes, &out);
  assembler.Finish(&out);
  return out;
}

}  // namespace fulgur::text
