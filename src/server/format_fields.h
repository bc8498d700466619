// The fields of a request that ask for a format of the answer: OpenAI's response_format, vLLM's
// structured_outputs and its older guided_* names.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "grammar/output_format.h"
#include "server/request_fields.h"

namespace fulgur::server {

// None if any answer will do. Errors: several formats at once, wrong types, formats that are not
// offered.
absl::StatusOr<std::optional<grammar::OutputFormat>> ReadOutputFormat(const RequestFields& fields);

}  // namespace fulgur::server
