#include "server/api_error.h"

#include <fmt/format.h>

#include <optional>

#include "server/json_writer.h"

namespace fulgur::server {
namespace {

constexpr char kParamUrl[] = "fulgur/param";
constexpr char kTypeUrl[] = "fulgur/type";

absl::Status MakeError(absl::StatusCode code, std::string_view message, std::string_view type,
                       std::string_view param) {
  absl::Status status(code, {message.data(), message.size()});
  if (!type.empty()) status.SetPayload(kTypeUrl, absl::Cord(std::string(type)));
  return WithParam(std::move(status), param);
}

std::optional<std::string> Payload(const absl::Status& status, const char* url) {
  auto payload = status.GetPayload(url);
  if (!payload) return std::nullopt;
  return std::string(*payload);
}

std::string_view DefaultType(int status) {
  switch (status) {
    case 400:
      return "BadRequestError";
    case 404:
      return "NotFoundError";
    case 501:
      return "NotImplementedError";
    case 503:
      return "Service Unavailable";
    default:
      return "InternalServerError";
  }
}

std::string_view Phrase(int status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Error";
  }
}

std::string Body(std::string_view message, std::string_view type,
                 const std::optional<std::string>& param, int status) {
  JsonWriter json;
  json.BeginObject().Key("error").BeginObject();
  json.Field("message", message).Field("type", type).OptionalField("param", param);
  json.Field("code", status).EndObject().EndObject();
  return json.Take();
}

HttpResponse JsonError(int status, std::string body) {
  return {status, {{"Content-Type", "application/json"}}, std::move(body)};
}

}  // namespace

absl::Status MalformedError(std::string_view message, std::string_view param) {
  return MakeError(absl::StatusCode::kInvalidArgument, message, "Bad Request", param);
}

absl::Status RuleError(std::string_view message, std::string_view param) {
  return MakeError(absl::StatusCode::kInvalidArgument, message, {}, param);
}

absl::Status ValueError(std::string_view message, std::string_view param, std::string_view value) {
  return RuleError(fmt::format("{} (parameter={}, value={})", message, param, value), param);
}

absl::Status ModelNotFoundError(std::string_view message) {
  return MakeError(absl::StatusCode::kNotFound, message, {}, "model");
}

absl::Status UnsupportedError(std::string_view message) {
  return MakeError(absl::StatusCode::kUnimplemented, message, {}, {});
}

absl::Status OverloadedError(std::string_view message) {
  return MakeError(absl::StatusCode::kResourceExhausted, message, {}, {});
}

absl::Status EngineError(std::string_view message) {
  return MakeError(absl::StatusCode::kInternal, message, {}, {});
}

absl::Status WithParam(absl::Status status, std::string_view param) {
  if (!param.empty() && !status.ok() && !status.GetPayload(kParamUrl)) {
    status.SetPayload(kParamUrl, absl::Cord(std::string(param)));
  }
  return status;
}

int HttpStatusOf(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kResourceExhausted:
      return 503;
    default:
      return 500;
  }
}

std::string ErrorBody(const absl::Status& error) {
  int status = HttpStatusOf(error);
  std::string type = Payload(error, kTypeUrl).value_or(std::string(DefaultType(status)));
  return Body(std::string(error.message()), type, Payload(error, kParamUrl), status);
}

HttpResponse ToErrorResponse(const absl::Status& error) {
  HttpResponse response = JsonError(HttpStatusOf(error), ErrorBody(error));
  if (response.status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

HttpResponse PlainErrorResponse(int status, std::string_view message) {
  return JsonError(status, Body(message, Phrase(status), std::nullopt, status));
}

}  // namespace fulgur::server
