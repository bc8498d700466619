#include "grammar/tool_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "grammar/characters.h"
#include "grammar/json_schema.h"
#include "text/json.h"
#include "text/output_parser.h"
#include "text/tool_schema.h"

namespace fulgur::grammar {
namespace {

using text::JsonValue;

bool Names(const JsonValue* list, std::string_view name) {
  if (list == nullptr) return false;
  const auto is_name = [&](const JsonValue& item) {
    return item.is_string() && item.string() == name;
  };
  return std::any_of(list->items().begin(), list->items().end(), is_name);
}

class ToolCallWriter {
 public:
  ToolCallWriter(const ToolCallFormat& format, GrammarBuilder& builder)
      : format_(format), builder_(builder), any_text_(AnyText()) {}

  absl::StatusOr<Symbol> Write(const JsonValue& tools) {
    std::vector<Symbol> calls;
    for (const JsonValue& tool : tools.items()) {
      const JsonValue* function = tool.Find("function");
      const JsonValue* name = function == nullptr ? nullptr : function->Find("name");
      if (name == nullptr || (!format_.named.empty() && name->string() != format_.named)) continue;
      ASSIGN_OR_RETURN(calls.emplace_back(), WriteCall(*function, name->string()));
    }
    const Symbol call = builder_.Choice(calls);
    const int64_t most = format_.one_call ? 1 : GrammarBuilder::kUnbounded;
    const Symbol block = builder_.Sequence(
        {Tag("", "tool_calls>\n"), builder_.Repeat(call, 1, most), Tag("/", "tool_calls>")});
    if (format_.required) return builder_.Sequence({builder_.Literal("\n\n"), block});
    return builder_.Sequence({any_text_, builder_.Optional(block)});
  }

 private:
  // Ordinary text has no markers in it.
  Symbol AnyText() {
    return builder_.Repeat(CharacterSet().Complement().Spell(builder_), 0,
                           GrammarBuilder::kUnbounded);
  }

  Symbol Tag(std::string_view slash, std::string_view rest) {
    return builder_.Sequence({builder_.Literal(fmt::format("<{}", slash)),
                              builder_.AddedToken(text::MarkerText(text::Marker::kDsml)),
                              builder_.Literal(rest)});
  }

  absl::StatusOr<Symbol> WriteCall(const JsonValue& function, const std::string& name) {
    Symbol arguments;
    if (format_.hold_arguments || IsStrict(function)) {
      ASSIGN_OR_RETURN(arguments, WriteArguments(function, name));
    } else {
      ASSIGN_OR_RETURN(arguments, WriteAnyArguments());
    }
    return builder_.Sequence(
        {Tag("", fmt::format("invoke name=\"{}\">\n", name)), arguments, Tag("/", "invoke>\n")});
  }

  // `name` is all between the quotes.
  Symbol Parameter(Symbol name, std::string_view is_string, Symbol value) {
    return builder_.Sequence({Tag("", "parameter name=\""), name,
                              builder_.Literal(fmt::format("\" string=\"{}\">", is_string)), value,
                              Tag("/", "parameter>\n")});
  }

  absl::StatusOr<Symbol> WriteAnyArguments() {
    CharacterSet quote;
    quote.Add('"');
    quote.Add('\n');
    const Symbol name =
        builder_.Repeat(quote.Complement().Spell(builder_), 1, GrammarBuilder::kUnbounded);
    const JsonValue anything = JsonValue::Object({});
    ASSIGN_OR_RETURN(const Symbol value, AddJsonSchema(anything, anything, {}, builder_));
    const Symbol parameter =
        builder_.Choice({Parameter(name, "true", any_text_), Parameter(name, "false", value)});
    return builder_.Repeat(parameter, 0, GrammarBuilder::kUnbounded);
  }

  // Each declared parameter at most once, in the order of the schema.
  absl::StatusOr<Symbol> WriteArguments(const JsonValue& function, const std::string& tool) {
    const JsonValue* schema = function.Find("parameters");
    const JsonValue* properties = schema == nullptr ? nullptr : schema->Find("properties");
    std::vector<Symbol> parameters;
    if (properties == nullptr || !properties->is_object()) return builder_.Sequence(parameters);
    for (const auto& [name, property] : properties->members()) {
      auto parameter = WriteParameter(*schema, name, property);
      if (!parameter.ok()) {
        return absl::InvalidArgumentError(fmt::format("the parameter `{}` of the tool `{}`: {}",
                                                      name, tool,
                                                      std::string(parameter.status().message())));
      }
      const bool needed = Names(schema->Find("required"), name);
      parameters.push_back(needed ? *parameter : builder_.Optional(*parameter));
    }
    return builder_.Sequence(parameters);
  }

  // Strings stand as they are, everything else as JSON.
  absl::StatusOr<Symbol> WriteParameter(const JsonValue& root, const std::string& name,
                                        const JsonValue& property) {
    const text::JsonTypes types = text::AllowedTypes(&property);
    const Symbol key = builder_.Literal(name);
    std::vector<Symbol> forms;
    if (types == 0 || (types & text::kStringBit) != 0) {
      ASSIGN_OR_RETURN(const Symbol value, AddPlainString(property, builder_));
      forms.push_back(Parameter(key, "true", value));
    }
    if (types != text::kStringBit) {
      ASSIGN_OR_RETURN(const Symbol value, AddJsonSchema(root, property, {}, builder_));
      forms.push_back(Parameter(key, "false", value));
    }
    return builder_.Choice(forms);
  }

  const ToolCallFormat& format_;
  GrammarBuilder& builder_;
  const Symbol any_text_;
};

}  // namespace

bool IsStrict(const JsonValue& function) {
  const JsonValue* strict = function.Find("strict");
  return strict != nullptr && strict->type() == JsonValue::Type::kBoolean && strict->boolean();
}

absl::StatusOr<Symbol> AddToolCalls(const ToolCallFormat& format, GrammarBuilder& builder) {
  ASSIGN_OR_RETURN(const JsonValue tools, text::ParseJson(format.tools));
  return ToolCallWriter(format, builder).Write(tools);
}

}  // namespace fulgur::grammar
