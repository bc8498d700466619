#include "cli/bench_run_flags.h"

#include <algorithm>
#include <map>

#include "cli/bench_run_flag_groups.h"

namespace fulgur::cli {
namespace {

using enum FlagType;
using enum FlagEffect;

constexpr FlagSpec kServer[] = {
    {.name = "url",
     .type = kTextList,
     .help = {"address; several are used in turn", "地址；多个则轮流"},
     .aliases = "-u --base-url"},
    {.name = "host", .help = {"host, instead of --url", "主机，代替 --url"}},
    {.name = "port",
     .type = kInt,
     .help = {"port, with --host", "端口，与 --host 一起"},
     .range = {.min = 1, .max = 65535}},
    {.name = "model",
     .help = {"model name; left out: the only one that the server has",
              "模型名；不给则取服务器唯一的模型"},
     .aliases = "-m --model-names --served-model-name"},
    {.name = "endpoint-type",
     .default_value = "chat",
     .help = {"chat, completions or responses", "chat、completions 或 responses"},
     .choices = "chat|completions|responses|openai-chat|openai|vllm"},
    {.name = "backend",
     .help = {"endpoint in the words of vLLM", "vLLM 的端点说法"},
     .choices = "openai|openai-chat|vllm"},
    {.name = "endpoint",
     .help = {"path, instead of that of the endpoint type", "路径，代替端点类型的默认路径"},
     .aliases = "--custom-endpoint"},
    {.name = "streaming",
     .type = kBool,
     .help = {"answers come as server-sent events", "以服务器推送事件流式返回"}},
    {.name = "header",
     .type = kTextList,
     .help = {"header NAME:VALUE", "请求头 NAME:VALUE"},
     .aliases = "-H",
     .adds_up = true},
    {.name = "api-key", .help = {"bearer token; not written to files", "令牌；不写入文件"}},
    {.name = "insecure", .type = kBool, .help = {"accept any certificate", "接受任何证书"}},
    {.name = "connection-reuse-strategy",
     .default_value = "pooled",
     .help = {"pooled, never, or one connection a conversation",
              "连接复用：pooled、never 或每个对话一条"},
     .choices = "pooled|never|sticky-user-sessions"},
    {.name = "session-header",
     .help = {"header that carries the conversation", "携带对话标识的请求头"}},
    {.name = "wait-for-model-timeout",
     .type = kFloat,
     .default_value = "0",
     .help = {"seconds to wait for the server", "等待服务器的秒数"},
     .aliases = "--ready-check-timeout-sec",
     .range = {.min = 0}},
    {.name = "server-metrics",
     .type = kBool,
     .default_value = "true",
     .help = {"read /metrics before and after", "前后读取 /metrics"}},
    {.name = "reset-kv-cache",
     .type = kBool,
     .help = {"empty the prefix cache before each cell", "每个单元前清空前缀缓存"}},
};

constexpr FlagSpec kRequests[] = {
    {.name = "extra-inputs",
     .type = kTextList,
     .help =
         {"KEY:VALUE or a JSON object, merged into each body; the value osl is the output length",
          "KEY:VALUE 或 JSON 对象，并入请求体；值 osl 表示输出长度"},
     .adds_up = true},
    {.name = "extra-body",
     .help = {"JSON object merged into each body (vLLM)", "并入请求体的 JSON 对象（vLLM）"}},
    {.name = "ignore-eos",
     .type = kBool,
     .help = {"answers do not end by themselves", "回答不会自行结束"}},
    {.name = "temperature",
     .type = kFloat,
     .help = {"sampling temperature", "采样温度"},
     .range = {.min = 0}},
    {.name = "top-p",
     .type = kFloat,
     .help = {"sampling top-p", "采样 top-p"},
     .range = {.min = 0, .max = 1}},
    {.name = "use-legacy-max-tokens",
     .type = kBool,
     .help = {"max_tokens instead of max_completion_tokens",
              "用 max_tokens 代替 max_completion_tokens"}},
    {.name = "tokenizer",
     .help = {"tokenizer.json or its folder; left out: the server counts",
              "tokenizer.json 或其目录；不给则由服务器计数"}},
    {.name = "use-server-token-count",
     .type = kBool,
     .help = {"lengths as the server reports them", "长度以服务器报告为准"}},
    {.name = "use-client-token-count",
     .type = kBool,
     .help = {"output lengths by the tokenizer, even if the server reports them",
              "输出长度用分词器计，即使服务器有报告"}},
    {.name = "per-chunk-usage",
     .type = kBool,
     .help = {"ask for running token counts in every message", "要求每条消息带累计 token 数"}},
    {.name = "goodput",
     .type = kTextList,
     .help = {"METRIC:LIMIT, several; ttft, tpot and e2el for short",
              "METRIC:LIMIT，可多个；简写 ttft、tpot、e2el"}},
};

constexpr FlagSpec kResults[] = {
    {.name = "artifact-dir",
     .help = {"folder for results", "结果目录"},
     .aliases = "--output-artifact-dir"},
    {.name = "profile-export-prefix", .help = {"beginning of file names", "文件名前缀"}},
    {.name = "export-level",
     .default_value = "records",
     .help = {"summary: no line per request", "summary：不写逐请求记录"},
     .choices = "summary|records|raw"},
    {.name = "inputs-json",
     .type = kBool,
     .default_value = "true",
     .help = {"write the requests to inputs.json", "把请求写入 inputs.json"}},
    {.name = "outputs-json",
     .type = kBool,
     .help = {"write the texts of answers to outputs.jsonl", "把回答文本写入 outputs.jsonl"}},
    {.name = "force",
     .type = kBool,
     .help = {"measure cells that are there already", "重测已有的单元"}},
    {.name = "order",
     .help = {"order of cells", "单元顺序"},
     .choices = "scenario-major|concurrency-major|random"},
    {.name = "num-profile-runs",
     .type = kCount,
     .default_value = "1",
     .help = {"repetitions", "重复次数"},
     .range = {.min = 1, .max = 100}},
    {.name = "slice-duration",
     .type = kFloat,
     .help = {"seconds; metrics of each such stretch of time besides", "秒；另写出每段时间的指标"},
     .range = {.min = 0.001}},
    {.name = "confidence-level",
     .type = kFloat,
     .default_value = "0.95",
     .help = {"of the intervals over repetitions", "重复测量区间的置信水平"},
     .range = {.min = 0.5, .max = 0.9999}},
    {.name = "cooldown-seconds",
     .type = kFloat,
     .default_value = "0",
     .help = {"pause between cells", "单元之间的停顿"},
     .aliases = "--profile-run-cooldown-seconds",
     .range = {.min = 0}},
    {.name = "ui",
     .default_value = "auto",
     .help = {"progress display", "进度显示"},
     .choices = "auto|dashboard|simple|none"},
    {.name = "save-result",
     .type = kBool,
     .help = {"write a result file in the form of vLLM", "写 vLLM 形式的结果文件"}},
    {.name = "save-detailed",
     .type = kBool,
     .help = {"with one entry per request", "含逐请求数据"}},
    {.name = "result-dir", .help = {"its folder", "其目录"}},
    {.name = "result-filename", .help = {"its name", "其文件名"}},
    {.name = "label", .help = {"its label", "其标签"}},
    {.name = "metadata", .type = kTextList, .help = {"KEY=VALUE for it", "写入其中的 KEY=VALUE"}},
    {.name = "tokenizer-revision",
     .effect = kExplained,
     .help = {"no effect here", "此处无作用"},
     .reason = {"accepted for the sake of existing scripts", "为兼容已有脚本而接受"}},
    {.name = "tokenizer-mode",
     .effect = kExplained,
     .help = {"no effect here", "此处无作用"},
     .reason = {"accepted for the sake of existing scripts", "为兼容已有脚本而接受"}},
    {.name = "percentile-metrics",
     .effect = kExplained,
     .help = {"no effect here", "此处无作用"},
     .reason = {"accepted for the sake of existing scripts", "为兼容已有脚本而接受"}},
    {.name = "metric-percentiles",
     .effect = kExplained,
     .help = {"no effect here", "此处无作用"},
     .reason = {"accepted for the sake of existing scripts", "为兼容已有脚本而接受"}},
    {.name = "workers-max",
     .effect = kExplained,
     .help = {"no effect here", "此处无作用"},
     .reason = {"accepted for the sake of existing scripts", "为兼容已有脚本而接受"}},
    {.name = "gpu-telemetry",
     .effect = kExplained,
     .help = {"no effect here", "此处无作用"},
     .reason = {"accepted for the sake of existing scripts", "为兼容已有脚本而接受"}},
    {.name = "tokenizer-trust-remote-code",
     .type = kBool,
     .effect = kExplained,
     .help = {"no effect here", "此处无作用"},
     .reason = {"accepted for the sake of existing scripts", "为兼容已有脚本而接受"}},
    {.name = "trust-remote-code",
     .type = kBool,
     .effect = kExplained,
     .help = {"no effect here", "此处无作用"},
     .reason = {"accepted for the sake of existing scripts", "为兼容已有脚本而接受"}},
    {.name = "disable-tqdm",
     .type = kBool,
     .effect = kExplained,
     .help = {"no effect here", "此处无作用"},
     .reason = {"accepted for the sake of existing scripts", "为兼容已有脚本而接受"}},
    {.name = "append-result",
     .type = kBool,
     .effect = kExplained,
     .help = {"no effect here", "此处无作用"},
     .reason = {"accepted for the sake of existing scripts", "为兼容已有脚本而接受"}},
    {.name = "profile",
     .type = kBool,
     .effect = kExplained,
     .help = {"no effect here", "此处无作用"},
     .reason = {"accepted for the sake of existing scripts", "为兼容已有脚本而接受"}},
    {.name = "network-latency-automatic",
     .type = kBool,
     .effect = kExplained,
     .help = {"no effect here", "此处无作用"},
     .reason = {"accepted for the sake of existing scripts", "为兼容已有脚本而接受"}},
    {.name = "verbose",
     .type = kBool,
     .effect = kExplained,
     .help = {"no effect here", "此处无作用"},
     .reason = {"accepted for the sake of existing scripts", "为兼容已有脚本而接受"}},
};

}  // namespace

const FlagTable& BenchRunFlags() {
  static const FlagTable table({
      BenchLoadFlags(),
      BenchRateFlags(),
      {"server", {"The server", "服务器"}, kServer},
      {"requests", {"Requests and tokens", "请求与 token"}, kRequests},
      {"results", {"Results", "结果"}, kResults},
  });
  return table;
}

std::vector<std::string> JoinRepeatedFlags(std::span<const std::string> args) {
  std::vector<std::string> joined;
  std::map<const FlagSpec*, std::vector<std::string>> lists;
  const FlagSpec* list = nullptr;  // takes the words that follow
  for (const std::string& arg : args) {
    const bool is_flag =
        arg.starts_with('-') && arg.size() > 1 && !(arg[1] >= '0' && arg[1] <= '9');
    if (is_flag) {
      const size_t equals = arg.find('=');
      list = BenchRunFlags().FindSpelling(arg.substr(0, equals));
      if (list != nullptr && list->type != kTextList) list = nullptr;
      if (list == nullptr) {
        joined.push_back(arg);
      } else if (equals != std::string::npos) {
        lists[list].push_back(arg.substr(equals + 1));
      }
    } else if (list != nullptr) {
      lists[list].push_back(arg);
    } else {
      joined.push_back(arg);
    }
  }
  for (const auto& [flag, words] : lists) {
    if (words.empty()) continue;
    joined.push_back("--" + std::string(flag->name));
    joined.insert(joined.end(), words.begin(), words.end());
  }
  return joined;
}

}  // namespace fulgur::cli
