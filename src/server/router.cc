#include "server/router.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/time/clock.h"
#include "server/api_error.h"
#include "server/cors.h"
#include "server/random_id.h"

namespace fulgur::server {
namespace {

constexpr size_t kMaxRequestIdBytes = 128;

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

std::string Digest(std::string_view text) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

// Ids end up in logs and headers: only harmless characters, and not too many.
bool IsCleanId(std::string_view id) {
  return !id.empty() && id.size() <= kMaxRequestIdBytes &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == ':';
         });
}

std::string RequestId(const HttpRequest& request) {
  const std::string* given = FindHeader(request.headers, "X-Request-Id");
  return given != nullptr && IsCleanId(*given) ? *given : "";
}

std::string Printable(std::string_view text) {
  constexpr size_t kMaxLogged = 200;
  std::string clean;
  for (char c : text.substr(0, kMaxLogged)) {
    bool plain = std::isprint(static_cast<unsigned char>(c)) != 0 && c != '"' && c != '\\';
    clean += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return clean;
}

// Labels must not multiply with what clients invent.
std::string_view MethodLabel(std::string_view method) {
  for (std::string_view known : {"GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"}) {
    if (method == known) return known;
  }
  return "OTHER";
}

bool IsCounted(std::string_view path) {
  for (std::string_view quiet : {"/metrics", "/health", "/load", "/ping", "/version"}) {
    if (path == quiet) return false;
  }
  return true;
}

}  // namespace

// Adds the common headers to an answer and notices when it is over.
class ObservedStream : public ResponseStream {
 public:
  ObservedStream(Router* router, std::shared_ptr<ResponseStream> inner, const HttpRequest& request,
                 HeaderList headers)
      : router_(router),
        inner_(std::move(inner)),
        headers_(std::move(headers)),
        method(request.method),
        path(request.path),
        peer(request.peer),
        request_bytes(request.body.size()) {
    ++router_->num_open_;
  }
  ~ObservedStream() override { Over(); }

  void Send(HttpResponse response) override {
    status = response.status;
    response_bytes = response.body.size();
    AddHeaders(&response.headers);
    inner_->Send(std::move(response));
    Over();
  }
  void Start(int code, HeaderList headers) override {
    status = code;
    AddHeaders(&headers);
    inner_->Start(code, std::move(headers));
  }
  void Write(std::string_view piece) override {
    response_bytes += piece.size();
    inner_->Write(piece);
  }
  void Finish() override {
    inner_->Finish();
    Over();
  }
  void Break() override {
    inner_->Break();
    Over();
  }
  void OnDisconnect(std::function<void()> callback) override {
    inner_->OnDisconnect(std::move(callback));
  }

 private:
  void AddHeaders(HeaderList* headers) {
    headers->insert(headers->end(), headers_.begin(), headers_.end());
  }
  void Over() {
    if (std::exchange(over_, true)) return;
    --router_->num_open_;
    router_->OnAnswered(*this);
  }

  Router* router_;
  std::shared_ptr<ResponseStream> inner_;
  HeaderList headers_;
  bool over_ = false;

 public:
  const std::string method;
  const std::string path;
  const std::string peer;
  const size_t request_bytes;
  const absl::Time arrival = absl::Now();
  std::string_view handler = "none";
  int status = 499;  // the client left before there was an answer
  size_t response_bytes = 0;
};

Router::Router(const ServerOptions& options, Metrics& metrics)
    : options_(options), metrics_(metrics) {
  for (const std::string& key : options.api_keys) key_digests_.push_back(Digest(key));
}

void Router::Add(std::string method, std::string path, Endpoint endpoint, bool guarded) {
  Route& route = routes_[std::move(path)];
  route.guarded |= guarded;
  route.endpoints[std::move(method)] = std::move(endpoint);
}

Router::Routes::const_iterator Router::FindRoute(std::string_view path) const {
  auto found = routes_.find(path);
  for (size_t slash = path.rfind('/'); found == routes_.end() && slash != path.npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    found = routes_.find(std::string(path.substr(0, slash + 1)) + '*');
  }
  return found;
}

std::string Router::StripRoot(std::string path) const {
  const std::string& root = options_.root_path;
  bool below = !root.empty() && StartsWith(path, root) && path.size() > root.size() &&
               path[root.size()] == '/';
  return below ? path.substr(root.size()) : path;
}

