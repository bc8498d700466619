// A request that passed all checks and is ready for the engine, whichever endpoint it came to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "grammar/compiled_grammar.h"
#include "grammar/output_format.h"
#include "server/generation_request.h"
#include "server/server_options.h"
#include "text/output_parser.h"
#include "text/tokenizer.h"

namespace fulgur::server {

// What the checks and the answer need to know of server and model.
struct ServingContext {
  const ServerOptions* options;
  const text::Tokenizer* tokenizer;  // null: token ids only
  grammar::FormatCompiler* formats;  // null: without a tokenizer
  std::vector<int32_t> eos_token_ids;
  int64_t max_model_len = 0;
  int64_t vocab_size = 0;
};

struct JobPrompt {
  std::vector<int32_t> tokens;
  std::string text;  // empty if the client sent ids and nothing asks for the text
};

// The call a client insists on (tool_choice "required" or a named function).
enum class ToolChoice { kNone, kAuto, kRequired, kNamed };

struct Job {
  GenerationRequest request;
  std::vector<JobPrompt> prompts;  // one for chat; each gets `request.n` choices

  // Chat only: how the output is taken apart. Absent: raw text.
  std::optional<text::OutputParserOptions> parser;
  ToolChoice tool_choice = ToolChoice::kNone;
  // Tokens that open a block of tool calls. The answer goes on with them as soon as the reasoning
  // is over (the prompt itself holds them if there is none).
  std::vector<int32_t> forced_call_tokens;
  int32_t think_close_token = -1;  // ends the reasoning when its budget is used up
  bool include_reasoning = true;
  // The format of the answer; behind the token that ends the reasoning, if there is any.
  std::shared_ptr<const grammar::CompiledGrammar> format;
  std::optional<int32_t> format_starts_behind;
  std::vector<int32_t> format_begun;  // what of it the prompt holds already
  std::string echo_text;              // put before the answer

  // Completions only: the prompt is wanted, no output (max_tokens 0 with echo).
  bool prompt_only = false;

  std::string script_key;  // see engine::Request

  int64_t num_choices() const { return static_cast<int64_t>(prompts.size()) * request.n; }
};

// The last checks, common to all endpoints: lengths, then sampling values. Fills in the request's
// sampling parameters. `limit`: see PromptLength.
absl::Status FinishJob(const ServingContext& context, size_t limit, Job* job);

// 404 unless `name` is empty or a served name.
absl::Status CheckModelName(const ServerOptions& options, std::string_view name);

}  // namespace fulgur::server
