// What an operator says about a deployment, and the checks on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace fulgur::deploy {

enum class Target { kA3, kA2 };  // Atlas 800 A3: 16 dies a node; Atlas 800 A2: 8 dies

struct Parameters {
  std::string target;  // "a3" or "a2"
  std::string recipe;
  std::string model_path;   // folder of the weights on the hosts, absolute
  std::string served_name;  // empty: the folder's name
  std::string image;        // empty: the recipe's
  std::string container = "fulgur-deploy";
  int port = 6697;
  std::string host = "127.0.0.1";          // single node: where clients reach it
  std::string nic;                         // disaggregated: the network card between the nodes
  std::vector<std::string> prefill_hosts;  // addresses, in order of the nodes
  std::vector<std::string> decode_hosts;
  std::string proxy_host;  // empty: the first prefill node
  int proxy_port = 8000;
  std::string speculation;       // "none", "mtp", "dspark"; empty: the recipe's
  std::optional<int64_t> depth;  // draft tokens
  std::optional<int64_t> max_model_len;
};

int DiesPerNode(Target target);

// Addresses, paths, names and ports; one sentence about the first that is wrong. What the recipe
// itself needs is checked by MakePlan.
absl::Status CheckParameters(const Parameters& parameters);

}  // namespace fulgur::deploy
