#include "server/http_wire.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/ssl/stream.hpp>
#include <cstring>
#include <utility>

namespace fulgur::server {

std::string Wire::peer() {
  error_code ignored;
  auto remote = socket().remote_endpoint(ignored);
  if (remote.protocol().family() != AF_INET && remote.protocol().family() != AF_INET6) return "";
  asio::ip::tcp::endpoint endpoint;
  endpoint.resize(remote.size());
  std::memcpy(endpoint.data(), remote.data(), remote.size());
  return fmt::format("{}:{}", endpoint.address().to_string(ignored), endpoint.port());
}

void Wire::ShutdownWrites() {
  error_code ignored;
  socket().shutdown(Socket::shutdown_send, ignored);
}

void Wire::Close() {
  error_code ignored;
  socket().close(ignored);
}

namespace {

class PlainWire : public Wire {
 public:
  explicit PlainWire(Socket socket) : socket_(std::move(socket)) {}
  void Handshake(std::function<void(error_code)> done) override {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}); });
  }
  void ReadSome(asio::mutable_buffer into, IoCallback done) override {
    socket_.async_read_some(into, std::move(done));
  }
  void WriteSome(asio::const_buffer from, IoCallback done) override {
    socket_.async_write_some(from, std::move(done));
  }
  Socket& socket() override { return socket_; }

 private:
  Socket socket_;
};

class TlsWire : public Wire {
 public:
  TlsWire(Socket socket, asio::ssl::context& context) : stream_(std::move(socket), context) {}
  void Handshake(std::function<void(error_code)> done) override {
    stream_.async_handshake(asio::ssl::stream_base::server, std::move(done));
  }
  void ReadSome(asio::mutable_buffer into, IoCallback done) override {
    stream_.async_read_some(into, std::move(done));
  }
  void WriteSome(asio::const_buffer from, IoCallback done) override {
    stream_.async_write_some(from, std::move(done));
  }
  Socket& socket() override { return stream_.next_layer(); }

 private:
  asio::ssl::stream<Socket> stream_;
};

}  // namespace

std::unique_ptr<Wire> MakePlainWire(Socket socket) {
  return std::make_unique<PlainWire>(std::move(socket));
}

std::unique_ptr<Wire> MakeTlsWire(Socket socket, asio::ssl::context& context) {
  return std::make_unique<TlsWire>(std::move(socket), context);
}

}  // namespace fulgur::server
