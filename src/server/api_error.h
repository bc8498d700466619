// What is told to a client whose request fails: status, type, message and the field at fault.
//
// Inside the server a failure is an absl::Status; code and payloads carry what the published error
// object needs, and ToErrorResponse is the one place that turns it into HTTP.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/http.h"

namespace fulgur::server {

// The body is no JSON, or a field has the wrong type or an unknown value: 400 "Bad Request".
absl::Status MalformedError(std::string_view message, std::string_view param = {});

// A rule over values is broken: 400 "BadRequestError".
absl::Status RuleError(std::string_view message, std::string_view param = {});

// The same, naming the value as vLLM does: "MESSAGE (parameter=PARAM, value=VALUE)".
absl::Status ValueError(std::string_view message, std::string_view param, std::string_view value);

absl::Status ModelNotFoundError(std::string_view message);  // 404
absl::Status UnsupportedError(std::string_view message);    // 501
absl::Status OverloadedError(std::string_view message);     // 503 with Retry-After
absl::Status EngineError(std::string_view message);         // 500

// Sets the field at fault of an error that has none yet.
absl::Status WithParam(absl::Status status, std::string_view param);

int HttpStatusOf(const absl::Status& error);

// {"error": {"message", "type", "param", "code"}}
std::string ErrorBody(const absl::Status& error);
HttpResponse ToErrorResponse(const absl::Status& error);

// An error that no handler made: unknown path, wrong method, broken HTTP. Type is the phrase.
HttpResponse PlainErrorResponse(int status, std::string_view message);

}  // namespace fulgur::server
