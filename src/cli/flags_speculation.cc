#include "cli/serve_flags.h"

namespace fulgur::cli {
namespace {

using enum FlagType;
using enum FlagEffect;

constexpr Text kNoDrafts = {
    "no draft model is run yet, and answers are the same without one; leave it out",
    "目前不运行草稿模型，没有它回答也完全相同；请去掉"};

constexpr FlagSpec kFlags[] = {
    {.name = "speculative-config",
     .type = kJson,
     .effect = kRefused,
     .help = {R"(draft model, such as {"method": "dspark", "num_speculative_tokens": 7})",
              R"(草稿模型，如 {"method": "dspark", "num_speculative_tokens": 7})"},
     .reason = kNoDrafts,
     .aliases = "-sc",
     .harmless = R"({}|{"method":"none"})"},
    {.name = "spec-method",
     .effect = kRefused,
     .help = {"the draft method", "草稿方法"},
     .reason = kNoDrafts,
     .harmless = "none"},
    {.name = "spec-model",
     .effect = kRefused,
     .help = {"the draft model", "草稿模型"},
     .reason = kNoDrafts},
    {.name = "spec-tokens",
     .type = kInt,
     .effect = kRefused,
     .default_value = "0",
     .help = {"drafted tokens per step", "每步草稿的 token 数"},
     .reason = kNoDrafts,
     .range = {.min = 0}},
    {.name = "per-request-spec-decode-metrics",
     .effect = kExplained,
     .default_value = "none",
     .help = {"acceptance of drafts in answers", "回复中附带草稿接受率"},
     .reason = {"no draft model is run yet", "目前不运行草稿模型"},
     .choices = "none|summary|detailed"},
    {.name = "num-lookahead-slots",
     .type = kInt,
     .effect = kExplained,
     .default_value = "0",
     .help = {"cache kept for drafts", "为草稿预留的缓存"},
     .reason = {"no draft model is run yet", "目前不运行草稿模型"},
     .range = {.min = 0}},
};

}  // namespace

FlagGroup SpeculationFlags() { return {"speculation", {"Speculation", "投机解码"}, kFlags}; }

}  // namespace fulgur::cli
