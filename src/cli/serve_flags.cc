#include "cli/serve_flags.h"

namespace fulgur::cli {
namespace {

using enum FlagEffect;

constexpr Text kAccelerator = {"tunes accelerators; no effect on a CPU",
                               "用于调节加速卡；对 CPU 无作用"};
constexpr Text kNetwork = {"names network cards of a group of workers; there is one worker",
                           "指定多进程通信的网卡；这里只有一个进程"};
constexpr Text kTimeouts = {"a time limit between workers; there is one worker",
                            "工作进程之间的时限；这里只有一个进程"};

constexpr EnvironmentVariable kEnvironment[] = {
    {"VLLM_API_KEY",
     kUsed,
     {"the key that requests must carry, if --api-key is not given",
      "未给出 --api-key 时请求须携带的密钥"}},
    {"VLLM_SERVER_DEV_MODE",
     kUsed,
     {"1: the endpoints of development answer, such as "
      "/reset_prefix_cache",
      "1：开放开发接口，如 /reset_prefix_cache"}},
    {"LD_PRELOAD", kExplained, {"up to the system's loader", "由系统加载器处理"}},
    {"OMP_NUM_THREADS",
     kExplained,
     {"--threads sets the number of threads", "线程数由 --threads 设置"}},
    {"OMP_PROC_BIND", kExplained, {"threads are placed by the program", "线程由程序自行安排"}},
    {"VLLM_PREFIX_CACHE_RETENTION_INTERVAL",
     kExplained,
     {"finished prompts are not kept yet", "目前不保留已完成的提示"}},
    {"VLLM_ENGINE_READY_TIMEOUT_S",
     kExplained,
     {"the port opens when the model is loaded, however long that takes",
      "模型加载完成后才开放端口，不限时"}},
    {"VLLM_RPC_TIMEOUT", kExplained, kTimeouts},
    {"VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS",
     kExplained,
     {"--hang-timeout makes /health fail when steps stop",
      "步骤停滞时由 --hang-timeout 使 /health 报错"}},
    {"HCCL_EXEC_TIMEOUT", kExplained, kTimeouts},
    {"HCCL_CONNECT_TIMEOUT", kExplained, kTimeouts},
    {"HCCL_IF_IP", kExplained, kNetwork},
    {"HCCL_SOCKET_IFNAME", kExplained, kNetwork},
    {"GLOO_SOCKET_IFNAME", kExplained, kNetwork},
    {"TP_SOCKET_IFNAME", kExplained, kNetwork},
    {"HCCL_BUFFSIZE", kExplained, kAccelerator},
    {"HCCL_OP_EXPANSION_MODE", kExplained, kAccelerator},
    {"TASK_QUEUE_ENABLE", kExplained, kAccelerator},
    {"PYTORCH_NPU_ALLOC_CONF", kExplained, kAccelerator},
    {"ASCEND_RT_VISIBLE_DEVICES", kExplained, kAccelerator},
    {"VLLM_ASCEND_ENABLE_FUSED_MC2", kExplained, kAccelerator},
};

}  // namespace

const FlagTable& ServeFlags() {
  static const FlagTable table({ModelFlags(), EngineFlags(), ServerFlags(), ChatFlags(),
                                ParallelFlags(), SpeculationFlags(), AcceleratorFlags(),
                                ObservabilityFlags(), AdapterFlags()});
  return table;
}

std::span<const EnvironmentVariable> ServeEnvironment() { return kEnvironment; }

}  // namespace fulgur::cli
