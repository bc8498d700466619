// Plain sockets and TLS behind one face, and what all files over Boost.Asio have in common.
//
// Network thread only. Slow to compile: include it only where bytes are moved.
#pragma once

// Tasks reach the loop through a mutex, which orders memory; further fences are of no use, and the
// thread sanitizer does not understand them.
#define BOOST_ASIO_DISABLE_FENCED_BLOCK

#include <boost/asio.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"

namespace fulgur::server {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Socket = asio::generic::stream_protocol::socket;
using IoCallback = std::function<void(error_code, size_t)>;

inline Clock::duration ToClock(absl::Duration duration) {
  return absl::ToChronoNanoseconds(duration);
}

class Wire {
 public:
  virtual ~Wire() = default;
  virtual void Handshake(std::function<void(error_code)> done) = 0;
  virtual void ReadSome(asio::mutable_buffer into, IoCallback done) = 0;
  virtual void WriteSome(asio::const_buffer from, IoCallback done) = 0;
  virtual Socket& socket() = 0;

  // "address:port" of the client; empty for a unix socket.
  std::string peer();

  // No more bytes will be written; the peer may still be read.
  void ShutdownWrites();
  void Close();
};

std::unique_ptr<Wire> MakePlainWire(Socket socket);
std::unique_ptr<Wire> MakeTlsWire(Socket socket, asio::ssl::context& context);

}  // namespace fulgur::server
