// Sentences of findings and advice. None says why something happened: a comparison shows that two
// systems differ, not what made them differ.
#pragma once

#include "bench/report/text.h"

namespace fulgur::bench::finding {

inline constexpr Text kBestCell{
    "The largest gain is {speedup} in {place} ({baseline} to {treatment} "
    "tok/s per user).",
    "最大增益为 {place} 的 {speedup}（单用户 tok/s 由 {baseline} 到 "
    "{treatment}）。"};
inline constexpr Text kWorstCell{"The smallest ratio is {speedup} in {place}.",
                                 "最小比值为 {place} 的 {speedup}。"};
inline constexpr Text kRegressions{"{count} of {all} cells are slower: {list}.",
                                   "{all} 个单元中有 {count} 个变慢：{list}。"};
inline constexpr Text kCrossover{
    "{scenario}: the speed-up falls with concurrency and passes 1 near C = {concurrency} "
    "(interpolated between C{low} and C{high}).",
    "{scenario}：加速比随并发下降，在 C ≈ {concurrency} 处越过 1（在 C{low} 与 C{high} "
    "之间插值）。"};
inline constexpr Text kWeighted{
    "In {place} the mean per user overstates the gain: {arithmetic} against {weighted} by tokens.",
    "{place} 中单用户平均值高估了增益：{arithmetic}，按 token 加权为 {weighted}。"};
inline constexpr Text kConfounders{
    "The comparison also changes {list}. The difference belongs to everything that changed "
    "together; "
    "the share of each was not isolated.",
    "本次比较同时还改变了：{list}。差异来自所有同时改变的因素，各自的贡献没有被分离。"};
inline constexpr Text kUtilisation{
    "Devices were busy {before} % of the time with {baseline}, {after} % with {treatment}. This "
    "alone "
    "does not say whether a step yields more.",
    "设备忙碌率：{baseline} 为 {before} %，{treatment} 为 {after} "
    "%。仅凭这一点不能说明单步产出是否更多。"};
inline constexpr Text kTokensPerBusy{
    "Tokens per busy device second change by {low} to {high} over {count} cells; this says whether "
    "a "
    "busy second yields more.",
    "在 {count} 个单元上，每设备忙碌秒 token 数变化 {low} 至 "
    "{high}；该指标说明忙碌的一秒产出是否更多。"};
inline constexpr Text kErrors{"{system}, {place}: {count} requests failed ({codes}).",
                              "{system}，{place}：{count} 个请求失败（{codes}）。"};
inline constexpr Text kSmallSample{
    "p99 rests on fewer than 100 requests in {count} cells (least: {least} in {place}).",
    "有 {count} 个单元的 p99 依据的请求少于 100 个（最少：{place}，{least} 个）。"};
inline constexpr Text kNoVariance{
    "{count} verdicts rest on the threshold alone: there are no request records or repetitions.",
    "{count} 个判定仅依据阈值：没有请求级记录或重复测试。"};
inline constexpr Text kLint{"{system}, {place}: {text}", "{system}，{place}：{text}"};
inline constexpr Text kInvalid{"{system}, {place} is not valid: {reasons}",
                               "{system}，{place} 无效：{reasons}"};
inline constexpr Text kRepetition{
    "Output repeats in {place} (share of repeated 8-grams {share}); its acceptance is not "
    "representative of natural text.",
    "{place} 的输出有重复（8-gram 重复率 {share}），其接受率不代表自然文本。"};
inline constexpr Text kReferenceRange{
    "{treatment} reaches {low} to {high} of {system} over all {count} "
    "cells that both have.",
    "在两者都有的全部 {count} 个单元上，{treatment} 为 {system} 的 {low} "
    "至 {high}。"};
inline constexpr Text kItlRange{
    "Mean inter-token latency changes by {low} to {high} over the {count} cells where both have "
    "it.",
    "在两者都有数据的 {count} 个单元上，平均 token 间时延变化 {low} 至 {high}。"};
inline constexpr Text kAccuracyDrop{
    "{dataset}: accuracy differs by {points} points, and the intervals do not overlap.",
    "{dataset}：精度相差 {points} 个百分点，且置信区间不重叠。"};

inline constexpr Text kOnEverywhere{
    "In every tested cell with data {treatment} is not slower than {baseline}: within what was "
    "tested, "
    "nothing speaks against it.",
    "在所有有数据的测试单元中，{treatment} 都不慢于 "
    "{baseline}：在测试范围内没有反对使用它的结果。"};
inline constexpr Text kOnUpTo{
    "Over all scenarios {treatment} is not slower up to C = {concurrency}; at higher concurrency "
    "at least "
    "one scenario is slower. On for C up to {concurrency}, off above, is what these cells support.",
    "在所有场景中，C 不超过 {concurrency} 时 {treatment} 不变慢；更高并发下至少有一个场景变慢。"
    "这些单元支持的用法是：C 不超过 {concurrency} 时启用，超过时关闭。"};
inline constexpr Text kOnNowhere{
    "Already at the lowest tested concurrency at least one scenario is slower with {treatment}.",
    "在最低的测试并发下，{treatment} 已经至少有一个场景变慢。"};
inline constexpr Text kNotMonotone{
    "The verdicts do not change evenly with concurrency, so no single limit can be given.",
    "判定结果并非随并发单调变化，因此无法给出单一界限。"};
inline constexpr Text kScenarioLimit{"{scenario} alone: not slower up to C = {concurrency}.",
                                     "仅 {scenario}：C 不超过 {concurrency} 时不变慢。"};
inline constexpr Text kAttribution{
    "What the table supports is a comparison of two deployments, not the effect of one change "
    "alone: "
    "repeat the baseline with {list} equal to isolate it.",
    "表中数据支持的是两套部署的比较，而非单一改动的效果：要分离该效果，请在 {list} "
    "相同的条件下重测基线。"};
inline constexpr Text kBestThroughput{
    "For throughput the point with the most tokens per second per device is {system}, {place} "
    "({rate} "
    "tok/s per device at {user} tok/s per user).",
    "以吞吐为目标时，每设备 tok/s 最高的点是 {system}，{place}（每设备 {rate} tok/s，单用户 {user} "
    "tok/s）。"};
inline constexpr Text kNoAdvice{"No cell has data of both systems, so nothing can be advised.",
                                "没有任何单元同时具有两个系统的数据，因此无法给出建议。"};

}  // namespace fulgur::bench::finding
