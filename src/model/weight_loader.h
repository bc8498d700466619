// Reads a checkpoint into packed weights.
//
// Tensors are packed straight from the mapped files into their final place, in file order, by all
// threads; pages of the files are given back as soon as they are packed. So loading runs at the
// speed of the disk or of the packing, and needs little more memory than the weights.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "model/checkpoint.h"
#include "model/config.h"
#include "model/inventory.h"
#include "model/precision.h"
#include "model/weights.h"

namespace fulgur::model {

// When the bytes of a file are read.
enum class LoadStrategy {
  kLazy,      // when they are packed, a little ahead of the packing
  kEager,     // each file is read whole, in large pieces, before its first tensor is packed
  kPrefetch,  // all files are read in the background, as fast as the disk gives them
};

struct LoadOptions {
  Precision precision = Precision::kNative;
  LoadStrategy strategy = LoadStrategy::kLazy;
  int num_threads = 1;
  // Also loads the drafter of this checkpoint, which may be the one that is loaded.
  const Checkpoint* drafter = nullptr;
  // Called with bytes read so far and in all; from any thread, one call at a time.
  std::function<void(int64_t, int64_t)> progress = nullptr;
};

// What a checkpoint holds and what its weights will take.
struct CheckpointSummary {
  TensorTotals main;
  DrafterKind draft_kind = DrafterKind::kNone;
  int64_t draft_blocks = 0;
  TensorTotals drafts;
  int64_t weight_bytes = 0;   // memory of the packed main model
  int64_t drafter_bytes = 0;  // and of the packed drafter, if it is loaded
};

// Checks that the checkpoint holds exactly the tensors that its config describes. Reads no data.
absl::StatusOr<CheckpointSummary> Summarize(const Checkpoint& checkpoint, Precision precision);

// The bytes that the drafter of a checkpoint takes in memory, after the same checks of its tensors.
absl::StatusOr<int64_t> DrafterBytes(const Checkpoint& checkpoint, Precision precision);

// Loads the main model, and the drafter that the options name. Native precision keeps the format of
// every linear (fp16 becomes fp32), except that the router and the hyper-connections become fp32;
// reference precision makes everything fp32. The checkpoints may be closed afterwards.
absl::StatusOr<Weights> LoadWeights(const Checkpoint& checkpoint, const LoadOptions& options);

}  // namespace fulgur::model
