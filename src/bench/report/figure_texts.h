// Titles, axes and captions of the figures.
#pragma once

#include "bench/report/text.h"

namespace fulgur::bench::figure {

inline constexpr Text kConcurrency{"Concurrency", "并发"};
inline constexpr Text kUserRate{"tok/s per user", "单用户 tok/s"};
inline constexpr Text kDeviceRate{"tok/s per device", "每设备 tok/s"};
inline constexpr Text kSystemRate{"tok/s, whole system", "系统 tok/s"};
inline constexpr Text kShareBelow{"share of requests (%)", "请求占比 (%)"};
inline constexpr Text kShareOfGaps{"share (%)", "占比 (%)"};
inline constexpr Text kMilliseconds{"ms", "ms"};
inline constexpr Text kLatencySeconds{"seconds", "秒"};
inline constexpr Text kSeconds{"seconds", "秒"};
inline constexpr Text kMinutes{"minutes", "分钟"};
inline constexpr Text kPercent{"%", "%"};

inline constexpr Text kF1{"Output tokens per second per user over concurrency",
                          "单用户输出吞吐随并发的变化"};
inline constexpr Text kF1Caption{"Mean over requests; the band, where drawn, is p25 to p75.",
                                 "各请求的均值；色带（如有）为 p25 至 p75。"};
inline constexpr Text kF2{"Speed-up over the baseline", "相对基线的加速比"};
inline constexpr Text kF2Caption{
    "Bars stand on 1.0; dashed lines mark 1 and the threshold of {threshold} "
    "%; whiskers are 95 % intervals where there are records.",
    "柱从 1.0 起；虚线为 1 与 {threshold} % 阈值；有请求级记录时须线为 95 % "
    "置信区间。"};
inline constexpr Text kSpeedup{"speed-up", "加速比"};
inline constexpr Text kFaster{"faster", "更快"};
inline constexpr Text kSlower{"slower", "更慢"};
inline constexpr Text kF3{"Pareto front: speed for one user against throughput",
                          "帕累托前沿：单用户速度与吞吐"};
inline constexpr Text kF3Caption{
    "Points are labelled with the concurrency; up and to the right is better. "
    "The grey staircase is the front.",
    "点旁标注并发；越靠右上越好。灰色阶梯为前沿。"};
inline constexpr Text kFront{"front", "前沿"};
inline constexpr Text kF4{"Distribution of the time to first token", "首 Token 时延分布"};
inline constexpr Text kF4Caption{"Drawn through minimum, percentiles and maximum.",
                                 "曲线经过最小值、各分位数与最大值。"};
inline constexpr Text kF5{"Distributions of inter-token latency and of gaps between chunks",
                          "Token 间时延与数据块间隔的分布"};
inline constexpr Text kF5Caption{
    "Inter-token latency is one value per request; gaps between chunks are pooled "
    "over all requests and count waiting, not tokens.",
    "Token 间时延每个请求一个值；数据块间隔汇总所有请求，反映等待而非 token。"};
inline constexpr Text kItlPanel{"ITL, {place}", "ITL，{place}"};
inline constexpr Text kIclPanel{"Chunk gaps, {place}", "数据块间隔，{place}"};
inline constexpr Text kF6{"Utilisation over time", "利用率随时间的变化"};
inline constexpr Text kF6Caption{
    "Grey stretches are the measured windows of the cells; gaps in a line are "
    "missing samples.",
    "灰色区段为各单元的测量窗口；线条中断处为缺失采样。"};
inline constexpr Text kBusy{"devices busy, mean", "设备忙碌率均值"};
inline constexpr Text kBusySpread{"least to most busy device", "最闲至最忙设备"};
inline constexpr Text kCpu{"CPU", "CPU"};
inline constexpr Text kDeviceMemory{"device memory, mean (right axis)", "设备内存均值（右轴）"};
inline constexpr Text kGigabytes{"GB per device", "每设备 GB"};
inline constexpr Text kF7{"Time to first token over the offered rate",
                          "首 Token 时延随请求速率的变化"};
inline constexpr Text kF7Caption{
    "Open loop. Dashed vertical line: the highest offered rate of which {system} still completed "
    "{share} %; beyond it requests pile up.",
    "开环。竖直虚线：{system} 仍能完成 {share} % 请求的最高请求速率；超过后请求堆积。"};
inline constexpr Text kRateAxis{"requests per second, offered", "请求速率（每秒请求数）"};
inline constexpr Text kHalf{"{system}, p50", "{system}，p50"};
inline constexpr Text kTail{"{system}, p99", "{system}，p99"};
inline constexpr Text kF8{"Acceptance of drafts by position", "按位置的草稿接受率"};
inline constexpr Text kF8Caption{
    "Dots are the published reference rates of DSpark (k = 7) with their tolerance "
    "of 0.03.",
    "圆点为 DSpark（k = 7）公开的参考接受率，容差 0.03。"};
inline constexpr Text kPosition{"draft position", "草稿位置"};
inline constexpr Text kRate{"accepted / rounds", "接受数 / 轮数"};
inline constexpr Text kGolden{"published reference", "公开参考值"};
inline constexpr Text kF9{"Requests over time", "请求时间线"};
inline constexpr Text kF9Caption{
    "The first {count} requests of {place}: waiting for the first token, then "
    "decoding. Steps of equal width show requests in lock-step.",
    "{place} 的前 {count} 个请求：等待首 token，然后解码。等宽的台阶说明请求步调一致。"};
inline constexpr Text kRequest{"request", "请求"};
inline constexpr Text kQueued{"queued at the client", "客户端排队"};
inline constexpr Text kPrefill{"to the first token", "至首 token"};
inline constexpr Text kDecode{"decoding", "解码"};
inline constexpr Text kF10{"Output tokens per second over time", "输出吞吐随时间的变化"};
inline constexpr Text kF10Caption{
    "Tokens of each request spread evenly over its decoding; grey line: requests in "
    "flight (right axis). Shaded: the steady window, from the first to the last moment with at "
    "least {share} % of the highest number in flight; none if that is shorter than {count} mean "
    "latencies.",
    "每个请求的 token "
    "在其解码期间均匀分布；灰线为在途请求数（右轴）。阴影为稳态窗口：在途请求数首次至末次达到"
    "峰值 {share} % 之间；短于 {count} 个平均时延时不标出。"};
inline constexpr Text kTokensPerSecond{"tok/s", "tok/s"};
inline constexpr Text kInFlight{"requests in flight", "在途请求数"};
inline constexpr Text kF11{"Parts of the mean latency", "平均时延的构成"};
inline constexpr Text kF11Caption{"Left bar of a pair: {baseline}; right bar: {treatment}.",
                                  "每对柱左为 {baseline}，右为 {treatment}。"};
inline constexpr Text kF12{"Repetitions", "重复测试"};
inline constexpr Text kF12Caption{"Mean of the repetitions with one standard deviation.",
                                  "重复测试的均值与一个标准差。"};
inline constexpr Text kF13{"Time to first token against prompt length", "首 Token 时延与输入长度"};
inline constexpr Text kF13Caption{"One point per request.", "每个请求一个点。"};
inline constexpr Text kPromptTokens{"prompt tokens", "输入 token 数"};
inline constexpr Text kF14{"Accuracy with 95 % intervals", "精度与 95 % 置信区间"};
inline constexpr Text kF14Caption{"Scores in percent.", "得分（百分比）。"};
inline constexpr Text kScore{"score (%)", "得分 (%)"};

}  // namespace fulgur::bench::figure
