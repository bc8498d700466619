// Finds the endpoint for a request and does what is the same for all: API keys, CORS, request ids,
// unknown paths and methods, the access log, HTTP metrics.
//
// Network thread only.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "server/http.h"
#include "server/metrics.h"
#include "server/server_options.h"

namespace fulgur::server {

// A request on its way to an endpoint.
struct Call {
  HttpRequest request;
  std::shared_ptr<ResponseStream> response;
  absl::Time arrival;
  std::string request_id;  // the client's, cleaned, or a random one
};

using Endpoint = std::function<void(Call)>;

class Router : public HttpHandler {
 public:
  Router(const ServerOptions& options, Metrics& metrics);

  // A path that ends in "/*" stands for all below it that have no route of their own. `guarded`:
  // needs an API key even though its path does not begin with /v1.
  void Add(std::string method, std::string path, Endpoint endpoint, bool guarded = false);

  void Handle(HttpRequest request, std::shared_ptr<ResponseStream> response) override;
  HttpResponse ProtocolError(int status, std::string_view message) override;

  // Requests not yet fully answered. Callable from any thread.
  int64_t num_open() const { return num_open_; }

 private:
  friend class ObservedStream;

  struct Route {
    std::map<std::string, Endpoint, std::less<>> endpoints;  // by method
    bool guarded = false;
  };

  using Routes = std::map<std::string, Route, std::less<>>;  // by path

  Routes::const_iterator FindRoute(std::string_view path) const;
  std::string StripRoot(std::string path) const;
  bool IsAuthorized(const HttpRequest& request, Routes::const_iterator route) const;
  void Dispatch(Call call, Routes::const_iterator route) const;
  HttpResponse NoSuchPath(const HttpRequest& request) const;
  void OnAnswered(const class ObservedStream& stream);
  bool IsLogged(std::string_view path) const;

  const ServerOptions& options_;
  Metrics& metrics_;
  Routes routes_;
  std::vector<std::string> key_digests_;
  std::atomic<int64_t> num_open_ = 0;
};

}  // namespace fulgur::server
