// A plain blocking HTTP client on a real socket, which can also misbehave: send half a request,
// stop reading, vanish.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http.h"

namespace fulgur::server::testing {

struct ClientResponse {
  int status = 0;  // 0: no answer
  HeaderList headers;
  std::string body;
  bool complete = false;  // ended as its head announced

  std::string Header(std::string_view name) const {
    const std::string* value = FindHeader(headers, name);
    return value == nullptr ? "" : *value;
  }
};

class HttpClient {
 public:
  explicit HttpClient(int port, int receive_buffer_bytes = 0) {
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    if (receive_buffer_bytes > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof(receive_buffer_bytes));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) Close();
  }
  HttpClient(HttpClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}
  ~HttpClient() { Close(); }

  // How long one read may take.
  void SetTimeout(int milliseconds) { timeout_ms_ = milliseconds; }

  bool connected() const { return fd_ >= 0; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  // Vanishes with a reset instead of a proper end.
  void Reset() {
    linger hard{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    Close();
  }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  static std::string RequestText(std::string_view method, std::string_view path,
                                 std::string_view body = {}, const HeaderList& headers = {}) {
    std::string text(method);
    text += " " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n";
    for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
    if (FindHeader(headers, "Content-Type") == nullptr && !body.empty()) {
      text += "Content-Type: application/json\r\n";
    }
    if (!body.empty() || method == "POST") {
      text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    }
    return text + "\r\n" + std::string(body);
  }

  ClientResponse Get(std::string_view path, const HeaderList& headers = {}) {
    Send(RequestText("GET", path, {}, headers));
    return Read();
  }
  ClientResponse Post(std::string_view path, std::string_view body,
                      const HeaderList& headers = {}) {
    Send(RequestText("POST", path, body, headers));
    return Read();
  }

  // Reads until the head is complete and then up to `body_bytes` of a streamed body at least.
  ClientResponse ReadHead() {
    ClientResponse response;
    size_t end;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!Fill()) return response;
    }
    std::string head = buffer_.substr(0, end + 2);
    buffer_.erase(0, end + 4);
    ParseHead(head, &response);
    if (response.status == 100) return ReadHead();
    return response;
  }

  ClientResponse Read(bool is_head = false) {
    ClientResponse response = ReadHead();
    if (response.status == 0 || is_head) {
      response.complete = response.status != 0;
      return response;
    }
    if (response.Header("Transfer-Encoding") == "chunked") {
      response.complete = ReadChunks(&response.body);
    } else if (!response.Header("Content-Length").empty()) {
      size_t length = std::strtoull(response.Header("Content-Length").c_str(), nullptr, 10);
      while (buffer_.size() < length && Fill()) {
      }
      response.complete = buffer_.size() >= length;
      response.body = buffer_.substr(0, length);
      buffer_.erase(0, response.body.size());
    } else {
      while (Fill()) {
      }
      response.complete = true;
      response.body = std::exchange(buffer_, "");
    }
    return response;
  }

  // True if the server has ended the connection (waits up to `milliseconds`).
  bool IsClosed(int milliseconds = 5000) {
    int usual = std::exchange(timeout_ms_, milliseconds);
    bool closed = !Fill() && !timed_out_;
    timeout_ms_ = usual;
    return closed;
  }

  // One more piece of whatever arrives; false at the end, on an error or after a time-out.
  bool Fill() {
    timed_out_ = false;
    pollfd ready{fd_, POLLIN, 0};
    if (poll(&ready, 1, timeout_ms_) <= 0) {
      timed_out_ = true;
      return false;
    }
    char piece[65536];
    ssize_t bytes = recv(fd_, piece, sizeof(piece), 0);
    if (bytes <= 0) return false;
    buffer_.append(piece, static_cast<size_t>(bytes));
    return true;
  }
  const std::string& buffer() const { return buffer_; }

 private:
  static void ParseHead(const std::string& head, ClientResponse* response) {
    size_t line_end = head.find("\r\n");
    response->status = std::atoi(head.c_str() + 9);
    size_t at = line_end + 2;
    while (at < head.size()) {
      size_t end = head.find("\r\n", at);
      size_t colon = head.find(": ", at);
      response->headers.emplace_back(head.substr(at, colon - at),
                                     head.substr(colon + 2, end - colon - 2));
      at = end + 2;
    }
  }

  bool ReadChunks(std::string* body) {
    while (true) {
      size_t line_end;
      while ((line_end = buffer_.find("\r\n")) == std::string::npos) {
        if (!Fill()) return false;
      }
      size_t length = std::strtoull(buffer_.c_str(), nullptr, 16);
      while (buffer_.size() < line_end + 2 + length + 2) {
        if (!Fill()) return false;
      }
      body->append(buffer_, line_end + 2, length);
      buffer_.erase(0, line_end + 2 + length + 2);
      if (length == 0) return true;
    }
  }

  int fd_ = -1;
  int timeout_ms_ = 20000;
  bool timed_out_ = false;
  std::string buffer_;
};

// The JSON texts of an event stream, in order, without the last "[DONE]"; `done` says if that came.
inline std::vector<std::string> Events(std::string_view body, bool* done = nullptr) {
  std::vector<std::string> events;
  if (done != nullptr) *done = false;
  while (!body.empty()) {
    size_t end = body.find("\n\n");
    if (end == std::string_view::npos) break;
    std::string_view frame = body.substr(0, end);
    body.remove_prefix(end + 2);
    if (frame.substr(0, 6) != "data: ") continue;
    frame.remove_prefix(6);
    if (frame == "[DONE]") {
      if (done != nullptr) *done = true;
    } else {
      events.emplace_back(frame);
    }
  }
  return events;
}

}  // namespace fulgur::server::testing
