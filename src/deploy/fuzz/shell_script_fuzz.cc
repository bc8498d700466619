// Feeds arbitrary text to the shell reader; quoting what it read must read back the same.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "deploy/shell_script.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fulgur::deploy;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const ShellCommand& command : ReadShellScript(text)) {
    for (const ShellWord& word : command.words) {
      const auto again = ReadShellScript("x " + QuoteForShell(word.text));
      CHECK_EQ(again.size(), 1U);
      CHECK_EQ(again[0].words.size(), 2U);
      CHECK_EQ(again[0].words[1].text, word.text);
    }
  }
  return 0;
}
