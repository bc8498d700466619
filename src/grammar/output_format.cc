#include "grammar/output_format.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "grammar/ebnf.h"
#include "grammar/regex.h"
#include "text/json.h"

namespace fulgur::grammar {
namespace {

absl::StatusOr<Symbol> AddChoices(const std::string& list, GrammarBuilder& builder) {
  ASSIGN_OR_RETURN(const text::JsonValue choices, text::ParseJson(list));
  std::vector<Symbol> options;
  for (const text::JsonValue& choice : choices.items()) {
    if (!choice.is_string() || choice.string().empty()) {
      return absl::InvalidArgumentError("a choice is a text that is not empty");
    }
    options.push_back(builder.Literal(choice.string()));
  }
  if (options.empty()) return absl::InvalidArgumentError("there is nothing to choose from");
  return builder.Choice(options);
}

absl::StatusOr<Symbol> AddFormat(const OutputFormat& format, GrammarBuilder& builder) {
  switch (format.kind) {
    case OutputFormat::Kind::kJsonObject:
      return AddJsonObject(format.spacing, builder);
    case OutputFormat::Kind::kJsonSchema: {
      ASSIGN_OR_RETURN(const text::JsonValue schema, text::ParseJson(format.source));
      return AddJsonSchema(schema, schema, format.spacing, builder);
    }
    case OutputFormat::Kind::kRegex:
      return ParseRegex(
          format.source, [&](const CharacterSet& set) { return set.Spell(builder); }, builder);
    case OutputFormat::Kind::kChoice:
      return AddChoices(format.source, builder);
    case OutputFormat::Kind::kToolCalls:
      return AddToolCalls(format.calls, builder);
    case OutputFormat::Kind::kEbnf:
      break;
  }
  return ParseEbnf(format.source, builder);
}

std::string KeyOf(const OutputFormat& format) {
  const ToolCallFormat& calls = format.calls;
  return fmt::format("{}{}{}{}\n{}\n{}{}{}{}\n{}", static_cast<int>(format.kind),
                     format.spacing.compact, format.spacing.pattern.has_value(),
                     format.spacing.pattern.value_or(""), format.source, calls.required,
                     calls.one_call, calls.hold_arguments, calls.named, calls.tools);
}

// A format that no answer has would leave the model nothing to say.
absl::Status CheckStart(const Grammar& grammar) {
  Matcher matcher(grammar);
  const bool can_start = !matcher.Start().empty();
  if (matcher.Overflowed()) return absl::InvalidArgumentError("the format is too ambiguous");
  if (can_start) return absl::OkStatus();
  return absl::InvalidArgumentError("no answer can have this format");
}

}  // namespace

absl::StatusOr<Grammar> BuildGrammar(const OutputFormat& format) {
  GrammarBuilder builder;
  ASSIGN_OR_RETURN(const Symbol root, AddFormat(format, builder));
  ASSIGN_OR_RETURN(Grammar grammar, std::move(builder).Build(root));
  RETURN_IF_ERROR(CheckStart(grammar));
  return grammar;
}

std::shared_ptr<const CompiledGrammar> FormatCompiler::FindKept(const std::string& key) {
  const absl::MutexLock lock(&mutex_);
  for (auto it = kept_.begin(); it != kept_.end(); ++it) {
    if (it->first != key) continue;
    kept_.splice(kept_.begin(), kept_, it);
    return it->second;
  }
  return nullptr;
}

std::shared_ptr<const TokenTrie> FormatCompiler::Trie() {
  const absl::MutexLock lock(&mutex_);
  if (!trie_) trie_ = std::make_shared<const TokenTrie>(tokenizer_);
  return trie_;
}

absl::StatusOr<std::shared_ptr<const CompiledGrammar>> FormatCompiler::Compile(
    const OutputFormat& format) {
  std::string key = KeyOf(format);
  if (auto kept = FindKept(key)) return kept;
  ASSIGN_OR_RETURN(Grammar grammar, BuildGrammar(format));
  auto compiled = std::make_shared<const CompiledGrammar>(std::move(grammar), tokenizer_, Trie());
  const absl::MutexLock lock(&mutex_);
  kept_.emplace_front(std::move(key), compiled);
  if (kept_.size() > kMaxKept) kept_.pop_back();
  return compiled;
}

}  // namespace fulgur::grammar
