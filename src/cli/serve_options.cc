#include "cli/serve_options.h"

#include <utility>

#include "base/status_macros.h"
#include "cli/json_flags.h"
#include "cli/words.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

absl::Status Mistake(const std::string& sentence) { return absl::InvalidArgumentError(sentence); }

// MODEL, or --model; a replayed script can do with a tokenizer alone.
absl::StatusOr<std::string> ModelOf(const ParsedCommand& command) {
  const auto& words = command.positionals;
  const std::string flag = command.values.String("model");
  if (words.size() > 1) {
    return Mistake(fmt::format("unexpected argument '{}': there is one MODEL, and it is '{}'",
                               words[1], words[0]));
  }
  if (!words.empty() && !flag.empty() && words[0] != flag) {
    return Mistake(fmt::format("two models are given, {} and --model {}", words[0], flag));
  }
  if (!words.empty() && !words[0].empty()) return words[0];
  if (!flag.empty()) return flag;
  const std::string tokenizer = command.values.String("tokenizer");
  if (command.values.Given("scripted-output") && !tokenizer.empty()) return tokenizer;
  const bool swallowed = command.values.Given("served-model-name");
  return Mistake(
      fmt::format("No model specified! Write the checkpoint folder as the first argument{}",
                  swallowed ? "; --served-model-name takes every word up to the next flag" : ""));
}

absl::Status CheckParser(std::string_view kind, const std::string& name) {
  if (name.empty() || name == "deepseek_v4") return absl::OkStatus();
  return Mistake(fmt::format("invalid {} parser: {} (chose from {{ deepseek_v4 }})", kind, name));
}

absl::Status CheckCombinations(const FlagValues& values) {
  RETURN_IF_ERROR(CheckParser("tool call", values.String("tool-call-parser")));
  RETURN_IF_ERROR(CheckParser("reasoning", values.String("reasoning-parser")));
  if (values.Bool("enable-auto-tool-choice") && values.String("tool-call-parser").empty()) {
    return Mistake("--enable-auto-tool-choice requires --tool-call-parser");
  }
  if (values.Bool("enable-log-outputs") && !values.Bool("enable-log-requests")) {
    return Mistake("--enable-log-outputs requires --enable-log-requests");
  }
  if (values.Bool("data-parallel-hybrid-lb") && values.Bool("data-parallel-external-lb")) {
    return Mistake(
        "--data-parallel-hybrid-lb and --data-parallel-external-lb exclude each other; drop one");
  }
  if (values.String("fingerprint-mode") == "custom" && values.String("fingerprint-value").empty()) {
    return Mistake("--fingerprint-mode custom requires --fingerprint-value");
  }
  if (values.String("ssl-certfile").empty() != values.String("ssl-keyfile").empty()) {
    return Mistake("--ssl-certfile and --ssl-keyfile go together; give both or none");
  }
  return CheckJsonFlags(values);
}

absl::Status CheckBatch(const FlagValues& values) {
  const int64_t tokens = values.Int("max-num-batched-tokens");
  if (tokens < values.Int("max-num-seqs")) {
    return Mistake(fmt::format(
        "--max-num-batched-tokens {} is below --max-num-seqs {}: every running request needs one "
        "token of a step; raise the first or lower the second",
        tokens, values.Int("max-num-seqs")));
  }
  const int64_t length = values.Int("max-model-len");
  if (!values.Bool("enable-chunked-prefill") && tokens < length) {
    return Mistake(fmt::format(
        "--max-num-batched-tokens {} is below --max-model-len {}, which needs chunked prefill: "
        "raise it, or drop --no-enable-chunked-prefill",
        tokens, length));
  }
  return absl::OkStatus();
}

void SetLoading(const FlagValues& values, ServeOptions& options) {
  options.dummy_weights = values.String("load-format") == "dummy";
  const std::string strategy = values.String("safetensors-load-strategy");
  if (strategy == "eager") options.load_strategy = model::LoadStrategy::kEager;
  if (strategy == "prefetch") options.load_strategy = model::LoadStrategy::kPrefetch;
  const auto extra = values.Json("model-loader-extra-config");
  options.load_threads = options.engine.num_threads;
  if (extra.is_object() && extra.value("enable_multithread_load", false)) {
    options.load_threads = extra.value("num_threads", 8);  // vLLM's default
  }
}

void SetModel(const FlagValues& values, int usable_cores, ServeOptions& options) {
  if (!values.Bool("skip-tokenizer-init")) {
    options.tokenizer = values.String("tokenizer");
    if (options.tokenizer.empty()) options.tokenizer = options.model;
  }
  // The format is the only one; the flag exists for the command lines that name it.
  values.String("tokenizer-mode");
  options.script = values.String("scripted-output");
  engine::ModelEngineOptions& engine = options.engine;
  if (values.String("precision") == "reference") engine.precision = model::Precision::kReference;
  if (values.String("kernels") == "scalar") engine.ops = kernels::OpChoice::kScalar;
  if (values.String("kernels") == "avx2") engine.ops = kernels::OpChoice::kAvx2;
  if (values.String("kernels") == "avx512") engine.ops = kernels::OpChoice::kAvx512;
  engine.num_threads =
      values.Given("threads") ? static_cast<int>(values.Int("threads")) : usable_cores;
  if (values.Given("max-model-len")) options.max_model_len = values.Int("max-model-len");
  if (values.Given("seed")) engine.seed = static_cast<uint64_t>(values.Int("seed"));
  SetLoading(values, options);
}

