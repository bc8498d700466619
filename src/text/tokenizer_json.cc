// Reads tokenizer.json (Hugging Face tokenizers, version 1.0). Everything this implementation would
// treat differently from the reference is refused by name.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "base/status_macros.h"
#include "text/tokenizer_data.h"
#include "text/utf8.h"

namespace fulgur::text {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// Bounds for files that are broken or hostile; the largest vocabularies have 262,144 tokens.
constexpr int64_t kMaxTokenId = (int64_t{1} << 22) - 1;
constexpr size_t kMaxAddedTokenBytes = 1024;

// GPT-2's table: printable Latin-1 characters stand for themselves, the others follow at U+0100.
constexpr std::array<uint16_t, 256> kCharacterOfByte = [] {
  std::array<uint16_t, 256> table{};
  uint16_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    table[static_cast<size_t>(byte)] = printable ? static_cast<uint16_t>(byte) : next++;
  }
  return table;
}();

std::string_view Quote(std::string_view text) { return text.substr(0, 80); }

template <typename... Parts>
std::string Concat(std::string_view head, const Parts&... parts) {
  std::string text(head);
  (fmt::format_to(std::back_inserter(text), "{}", parts), ...);
  return text;
}

template <typename... Parts>
absl::Status Malformed(const Parts&... parts) {
  return absl::InvalidArgumentError(Concat("not a usable tokenizer.json: ", parts...));
}

template <typename... Parts>
absl::Status Unsupported(const Parts&... parts) {
  return absl::UnimplementedError(Concat("this tokenizer.json needs ", parts...));
}

template <typename T>
absl::StatusOr<T> Get(object from, const char* key, const char* what) {
  T value;
  if (from[key].get(value) != simdjson::SUCCESS) {
    return Malformed("\"", key, "\" must be ", what);
  }
  return value;
}

bool IsNullOrAbsent(object from, const char* key) {
  element value;
  return from[key].get(value) != simdjson::SUCCESS || value.is_null();
}

bool IsTrue(object from, const char* key) {
  bool value = false;
  return from[key].get(value) == simdjson::SUCCESS && value;
}

std::string_view TypeOf(object from) {
  std::string_view type;
  return from["type"].get(type) == simdjson::SUCCESS ? type : "(no type)";
}

// A "Sequence" is flattened to its members; null or an absent field is an empty sequence.
absl::StatusOr<std::vector<object>> Steps(object root, const char* field, const char* members) {
  if (IsNullOrAbsent(root, field)) return std::vector<object>{};
  ASSIGN_OR_RETURN(const object step, Get<object>(root, field, "an object or null"));
  if (TypeOf(step) != "Sequence") return std::vector<object>{step};
  ASSIGN_OR_RETURN(const array list, Get<array>(step, members, "a list"));
  std::vector<object> steps;
  for (element member : list) {
    object value;
    if (member.get(value) != simdjson::SUCCESS) {
      return Malformed("\"", members, "\" must be a list of objects");
    }
    steps.push_back(value);
  }
  return steps;
}

struct AddedToken {
  std::string_view content;
  int32_t id;
  bool special;
  bool normalized;
};

class Loader {
 public:
  absl::StatusOr<std::shared_ptr<const Tokenizer::Data>> Load(std::string_view json) {
    if (simdjson::error_code error =
            parser_.parse(json.data(), json.size(), /*realloc_if_needed=*/true).get(root_)) {
      return Malformed(simdjson::error_message(error));
    }
    RETURN_IF_ERROR(CheckSteps());
    ASSIGN_OR_RETURN(model_, Get<object>(root_, "model", "an object"));
    RETURN_IF_ERROR(CheckModel());
    RETURN_IF_ERROR(ReadVocabulary());
    RETURN_IF_ERROR(ReadAddedTokens());
    BuildTables();
    RETURN_IF_ERROR(BuildPreTokenizer());
    RETURN_IF_ERROR(BuildMerges());
    FindWholeWords();
    return std::move(data_);
  }

