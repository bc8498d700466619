// Everything a command line can say about the HTTP server. Names follow vLLM's flags.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "text/chat_encoding.h"

namespace fulgur::server {

struct ListenOptions {
  std::string host;  // empty: all addresses
  int port = 8000;   // 0: any free one
  std::string uds;   // path of a unix socket, instead of host and port
  std::string ssl_keyfile;
  std::string ssl_certfile;  // with it the server speaks TLS only
  std::string ssl_ca_certs;
  int ssl_cert_reqs = 0;  // 0 none, 1 optional, 2 required: client certificates
  std::string ssl_ciphers;
  int64_t max_header_bytes = 4 << 20;  // --h11-max-incomplete-event-size
  int64_t max_header_count = 256;      // --h11-max-header-count
  int64_t max_body_bytes = 256 << 20;
  int64_t max_connections = 16384;
  absl::Duration header_timeout = absl::Seconds(30);      // first byte to complete header
  absl::Duration body_timeout = absl::Seconds(60);        // longest pause inside a body
  absl::Duration keep_alive_timeout = absl::Minutes(10);  // an idle connection
  absl::Duration write_timeout = absl::Seconds(60);       // a reader that takes nothing
  int64_t max_unsent_bytes = 8 << 20;                     // per connection, beyond the socket's own
};

struct CorsOptions {
  std::vector<std::string> allowed_origins = {"*"};
  std::vector<std::string> allowed_methods = {"*"};
  std::vector<std::string> allowed_headers = {"*"};
  bool allow_credentials = false;
};

// Defaults for fields a request leaves out: --generation-config, --override-generation-config.
struct SamplingDefaults {
  float temperature = 1.0F;
  float top_p = 1.0F;
  int32_t top_k = 0;
  float min_p = 0.0F;
  float repetition_penalty = 1.0F;
  std::optional<int64_t> max_new_tokens;
};

enum class ReasoningField { kBoth, kReasoning, kReasoningContent };
enum class FingerprintMode { kFull, kHash, kCustom, kNone };

// How messages become a prompt and output becomes reasoning, content and calls.
// How closely tool calls are held while they are written: as a request asks, always in their form,
// or always to the schema of their tool too.
enum class ToolStrictness { kAuto, kFunction, kParameter };

struct ChatOptions {
  bool tool_parser = false;                                // --tool-call-parser deepseek_v4
  bool auto_tool_choice = false;                           // --enable-auto-tool-choice
  bool reasoning_parser = false;                           // --reasoning-parser deepseek_v4
  ToolStrictness tool_strictness = ToolStrictness::kAuto;  // --tool-strict-level
  bool exclude_tools_when_none = false;
  bool trust_request_chat_template = false;
  bool special_tokens_in_text = false;  // true: a role token typed by a user becomes the token
  std::string default_template_kwargs;  // JSON object or empty: --default-chat-template-kwargs
  std::map<std::string, std::string> effort_map;  // --reasoning-effort-map
  text::EffortProfile effort_profile = text::EffortProfile::kPreview;
  bool empty_reasoning_as_chat = false;  // --dsv4-empty-reasoning chat
  ReasoningField reasoning_field = ReasoningField::kBoth;
  std::string response_role = "assistant";
};

struct ServerOptions {
  ListenOptions listen;
  CorsOptions cors;
  SamplingDefaults sampling;
  ChatOptions chat;

  std::vector<std::string> served_model_names;  // at least one; the first is shown in answers
  std::string owned_by = "vllm";
  std::vector<std::string> api_keys;  // empty: open
  std::string root_path;              // prefix that a proxy leaves in the path

  int64_t max_logprobs = 20;  // -1: no limit
  int64_t max_stop_strings = 4;
  bool return_tokens_as_token_ids = false;
  bool enable_prompt_tokens_details = false;
  bool enable_force_include_usage = false;
  bool enable_server_load_tracking = false;
  bool enable_request_id_headers = false;
  bool enable_tokenizer_info_endpoint = false;
  bool dev_mode = false;        // /reset_prefix_cache and the like answer
  int64_t stream_interval = 1;  // tokens per chunk
  absl::Duration sse_keep_alive_interval = absl::ZeroDuration();  // 0: no comment lines
  int64_t max_num_queued_reqs = 0;    // 0: no limit; over it a request is refused with 503
  int64_t max_num_queued_tokens = 0;  // 0: no limit
  absl::Duration hang_timeout = absl::Seconds(120);  // /health fails after that long without a step

  FingerprintMode fingerprint_mode = FingerprintMode::kFull;
  std::string fingerprint_value;

  // Labels of the gauge vllm:cache_config_info.
  std::map<std::string, std::string> cache_config;

  bool log_requests = false;
  bool log_outputs = false;  // needs log_requests
  int64_t max_log_len = -1;  // characters of a prompt or answer in the log; -1: all
  bool access_log = true;
  std::vector<std::string> access_log_excluded_paths;

  int num_worker_threads = 4;  // parse, render and tokenise
};

}  // namespace fulgur::server
