// Any bytes as a stream of server-sent events: however reads cut it, the answer is the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "bench/load/answer_reader.h"
#include "bench/load/sse_messages.h"

namespace {

using fulgur::bench::AnswerReader;
using fulgur::bench::AnswerSoFar;
using fulgur::bench::SseMessages;

AnswerSoFar ReadStream(std::string_view bytes, size_t step) {
  AnswerReader reader(/*keep_text=*/true);
  AnswerSoFar answer;
  SseMessages messages([&](std::string_view data, int64_t arrival_ns) {
    reader.ReadMessage(data, arrival_ns, answer);
  });
  for (size_t at = 0; at < bytes.size(); at += step) {
    messages.Feed(bytes.substr(at, step), static_cast<int64_t>(at));
  }
  messages.Finish();
  return answer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = 1 + data[0] % 64;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const AnswerSoFar whole = ReadStream(bytes, std::max<size_t>(1, bytes.size()));
  const AnswerSoFar pieces = ReadStream(bytes, step);
  CHECK(whole.frames.size() == pieces.frames.size());
  for (size_t i = 0; i < whole.frames.size(); ++i) {
    CHECK(whole.frames[i].kind == pieces.frames[i].kind);
    CHECK(whole.frames[i].tokens == pieces.frames[i].tokens);
    CHECK(i == 0 || pieces.frames[i - 1].arrival_ns <= pieces.frames[i].arrival_ns);
  }
  CHECK(whole.text == pieces.text);
  CHECK(whole.reasoning == pieces.reasoning);
  CHECK(whole.done == pieces.done);
  CHECK(whole.unreadable == pieces.unreadable);

  AnswerReader reader(/*keep_text=*/true);
  AnswerSoFar body;
  reader.ReadWhole(bytes, 0, body);
  CHECK(body.done);
  CHECK(body.frames.size() + static_cast<size_t>(body.unreadable) == 1);
  return 0;
}
