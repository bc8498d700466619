#include "deploy/templates.h"

namespace fulgur::deploy {

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
@STEPS@
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
@STEPS@
## 启动失败时

`./health.sh` 会显示日志末尾。`TIMEOUT=3600 ./health.sh` 等待更久：从慢速磁盘加载 294 GB 需要时间。`fulgur deploy check` 认识常见错误，并说明应改成什么。
)md";

}  // namespace fulgur::deploy