void SetEngine(const FlagValues& values, ServeOptions& options) {
  engine::MemoryRequest& memory = options.engine.memory;
  memory.memory_utilization = values.Float("gpu-memory-utilization");
  if (values.Has("kv-cache-memory-bytes")) {
    memory.kv_cache_bytes = values.Int("kv-cache-memory-bytes");
  }
  if (values.Has("num-gpu-blocks-override")) {
    memory.num_pages = values.Int("num-gpu-blocks-override");
  }
  memory.max_num_seqs = values.Int("max-num-seqs");

  sched::SchedulerLimits& limits = options.engine.limits;
  limits.max_num_seqs = values.Int("max-num-seqs");
  limits.max_num_batched_tokens = values.Int("max-num-batched-tokens");
  limits.chunked_prefill = values.Bool("enable-chunked-prefill");
  limits.long_prefill_token_threshold = values.Int("long-prefill-token-threshold");
  limits.max_num_partial_prefills = values.Int("max-num-partial-prefills");
  limits.watermark = values.Float("watermark");
  if (values.String("scheduling-policy") == "priority") limits.policy = sched::Policy::kPriority;
}

absl::Status SetGeneration(const FlagValues& values, ServeOptions& options) {
  options.generation_config = values.String("generation-config");
  const auto overrides = values.Json("override-generation-config");
  if (overrides.is_null()) return absl::OkStatus();
  auto parsed = model::ParseGenerationConfig(overrides.dump());
  if (!parsed.ok()) {
    return Mistake(fmt::format("--override-generation-config: {}", Message(parsed.status())));
  }
  options.generation_overrides = *std::move(parsed);
  return absl::OkStatus();
}

void SetListen(const FlagValues& values, server::ListenOptions& listen) {
  listen.host = values.String("host");
  listen.port = static_cast<int>(values.Int("port"));
  listen.uds = values.String("uds");
  listen.ssl_keyfile = values.String("ssl-keyfile");
  listen.ssl_certfile = values.String("ssl-certfile");
  listen.ssl_ca_certs = values.String("ssl-ca-certs");
  listen.ssl_cert_reqs = static_cast<int>(values.Int("ssl-cert-reqs"));
  listen.ssl_ciphers = values.String("ssl-ciphers");
  listen.max_header_bytes = values.Int("h11-max-incomplete-event-size");
  listen.max_header_count = values.Int("h11-max-header-count");
  listen.max_body_bytes = values.Int("max-body-bytes");
  listen.max_connections = values.Int("max-connections");
}

void SetCors(const FlagValues& values, server::CorsOptions& cors) {
  cors.allowed_origins = values.List("allowed-origins");
  cors.allowed_methods = values.List("allowed-methods");
  cors.allowed_headers = values.List("allowed-headers");
  cors.allow_credentials = values.Bool("allow-credentials");
}

server::ReasoningField ReasoningFieldOf(const std::string& word) {
  if (word == "reasoning") return server::ReasoningField::kReasoning;
  if (word == "reasoning_content") return server::ReasoningField::kReasoningContent;
  return server::ReasoningField::kBoth;
}

server::FingerprintMode FingerprintOf(const std::string& word) {
  if (word == "hash") return server::FingerprintMode::kHash;
  if (word == "custom") return server::FingerprintMode::kCustom;
  if (word == "none") return server::FingerprintMode::kNone;
  return server::FingerprintMode::kFull;
}

absl::Status SetEffort(const FlagValues& values, ServeOptions& options) {
  const std::string profile = values.String("dsv4-reasoning-effort-profile");
  if (profile == "preview") options.effort_profile = text::EffortProfile::kPreview;
  if (profile == "official") options.effort_profile = text::EffortProfile::kOfficial;
  const auto map = values.Json("reasoning-effort-map");
  if (map.is_null()) return absl::OkStatus();
  for (const auto& item : map.items()) {
    if (!item.value().is_string()) {
      return Mistake(
          fmt::format("--reasoning-effort-map: {} must be a text such as \"high\"", item.key()));
    }
    options.server.chat.effort_map[item.key()] = item.value().get<std::string>();
  }
  return absl::OkStatus();
}

server::ToolStrictness ToolStrictnessOf(const std::string& level) {
  if (level == "function") return server::ToolStrictness::kFunction;
  if (level == "parameter") return server::ToolStrictness::kParameter;
  return server::ToolStrictness::kAuto;
}

