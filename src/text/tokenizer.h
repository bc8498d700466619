// Byte-level BPE as a Hugging Face tokenizer.json describes it: text to token ids and back.
//
// A Tokenizer is an immutable value: copies share one table, every method may be called from any
// number of threads. Encoding is linear in the text (a megabyte without a space is fine) and never
// fails; all that can be wrong is found while loading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fulgur::text {

// Bytes [begin, end) of some text.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

struct EncodeOptions {
  // True: text that spells an added token (such as <｜User｜>) becomes that token. False: it stays
  // ordinary text.
  bool match_added_tokens = true;

  // Ranges that are never read as added tokens, not even in part: what users typed inside a prompt
  // that otherwise carries markup. Ascending and disjoint. The text is still one text: a range
  // limit separates nothing, so ordinary characters on both sides may share a token.
  std::span<const ByteRange> plain_text = {};

  // Encoding may stop once there are more ids than this; callers that would refuse so long a
  // prompt anyway save the rest of the work.
  size_t max_tokens = std::numeric_limits<size_t>::max();
};

class Tokenizer {
 public:
  // Reads a tokenizer.json. Errors name the file and the first field that is malformed or that
  // this tokenizer does not implement (it implements the DeepSeek family: BPE on bytes, Split and
  // ByteLevel pre-tokenizers, no normalizer, added tokens without stripping).
  static absl::StatusOr<Tokenizer> Load(const std::filesystem::path& path);
  static absl::StatusOr<Tokenizer> FromJson(std::string_view json);

  // Token ids of UTF-8 `text`; no BOS or EOS is added. Bytes that are not valid UTF-8 are encoded
  // one by one.
  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions& options = {}) const;
  size_t CountTokens(std::string_view text, const EncodeOptions& options = {}) const;

  // Text of `ids`; invalid UTF-8 becomes U+FFFD, one per maximal invalid part. Ids outside the
  // vocabulary have no text. With `skip_special_tokens`, tokens flagged special are left out.
  std::string Decode(std::span<const int32_t> ids, bool skip_special_tokens = false) const;

  // The bytes a token stands for, which may be part of a UTF-8 character; empty for ids without a
  // token. Valid as long as any copy of this tokenizer lives.
  std::string_view TokenBytes(int32_t id) const;

  // The token as tokenizer.json spells it: bytes as printable characters ("Ġthe"), added tokens
  // literally. What /tokenize reports as token_strs.
  std::string TokenSpelling(int32_t id) const;

  // Added tokens are those of the file's `added_tokens`; special ones are flagged so there.
  bool IsAdded(int32_t id) const;
  bool IsSpecial(int32_t id) const;

  // The id of an added token by its exact content, such as "<｜User｜>".
  std::optional<int32_t> FindAddedToken(std::string_view content) const;

  // One more than the largest id.
  int32_t vocab_size() const;

  // Bytes of the longest token: a text of more than n times this many bytes has more than n tokens.
  size_t longest_token_bytes() const;

  struct Data;  // defined in tokenizer_data.h

 private:
  explicit Tokenizer(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

  std::shared_ptr<const Data> data_;
};

}  // namespace fulgur::text
