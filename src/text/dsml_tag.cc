#include "text/dsml_tag.h"

#include <algorithm>
#include <optional>

#include "text/markup.h"

namespace fulgur::text {
namespace {

using Result = DsmlTagMatcher::Result;

// Models sometimes misspell the name of the block, so three spellings count.
struct Keyword {
  std::string_view text;
  DsmlTag::Kind open;
  DsmlTag::Kind close;
};
constexpr Keyword kKeywords[] = {
    {"tool_calls", DsmlTag::Kind::kBlockOpen, DsmlTag::Kind::kBlockClose},
    {"toolcalls", DsmlTag::Kind::kBlockOpen, DsmlTag::Kind::kBlockClose},
    {"tool", DsmlTag::Kind::kBlockOpen, DsmlTag::Kind::kBlockClose},
    {"invoke", DsmlTag::Kind::kInvokeOpen, DsmlTag::Kind::kInvokeClose},
    {"parameter", DsmlTag::Kind::kParameterOpen, DsmlTag::Kind::kParameterClose},
};

// A quote that is never closed must not hold back the text behind it for ever.
constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxWordBytes = 32;
constexpr size_t kMaxRestBytes = 256;

bool IsSpace(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

bool IsWordByte(char byte) {
  const char lower = static_cast<char>(byte | 0x20);
  return (lower >= 'a' && lower <= 'z') || byte == '_';
}

}  // namespace

void DsmlTagMatcher::Start() {
  state_ = State::kSlashOrMark;
  closing_ = false;
  space_seen_ = false;
  word_.clear();
  tag_ = {DsmlTag::Kind::kUnknown, "", false};
}

Result DsmlTagMatcher::Push(char byte) {
  const bool in_header = state_ > State::kKeyword && state_ < State::kRest;
  const Result result = PushKnown(byte);
  if (result != Result::kNo || !in_header || state_ == State::kName) return result;
  state_ = State::kRest;
  word_.clear();
  return Rest(byte);
}

Result DsmlTagMatcher::Rest(char byte) {
  tag_.kind = DsmlTag::Kind::kUnknown;
  word_.push_back(byte);
  if (byte == '>') return Result::kYes;
  const bool may_go_on = byte != '<' && byte != '\n' && !IsMark(byte);
  return may_go_on && word_.size() <= kMaxRestBytes ? Result::kMore : Result::kNo;
}

Result DsmlTagMatcher::PushKnown(char byte) {
  switch (state_) {
    case State::kSlashOrMark:
      if (byte == '/') {
        closing_ = true;
        state_ = State::kMark;
        return Result::kMore;
      }
      [[fallthrough]];
    case State::kMark:
      state_ = State::kKeyword;
      return byte == MarkOf(Marker::kDsml) ? Result::kMore : Result::kNo;
    case State::kKeyword:
      return Keyword(byte);
    case State::kBeforeName:
      if (IsSpace(byte)) return Result::kMore;
      state_ = State::kNameKey;
      [[fallthrough]];
    case State::kNameKey:
      return Literal(byte, "name=\"", State::kName);
    case State::kName:
      return Name(byte);
    case State::kAfterName:
      return AfterName(byte);
    case State::kStringKey:
      return Literal(byte, "string=\"", State::kFlag);
    case State::kFlag:
      return Flag(byte);
    case State::kBeforeEnd:
      return End(byte);
    case State::kRest:
      return Rest(byte);
  }
  return Result::kNo;
}

Result DsmlTagMatcher::Keyword(char byte) {
  if (IsSpace(byte) || byte == '>') return KeywordEnd(byte);
  word_.push_back(byte);
  return IsWordByte(byte) && word_.size() <= kMaxWordBytes ? Result::kMore : Result::kNo;
}

Result DsmlTagMatcher::KeywordEnd(char byte) {
  if (word_.empty()) return Result::kNo;
  const auto* keyword = std::find_if(std::begin(kKeywords), std::end(kKeywords),
                                     [&](const auto& k) { return k.text == word_; });
  word_.clear();
  tag_.kind = keyword == std::end(kKeywords) ? DsmlTag::Kind::kUnknown
              : closing_                     ? keyword->close
                                             : keyword->open;
  const bool has_name =
      tag_.kind == DsmlTag::Kind::kInvokeOpen || tag_.kind == DsmlTag::Kind::kParameterOpen;
  if (!has_name) {
    state_ = State::kBeforeEnd;
    return End(byte);
  }
  state_ = State::kBeforeName;
  if (byte != '>') return Result::kMore;
  tag_.kind = DsmlTag::Kind::kUnknown;  // a header without a name
  return Result::kYes;
}

Result DsmlTagMatcher::Literal(char byte, std::string_view literal, State next) {
  word_.push_back(byte);
  if (!literal.starts_with(word_)) return Result::kNo;
  if (word_.size() == literal.size()) {
    word_.clear();
    state_ = next;
  }
  return Result::kMore;
}

Result DsmlTagMatcher::Name(char byte) {
  if (byte != '"') {
    word_.push_back(byte);
    return word_.size() > kMaxNameBytes ? Result::kNo : Result::kMore;
  }
  tag_.name = SpellMarks(word_);
  word_.clear();
  state_ = tag_.kind == DsmlTag::Kind::kParameterOpen ? State::kAfterName : State::kBeforeEnd;
  return Result::kMore;
}

Result DsmlTagMatcher::AfterName(char byte) {
  if (byte == '>') return Result::kYes;
  if (IsSpace(byte)) {
    space_seen_ = true;
    return Result::kMore;
  }
  state_ = State::kStringKey;
  return space_seen_ ? PushKnown(byte) : Result::kNo;
}

Result DsmlTagMatcher::Flag(char byte) {
  if (byte != '"') {
    word_.push_back(byte);
    const bool possible =
        std::string_view("true").starts_with(word_) || std::string_view("false").starts_with(word_);
    return possible ? Result::kMore : Result::kNo;
  }
  tag_.is_string = word_ == "true";
  state_ = State::kBeforeEnd;
  return word_ == "true" || word_ == "false" ? Result::kMore : Result::kNo;
}

Result DsmlTagMatcher::End(char byte) {
  if (byte == '>') return Result::kYes;
  return IsSpace(byte) ? Result::kMore : Result::kNo;
}

bool DsmlTagMatcher::NamesCall() const {
  return tag_.kind == DsmlTag::Kind::kInvokeOpen &&
         (state_ == State::kName || state_ == State::kBeforeEnd);
}

}  // namespace fulgur::text
