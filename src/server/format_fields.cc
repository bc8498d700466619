#include "server/format_fields.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "server/api_error.h"

namespace fulgur::server {
namespace {

using grammar::OutputFormat;
using Kind = OutputFormat::Kind;
using Formats = std::vector<OutputFormat>;

OutputFormat FormatOf(Kind kind, std::string source = "") {
  return {.kind = kind, .source = std::move(source), .spacing = {}};
}

absl::Status NoStructuralTags(std::string_view field) {
  return RuleError(
      "Structural tags are not supported; use a JSON schema, a regular expression or a grammar.",
      field);
}

absl::Status ReadResponseFormat(const RequestFields& fields, Formats& formats) {
  if (!fields.Has("response_format")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const RequestFields format, fields.Object("response_format"));
  if (!format.Has("type")) {
    return MalformedError("response_format.type: Field required.", "response_format.type");
  }
  std::string type;
  RETURN_IF_ERROR(format.Read("type", &type));
  if (type == "text") return absl::OkStatus();
  if (type == "structural_tag") return NoStructuralTags("response_format");
  if (type == "json_object") {
    formats.push_back(FormatOf(Kind::kJsonObject));
    return absl::OkStatus();
  }
  if (type != "json_schema") {
    return MalformedError(
        "response_format.type: Input should be 'text', 'json_object', 'json_schema' or "
        "'structural_tag'.",
        "response_format.type");
  }
  if (!format.Has("json_schema")) {
    return RuleError(
        "When response_format type is 'json_schema', the 'json_schema' field must be provided.",
        "response_format");
  }
  ASSIGN_OR_RETURN(const RequestFields holder, format.Object("json_schema"));
  const auto schema = holder.Raw("schema");
  if (!schema) {
    return MalformedError("response_format.json_schema.schema: Field required.",
                          "response_format.json_schema.schema");
  }
  formats.push_back(FormatOf(Kind::kJsonSchema, std::string(*schema)));
  return absl::OkStatus();
}

// A schema is an object or the text of one.
absl::Status AddSchema(const RequestFields& fields, std::string_view name, Formats& formats) {
  const auto raw = fields.Raw(name);
  if (!raw) return absl::OkStatus();
  std::string schema(*raw);
  if (raw->front() == '"') RETURN_IF_ERROR(fields.Read(name, &schema));
  formats.push_back(FormatOf(Kind::kJsonSchema, std::move(schema)));
  return absl::OkStatus();
}

absl::Status AddText(const RequestFields& fields, std::string_view name, Kind kind,
                     Formats& formats) {
  if (!fields.Has(name)) return absl::OkStatus();
  std::string text;
  RETURN_IF_ERROR(fields.Read(name, &text));
  formats.push_back(FormatOf(kind, std::move(text)));
  return absl::OkStatus();
}

absl::Status AddChoices(const RequestFields& fields, std::string_view name, Formats& formats) {
  if (!fields.Has(name)) return absl::OkStatus();
  std::vector<std::string> checked;
  RETURN_IF_ERROR(fields.Read(name, &checked));
  formats.push_back(FormatOf(Kind::kChoice, std::string(*fields.Raw(name))));
  return absl::OkStatus();
}

absl::Status ReadStructuredOutputs(const RequestFields& fields, Formats& formats) {
  ASSIGN_OR_RETURN(const RequestFields structured, fields.Object("structured_outputs"));
  if (structured.Has("structural_tag")) return NoStructuralTags("structured_outputs");
  const size_t before = formats.size();
  RETURN_IF_ERROR(AddSchema(structured, "json", formats));
  RETURN_IF_ERROR(AddText(structured, "regex", Kind::kRegex, formats));
  RETURN_IF_ERROR(AddChoices(structured, "choice", formats));
  RETURN_IF_ERROR(AddText(structured, "grammar", Kind::kEbnf, formats));
  bool any_object = false;
  RETURN_IF_ERROR(structured.Read("json_object", &any_object));
  if (any_object) formats.push_back(FormatOf(Kind::kJsonObject));
  if (formats.size() == before) return absl::OkStatus();
  grammar::JsonSpacing& spacing = formats.back().spacing;
  RETURN_IF_ERROR(structured.Read("disable_any_whitespace", &spacing.compact));
  return structured.Read("whitespace_pattern", &spacing.pattern);
}

absl::Status ReadGuided(const RequestFields& fields, Formats& formats) {
  RETURN_IF_ERROR(AddSchema(fields, "guided_json", formats));
  RETURN_IF_ERROR(AddText(fields, "guided_regex", Kind::kRegex, formats));
  RETURN_IF_ERROR(AddChoices(fields, "guided_choice", formats));
  return AddText(fields, "guided_grammar", Kind::kEbnf, formats);
}

}  // namespace

absl::StatusOr<std::optional<OutputFormat>> ReadOutputFormat(const RequestFields& fields) {
  Formats formats;
  RETURN_IF_ERROR(ReadResponseFormat(fields, formats));
  RETURN_IF_ERROR(ReadStructuredOutputs(fields, formats));
  RETURN_IF_ERROR(ReadGuided(fields, formats));
  if (formats.empty()) return std::nullopt;
  if (formats.size() == 1) return std::move(formats.front());
  return RuleError(
      "You can only use one kind of constraints for structured outputs ('json', 'regex' or "
      "'choice').",
      "structured_outputs");
}

}  // namespace fulgur::server
