#include "deploy/parameters.h"

#include <arpa/inet.h>

#include <array>
#include <regex>
#include <set>

#include "base/status_macros.h"
#include "fmt/format.h"

namespace fulgur::deploy {
namespace {

absl::Status Wrong(const std::string& flag, const std::string& value, const std::string& accepted) {
  return absl::InvalidArgumentError(
      fmt::format("--{} '{}' is not accepted; write {}", flag, value, accepted));
}

absl::Status CheckPattern(const std::string& flag, const std::string& value, const char* pattern,
                          const std::string& accepted) {
  if (std::regex_match(value, std::regex(pattern))) return absl::OkStatus();
  return Wrong(flag, value, accepted);
}

bool IsAddress(const std::string& text) {
  std::array<unsigned char, 16> bytes{};
  if (inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return true;
  static const std::regex kName(R"([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9-]+)*)");
  // A name of digits and points only is an address that went wrong.
  return text.size() < 254 && std::regex_match(text, kName) &&
         text.find_first_not_of("0123456789.") != std::string::npos;
}

absl::Status CheckHosts(const std::string& flag, const std::vector<std::string>& hosts) {
  std::set<std::string> seen;
  for (const std::string& host : hosts) {
    if (!IsAddress(host)) return Wrong(flag, host, "an IPv4 address or a host name");
    if (!seen.insert(host).second) {
      return absl::InvalidArgumentError(fmt::format("--{} names {} twice", flag, host));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPort(const std::string& flag, int port) {
  if (port >= 1024 && port <= 65535) return absl::OkStatus();
  return Wrong(flag, std::to_string(port), "a port from 1024 to 65535");
}

}  // namespace

int DiesPerNode(Target target) { return target == Target::kA3 ? 16 : 8; }

absl::Status CheckParameters(const Parameters& p) {
  RETURN_IF_ERROR(CheckPattern("model-path", p.model_path, R"(/[A-Za-z0-9._/+@-]*[A-Za-z0-9._-])",
                               "an absolute path of letters, digits and . _ - + @"));
  if (!p.served_name.empty()) {
    RETURN_IF_ERROR(CheckPattern("served-name", p.served_name, "[A-Za-z0-9][A-Za-z0-9._/-]*",
                                 "letters, digits and . _ - /"));
  }
  if (!p.image.empty()) {
    RETURN_IF_ERROR(
        CheckPattern("image", p.image, "[a-z0-9][A-Za-z0-9._/:@-]*",
                     "a container image such as quay.io/ascend/vllm-ascend:v0.25.1-a3"));
  }
  RETURN_IF_ERROR(CheckPattern("container", p.container, "[A-Za-z0-9][A-Za-z0-9_.-]*",
                               "letters, digits and _ . -"));
  if (!p.nic.empty()) {
    RETURN_IF_ERROR(CheckPattern("nic", p.nic, "[A-Za-z0-9][A-Za-z0-9_.:-]{0,14}",
                                 "a network card such as enp67s0f0np0"));
  }
  RETURN_IF_ERROR(CheckHosts("host", {p.host}));
  RETURN_IF_ERROR(CheckHosts("prefill-hosts", p.prefill_hosts));
  RETURN_IF_ERROR(CheckHosts("decode-hosts", p.decode_hosts));
  if (!p.proxy_host.empty()) RETURN_IF_ERROR(CheckHosts("proxy-host", {p.proxy_host}));
  for (const std::string& host : p.prefill_hosts) {
    for (const std::string& other : p.decode_hosts) {
      if (host != other) continue;
      return absl::InvalidArgumentError(
          fmt::format("{} is both a prefill and a decode node; each takes a whole node", host));
    }
  }
  RETURN_IF_ERROR(CheckPort("port", p.port));
  RETURN_IF_ERROR(CheckPort("proxy-port", p.proxy_port));
  if (p.max_model_len && (*p.max_model_len < 1024 || *p.max_model_len > 1'048'576)) {
    return Wrong("max-model-len", std::to_string(*p.max_model_len), "1024 to 1048576");
  }
  return absl::OkStatus();
}

}  // namespace fulgur::deploy
