// Any bytes as tokenizer.json: an error or a tokenizer that works, never a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = fulgur::text::Tokenizer::FromJson(json);
  if (!tokenizer.ok()) return 0;
  // The file itself is as good a text as any.
  const std::string_view text = json.substr(0, 4096);
  std::string bytes;
  for (int32_t id : tokenizer->Encode(text)) bytes += tokenizer->TokenBytes(id);
  CHECK(bytes == text);
  return 0;
}
