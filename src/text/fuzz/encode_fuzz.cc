// Any bytes as text: the tokens spell the text, with and without added tokens, and streaming them
// back gives what decoding them at once gives.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/testing/fixtures.h"
#include "text/utf8.h"

namespace {

using fulgur::text::ByteRange;
using fulgur::text::Detokenizer;
using fulgur::text::EncodeOptions;
using fulgur::text::Tokenizer;

void CheckText(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options) {
  const std::vector<int32_t> ids = tokenizer.Encode(text, options);
  std::string bytes;
  for (int32_t id : ids) bytes += tokenizer.TokenBytes(id);
  CHECK(bytes == text);
  Detokenizer detokenizer(tokenizer, false);
  std::string streamed;
  for (int32_t id : ids) {
    const std::string piece = detokenizer.Push(id);
    CHECK(fulgur::text::IsValidUtf8(piece));
    streamed += piece;
  }
  streamed += detokenizer.Finish();
  CHECK(streamed == tokenizer.Decode(ids));
}

}  // namespace

// The first two bytes choose a range that is kept plain. Runs in the repository's root.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const Tokenizer& tokenizer = fulgur::text::testing::TinyTokenizer();
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  const size_t begin = std::min<size_t>(data[0], text.size());
  const ByteRange plain[] = {{begin, std::min<size_t>(begin + data[1], text.size())}};
  CheckText(tokenizer, text, {});
  CheckText(tokenizer, text, {.match_added_tokens = false});
  CheckText(tokenizer, text, {.plain_text = plain});
  return 0;
}
