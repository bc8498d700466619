// Headers and labels of the workbook. English names of columns and rows are those that scripts for
// earlier workbooks look for.
#pragma once

#include "bench/report/text.h"

namespace fulgur::bench::workbook {

inline constexpr Text kThroughputTitle{
    "Output tokens per second per user: {treatment} against "
    "{baseline}",
    "单用户输出吞吐（token/s）：{treatment} 对比 {baseline}"};
inline constexpr Text kItlTitle{"Inter-token latency (ms)", "Token 间时延（ms）"};
inline constexpr Text kTtftTitle{"Time to first token (ms)", "首 Token 时延（ms）"};
inline constexpr Text kUtilizationTitle{"Utilisation of devices and host", "设备与主机资源利用率"};

inline constexpr Text kScenario{"Scenario", "场景"};
inline constexpr Text kConcurrency{"C", "并发"};
inline constexpr Text kBaseline{"Baseline", "基线"};
inline constexpr Text kReference{"Reference", "参照"};
inline constexpr Text kDelta{"Delta %", "变化 %"};
inline constexpr Text kVerdict{"Verdict", "结论"};
inline constexpr Text kVerdictInterval{"Verdict (with interval)", "结论（含置信区间）"};
inline constexpr Text kIntervalLow{"CI low", "置信下限"};
inline constexpr Text kIntervalHigh{"CI high", "置信上限"};
inline constexpr Text kWeighted{"{system} tok/s/user token-weighted",
                                "{system} 单用户吞吐（按 token 加权）"};
inline constexpr Text kWeightedSpeedup{"Speed-up token-weighted", "加速比（按 token 加权）"};
inline constexpr Text kSystemRate{"{system} system tok/s", "{system} 系统吞吐 tok/s"};
inline constexpr Text kRatePerDevice{"{system} tok/s per device", "{system} 每设备 tok/s"};
inline constexpr Text kOkErrors{"{system} ok/errors", "{system} 成功/失败"};
inline constexpr Text kAcceptance{"Acceptance length", "接受长度"};
inline constexpr Text kGeometricMean{"Geometric mean: {scope}", "几何平均：{scope}"};
inline constexpr Text kAllCells{"all cells", "全部单元"};

inline constexpr Text kItlOf{"{system} ITL", "{system} ITL"};
inline constexpr Text kReduction{"Reduction", "降幅"};
inline constexpr Text kItlPercentile{"{system} ITL {percentile}", "{system} ITL {percentile}"};
inline constexpr Text kChunkGap{"{system} inter-chunk {percentile}",
                                "{system} 数据块间隔 {percentile}"};
inline constexpr Text kTokensPerChunk{"Tokens per chunk", "每数据块 token 数"};
inline constexpr Text kItlAfterFirst{"ITL after first chunk", "首块之后的 ITL"};
inline constexpr Text kMaxStall{"Max stall p99", "最长停顿 p99"};

inline constexpr Text kTtftAvg{"TTFT avg", "TTFT avg"};
inline constexpr Text kTtftP50{"TTFT p50", "TTFT p50"};
inline constexpr Text kTtftP99{"TTFT p99", "TTFT p99"};
inline constexpr Text kTtftOf{"{system} TTFT {statistic}", "{system} TTFT {statistic}"};
inline constexpr Text kDeltaOfMean{"Delta % of the mean", "均值变化 %"};
inline constexpr Text kPrefillRate{"Prefill tok/s/user", "单用户预填充 tok/s"};
inline constexpr Text kQueueLag{"Queue lag p99", "排队延迟 p99"};
inline constexpr Text kRequests{"n", "n"};
inline constexpr Text kSmallSample{"p99 mark", "p99 标记"};
inline constexpr Text kBelowHundred{"n < 100", "n < 100"};

inline constexpr Text kMetric{"Metric", "指标"};
inline constexpr Text kNote{"Note", "说明"};
inline constexpr Text kSamples{"Samples", "采样数"};
inline constexpr Text kAicoreAvg{"AICore avg (%)", "AICore 平均 (%)"};
inline constexpr Text kAicoreMax{"AICore max (%)", "AICore 最大 (%)"};
inline constexpr Text kHbmAvgMb{"HBM avg (MB)", "HBM 平均 (MB)"};
inline constexpr Text kHbmAvgGb{"HBM avg (GB)", "HBM 平均 (GB)"};
inline constexpr Text kCpuAvg{"CPU avg (%)", "CPU 平均 (%)"};
inline constexpr Text kHostMemory{"Host Memory (GB)", "主机内存 (GB)"};
inline constexpr Text kChange{"change {amount}", "变化 {amount}"};
inline constexpr Text kChangePoints{"change {amount} points", "变化 {amount} 个百分点"};
inline constexpr Text kCountsPageCache{"total minus free: counts the page cache",
                                       "总量减空闲，含页缓存"};
inline constexpr Text kSystem{"System", "系统"};
inline constexpr Text kStart{"Start (UTC)", "开始 (UTC)"};
inline constexpr Text kEnd{"End (UTC)", "结束 (UTC)"};
inline constexpr Text kTicks{"Ticks", "采样数"};
inline constexpr Text kAicoreP95{"AICore p95 (%)", "AICore p95 (%)"};
inline constexpr Text kIdleShare{"Idle share", "空闲占比"};
inline constexpr Text kImbalance{"Imbalance", "不均衡度"};
inline constexpr Text kHbmMaxMb{"HBM max (MB)", "HBM 最大 (MB)"};
inline constexpr Text kHostUnavailable{"Host memory not available (MB)", "主机不可用内存 (MB)"};
inline constexpr Text kPower{"Power (W)", "功率 (W)"};
inline constexpr Text kEnergyPerToken{"J per output token", "每输出 token 焦耳"};
inline constexpr Text kTokensPerBusy{"Tokens per busy device second", "每设备忙碌秒 token 数"};
inline constexpr Text kSeconds{"{system}: seconds", "{system}：秒"};
inline constexpr Text kBusyMean{"{system}: AICore mean (%)", "{system}：AICore 平均 (%)"};
inline constexpr Text kBusyMin{"{system}: least busy device (%)", "{system}：最闲设备 (%)"};
inline constexpr Text kBusyMax{"{system}: busiest device (%)", "{system}：最忙设备 (%)"};
inline constexpr Text kBusyCpu{"{system}: CPU (%)", "{system}：CPU (%)"};
inline constexpr Text kTimeline{"Utilisation over time", "利用率随时间变化"};
inline constexpr Text kPercentAxis{"%", "%"};
inline constexpr Text kSecondsAxis{"seconds from the first sample", "距首个采样的秒数"};

inline constexpr Text kDifferences{"Environment", "环境"};
inline constexpr Text kConfounder{"confounder", "混杂因素"};
inline constexpr Text kDevicesBaseline{"Devices of the baseline", "基线设备数"};
inline constexpr Text kDevicesTreatment{"Devices of the treatment", "对照设备数"};
inline constexpr Text kThreshold{"Threshold of the verdicts", "结论判定阈值"};
inline constexpr Text kProblems{"Missing or skipped", "缺失或跳过"};
inline constexpr Text kNothingMissing{"nothing", "无"};
inline constexpr Text kLint{"Checks of the result files", "结果文件检查"};
inline constexpr Text kLintClean{"no rule warns or fails", "无告警或失败"};
inline constexpr Text kTrials{"Single-factor trials", "单因素试验"};
inline constexpr Text kProvenance{"Data", "数据来源"};
inline constexpr Text kRawTitle{"All metrics", "全部指标"};
inline constexpr Text kPercentilesTitle{"All percentiles", "全部分位数"};
inline constexpr Text kErrorsTitle{"Failed requests by message, numbers masked",
                                   "按消息分组的失败请求（数字已掩去）"};
inline constexpr Text kSlicesTitle{"Time slices", "时间片"};
inline constexpr Text kUnit{"Unit", "单位"};
inline constexpr Text kCode{"Code", "代码"};
inline constexpr Text kType{"Type", "类型"};
inline constexpr Text kMessage{"Message", "消息"};
inline constexpr Text kCount{"Count", "数量"};
inline constexpr Text kSliceStart{"Start (s)", "开始（秒）"};
inline constexpr Text kSliceLength{"Length (s)", "时长（秒）"};
inline constexpr Text kWhole{"Complete", "完整"};
inline constexpr Text kUserAxis{"tok/s/user", "单用户 tok/s"};
inline constexpr Text kDeviceAxis{"tok/s per device", "每设备 tok/s"};
inline constexpr Text kConcurrencyAxis{"Concurrency", "并发"};
inline constexpr Text kParetoTitle{"Pareto: interactivity against throughput",
                                   "帕累托：交互速度与吞吐"};
inline constexpr Text kSpeedupTitle{"Speed-up over the baseline (columns start at 1.0)",
                                    "相对基线的加速比（柱从 1.0 起）"};

}  // namespace fulgur::bench::workbook