bool Router::IsAuthorized(const HttpRequest& request, Routes::const_iterator route) const {
  if (key_digests_.empty() || request.method == "OPTIONS") return true;
  bool guarded = route != routes_.end() && route->second.guarded;
  for (std::string_view prefix : {"/v1", "/v2", "/inference"}) {
    guarded |= StartsWith(request.path, prefix);
  }
  if (!guarded) return true;
  const std::string* header = FindHeader(request.headers, "Authorization");
  if (header == nullptr) return false;
  size_t space = header->find(' ');
  if (space == std::string::npos) return false;
  if (!EqualsIgnoreCase(std::string_view(*header).substr(0, space), "Bearer")) return false;
  std::string digest = Digest(std::string_view(*header).substr(space + 1));
  bool known = false;  // every key is compared, in constant time
  for (const std::string& key : key_digests_) {
    known |= CRYPTO_memcmp(key.data(), digest.data(), digest.size()) == 0;
  }
  return known;
}

void Router::Handle(HttpRequest request, std::shared_ptr<ResponseStream> response) {
  HeaderList headers = CorsHeaders(options_.cors, request);
  std::string id = RequestId(request);
  if (options_.enable_request_id_headers) {
    headers.emplace_back("X-Request-Id", id.empty() ? RandomHex(32) : id);
    if (id.empty()) id = headers.back().second;
  }
  auto preflight = AnswerPreflight(options_.cors, request);
  if (preflight) headers.clear();  // it has its own
  auto observed =
      std::make_shared<ObservedStream>(this, std::move(response), request, std::move(headers));
  request.path = StripRoot(std::move(request.path));
  if (preflight) return observed->Send(*std::move(preflight));
  auto route = FindRoute(request.path);
  if (!IsAuthorized(request, route)) {
    return observed->Send(
        {401, {{"Content-Type", "application/json"}}, "{\"error\":\"Unauthorized\"}"});
  }
  if (route != routes_.end()) observed->handler = route->first;
  absl::Time arrival = observed->arrival;
  Dispatch({std::move(request), std::move(observed), arrival, std::move(id)}, route);
}

HttpResponse Router::NoSuchPath(const HttpRequest& request) const {
  std::string path = request.path;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  auto near = FindRoute(path);
  if (near == routes_.end()) near = FindRoute("/v1" + path);
  std::string hint = near == routes_.end() || near->first.back() == '*'
                         ? "requests go to /v1/chat/completions or /v1/completions"
                         : "perhaps you mean " + near->first;
  return PlainErrorResponse(404, fmt::format("Not Found: this server has no path {}; {}.",
                                             Printable(request.path), hint));
}

void Router::Dispatch(Call call, Routes::const_iterator route) const {
  if (route == routes_.end()) return call.response->Send(NoSuchPath(call.request));
  const auto& endpoints = route->second.endpoints;
  std::string_view method = call.request.method;
  if (method == "HEAD" && endpoints.count("GET") != 0) method = "GET";
  auto endpoint = endpoints.find(method);
  if (endpoint != endpoints.end()) return endpoint->second(std::move(call));
  std::string allowed;
  for (const auto& [name, unused] : endpoints) allowed += allowed.empty() ? name : ", " + name;
  HttpResponse response = PlainErrorResponse(
      405, fmt::format("Method Not Allowed: {} takes {}, not {}.", Printable(call.request.path),
                       allowed, Printable(call.request.method)));
  response.headers.emplace_back("Allow", allowed);
  call.response->Send(std::move(response));
}

HttpResponse Router::ProtocolError(int status, std::string_view message) {
  return PlainErrorResponse(status, message);
}

bool Router::IsLogged(std::string_view path) const {
  const auto& quiet = options_.access_log_excluded_paths;
  return options_.access_log && std::find(quiet.begin(), quiet.end(), path) == quiet.end();
}

void Router::OnAnswered(const ObservedStream& stream) {
  double seconds = absl::ToDoubleSeconds(absl::Now() - stream.arrival);
  if (IsCounted(stream.path)) {
    metrics_.OnHttp({stream.handler, MethodLabel(stream.method), stream.status, seconds,
                     stream.request_bytes, stream.response_bytes});
  }
  if (!IsLogged(stream.path)) return;
  spdlog::info("{} - \"{} {}\" {} {:.3f}s", stream.peer.empty() ? "-" : stream.peer,
               Printable(stream.method), Printable(stream.path), stream.status, seconds);
}

}  // namespace fulgur::server
