// The rules for deployments of DeepSeek-V4 with vLLM and vLLM-Ascend: what stops a start, what
// silently does something else, and what was seen to go wrong in operation.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deploy/finding.h"
#include "deploy/serve_command.h"

namespace fulgur::deploy {

// Rules for one command.
void CheckModel(const ServeCommand& command, Findings& findings);     // weights, loading, image
void CheckCache(const ServeCommand& command, Findings& findings);     // KV cache and scheduler
void CheckParallel(const ServeCommand& command, Findings& findings);  // ranks, environment
void CheckTransfer(const ServeCommand& command, Findings& findings);  // prefill and decode nodes

// Rules for the instances of one deployment.
void CheckTogether(const std::vector<ServeCommand>& commands, Findings& findings);

// What several rules ask.
struct Speculation {
  std::string method;            // empty: none
  std::optional<int64_t> depth;  // draft tokens
};
Speculation SpeculationOf(const ServeCommand& command);

inline constexpr std::string_view kProducer = "kv_producer";
inline constexpr std::string_view kConsumer = "kv_consumer";
std::string RoleOf(const ServeCommand& command);  // empty: prefill and decode in one

int64_t TensorParallel(const ServeCommand& command, int64_t if_unknown);
std::optional<int64_t> KnownSize(const ServeCommand& command, const std::string& flag);

// Whether other nodes can call a host: a name or an address, not "all interfaces".
bool IsCallable(std::string_view host);

// Adds findings about one command.
class Reporter {
 public:
  Reporter(const ServeCommand& command, Findings& findings)
      : command_(command), findings_(findings) {}

  void Error(const std::string& rule, int line, std::string why, std::string fix) {
    Add(Severity::kError, rule, line, std::move(why), std::move(fix));
  }
  void Warn(const std::string& rule, int line, std::string why, std::string fix) {
    Add(Severity::kWarning, rule, line, std::move(why), std::move(fix));
  }

 private:
  void Add(Severity severity, const std::string& rule, int line, std::string why, std::string fix) {
    findings_.push_back({severity, rule, command_.file, line, std::move(why), std::move(fix)});
  }

  const ServeCommand& command_;
  Findings& findings_;
};

}  // namespace fulgur::deploy
