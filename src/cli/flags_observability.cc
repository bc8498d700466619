#include "cli/serve_flags.h"

namespace fulgur::cli {
namespace {

using enum FlagType;
using enum FlagEffect;

constexpr Text kNoTraces = {"no traces are sent", "不发送追踪数据"};
constexpr Text kPlainMetrics = {"/metrics has the same series with and without it",
                                "有无此参数，/metrics 的指标相同"};

constexpr FlagSpec kFlags[] = {
    {.name = "otlp-traces-endpoint",
     .effect = kExplained,
     .help = {"where traces are sent", "追踪数据的发送地址"},
     .reason = kNoTraces},
    {.name = "collect-detailed-traces",
     .type = kTextList,
     .effect = kExplained,
     .help = {"parts that are traced", "追踪的模块"},
     .reason = kNoTraces},
    {.name = "show-hidden-metrics-for-version",
     .effect = kExplained,
     .help = {"metrics of an older version", "旧版本的指标"},
     .reason = kPlainMetrics},
    {.name = "kv-cache-metrics",
     .type = kBool,
     .effect = kExplained,
     .help = {"life times of cache blocks", "缓存块的生存时间"},
     .reason = kPlainMetrics},
    {.name = "kv-cache-metrics-sample",
     .type = kFloat,
     .effect = kExplained,
     .help = {"share of cache blocks that is measured", "被采样的缓存块比例"},
     .reason = kPlainMetrics},
    {.name = "enable-mfu-metrics",
     .type = kBool,
     .effect = kExplained,
     .help = {"estimates of arithmetic and traffic", "算力与带宽的估计"},
     .reason = kPlainMetrics},
    {.name = "custom-histogram-buckets",
     .type = kJson,
     .effect = kExplained,
     .help = {"limits of histogram buckets", "直方图分桶"},
     .reason = {"histograms keep the buckets that dashboards know", "直方图保持仪表盘通用的分桶"}},
    {.name = "enable-per-request-metrics",
     .type = kBool,
     .effect = kExplained,
     .help = {"times of a request in its answer", "在回复中附带请求耗时"},
     .reason = {"answers carry no times", "回复不含耗时"}},
    {.name = "enable-layerwise-nvtx-tracing",
     .type = kBool,
     .effect = kExplained,
     .help = {"marks for an accelerator profiler", "供加速卡分析器使用的标记"},
     .reason = kNoTraces},
};

}  // namespace

FlagGroup ObservabilityFlags() {
  return {"observability", {"Traces and metrics", "追踪与指标"}, kFlags};
}

}  // namespace fulgur::cli
