// Which drafter a checkpoint carries, and whether a model can use it.
//
// The tensors decide, never num_nextn_predict_layers: published configs of checkpoints with three
// DSpark stages say 1 or 3.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "model/checkpoint.h"
#include "model/config.h"

namespace fulgur::model {

struct FoundDrafter {
  DrafterKind kind = DrafterKind::kNone;
  int64_t blocks = 0;  // "mtp.<i>.", without gaps
};

// Looks at names only. Refuses what no drafter here can be: DSpark stages without their fields in
// config.json or of another number than these say, several MTP blocks, compressed draft blocks.
absl::StatusOr<FoundDrafter> FindDrafter(const Checkpoint& checkpoint);

// The configuration of `main` together with the drafter of `source`: the checkpoint of `main`
// itself or a folder of its own, which needs the same dimensions but only tensors "mtp.*". Errors
// say what the folder carries where that is not `wanted`, or which field differs.
absl::StatusOr<ModelConfig> UseDrafter(ModelConfig main, const Checkpoint& source,
                                       std::optional<DrafterKind> wanted = std::nullopt);

// How many drafts the drafter of a configuration was trained for: all positions of a DSpark block,
// one for MTP. A DSpark block is never wider.
int64_t TrainedDrafts(const ModelConfig& config);

}  // namespace fulgur::model
