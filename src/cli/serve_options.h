// What `fulgur serve` was asked for, as typed options of the parts it starts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/machine.h"
#include "cli/flag_parser.h"
#include "cli/flag_values.h"
#include "cli/speculative_config.h"
#include "engine/model_engine.h"
#include "model/generation_config.h"
#include "model/weight_loader.h"
#include "server/server_options.h"
#include "text/chat_encoding.h"

namespace fulgur::cli {

struct ServeOptions {
  std::string model;      // the checkpoint folder
  std::string tokenizer;  // folder or file; empty: with --skip-tokenizer-init
  std::string script;     // answers to replay instead of running the model

  bool dummy_weights = false;
  model::LoadStrategy load_strategy = model::LoadStrategy::kLazy;
  int load_threads = 1;

  // Complete but for what the checkpoint decides: max_model_len and the end-of-sequence tokens.
  engine::ModelEngineOptions engine;
  SpeculativeConfig speculation;
  std::optional<int64_t> max_model_len;  // none: the model's; -1: the longest that fits

  std::string generation_config;  // "auto", "vllm" or a folder
  model::GenerationConfig generation_overrides;
  std::optional<text::EffortProfile> effort_profile;  // none: read the checkpoint

  server::ServerOptions server;
  absl::Duration shutdown_timeout;
  std::string log_level;
};

// Environment variables by name; only those of ServeEnvironment() matter.
using Environment = std::map<std::string, std::string>;

// Checks what can be checked without looking at files. Errors are one sentence with the flag.
absl::StatusOr<ServeOptions> BuildServeOptions(const ParsedCommand& command,
                                               const Environment& environment,
                                               const base::Machine& machine);

// One sentence per flag that asks for what serving refuses; empty: nothing.
std::vector<std::string> RefusedFlags(const FlagValues& values);

}  // namespace fulgur::cli
