// Feeds arbitrary text to the readers of a checkpoint's JSON files.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/config.h"
#include "model/generation_config.h"
#include "model/quant_description.h"
#include "model/shard_index.h"
#include "model/tensor_names.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)fulgur::model::ParseConfig(text);
  (void)fulgur::model::ParseGenerationConfig(text);
  (void)fulgur::model::QuantDescription::Parse(text, "fuzz");
  (void)fulgur::model::ParseShardIndex(text, "fuzz");
  (void)fulgur::model::CanonicalName(text);
  return 0;
}
