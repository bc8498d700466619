// Any bytes as the messages of a request (and, behind a NUL byte, its tools): an error or a prompt
// whose client ranges lie in order inside it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/chat_encoding.h"
#include "text/chat_request.h"
#include "text/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fulgur::text;
  if (size < 1) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t split = std::min(input.find('\0'), input.size());
  auto messages = ParseMessages(input.substr(0, split));
  if (!messages.ok()) return 0;
  ChatOptions options;
  options.thinking = (data[0] & 1) != 0;
  options.drop_thinking = (data[0] & 2) != 0;
  options.add_generation_prompt = (data[0] & 4) != 0;
  options.continue_final_message = (data[0] & 8) != 0;
  options.empty_reasoning_as_chat = (data[0] & 16) != 0;
  options.tools_in_own_message = (data[0] & 32) != 0;
  if (split < input.size()) options.tools = input.substr(split + 1);
  const auto prompt = RenderChat(*std::move(messages), options);
  if (!prompt.ok()) return 0;
  size_t at = 0;
  for (const ByteRange& range : prompt->client_text) {
    CHECK(at <= range.begin && range.begin < range.end && range.end <= prompt->text.size());
    at = range.end;
  }
  return 0;
}