 private:
  absl::Status CheckSteps() {
    ASSIGN_OR_RETURN(const auto normalizers, Steps(root_, "normalizer", "normalizers"));
    if (!normalizers.empty()) {
      return Unsupported("the normalizer ", Quote(TypeOf(normalizers[0])),
                         "; only tokenizers without a normalizer are supported");
    }
    ASSIGN_OR_RETURN(const auto decoders, Steps(root_, "decoder", "decoders"));
    ASSIGN_OR_RETURN(const auto processors, Steps(root_, "post_processor", "processors"));
    for (const auto& [field, steps] :
         {std::pair{"decoder", decoders}, {"post_processor", processors}}) {
      for (const object& step : steps) {
        if (TypeOf(step) != "ByteLevel") {
          return Unsupported("the ", field, " ", Quote(TypeOf(step)),
                             "; only ByteLevel is supported");
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckModel() {
    if (TypeOf(model_) != "BPE") {
      return Unsupported("the model ", Quote(TypeOf(model_)), "; only BPE is supported");
    }
    for (const char* option : {"dropout", "unk_token"}) {
      if (!IsNullOrAbsent(model_, option)) return UnsupportedOption(option);
    }
    for (const char* option : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      std::string_view affix;
      if (!IsNullOrAbsent(model_, option) &&
          (model_[option].get(affix) != simdjson::SUCCESS || !affix.empty())) {
        return UnsupportedOption(option);
      }
    }
    for (const char* option : {"byte_fallback", "ignore_merges"}) {
      if (IsTrue(model_, option)) return UnsupportedOption(option);
    }
    return absl::OkStatus();
  }

  static absl::Status UnsupportedOption(const char* option) {
    return Unsupported("the BPE option \"", option, "\", which is not supported");
  }

  absl::Status ReadVocabulary() {
    ASSIGN_OR_RETURN(const object vocab, Get<object>(model_, "vocab", "an object"));
    absl::flat_hash_set<int64_t> taken;
    for (const auto& [spelling, value] : vocab) {
      int64_t id = 0;
      if (value.get(id) != simdjson::SUCCESS) {
        return Malformed("the id of \"", Quote(spelling), "\" in \"vocab\" must be an integer");
      }
      RETURN_IF_ERROR(CheckId(spelling, id));
      if (!taken.insert(id).second) {
        return Malformed("\"vocab\" gives the id ", id, " to two tokens");
      }
      if (!ids_.emplace(spelling, static_cast<int32_t>(id)).second) {
        return Malformed("\"vocab\" has the token \"", Quote(spelling), "\" twice");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckId(std::string_view content, int64_t id) {
    if (id >= 0 && id <= kMaxTokenId) {
      largest_id_ = std::max(largest_id_, id);
      return absl::OkStatus();
    }
    return Malformed("the token \"", Quote(content), "\" has the id ", id, "; ids go from 0 to ",
                     kMaxTokenId);
  }

  absl::Status ReadAddedTokens() {
    if (IsNullOrAbsent(root_, "added_tokens")) return absl::OkStatus();
    ASSIGN_OR_RETURN(const array list, Get<array>(root_, "added_tokens", "a list"));
    for (element entry : list) {
      object token;
      if (entry.get(token) != simdjson::SUCCESS) {
        return Malformed("\"added_tokens\" must be a list of objects");
      }
      RETURN_IF_ERROR(ReadAddedToken(token));
    }
    return absl::OkStatus();
  }

  absl::Status ReadAddedToken(object token) {
    ASSIGN_OR_RETURN(const auto content, Get<std::string_view>(token, "content", "a text"));
    ASSIGN_OR_RETURN(const auto id, Get<int64_t>(token, "id", "an integer"));
    if (content.empty() || content.size() > kMaxAddedTokenBytes) {
      return Malformed("the added token with id ", id, " has ", content.size(), " bytes; 1 to ",
                       kMaxAddedTokenBytes, " are possible");
    }
    RETURN_IF_ERROR(CheckId(content, id));
    for (const char* option : {"single_word", "lstrip", "rstrip"}) {
      if (IsTrue(token, option)) {
        return Unsupported("\"", option, "\" for the added token \"", Quote(content),
                           "\", which is not supported");
      }
    }
    const auto in_vocab = ids_.find(content);
    if (in_vocab != ids_.end() && in_vocab->second != id) {
      return Malformed("the added token \"", Quote(content), "\" has the id ", id,
                       " but \"vocab\" says ", in_vocab->second);
    }
    added_.push_back(
        {content, static_cast<int32_t>(id), IsTrue(token, "special"), IsTrue(token, "normalized")});
    return absl::OkStatus();
  }

  void BuildTables() {
    data_ = std::make_shared<Tokenizer::Data>(static_cast<size_t>(largest_id_ + 1));
    for (const auto& [spelling, id] : ids_) {
      const std::optional<std::string> bytes = BytesOfSpelling(spelling);
      data_->vocabulary.Set(id, bytes.has_value() ? *bytes : spelling, false, false);
    }
    for (const AddedToken& token : added_) {
      data_->vocabulary.Set(token.id, token.content, true, token.special);
      data_->added_ids[std::string(token.content)] = token.id;
      (token.normalized ? data_->second_added : data_->first_added).Add(token.content, token.id);
    }
  }

  absl::Status BuildPreTokenizer() {
    ASSIGN_OR_RETURN(const auto steps, Steps(root_, "pre_tokenizer", "pretokenizers"));
    bool byte_level = false;
    for (const object& step : steps) {
      if (byte_level)
        return Unsupported("a pre-tokenizer behind ByteLevel, which must be the last");
      if (TypeOf(step) == "ByteLevel") {
        byte_level = true;
        RETURN_IF_ERROR(AddByteLevel(step));
      } else {
        RETURN_IF_ERROR(AddSplit(step));
      }
    }
    if (!byte_level) return Unsupported("a pre-tokenizer other than ByteLevel as the last one");
    return absl::OkStatus();
  }

  absl::Status AddByteLevel(object step) {
    if (IsTrue(step, "add_prefix_space")) {
      return Unsupported("ByteLevel with \"add_prefix_space\", which is not supported");
    }
    bool use_regex = true;
    if (step["use_regex"].get(use_regex) != simdjson::SUCCESS) use_regex = true;
    if (!use_regex) return absl::OkStatus();
    return data_->pre_tokenizer.AddSplit(
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
  }

  absl::Status AddSplit(object step) {
    if (TypeOf(step) != "Split") {
      return Unsupported("the pre-tokenizer ", Quote(TypeOf(step)),
                         "; only Split and ByteLevel are supported");
    }
    std::string_view behavior;
    if (step["behavior"].get(behavior) != simdjson::SUCCESS || behavior != "Isolated" ||
        IsTrue(step, "invert")) {
      return Unsupported("a Split that is inverted or not \"Isolated\", which is not supported");
    }
    std::string_view pattern;
    if (step["pattern"]["Regex"].get(pattern) != simdjson::SUCCESS) {
      return Unsupported("a Split whose \"pattern\" is not a \"Regex\", which is not supported");
    }
    const absl::Status added = data_->pre_tokenizer.AddSplit(std::string(pattern));
    return added.ok() ? added : Malformed(std::string(added.message()));
  }

  absl::Status BuildMerges() {
    std::array<int32_t, 256> byte_ids{};
    for (size_t byte = 0; byte < 256; ++byte) {
      std::string spelling;
      AppendUtf8(CharacterOfByte(static_cast<uint8_t>(byte)), &spelling);
      const auto id = ids_.find(spelling);
      if (id == ids_.end()) {
        return Malformed("\"vocab\" has no token for the byte ", byte, " (\"", spelling,
                         "\"), so that not every text could be encoded");
      }
      byte_ids[byte] = id->second;
    }
    ASSIGN_OR_RETURN(const array list, Get<array>(model_, "merges", "a list"));
    std::vector<BytePairEncoder::MergeRule> merges;
    for (element entry : list) {
      ASSIGN_OR_RETURN(merges.emplace_back(), ReadMerge(entry, merges.size()));
    }
    data_->byte_pairs.emplace(byte_ids, merges);
    return absl::OkStatus();
  }

  // A merge is written ["a", "b"] or, in older files, "a b".
  absl::StatusOr<BytePairEncoder::MergeRule> ReadMerge(element entry, size_t index) {
    std::pair<std::string_view, std::string_view> pair;
    std::string_view line;
    array parts;
    bool ok = false;
    if (entry.get(line) == simdjson::SUCCESS) {
      const size_t space = line.find(' ');
      ok = space != line.npos;
      if (ok) pair = {line.substr(0, space), line.substr(space + 1)};
    } else if (entry.get(parts) == simdjson::SUCCESS) {
      ok = parts.size() == 2 && parts.at(0).get(pair.first) == simdjson::SUCCESS &&
           parts.at(1).get(pair.second) == simdjson::SUCCESS;
    }
    if (!ok) return Malformed("entry ", index, " of \"merges\" must be a pair of tokens");
    const auto left = ids_.find(pair.first);
    const auto right = ids_.find(pair.second);
    const auto merged = ids_.find(std::string(pair.first).append(pair.second));
    if (left == ids_.end() || right == ids_.end() || merged == ids_.end()) {
      return Malformed("entry ", index, " of \"merges\" (", Quote(pair.first), " ",
                       Quote(pair.second), ") has a part or a result that is not in \"vocab\"");
    }
    return BytePairEncoder::MergeRule{left->second, right->second, merged->second};
  }

  // Most pieces of most texts are a single token; merging would end there, so they are looked up.
  void FindWholeWords() {
    std::vector<int32_t> merged;
    for (const auto& [spelling, id] : ids_) {
      const std::string_view bytes = data_->vocabulary.Bytes(id);
      merged.clear();
      data_->byte_pairs->Merge(bytes, &merged);
      if (merged.size() == 1 && merged[0] == id) data_->byte_pairs->AddWholeWord(bytes, id);
    }
  }

  simdjson::dom::parser parser_;
  object root_;
  object model_;
  absl::flat_hash_map<std::string_view, int32_t> ids_;  // by spelling; views into the parser
  std::vector<AddedToken> added_;
  int64_t largest_id_ = -1;
  std::shared_ptr<Tokenizer::Data> data_;
};

}  // namespace

void Vocabulary::Set(int32_t id, std::string_view bytes, bool added, bool special) {
  Token& token = tokens_[static_cast<size_t>(id)];
  token.offset = static_cast<uint32_t>(bytes_.size());
  token.length = static_cast<uint32_t>(bytes.size()) & ((uint32_t{1} << 29) - 1);
  token.present = true;
  token.added = added;
  token.special = special;
  bytes_.append(bytes);
  longest_ = std::max(longest_, bytes.size());
}

const Vocabulary::Token* Vocabulary::Find(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= tokens_.size()) return nullptr;
  const Token& token = tokens_[static_cast<size_t>(id)];
  return token.present ? &token : nullptr;
}

std::string_view Vocabulary::Bytes(int32_t id) const {
  const Token* token = Find(id);
  return token == nullptr ? std::string_view()
                          : std::string_view(bytes_).substr(token->offset, token->length);
}

bool Vocabulary::IsAdded(int32_t id) const {
  const Token* token = Find(id);
  return token != nullptr && token->added;
}

bool Vocabulary::IsSpecial(int32_t id) const {
  const Token* token = Find(id);
  return token != nullptr && token->special;
}

uint32_t CharacterOfByte(uint8_t byte) { return kCharacterOfByte[byte]; }

std::optional<std::string> BytesOfSpelling(std::string_view spelling) {
  static const absl::flat_hash_map<uint32_t, char> bytes = [] {
    absl::flat_hash_map<uint32_t, char> map;
    for (int byte = 0; byte < 256; ++byte) {
      map[CharacterOfByte(static_cast<uint8_t>(byte))] = static_cast<char>(byte);
    }
    return map;
  }();
  std::string out;
  while (!spelling.empty()) {
    const Utf8Step step = DecodeUtf8(spelling);
    const auto byte = bytes.find(step.code_point);
    if (step.kind != Utf8Step::Kind::kCharacter || byte == bytes.end()) return std::nullopt;
    out.push_back(byte->second);
    spelling.remove_prefix(step.length);
  }
  return out;
}

absl::StatusOr<std::shared_ptr<const Tokenizer::Data>> ParseTokenizerJson(std::string_view json) {
  return Loader().Load(json);
}

}  // namespace fulgur::text