void SetChat(const FlagValues& values, server::ChatOptions& chat) {
  chat.tool_parser = !values.String("tool-call-parser").empty();
  chat.auto_tool_choice = values.Bool("enable-auto-tool-choice");
  chat.reasoning_parser = !values.String("reasoning-parser").empty();
  chat.tool_strictness = ToolStrictnessOf(values.String("tool-strict-level"));
  chat.exclude_tools_when_none = values.Bool("exclude-tools-when-tool-choice-none");
  chat.trust_request_chat_template = values.Bool("trust-request-chat-template");
  chat.special_tokens_in_text = values.Bool("special-tokens-in-text");
  const auto kwargs = values.Json("default-chat-template-kwargs");
  if (!kwargs.is_null()) chat.default_template_kwargs = kwargs.dump();
  chat.empty_reasoning_as_chat = values.String("dsv4-empty-reasoning") == "chat";
  chat.reasoning_field = ReasoningFieldOf(values.String("reasoning-field"));
  chat.response_role = values.String("response-role");
}

void SetLogging(const FlagValues& values, ServeOptions& options) {
  options.log_level = values.String("uvicorn-log-level");
  server::ServerOptions& server = options.server;
  server.access_log = !values.Bool("disable-uvicorn-access-log");
  const std::string quiet = values.String("disable-access-log-for-endpoints");
  for (std::string_view path : SplitWords(quiet, ',')) {
    server.access_log_excluded_paths.emplace_back(path);
  }
  server.log_requests = values.Bool("enable-log-requests");
  server.log_outputs = values.Bool("enable-log-outputs");
  if (values.Has("max-log-len")) server.max_log_len = values.Int("max-log-len");
}

std::string Lookup(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

void SetAnswers(const FlagValues& values, server::ServerOptions& server) {
  server.max_logprobs = values.Int("max-logprobs");
  server.return_tokens_as_token_ids = values.Bool("return-tokens-as-token-ids");
  server.enable_prompt_tokens_details = values.Bool("enable-prompt-tokens-details");
  server.enable_force_include_usage = values.Bool("enable-force-include-usage");
  server.stream_interval = values.Int("stream-interval");
  server.sse_keep_alive_interval = absl::Seconds(values.Float("sse-keep-alive-interval"));
  server.fingerprint_mode = FingerprintOf(values.String("fingerprint-mode"));
  server.fingerprint_value = values.String("fingerprint-value");
}

void SetServer(const FlagValues& values, const Environment& environment, ServeOptions& options) {
  server::ServerOptions& server = options.server;
  SetListen(values, server.listen);
  SetCors(values, server.cors);
  SetChat(values, server.chat);
  SetAnswers(values, server);
  SetLogging(values, options);

  server.served_model_names = values.List("served-model-name");
  if (server.served_model_names.empty()) server.served_model_names = {options.model};
  server.api_keys = values.List("api-key");
  const std::string key = Lookup(environment, "VLLM_API_KEY");
  if (server.api_keys.empty() && !key.empty()) server.api_keys = {key};
  server.root_path = values.String("root-path");
  server.enable_server_load_tracking = values.Bool("enable-server-load-tracking");
  server.enable_request_id_headers = values.Bool("enable-request-id-headers");
  server.enable_tokenizer_info_endpoint = values.Bool("enable-tokenizer-info-endpoint");
  server.dev_mode = Lookup(environment, "VLLM_SERVER_DEV_MODE") == "1";
  server.max_num_queued_reqs = values.Int("max-num-queued-reqs");
  server.max_num_queued_tokens = values.Int("max-num-queued-tokens");
  server.hang_timeout = absl::Seconds(values.Float("hang-timeout"));
  server.num_worker_threads = static_cast<int>(values.Int("renderer-num-workers"));
  options.shutdown_timeout = absl::Seconds(values.Float("shutdown-timeout"));
}

}  // namespace

absl::StatusOr<ServeOptions> BuildServeOptions(const ParsedCommand& command,
                                               const Environment& environment,
                                               const base::Machine& machine) {
  const FlagValues& values = command.values;
  ServeOptions options;
  ASSIGN_OR_RETURN(options.model, ModelOf(command));
  RETURN_IF_ERROR(CheckCombinations(values));
  RETURN_IF_ERROR(CheckBatch(values));
  SetModel(values, machine.usable_cores, options);
  SetEngine(values, options);
  ASSIGN_OR_RETURN(options.speculation, ReadSpeculativeConfig(values));
  RETURN_IF_ERROR(SetGeneration(values, options));
  RETURN_IF_ERROR(SetEffort(values, options));
  SetServer(values, environment, options);
  return options;
}

std::vector<std::string> RefusedFlags(const FlagValues& values) {
  std::vector<std::string> sentences;
  for (const auto& [name, value] : values.given()) {
    const FlagSpec& flag = values.table().Get(name);
    if (flag.effect != FlagEffect::kRefused || !values.AsksFor(flag)) continue;
    const std::string shown = flag.type == FlagType::kBool ? "" : fmt::format(" {}", value.text);
    sentences.push_back(fmt::format("--{}{}: {}", name, shown, flag.reason.en));
  }
  return sentences;
}

}  // namespace fulgur::cli
