// What a request may ask its answer to look like, and the compiler for it.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "grammar/compiled_grammar.h"
#include "grammar/json_schema.h"
#include "grammar/token_trie.h"
#include "grammar/tool_calls.h"
#include "text/tokenizer.h"

namespace fulgur::grammar {

struct OutputFormat {
  enum class Kind {
    kJsonObject,  // any JSON object
    kJsonSchema,  // source: the schema as JSON
    kRegex,       // source: a regular expression, of the whole answer
    kChoice,      // source: a JSON list of texts, one of which is the answer
    kEbnf,        // source: a grammar
    kToolCalls,   // calls
  };
  Kind kind = Kind::kJsonObject;
  std::string source = {};
  JsonSpacing spacing = {};  // of the JSON kinds
  ToolCallFormat calls = {};
};

// The rules of a format. kInvalidArgument: what is wrong with it, and where.
absl::StatusOr<Grammar> BuildGrammar(const OutputFormat& format);

// Thread-safe. Keeps the latest formats, since clients ask for the same one again and again.
class FormatCompiler {
 public:
  explicit FormatCompiler(text::Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  // Errors of BuildGrammar.
  absl::StatusOr<std::shared_ptr<const CompiledGrammar>> Compile(const OutputFormat& format);

 private:
  static constexpr size_t kMaxKept = 16;

  using Kept = std::pair<std::string, std::shared_ptr<const CompiledGrammar>>;

  std::shared_ptr<const CompiledGrammar> FindKept(const std::string& key);
  std::shared_ptr<const TokenTrie> Trie();

  const text::Tokenizer tokenizer_;
  absl::Mutex mutex_;
  std::shared_ptr<const TokenTrie> trie_ ABSL_GUARDED_BY(mutex_);  // made when first needed
  std::list<Kept> kept_ ABSL_GUARDED_BY(mutex_);                   // the latest first
};

}  // namespace fulgur::grammar
