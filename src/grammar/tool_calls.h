// Tool calls as rules of a grammar: the DSML blocks of DeepSeek-V4.
//
//   <｜DSML｜tool_calls>
//   <｜DSML｜invoke name="weather">
//   <｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
//   <｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>
//   </｜DSML｜invoke>
//   </｜DSML｜tool_calls>
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "grammar/grammar.h"
#include "text/json.h"

namespace fulgur::grammar {

// Which calls an answer may make, and how closely they are held.
struct ToolCallFormat {
  std::string tools = {};  // the request's list, as JSON
  std::string named = {};  // the only one that may be called; empty: any
  bool required = false;   // the answer is a block of calls; otherwise text may precede or be all
  bool one_call = false;   // no more than one
  bool hold_arguments = false;  // of every tool to its schema, not only of those that are `strict`
};

// Whether a tool's `function` object asks for calls that keep to its schema.
bool IsStrict(const text::JsonValue& function);

// kInvalidArgument: what of a tool's schema cannot be kept.
absl::StatusOr<Symbol> AddToolCalls(const ToolCallFormat& format, GrammarBuilder& builder);

}  // namespace fulgur::grammar
