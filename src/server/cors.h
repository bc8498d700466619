// Cross-origin rules (https://fetch.spec.whatwg.org/#http-cors-protocol) as Starlette's middleware
// applies them, so that pages that work with vLLM work here.
#pragma once

#include <optional>

#include "server/http.h"
#include "server/server_options.h"

namespace fulgur::server {

// The answer to a preflight request, or nothing if `request` is none.
std::optional<HttpResponse> AnswerPreflight(const CorsOptions& options, const HttpRequest& request);

// Headers that every answer to `request` carries.
HeaderList CorsHeaders(const CorsOptions& options, const HttpRequest& request);

}  // namespace fulgur::server
