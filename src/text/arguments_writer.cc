#include "text/arguments_writer.h"

#include <utility>

namespace fulgur::text {

void ArgumentsWriter::BeginParameter(std::string name, bool is_string, std::string* out) {
  WriteHeld(out);
  const bool is_new = names_.insert(name).second;
  const bool may_be_wrapper = names_.size() == 1 && tools_->MayBeWrapper(tool_, name);
  const bool streamed =
      is_string && !may_be_wrapper && IsCertainlyString(tools_->Parameter(tool_, name));
  current_ = {std::move(name), is_string, ""};
  mode_ = !is_new ? Mode::kIgnored : streamed ? Mode::kStreamed : Mode::kCollected;
  if (mode_ != Mode::kStreamed) return;
  WriteKey(current_.name, out);
  out->push_back('"');
}

void ArgumentsWriter::ValueText(std::string_view text, std::string* out) {
  if (mode_ == Mode::kStreamed) AppendJsonEscaped(text, out);
  if (mode_ == Mode::kCollected) current_.text.append(text);
}

void ArgumentsWriter::EndParameter(std::string* out) {
  if (mode_ == Mode::kStreamed) out->push_back('"');
  if (mode_ == Mode::kCollected) {
    if (names_.size() == 1 && tools_->MayBeWrapper(tool_, current_.name)) {
      held_ = std::move(current_);
    } else {
      WriteMember(current_, out);
    }
  }
  mode_ = Mode::kIgnored;
}

void ArgumentsWriter::Finish(std::string* out) {
  if (const std::optional<JsonValue> arguments = Unwrapped()) {
    out->append(WriteJson(*arguments, NumberStyle::kAsWritten));
    return;
  }
  WriteHeld(out);
  out->append(empty_ ? "{}" : "}");
}

void ArgumentsWriter::FinishWithObject(std::string_view text, std::string* out) {
  absl::StatusOr<JsonValue> value = ParseJson(text);
  JsonValue arguments;
  if (!value.ok()) {
    arguments = JsonValue::Object({{"arguments", JsonValue::String(std::string(text))}});
  } else if (std::optional<JsonValue> inner = UnwrapObject(*value)) {
    arguments = *std::move(inner);
  } else {
    arguments = tools_->CorrectArguments(tool_, *std::move(value));
  }
  out->append(WriteJson(arguments, NumberStyle::kAsWritten));
}

void ArgumentsWriter::WriteKey(std::string_view name, std::string* out) {
  out->append(std::exchange(empty_, false) ? "{\"" : ", \"");
  AppendJsonEscaped(name, out);
  out->append("\": ");
}

void ArgumentsWriter::WriteMember(const Parameter& parameter, std::string* out) {
  WriteKey(parameter.name, out);
  const JsonValue value = CorrectParameter(parameter.text, parameter.is_string,
                                           tools_->Parameter(tool_, parameter.name));
  out->append(WriteJson(value, NumberStyle::kAsWritten));
}

void ArgumentsWriter::WriteHeld(std::string* out) {
  if (held_.has_value()) WriteMember(*std::exchange(held_, std::nullopt), out);
}

std::optional<JsonValue> ArgumentsWriter::Unwrapped() const {
  if (!held_.has_value()) return std::nullopt;
  return tools_->Unwrap(tool_, CorrectParameter(held_->text, held_->is_string, nullptr));
}

std::optional<JsonValue> ArgumentsWriter::UnwrapObject(const JsonValue& object) const {
  if (object.members().size() != 1) return std::nullopt;
  const auto& [name, value] = object.members().front();
  if (!tools_->MayBeWrapper(tool_, name)) return std::nullopt;
  return tools_->Unwrap(tool_, value);
}

}  // namespace fulgur::text
