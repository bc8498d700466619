// Headings, column names and fixed sentences of the report.
#pragma once

#include "bench/report/text.h"

namespace fulgur::bench::report {

inline constexpr Text kTitle{"{treatment} against {baseline}: benchmark report",
                             "{treatment} 对比 {baseline}：性能测试报告"};
inline constexpr Text kTitleOfOne{"{system}: benchmark report", "{system}：性能测试报告"};

inline constexpr Text kSummary{"Summary", "摘要"};
inline constexpr Text kBackground{"Background", "背景"};
inline constexpr Text kThroughput{"Core results: throughput per user", "核心结果：单用户吞吐"};
inline constexpr Text kItl{"Inter-token latency", "Token 间时延"};
inline constexpr Text kTtft{"Time to first token", "首 Token 时延"};
inline constexpr Text kUtilisation{"Utilisation", "资源利用率"};
inline constexpr Text kFindings{"Findings", "主要发现"};
inline constexpr Text kConclusion{"Conclusion and advice", "结论与建议"};
inline constexpr Text kPareto{"System throughput and Pareto front", "系统吞吐与帕累托前沿"};
inline constexpr Text kSpeculation{"Speculative decoding", "投机解码"};
inline constexpr Text kAccuracy{"Accuracy", "精度评测"};
inline constexpr Text kMethod{"Method and definitions", "方法与指标定义"};
inline constexpr Text kValidity{"Validity", "有效性检查"};
inline constexpr Text kReproduction{"Reproduction", "复现"};
inline constexpr Text kAppendix{"Appendix: all percentiles", "附录：全部分位数"};

inline constexpr Text kNotMeasured{"Not measured in these results.", "本次结果中未测量。"};
inline constexpr Text kDashMeans{"A dash means: not measured. It is not a zero.",
                                 "横线表示未测量，而不是 0。"};

// Summary and background.
inline constexpr Text kTested{
    "Tested: {scenarios} at concurrency {concurrencies}; {cells} cells "
    "measured for {baseline}, {others} for {treatment}.",
    "测试内容：{scenarios}，并发 {concurrencies}；{baseline} 实测 {cells} "
    "个单元，{treatment} 实测 {others} 个单元。"};
inline constexpr Text kTestedOne{
    "Tested: {scenarios} at concurrency {concurrencies}; {cells} cells "
    "measured for {system}.",
    "测试内容：{scenarios}，并发 {concurrencies}；{system} 实测 {cells} "
    "个单元。"};
inline constexpr Text kVerdictCounts{
    "Verdicts at a threshold of {threshold} %: {improved} improved, {neutral} neutral, "
    "{regressions} slower, {noise} within the noise, {missing} without data.",
    "按 {threshold} % 阈值判定：提升 {improved}，持平 {neutral}，回退 {regressions}，"
    "噪声范围内 {noise}，无数据 {missing}。"};
inline constexpr Text kMeans{"Geometric mean of the speed-ups: {means}.",
                             "加速比几何平均：{means}。"};
inline constexpr Text kOverall{"all cells {mean}", "全部单元 {mean}"};
inline constexpr Text kFailedRequests{"Failed requests: {list}.", "失败请求：{list}。"};
inline constexpr Text kFigureLine{"{title}. {caption}", "{title}。{caption}"};
inline constexpr Text kNoFailedRequests{"No request failed.", "没有失败的请求。"};
inline constexpr Text kErrorsUnknown{"The result files do not say how many requests failed.",
                                     "结果文件未说明失败请求数。"};
inline constexpr Text kConfounderLine{"Differences besides the treatment: {list}.",
                                      "除被比较的改动之外还有差异：{list}。"};
inline constexpr Text kNoConfounder{
    "No other difference between the two systems is recorded in the "
    "result files.",
    "结果文件中没有记录两个系统的其他差异。"};
inline constexpr Text kProblemLine{"Missing or skipped: {count}; see Validity.",
                                   "缺失或跳过：{count} 处，见“有效性检查”。"};
inline constexpr Text kProperty{"Property", "属性"};
inline constexpr Text kDevices{"Devices", "设备数"};
inline constexpr Text kWhen{"Measured", "测试时间"};
inline constexpr Text kWhenSpan{"Measured between {start} and {end}.",
                                "测试时间：{start} 至 {end}。"};
inline constexpr Text kReferenceNote{
    "{system} is a reference with another model or engine: only the "
    "ratio is shown, without a verdict.",
    "{system} 为其他模型或引擎的参照，只给出比值，不作判定。"};
inline constexpr Text kReferenceSource{"Numbers of {system} are constants from: {source}.",
                                       "{system} 的数值为常量，来源：{source}。"};

// Tables.
inline constexpr Text kScenario{"Scenario", "场景"};
inline constexpr Text kSpeedup{"Speed-up", "加速比"};
inline constexpr Text kInterval{"95 % interval", "95 % 置信区间"};
inline constexpr Text kVerdict{"Verdict", "结论"};
inline constexpr Text kRatioTo{"{treatment} / {system}", "{treatment} / {system}"};
inline constexpr Text kWeightedSpeedup{"Speed-up, token-weighted", "加速比（按 token 加权）"};
inline constexpr Text kImproved{"improved", "提升"};
inline constexpr Text kNeutral{"neutral", "持平"};
inline constexpr Text kRegression{"slower", "回退"};
inline constexpr Text kNoise{"within the noise", "噪声范围内"};
inline constexpr Text kNotAvailable{"n/a", "无数据"};
inline constexpr Text kNoVariance{"no variance", "无方差数据"};
inline constexpr Text kThroughputUnit{
    "Output tokens per second per user: the mean over requests of "
    "1 / ITL.",
    "单用户输出吞吐（token/s）：各请求 1 / ITL 的平均值。"};
inline constexpr Text kNoVarianceNote{
    "Where the verdict says \"no variance\" there are neither request records nor repetitions: the "
    "threshold alone decides, and how far a repetition would move the number is not known.",
    "标注“无方差数据”的单元既没有请求级记录也没有重复测试：仅按阈值判定，重复测试会使数值变化多少未"
    "知。"};
inline constexpr Text kReduction{"Reduction", "降幅"};
inline constexpr Text kMean{"mean", "均值"};
inline constexpr Text kItlUnit{
    "Milliseconds between output tokens of a request, first token left "
    "out; several tokens in one chunk count one by one.",
    "同一请求输出 token 之间的毫秒数，不含首 token；一个数据块含多个 token "
    "时逐个计数。"};
inline constexpr Text kTtftUnit{
    "Milliseconds from sending a request to its first output chunk, "
    "waiting in queues included.",
    "从发送请求到首个输出数据块的毫秒数，含排队等待。"};
inline constexpr Text kRequestCount{"n", "n"};
inline constexpr Text kSystem{"System", "系统"};
inline constexpr Text kSystemRate{"tok/s, system", "系统 tok/s"};
inline constexpr Text kPerDevice{"tok/s per device", "每设备 tok/s"};
inline constexpr Text kPerUser{"tok/s per user", "单用户 tok/s"};
inline constexpr Text kOnFront{"On the front", "在前沿上"};
inline constexpr Text kYes{"yes", "是"};
inline constexpr Text kRequestsOk{"Requests", "请求数"};
inline constexpr Text kErrors{"Errors", "错误数"};

// Utilisation.
inline constexpr Text kMetric{"Metric", "指标"};
inline constexpr Text kChange{"Change", "变化"};
inline constexpr Text kSamples{"Samples", "采样数"};
inline constexpr Text kBusyAvg{"Devices busy, mean (%)", "设备忙碌率均值 (%)"};
inline constexpr Text kBusyMax{"Devices busy, maximum (%)", "设备忙碌率最大 (%)"};
inline constexpr Text kMemoryAvg{"Device memory, mean (GB)", "设备内存均值 (GB)"};
inline constexpr Text kCpuAvg{"CPU, mean (%)", "CPU 均值 (%)"};
inline constexpr Text kHostMemory{"Host memory, total minus free (GB)",
                                  "主机内存：总量减空闲 (GB)"};
inline constexpr Text kHostUnavailable{"Host memory, total minus available (GB)",
                                       "主机内存：总量减可用 (GB)"};
inline constexpr Text kPower{"Power of all devices (W)", "全部设备功率 (W)"};
inline constexpr Text kTokensPerBusy{"Tokens per busy device second", "每设备忙碌秒 token 数"};
inline constexpr Text kJoulesPerToken{"Joules per output token", "每输出 token 焦耳"};
inline constexpr Text kWholeLog{"Over the whole log", "整个日志"};
inline constexpr Text kInsideCells{"Inside the measured window of each cell",
                                   "每个单元的测量窗口内"};
inline constexpr Text kBusyMeaning{
    "A device counts as busy (AICore on Ascend) while it waits inside a collective kernel too. A "
    "lower share alone is therefore no sign of a better or worse step.",
    "设备在集合通信算子中等待时也计为忙碌（昇腾为 "
    "AICore），因此忙碌率降低本身既不说明单步更好，也不说明更差。"};

// Speculation.
inline constexpr Text kAcceptanceLength{"Acceptance length", "接受长度"};
inline constexpr Text kAcceptanceRate{"Draft acceptance (%)", "草稿接受率 (%)"};
inline constexpr Text kTokensPerChunk{"Tokens per chunk", "每数据块 token 数"};
inline constexpr Text kRepetition{"Repetition", "重复率"};
inline constexpr Text kAcceptanceNote{
    "Acceptance length: tokens per verification step, the bonus token included, by the server's "
    "counters. Tokens per chunk is what the client saw; a server that merges chunks raises it.",
    "接受长度：每个验证步的 token 数（含 bonus token），取自服务端计数器。每数据块 token "
    "数为客户端所见；服务端合并数据块会使其偏大。"};
inline constexpr Text kTrials{"Single-factor trials", "单因素试验"};
inline constexpr Text kTrialChange{"Change", "改动"};
inline constexpr Text kDeltaPercent{"Delta", "变化"};
inline constexpr Text kDecision{"Decision", "决定"};
inline constexpr Text kReason{"Reason", "理由"};

// Accuracy.
inline constexpr Text kDataset{"Data set", "数据集"};
inline constexpr Text kScore{"Score (%)", "得分 (%)"};
inline constexpr Text kItems{"Items", "题数"};
inline constexpr Text kTruncated{"Cut off", "被截断"};
inline constexpr Text kUnparsed{"No answer found", "未解析出答案"};

// Method.
inline constexpr Text kClosedLoop{
    "Closed loop: C users each send their next request when the last one ends. Tails are "
    "conditional "
    "on C; they do not say what users at a given arrival rate would see.",
    "闭环：C 个用户各自在上一请求结束后发送下一请求。尾部时延以 C "
    "为条件，不能说明给定到达速率下用户的体验。"};
inline constexpr Text kPerUserDefinition{
    "Throughput per user: 1000 / ITL of a request in ms, averaged over requests (aiperf's "
    "output_token_throughput_per_user). This mean is never below 1000 / mean ITL; the "
    "token-weighted "
    "value is tokens after the first over decode seconds, all requests together.",
    "单用户吞吐：请求的 1000 / ITL（毫秒），再对请求求平均（aiperf 的 "
    "output_token_throughput_per_user）。该平均值不低于 1000 / 平均 ITL；按 token "
    "加权的值为全部请求的首 token 之后 token 数除以解码秒数。"};
inline constexpr Text kItlDefinition{
    "ITL: (time of the last output chunk - time of the first) / (output tokens - 1), per request. "
    "The gap between chunks is another metric, inter-chunk latency; with speculation a chunk holds "
    "several tokens.",
    "ITL：每个请求的（末个输出块时间 − 首个输出块时间）/（输出 token 数 − "
    "1）。数据块间隔是另一指标；启用投机解码时一个块含多个 token。"};
inline constexpr Text kTtftDefinition{
    "TTFT: from just before the first byte is sent to the first chunk with content or reasoning.",
    "TTFT：从发送首字节之前到首个含内容或推理文本的数据块。"};
inline constexpr Text kPercentileDefinition{
    "Percentiles interpolate linearly between ranks (numpy's default). A p99 of fewer than 100 "
    "requests lies between the two slowest.",
    "分位数在秩之间线性插值（numpy 默认方式）。请求数少于 100 时，p99 落在最慢的两个请求之间。"};
inline constexpr Text kVerdictDefinition{
    "Verdict: improved or slower if the speed-up is beyond the threshold of {threshold} % and its "
    "95 % "
    "interval (bootstrap over requests, or repetitions) leaves 1 out; neutral within the "
    "threshold; "
    "else within the noise.",
    "判定：加速比超出 {threshold} % 阈值且其 95 % 区间（请求级自助法或重复测试）不含 1 "
    "时为提升或回退；阈值以内为持平；其余为噪声范围内。"};
inline constexpr Text kMeanDefinition{
    "Speed-ups of several cells are summed up by the geometric mean.",
    "多个单元的加速比用几何平均汇总。"};

// Validity, reproduction, appendix.
inline constexpr Text kCells{"Cells", "单元"};
inline constexpr Text kValid{"Valid", "有效"};
inline constexpr Text kNo{"no", "否"};
inline constexpr Text kWhy{"Why not", "原因"};
inline constexpr Text kChecks{"Checks of the result files", "结果文件检查"};
inline constexpr Text kChecksClean{"No rule warns or fails.", "没有规则告警或失败。"};
inline constexpr Text kChecksMore{"and {count} more", "另有 {count} 条"};
inline constexpr Text kRule{"Rule", "规则"};
inline constexpr Text kSeverity{"Severity", "级别"};
inline constexpr Text kFinding{"Finding", "结果"};
inline constexpr Text kWarn{"warning", "告警"};
inline constexpr Text kFail{"failure", "失败"};
inline constexpr Text kConfounders{"Differences besides the treatment", "被比较改动之外的差异"};
inline constexpr Text kNotKnown{"not known", "未知"};
inline constexpr Text kMissing{"Missing or skipped", "缺失或跳过"};
inline constexpr Text kFile{"File", "文件"};
inline constexpr Text kTool{"Tool", "工具"};
inline constexpr Text kCommand{"This report was made with:", "本报告由以下命令生成："};
inline constexpr Text kNothingMissing{"Nothing was missing or skipped.", "没有缺失或跳过。"};

}  // namespace fulgur::bench::report
