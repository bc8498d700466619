#include "grammar/grammar.h"

#include <algorithm>
#include <array>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <utility>

#include "absl/status/status.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace fulgur::grammar {
namespace {

using LeftGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

}  // namespace

Symbol GrammarBuilder::Bytes(const ByteSet& set) {
  const auto next = static_cast<uint32_t>(grammar_.byte_sets_.size());
  const auto [found, added] = byte_set_index_.try_emplace(set.to_string(), next);
  if (added) grammar_.byte_sets_.push_back(set);
  return {Symbol::Kind::kBytes, found->second};
}

Symbol GrammarBuilder::Literal(std::string_view text) {
  std::vector<Symbol> bytes;
  bytes.reserve(text.size());
  for (const char c : text) bytes.push_back(Byte(static_cast<uint8_t>(c)));
  return Sequence(bytes);
}

Symbol GrammarBuilder::AddedToken(std::string_view content) {
  return Sequence({Byte(kAddedTokenMark), Literal(content)});
}

Symbol GrammarBuilder::Sequence(std::span<const Symbol> parts) {
  if (parts.size() == 1) return parts.front();
  if (parts.empty() && empty_) return *empty_;
  const Symbol rule = Declare();
  AddAlternative(rule.index, parts);
  if (parts.empty()) empty_ = rule;
  return rule;
}

Symbol GrammarBuilder::Choice(std::span<const Symbol> options) {
  if (options.size() == 1) return options.front();
  const Symbol rule = Declare();
  Define(rule, options);
  return rule;
}

// part{0,n} is built from the end, as (part (part ...)?)?, so that n parts take n rules.
Symbol GrammarBuilder::Repeat(Symbol part, int64_t least, int64_t most) {
  Symbol rest = Empty();
  if (most == kUnbounded) {
    rest = Declare();
    AddAlternative(rest.index, std::array{part, rest});
    AddAlternative(rest.index, {});
  }
  for (int64_t i = least; i < most && !TooLarge(); ++i) rest = Optional(Sequence({part, rest}));
  std::vector<Symbol> parts(static_cast<size_t>(least), part);
  parts.push_back(rest);
  return Sequence(parts);
}

Symbol GrammarBuilder::Declare() {
  grammar_.rules_.emplace_back();
  return {Symbol::Kind::kRule, static_cast<uint32_t>(grammar_.rules_.size() - 1)};
}

void GrammarBuilder::Define(Symbol rule, std::span<const Symbol> options) {
  CHECK(rule.kind == Symbol::Kind::kRule);
  for (const Symbol& option : options) AddAlternative(rule.index, {&option, 1});
}

void GrammarBuilder::AddAlternative(uint32_t rule, std::span<const Symbol> parts) {
  if (TooLarge()) return;
  grammar_.rules_[rule].push_back(static_cast<uint32_t>(grammar_.symbols_.size()));
  grammar_.symbols_.insert(grammar_.symbols_.end(), parts.begin(), parts.end());
  grammar_.symbols_.emplace_back();
}

absl::StatusOr<Grammar> GrammarBuilder::Build(Symbol root) && {
  if (TooLarge()) {
    return absl::InvalidArgumentError(
        "the format is too large: repetitions of repetitions, or too many alternatives; ask for "
        "fewer");
  }
  const Symbol start = root.kind == Symbol::Kind::kRule ? root : Choice({root, root});
  RETURN_IF_ERROR(CheckLeftRecursion());
  grammar_.root_ = start.index;
  return std::move(grammar_);
}

// Rules that can match nothing at all, found by repeating until nothing changes.
std::vector<bool> GrammarBuilder::NullableRules() const {
  std::vector<bool> nullable(grammar_.rules_.size(), false);
  const auto matches_nothing = [&](uint32_t position) {
    for (; grammar_.At(position).kind == Symbol::Kind::kRule; ++position) {
      if (!nullable[grammar_.At(position).index]) return false;
    }
    return grammar_.At(position).kind == Symbol::Kind::kEnd;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t rule = 0; rule < grammar_.rules_.size(); ++rule) {
      const auto& alternatives = grammar_.rules_[rule];
      if (nullable[rule] ||
          std::none_of(alternatives.begin(), alternatives.end(), matches_nothing)) {
        continue;
      }
      nullable[rule] = changed = true;
    }
  }
  return nullable;
}

// A rule that comes back to itself before a byte was read, with something left to do behind it,
// would make a matcher pile up endless work. In last place it is harmless.
absl::Status GrammarBuilder::CheckLeftRecursion() const {
  const std::vector<bool> nullable = NullableRules();
  LeftGraph left(grammar_.rules_.size());
  std::vector<std::pair<uint32_t, uint32_t>> growing;
  for (uint32_t rule = 0; rule < grammar_.rules_.size(); ++rule) {
    for (uint32_t position : grammar_.rules_[rule]) {
      for (; grammar_.At(position).kind == Symbol::Kind::kRule; ++position) {
        const uint32_t target = grammar_.At(position).index;
        const bool last = grammar_.At(position + 1).kind == Symbol::Kind::kEnd;
        boost::add_edge(rule, target, left);
        if (!last) growing.emplace_back(rule, target);
        if (!nullable[target]) break;
      }
    }
  }
  std::vector<int> component(grammar_.rules_.size());
  boost::strong_components(left, component.data());
  for (const auto& [rule, target] : growing) {
    if (component[rule] != component[target]) continue;
    return absl::InvalidArgumentError(
        "a rule of the grammar begins with itself (left recursion); write it as a repetition");
  }
  return absl::OkStatus();
}

}  // namespace fulgur::grammar
