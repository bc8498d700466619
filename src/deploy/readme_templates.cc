#include "deploy/templates.h"

namespace fulgur::deploy {

// Lists are numbered by whoever shows the page: every item is "1.".
const std::string_view kStartNodeEnglish =
    R"md(1. Copy this folder to the inference host. There: `./pull.sh`, then `./launch.sh`. Expected after about ten minutes: `port ... serves after ... s`. The container runs `serve.sh` from the mounted folder.)md";

const std::string_view kStartNodeChinese =
    R"md(1. 把本目录复制到推理主机，执行 `./pull.sh`，再执行 `./launch.sh`。约十分钟后预期输出：`port ... serves after ... s`。容器直接运行挂载目录中的 `serve.sh`。)md";

const std::string_view kStartNodesEnglish =
    R"md(1. Copy each node's folder to its host. There, in it: `./pull.sh`, then `./launch.sh`. All nodes of one side must be started: they wait for each other. Expected at the end: `port 7100 serves after ... s`.
1. On the proxy's host: `./proxy.sh`.)md";

const std::string_view kStartNodesChinese =
    R"md(1. 把各节点目录复制到对应主机，在其中执行 `./pull.sh`，再执行 `./launch.sh`。同一侧的所有节点都要启动，它们会互相等待。预期最后输出：`port 7100 serves after ... s`。
1. 在代理主机上执行 `./proxy.sh`。)md";

const std::string_view kReadmeEnglish = R"md(# DeepSeek-V4-Flash: @RECIPE@ on @TARGET@

@WHAT@. Written by `fulgur deploy render`.

| | |
| --- | --- |
| image | `@IMAGE@` |
| weights | `@MODEL@`, the same path on every host |
| speculation | @SPECULATION@ |
| clients talk to | `@URL@`, model name `@SERVED@` |

@NODES@
## Steps

1. Check it again after every change: `fulgur deploy check .` (expected: `no findings`).
@START@
1. `./verify.sh`: the answer goes on with " Paris".
1. On each inference host, while the benchmark runs: `./sample.sh TAG`; it ends with `fulgur sample --stop TAG`.
1. On the test host: `./bench.sh`; for a first try `SUITE=smoke ./bench.sh try`.

## When it does not start

`./health.sh` shows the end of the log. `TIMEOUT=3600 ./health.sh` waits longer: loading 294 GB from a slow disk takes its time. `fulgur deploy check` knows the usual mistakes by name and says what to write instead.
)md";

const std::string_view kReadmeChinese = R"md(# DeepSeek-V4-Flash：@TARGET@ 上的 @RECIPE@

@WHAT@。由 `fulgur deploy render` 生成。

| | |
| --- | --- |
| 镜像 | `@IMAGE@` |
| 权重 | `@MODEL@`，每台主机路径相同 |
| 投机解码 | @SPECULATION@ |
| 客户端地址 | `@URL@`，模型名 `@SERVED@` |

@NODES@
## 步骤

1. 每次改动后重新检查：`fulgur deploy check .`（预期：`no findings`）。
@START@
1. `./verify.sh`：回答应以 " Paris" 接续。
1. 基准测试期间，在每台推理主机上执行 `./sample.sh TAG`；用 `fulgur sample --stop TAG` 结束。
1. 在测试主机上执行 `./bench.sh`；首次尝试用 `SUITE=smoke ./bench.sh try`。

## 启动失败时

`./health.sh` 会显示日志末尾。`TIMEOUT=3600 ./health.sh` 等待更久：从慢速磁盘加载 294 GB 需要时间。`fulgur deploy check` 认识常见错误，并说明应改成什么。
)md";

}  // namespace fulgur::deploy
