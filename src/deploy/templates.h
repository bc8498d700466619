// The texts of a rendered deployment. @NAME@ is filled in.
#pragma once

#include <string_view>

namespace fulgur::deploy {

extern const std::string_view kServeScript;   // in the container: one node's server
extern const std::string_view kRankScript;    // in the container: one rank, for launch_online_dp.py
extern const std::string_view kStartRanks;    // in the container: all ranks of a node
extern const std::string_view kLaunchScript;  // on the host: the container
extern const std::string_view kHealthScript;  // on the host: waits until it serves
extern const std::string_view kPullScript;    // on the host: the image
extern const std::string_view kStopScript;    // on the host
extern const std::string_view kProxyScript;   // on the proxy's host
extern const std::string_view kSampleScript;  // on the inference host
extern const std::string_view kBenchScript;   // on the test host
extern const std::string_view kVerifyScript;  // anywhere
extern const std::string_view kStartNodeEnglish;  // steps of the READMEs
extern const std::string_view kStartNodeChinese;
extern const std::string_view kStartNodesEnglish;
extern const std::string_view kStartNodesChinese;
extern const std::string_view kReadmeEnglish;
extern const std::string_view kReadmeChinese;

}  // namespace fulgur::deploy
