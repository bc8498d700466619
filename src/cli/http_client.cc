#include "cli/http_client.h"

#include <curl/curl.h>

#include <utility>

#include "base/check.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

constexpr std::string_view kUnixScheme = "unix:";

struct CurlDeleter {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// What the callbacks of one request work on.
struct Transfer {
  CURL* curl = nullptr;
  const HttpClient::Sink* sink = nullptr;
  const HttpClient::Cancelled* cancelled = nullptr;
  HttpAnswer answer;
};

size_t OnBody(char* bytes, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view piece(bytes, size * count);
  long status = 0;
  curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
  if (status == 200 && *transfer.sink) {
    (*transfer.sink)(piece);
  } else {
    transfer.answer.body += piece;
  }
  return piece.size();
}

int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<Transfer*>(user);
  return *transfer.cancelled && (*transfer.cancelled)() ? 1 : 0;
}

}  // namespace

struct HttpClient::Handle {
  std::unique_ptr<CURL, CurlDeleter> curl;
  std::unique_ptr<curl_slist, CurlDeleter> headers;

  void Add(const std::string& header) {
    headers.reset(curl_slist_append(headers.release(), header.c_str()));
  }
};

HttpClient::HttpClient(std::string base, std::string api_key)
    : base_(std::move(base)), api_key_(std::move(api_key)), handle_(std::make_unique<Handle>()) {
  handle_->curl.reset(curl_easy_init());
  CHECK(handle_->curl != nullptr);
  while (base_.ends_with('/')) base_.pop_back();
  if (base_.ends_with("/v1")) base_.resize(base_.size() - 3);
}

HttpClient::~HttpClient() = default;

absl::StatusOr<HttpAnswer> HttpClient::Get(const std::string& path) {
  curl_easy_reset(handle_->curl.get());
  handle_->headers.reset();
  return Perform(path, nullptr, nullptr);
}

absl::StatusOr<HttpAnswer> HttpClient::PostJson(const std::string& path, const std::string& body,
                                                const Sink& sink, const Cancelled& cancelled) {
  CURL* curl = handle_->curl.get();
  curl_easy_reset(curl);
  handle_->headers.reset();
  handle_->Add("Content-Type: application/json");
  handle_->Add("Expect:");
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, body.data());
  return Perform(path, sink, cancelled);
}

absl::StatusOr<HttpAnswer> HttpClient::Perform(const std::string& path, const Sink& sink,
                                               const Cancelled& cancelled) {
  CURL* curl = handle_->curl.get();
  std::string url = base_ + path;
  if (base_.starts_with(kUnixScheme)) {
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, base_.substr(kUnixScheme.size()).c_str());
    url = "http://localhost" + path;
  }
  if (!api_key_.empty()) handle_->Add("Authorization: Bearer " + api_key_);
  Transfer transfer{curl, &sink, &cancelled, {}};
  char error[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, handle_->headers.get());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 10L);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &OnBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &OnProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);

  const CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_ABORTED_BY_CALLBACK) return absl::CancelledError("cancelled");
  if (code != CURLE_OK) {
    return absl::UnavailableError(
        fmt::format("{}: {}", url, *error != '\0' ? error : curl_easy_strerror(code)));
  }
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  transfer.answer.status = static_cast<int>(status);
  return std::move(transfer.answer);
}

}  // namespace fulgur::cli
