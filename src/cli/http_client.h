// A small HTTP client over libcurl: one request at a time, answers in pieces as they arrive.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace fulgur::cli {

struct HttpAnswer {
  int status = 0;
  std::string body;  // what the sink did not take
};

class HttpClient {
 public:
  // `base`: "http://host:8000", https likewise, or "unix:/path/of/socket". Sends `api_key` as a
  // bearer token unless it is empty.
  HttpClient(std::string base, std::string api_key);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Takes the body of a successful answer as it arrives.
  using Sink = std::function<void(std::string_view)>;
  // Asked a few times a second; true ends the request with kCancelled.
  using Cancelled = std::function<bool()>;

  absl::StatusOr<HttpAnswer> Get(const std::string& path);
  absl::StatusOr<HttpAnswer> PostJson(const std::string& path, const std::string& body,
                                      const Sink& sink, const Cancelled& cancelled);

 private:
  struct Handle;
  absl::StatusOr<HttpAnswer> Perform(const std::string& path, const Sink& sink,
                                     const Cancelled& cancelled);

  std::string base_;
  std::string api_key_;
  std::unique_ptr<Handle> handle_;
};

}  // namespace fulgur::cli
