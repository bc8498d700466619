#include "text/detokenizer.h"

namespace fulgur::text {

std::string Detokenizer::Push(int32_t id) {
  std::string text;
  if (!(skip_special_tokens_ && tokenizer_.IsSpecial(id))) {
    assembler_.Push(tokenizer_.TokenBytes(id), &text);
  }
  return text;
}

std::string Detokenizer::Finish() {
  std::string text;
  assembler_.Finish(&text);
  return text;
}

}  // namespace fulgur::text
