#include "cli/serve_flags.h"

namespace fulgur::cli {
namespace {

using enum FlagType;
using enum FlagEffect;

constexpr FlagSpec kFlags[] = {
    {.name = "speculative-config",
     .type = kJson,
     .help = {R"(drafts, such as {"method": "dspark", "num_speculative_tokens": 5})",
              R"(投机解码，如 {"method": "dspark", "num_speculative_tokens": 5})"},
     .aliases = "-sc"},
    {.name = "spec-method",
     .help = {"method of --speculative-config: dspark, mtp, auto or none",
              "--speculative-config 的 method：dspark、mtp、auto 或 none"}},
    {.name = "spec-model",
     .help = {"folder of the drafter, if it is not in the checkpoint",
              "草稿模型所在文件夹（不在检查点内时）"}},
    {.name = "spec-tokens",
     .type = kInt,
     .default_value = "0",
     .help = {"the most drafts per request and step; 0: what the drafter was trained for",
              "每个请求每步最多的草稿数；0：按草稿模型的训练宽度"},
     .range = {.min = 0}},
    {.name = "per-request-spec-decode-metrics",
     .effect = kExplained,
     .default_value = "none",
     .help = {"acceptance of drafts in answers", "回复中附带草稿接受率"},
     .reason = {"acceptance is counted for the whole server, at /metrics",
                "接受率按整个服务统计，见 /metrics"},
     .choices = "none|summary|detailed"},
    {.name = "num-lookahead-slots",
     .type = kInt,
     .effect = kExplained,
     .default_value = "0",
     .help = {"cache kept for drafts", "为草稿预留的缓存"},
     .reason = {"the room for drafts follows from their number", "草稿所需空间由草稿数决定"},
     .range = {.min = 0}},
};

}  // namespace

FlagGroup SpeculationFlags() { return {"speculation", {"Speculation", "投机解码"}, kFlags}; }

}  // namespace fulgur::cli
