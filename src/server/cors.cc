#include "server/cors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

namespace fulgur::server {
namespace {

constexpr std::string_view kAllMethods = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT";

bool Contains(const std::vector<std::string>& list, std::string_view value) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& item) {
    return item == "*" || EqualsIgnoreCase(item, value);
  });
}

bool AllowsAll(const std::vector<std::string>& list) {
  return std::find(list.begin(), list.end(), "*") != list.end();
}

bool HeadersAllowed(const CorsOptions& options, std::string_view requested) {
  while (!requested.empty()) {
    size_t comma = std::min(requested.find(','), requested.size());
    std::string_view name = requested.substr(0, comma);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    if (!name.empty() && !Contains(options.allowed_headers, name)) return false;
    requested.remove_prefix(std::min(comma + 1, requested.size()));
  }
  return true;
}

void AddOrigin(const CorsOptions& options, const std::string& origin, bool has_cookie,
               HeaderList* headers) {
  bool any = AllowsAll(options.allowed_origins);
  if (any && !options.allow_credentials && !has_cookie) {
    headers->emplace_back("Access-Control-Allow-Origin", "*");
    return;
  }
  if (!Contains(options.allowed_origins, origin)) return;
  headers->emplace_back("Access-Control-Allow-Origin", origin);
  headers->emplace_back("Vary", "Origin");
}

}  // namespace

std::optional<HttpResponse> AnswerPreflight(const CorsOptions& options,
                                            const HttpRequest& request) {
  const std::string* origin = FindHeader(request.headers, "Origin");
  const std::string* method = FindHeader(request.headers, "Access-Control-Request-Method");
  if (request.method != "OPTIONS" || origin == nullptr || method == nullptr) return std::nullopt;
  const std::string* wanted = FindHeader(request.headers, "Access-Control-Request-Headers");

  std::vector<std::string_view> refused;
  if (!Contains(options.allowed_origins, *origin)) refused.push_back("origin");
  if (!Contains(options.allowed_methods, *method)) refused.push_back("method");
  if (wanted != nullptr && !HeadersAllowed(options, *wanted)) refused.push_back("headers");

  HttpResponse response{200, {{"Content-Type", "text/plain; charset=utf-8"}}, "OK"};
  AddOrigin(options, *origin, false, &response.headers);
  response.headers.emplace_back("Access-Control-Allow-Methods",
                                AllowsAll(options.allowed_methods)
                                    ? std::string(kAllMethods)
                                    : fmt::format("{}", fmt::join(options.allowed_methods, ", ")));
  response.headers.emplace_back("Access-Control-Max-Age", "600");
  if (wanted != nullptr) response.headers.emplace_back("Access-Control-Allow-Headers", *wanted);
  if (options.allow_credentials) {
    response.headers.emplace_back("Access-Control-Allow-Credentials", "true");
  }
  if (!refused.empty()) {
    response.status = 400;
    response.body = fmt::format("Disallowed CORS {}", fmt::join(refused, ", "));
  }
  return response;
}

HeaderList CorsHeaders(const CorsOptions& options, const HttpRequest& request) {
  HeaderList headers;
  const std::string* origin = FindHeader(request.headers, "Origin");
  if (origin == nullptr) return headers;
  AddOrigin(options, *origin, FindHeader(request.headers, "Cookie") != nullptr, &headers);
  if (options.allow_credentials) headers.emplace_back("Access-Control-Allow-Credentials", "true");
  return headers;
}

}  // namespace fulgur::server
