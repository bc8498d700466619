// The flag groups of `fulgur serve`, one file each; flag_table.h joins them.
#pragma once

#include "cli/flag_table.h"

namespace fulgur::cli {

FlagGroup ModelFlags();          // what is served and how it is computed
FlagGroup EngineFlags();         // memory, batching, scheduling
FlagGroup ServerFlags();         // addresses, security, logs
FlagGroup ChatFlags();           // prompts, tools, reasoning, answers
FlagGroup ParallelFlags();       // several workers, prefill/decode transfer
FlagGroup SpeculationFlags();    // draft models
FlagGroup AcceleratorFlags();    // graphs, compilation, kernels of accelerators
FlagGroup ObservabilityFlags();  // traces and metrics
FlagGroup AdapterFlags();        // LoRA, images, other models

}  // namespace fulgur::cli
