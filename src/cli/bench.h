// `fulgur bench X`: the measuring half of the program. One subcommand is one file, bench_<x>.cc.
#pragma once

#include "cli/subcommands.h"

namespace fulgur::cli {

// Each takes the arguments behind its own name. Exit codes: 0; 1 for what failed at run time; 2 for
// a mistake in the command; 3 when a gate for CI is not passed; 4 when the result is there but not
// all of it.
int RunBenchRun(const Invocation& invocation);
int RunBenchProfile(const Invocation& invocation);  // the same with aiperf's flags and defaults
int RunBenchServe(const Invocation& invocation);    // the same with those of vLLM's client
int RunBenchImport(const Invocation& invocation);
int RunBenchLint(const Invocation& invocation);
int RunBenchAggregate(const Invocation& invocation);
int RunBenchReport(const Invocation& invocation);
int RunBenchTrial(const Invocation& invocation);
int RunBenchDemo(const Invocation& invocation);

inline constexpr int kExitGate = 3;
inline constexpr int kExitPartial = 4;

}  // namespace fulgur::cli
