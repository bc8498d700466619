#include "cli/serve_flags.h"

namespace fulgur::cli {
namespace {

using enum FlagType;
using enum FlagEffect;

constexpr Text kNoGraphs = {"there are no graphs to capture and nothing is compiled at run time",
                            "没有需要捕获的图，运行时也不做编译"};
constexpr Text kOwnKernels = {"--kernels chooses among the kernels that exist here",
                              "内核由 --kernels 选择"};

constexpr FlagSpec kFlags[] = {
    {.name = "additional-config",
     .type = kJson,
     .effect = kExplained,
     .help = {"settings of a hardware plug-in", "硬件插件的设置"},
     .reason = {"its keys tune accelerators", "其中的键用于调节加速卡"}},
    {.name = "compilation-config",
     .type = kJson,
     .effect = kExplained,
     .help = {"graphs and compilation", "图捕获与编译"},
     .reason = kNoGraphs,
     .aliases = "-cc -O"},
    {.name = "optimization-level",
     .type = kInt,
     .effect = kExplained,
     .help = {"how much to compile", "编译优化级别"},
     .reason = kNoGraphs,
     .range = {.min = 0, .max = 3}},
    {.name = "enforce-eager",
     .type = kBool,
     .effect = kExplained,
     .help = {"no graphs", "不使用图"},
     .reason = kNoGraphs},
    {.name = "cudagraph-capture-sizes",
     .type = kTextList,
     .effect = kExplained,
     .help = {"batch sizes of graphs", "图的批大小"},
     .reason = kNoGraphs,
     .aliases = "--cuda-graph-sizes"},
    {.name = "max-cudagraph-capture-size",
     .type = kInt,
     .effect = kExplained,
     .help = {"largest batch of a graph", "图的最大批"},
     .reason = kNoGraphs},
    {.name = "max-seq-len-to-capture",
     .type = kCount,
     .effect = kExplained,
     .help = {"longest sequence of a graph", "图的最大序列长度"},
     .reason = kNoGraphs},
    {.name = "cudagraph-metrics",
     .type = kBool,
     .effect = kExplained,
     .help = {"log the use of graphs", "记录图的使用"},
     .reason = kNoGraphs},
    {.name = "attention-backend",
     .effect = kExplained,
     .help = {"attention kernels", "注意力内核"},
     .reason = kOwnKernels},
    {.name = "moe-backend",
     .effect = kExplained,
     .help = {"expert kernels", "专家内核"},
     .reason = kOwnKernels},
    {.name = "kernel-config",
     .type = kJson,
     .effect = kExplained,
     .help = {"kernel settings", "内核设置"},
     .reason = kOwnKernels},
    {.name = "device",
     .effect = kExplained,
     .help = {"device to run on", "运行设备"},
     .reason = {"the model runs on the CPU", "模型运行在 CPU 上"}},
    {.name = "profiler-config",
     .type = kJson,
     .effect = kExplained,
     .help = {"accelerator profiler", "加速卡性能分析"},
     .reason = {"there is no accelerator to profile", "没有加速卡可供分析"}},
};

}  // namespace

FlagGroup AcceleratorFlags() { return {"accelerator", {"Accelerators", "加速卡"}, kFlags}; }

}  // namespace fulgur::cli
