#include "text/tokenizer.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "text/tokenizer_data.h"
#include "text/utf8.h"

namespace fulgur::text {
namespace {

// One encoding in progress: text flows through added tokens, pre-tokenizer and merges into ids.
class Encoder {
 public:
  Encoder(const Tokenizer::Data& data, const EncodeOptions& options)
      : data_(data), options_(options) {}

  std::vector<int32_t> Run(std::string_view text) {
    if (options_.match_added_tokens) {
      SplitAdded(data_.first_added, text, {0, text.size()}, [&](ByteRange rest) {
        SplitAdded(data_.second_added, text, rest, [&](ByteRange ordinary) {
          EncodeOrdinary(text.substr(ordinary.begin, ordinary.end - ordinary.begin));
        });
      });
    } else {
      EncodeOrdinary(text);
    }
    return std::move(ids_);
  }

 private:
  bool Full() const { return ids_.size() > options_.max_tokens; }

  // Emits the tokens of `matcher` found in a range of `text` and calls `gap` for what lies between.
  template <typename Gap>
  void SplitAdded(const AddedTokenMatcher& matcher, std::string_view text, ByteRange range,
                  const Gap& gap) {
    size_t at = range.begin;
    while (at < range.end && !Full()) {
      const auto match = matcher.FindNext(text.substr(0, range.end), at, options_.plain_text);
      const size_t end = match.has_value() ? match->range.begin : range.end;
      if (end > at) gap(ByteRange{at, end});
      if (!match.has_value()) return;
      ids_.push_back(match->id);
      at = match->range.end;
    }
  }

  // Text without added tokens. Bytes that are no UTF-8 are pieces of their own.
  void EncodeOrdinary(std::string_view text) {
    size_t begin = 0;
    size_t at = 0;
    while (at < text.size()) {
      if (static_cast<uint8_t>(text[at]) < 0x80) {
        ++at;
        continue;
      }
      const Utf8Step step = DecodeUtf8(text.substr(at));
      if (step.kind != Utf8Step::Kind::kCharacter) {
        EncodeValid(text.substr(begin, at - begin));
        data_.byte_pairs->Encode(text.substr(at, step.length), &ids_);
        begin = at + step.length;
      }
      at += step.length;
    }
    EncodeValid(text.substr(begin));
  }

  void EncodeValid(std::string_view text) {
    data_.pre_tokenizer.Split(text, [&](std::string_view piece) {
      data_.byte_pairs->Encode(piece, &ids_);
      return !Full();
    });
  }

  const Tokenizer::Data& data_;
  const EncodeOptions& options_;
  std::vector<int32_t> ids_;
};

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!(file && text << file.rdbuf())) {
    return absl::NotFoundError(fmt::format("cannot read {}", path.string()));
  }
  return std::move(text).str();
}

}  // namespace

absl::StatusOr<Tokenizer> Tokenizer::Load(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string json, ReadFile(path));
  absl::StatusOr<Tokenizer> tokenizer = FromJson(json);
  if (tokenizer.ok()) return tokenizer;
  return absl::Status(
      tokenizer.status().code(),
      fmt::format("{}: {}", path.string(), std::string(tokenizer.status().message())));
}

absl::StatusOr<Tokenizer> Tokenizer::FromJson(std::string_view json) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Data> data, ParseTokenizerJson(json));
  return Tokenizer(std::move(data));
}

std::vector<int32_t> Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  return Encoder(*data_, options).Run(text);
}

size_t Tokenizer::CountTokens(std::string_view text, const EncodeOptions& options) const {
  return Encode(text, options).size();
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::string bytes;
  for (int32_t id : ids) {
    if (!(skip_special_tokens && IsSpecial(id))) bytes.append(TokenBytes(id));
  }
  return RepairUtf8(bytes);
}

std::string_view Tokenizer::TokenBytes(int32_t id) const { return data_->vocabulary.Bytes(id); }

std::string Tokenizer::TokenSpelling(int32_t id) const {
  const std::string_view bytes = TokenBytes(id);
  if (IsAdded(id)) return std::string(bytes);
  std::string spelling;
  for (char byte : bytes) AppendUtf8(CharacterOfByte(static_cast<uint8_t>(byte)), &spelling);
  return spelling;
}

bool Tokenizer::IsAdded(int32_t id) const { return data_->vocabulary.IsAdded(id); }

bool Tokenizer::IsSpecial(int32_t id) const { return data_->vocabulary.IsSpecial(id); }

std::optional<int32_t> Tokenizer::FindAddedToken(std::string_view content) const {
  const auto id = data_->added_ids.find(std::string(content));
  if (id == data_->added_ids.end()) return std::nullopt;
  return id->second;
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(data_->vocabulary.size()); }

size_t Tokenizer::longest_token_bytes() const { return data_->vocabulary.longest(); }

}  // namespace fulgur::text
