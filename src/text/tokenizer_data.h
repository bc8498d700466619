// What a Tokenizer holds, and its construction from tokenizer.json.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "text/added_tokens.h"
#include "text/byte_pair.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace fulgur::text {

// The bytes of every token and what kind it is, by id. Ids need not be contiguous.
class Vocabulary {
 public:
  // Room for the ids below `size`.
  explicit Vocabulary(size_t size) : tokens_(size) {}

  void Set(int32_t id, std::string_view bytes, bool added, bool special);

  size_t size() const { return tokens_.size(); }
  size_t longest() const { return longest_; }
  bool Has(int32_t id) const { return Find(id) != nullptr; }
  std::string_view Bytes(int32_t id) const;
  bool IsAdded(int32_t id) const;
  bool IsSpecial(int32_t id) const;

 private:
  struct Token {
    uint32_t offset = 0;
    uint32_t length : 29 = 0;
    bool present : 1 = false;
    bool added : 1 = false;
    bool special : 1 = false;
  };

  const Token* Find(int32_t id) const;

  std::vector<Token> tokens_;
  std::string bytes_;
  size_t longest_ = 0;
};

struct Tokenizer::Data {
  explicit Data(size_t vocab_size) : vocabulary(vocab_size) {}

  Vocabulary vocabulary;
  std::optional<BytePairEncoder> byte_pairs;
  PreTokenizer pre_tokenizer;
  // Hugging Face matches tokens with "normalized": false before all others, over the whole text.
  AddedTokenMatcher first_added;
  AddedTokenMatcher second_added;
  absl::flat_hash_map<std::string, int32_t> added_ids;
};

absl::StatusOr<std::shared_ptr<const Tokenizer::Data>> ParseTokenizerJson(std::string_view json);

// Byte-level BPE writes each byte as a printable character (GPT-2's table). The character of a
// byte, and the bytes of a spelling; nothing if the spelling has a character outside the table.
uint32_t CharacterOfByte(uint8_t byte);
std::optional<std::string> BytesOfSpelling(std::string_view spelling);

}  // namespace fulgur::text
