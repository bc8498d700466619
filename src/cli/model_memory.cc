#include "cli/model_memory.h"

#include "fmt/format.h"
#include "model/model.h"

namespace fulgur::cli {

std::string FormatBytes(int64_t bytes) {
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  if (bytes < 1'000'000'000) return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

kv::Layout SequenceLayout(const engine::ModelEngineOptions& options,
                          const model::ModelConfig& config) {
  return model::CacheLayout(config, options.precision, /*lookahead=*/options.max_drafts);
}

int64_t SequenceBytes(const kv::Layout& layout, int64_t tokens) {
  return layout.slot_bytes() + kv::Layout::PagesFor(tokens) * layout.page_bytes();
}

std::string DescribeSequenceMemory(const kv::Layout& layout) {
  return fmt::format("{} bytes per token, {} per running request",
                     layout.page_bytes() / kv::kPageTokens, FormatBytes(layout.slot_bytes()));
}

}  // namespace fulgur::cli
