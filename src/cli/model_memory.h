// The memory of a model as `serve --dry-run` and `plan` tell it.
#pragma once

#include <cstdint>
#include <string>

#include "engine/model_engine.h"
#include "kv/layout.h"
#include "model/config.h"

namespace fulgur::cli {

// 1234567 as "1.2 MB".
std::string FormatBytes(int64_t bytes);

// The sequence memory of a model that runs with these options.
kv::Layout SequenceLayout(const engine::ModelEngineOptions& options,
                          const model::ModelConfig& config);

// Bytes that one running sequence of `tokens` tokens takes.
int64_t SequenceBytes(const kv::Layout& layout, int64_t tokens);

// Such as "6230 bytes per token, 18.2 MB per running request".
std::string DescribeSequenceMemory(const kv::Layout& layout);

}  // namespace fulgur::cli
