// Comparisons for tests: the published one, and one that has everything a comparison can hold.
#pragma once

#include "bench/report/report_input.h"
#include "bench/results/comparison.h"

namespace fulgur::bench {

// The twelve published cells of DeepSeek-V4-Flash with and without DSpark, with the verdicts that
// follow from a threshold of 5 %. From testdata/published_results.json.
Comparison PublishedComparison();

// Two systems, two scenarios, three concurrencies with distributions, failures, requests,
// utilisation, acceptance, accuracy, findings of checks and differences of environment.
Comparison FullComparison();
std::vector<CellRequests> FullRequests();
std::vector<AccuracyScore> FullAccuracy();

}  // namespace fulgur::bench
