#include "cli/serve_drafter.h"

#include <utility>

#include "base/status_macros.h"
#include "fmt/format.h"
#include "model/drafter_source.h"

namespace fulgur::cli {
namespace {

// With random weights there are no tensors to look at: the configuration says what there would be.
absl::StatusOr<model::ModelConfig> AssumeDrafter(const SpeculativeConfig& asked,
                                                 model::ModelConfig config) {
  using model::DrafterKind;
  const bool dspark = config.dspark.block_size > 0;
  const DrafterKind kind = dspark ? DrafterKind::kDspark : DrafterKind::kMtp;
  if (!dspark && config.num_draft_blocks == 0) {
    return absl::InvalidArgumentError(
        "--speculative-config with --load-format dummy: config.json has neither "
        "\"dspark_block_size\" nor \"num_nextn_predict_layers\", so there is no drafter to make "
        "up");
  }
  if (asked.method && *asked.method != kind) {
    return absl::InvalidArgumentError(
        fmt::format("--speculative-config: config.json describes {}; use method \"{}\"",
                    dspark ? "DSpark stages" : "an MTP block", dspark ? "dspark" : "mtp"));
  }
  config.drafter = kind;
  config.num_draft_blocks = dspark ? static_cast<int64_t>(config.dspark.target_layers.size()) : 1;
  return config;
}

}  // namespace

const std::string& DrafterFolder(const ServeOptions& options) {
  return options.speculation.model.empty() ? options.model : options.speculation.model;
}

absl::StatusOr<ModelWithDrafter> AddDrafter(ServeOptions& options, model::ModelConfig config) {
  SpeculativeConfig& asked = options.speculation;
  ModelWithDrafter result{.config = std::move(config), .drafter = std::nullopt};
  if (!asked.enabled) return result;
  if (options.dummy_weights) {
    ASSIGN_OR_RETURN(result.config, AssumeDrafter(asked, std::move(result.config)));
  } else {
    ASSIGN_OR_RETURN(result.drafter, model::Checkpoint::Open(DrafterFolder(options)));
    ASSIGN_OR_RETURN(result.config,
                     model::UseDrafter(std::move(result.config), *result.drafter, asked.method));
  }
  options.engine.speculation =
      ResolveSpeculation(asked, result.config.drafter, model::TrainedDrafts(result.config));
  options.engine.max_drafts = options.engine.speculation.num_drafts;
  return result;
}

}  // namespace fulgur::cli
