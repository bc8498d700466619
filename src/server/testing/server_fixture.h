// A server on a free port in front of a fake engine that plays texts through the small tokenizer.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "server/server.h"
#include "server/testing/fake_engine.h"
#include "server/testing/http_client.h"
#include "text/tokenizer.h"

namespace fulgur::server::testing {

using Json = nlohmann::ordered_json;

inline const text::Tokenizer& TinyTokenizer() {
  static const auto* tokenizer = [] {
    std::ifstream file("src/text/testdata/tiny_tokenizer.json", std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    auto loaded = text::Tokenizer::FromJson(text.str());
    EXPECT_TRUE(loaded.ok()) << loaded.status() << "; run the tests in the repository's root";
    return new text::Tokenizer(*std::move(loaded));
  }();
  return *tokenizer;
}

constexpr int32_t kEos = 1;  // of the tiny tokenizer

inline bool WaitFor(const std::function<bool()>& condition, int milliseconds = 10000) {
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// Options of a server with everything switched on.
inline ServerOptions TestOptions() {
  ServerOptions options;
  options.listen.host = "127.0.0.1";
  options.listen.port = 0;
  options.served_model_names = {"dsv4", "alias"};
  options.chat.tool_parser = true;
  options.chat.auto_tool_choice = true;
  options.chat.reasoning_parser = true;
  options.access_log = false;
  return options;
}

class TestServer {
 public:
  explicit TestServer(ServerOptions options = TestOptions(), int64_t max_model_len = 2000,
                      bool with_tokenizer = true)
      : engine_(max_model_len, TinyTokenizer().vocab_size(), kEos,
                [this](const engine::Request& request) { return Answer(request); }) {
    auto started =
        Server::Start(std::move(options), engine_, with_tokenizer ? &TinyTokenizer() : nullptr,
                      {"/models/tiny", "0.0-test", {kEos}});
    EXPECT_TRUE(started.ok()) << started.status();
    if (started.ok()) server_ = *std::move(started);
  }

  // What the model says to everything, special tokens spelt out.
  void Say(std::string text, engine::FinishReason finish = engine::FinishReason::kStop) {
    std::lock_guard lock(mutex_);
    script_.tokens = TinyTokenizer().Encode(text);
    script_.finish = finish;
    script_.error = "The model has failed.";
    author_ = nullptr;
  }
  void SayBy(FakeEngine::Author author) {
    std::lock_guard lock(mutex_);
    author_ = std::move(author);
  }

  HttpClient Connect(int receive_buffer_bytes = 0) const {
    return HttpClient(server_->port(), receive_buffer_bytes);
  }
  ClientResponse Post(std::string_view path, const Json& body,
                      const HeaderList& headers = {}) const {
    return Connect().Post(path, body.dump(), headers);
  }
  ClientResponse Get(std::string_view path, const HeaderList& headers = {}) const {
    return Connect().Get(path, headers);
  }
  ClientResponse Chat(const Json& body) const { return Post("/v1/chat/completions", body); }

  // Nothing is running any more, in the engine or in the server.
  bool IsFree() {
    return WaitFor([&] { return engine_.num_active() == 0 && server_->requests_in_flight() == 0; });
  }

  FakeEngine& engine() { return engine_; }
  Server& server() { return *server_; }

 private:
  Script Answer(const engine::Request& request) {
    std::lock_guard lock(mutex_);
    return author_ ? author_(request) : script_;
  }

  std::mutex mutex_;
  Script script_;
  FakeEngine::Author author_;
  FakeEngine engine_;
  std::unique_ptr<Server> server_;
};

inline Json UserMessage(std::string_view text) {
  return Json::array({{{"role", "user"}, {"content", text}}});
}

}  // namespace fulgur::server::testing
