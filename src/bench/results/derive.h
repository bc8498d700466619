// Metrics that follow from others, so that files of every tool can be compared on the same ones.
#pragma once

#include <vector>

#include "bench/results/result.h"

namespace fulgur::bench {

// Adds what is missing and can be computed: counts and sums of older files, the rates over
// benchmark_duration, the harmonic and token-weighted rate per user, mean concurrency, and from the
// requests the longest stall and the tokens per chunk. Never replaces a value that the file has.
void DeriveMetrics(Result& result);

// Distributions over the valid requests, for files that keep requests but no statistics of them.
void SummarizeRequests(Result& result);

// For files without a rate per user: 1000 / mean inter-token latency stands in for it, and the
// environment says so, since aiperf's mean of reciprocals is never below it.
void MarkHarmonicRate(Result& result);

}  // namespace fulgur::bench
