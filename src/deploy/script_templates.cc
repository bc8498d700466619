#include "deploy/templates.h"

namespace fulgur::deploy {

const std::string_view kServeScript = R"sh(#!/usr/bin/env bash
# Runs inside the container; mounted as a file, so that no layer of quotes touches the JSON.
set -euo pipefail

for setup in /usr/local/Ascend/ascend-toolkit/set_env.sh /usr/local/Ascend/nnal/atb/set_env.sh; do
  # The vendor's scripts use variables that are not set.
  # shellcheck disable=SC1090
  if [ -f "$setup" ]; then set +u; source "$setup"; set -u; fi
done
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY
jemalloc=/usr/lib/aarch64-linux-gnu/libjemalloc.so.2
if [ -f "$jemalloc" ]; then export LD_PRELOAD="$jemalloc:${LD_PRELOAD:-}"; fi
@EXPORTS@
exec vllm serve @MODEL@ \
@FLAGS@
)sh";

const std::string_view kRankScript = R"sh(#!/usr/bin/env bash
# One rank. Arguments, as launch_online_dp.py and start_ranks.sh pass them: visible devices, port,
# data-parallel size, rank, address, RPC port, tensor-parallel size.
set -euo pipefail

for setup in /usr/local/Ascend/ascend-toolkit/set_env.sh /usr/local/Ascend/nnal/atb/set_env.sh; do
  # The vendor's scripts use variables that are not set.
  # shellcheck disable=SC1090
  if [ -f "$setup" ]; then set +u; source "$setup"; set -u; fi
done
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY
jemalloc=/usr/lib/aarch64-linux-gnu/libjemalloc.so.2
if [ -f "$jemalloc" ]; then export LD_PRELOAD="$jemalloc:${LD_PRELOAD:-}"; fi
@EXPORTS@
export ASCEND_RT_VISIBLE_DEVICES="$1"
exec vllm serve @MODEL@ \
@FLAGS@
)sh";

const std::string_view kStartRanks = R"sh(#!/usr/bin/env bash
# Starts the ranks of one node; takes the flags of launch_online_dp.py.
set -euo pipefail

dp_size='' tp_size=1 dp_size_local='' rank_start=0 address='' rpc_port=12345 first_port=9000
while [ $# -gt 1 ]; do
  case "$1" in
    --dp-size) dp_size=$2 ;;
    --tp-size) tp_size=$2 ;;
    --dp-size-local) dp_size_local=$2 ;;
    --dp-rank-start) rank_start=$2 ;;
    --dp-address) address=$2 ;;
    --dp-rpc-port) rpc_port=$2 ;;
    --vllm-start-port) first_port=$2 ;;
    *) echo "unknown flag $1" >&2; exit 2 ;;
  esac
  shift 2
done
if [ -z "$dp_size" ] || [ -z "$address" ]; then
  echo "usage: start_ranks.sh --dp-size N --dp-address HOST [--tp-size N] ..." >&2
  exit 2
fi
cd "$(dirname "$0")"
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT TERM INT
for ((i = 0; i < ${dp_size_local:-$dp_size}; i++)); do
  devices=$(seq -s, $((i * tp_size)) $(((i + 1) * tp_size - 1)))
  bash ./run_dp_template.sh "$devices" $((first_port + i)) "$dp_size" $((rank_start + i)) \
    "$address" "$rpc_port" "$tp_size" &
done
# A group with a missing rank waits for ever: the first one that ends takes the others down.
status=0
wait -n || status=$?
echo "a rank has ended with code $status; stopping the others" >&2
exit "$status"
)sh";

const std::string_view kLaunchScript = R"sh(#!/usr/bin/env bash
# Starts the container on this host and waits until it serves.
set -euo pipefail
cd "$(dirname "$0")"

IMAGE=${IMAGE:-@IMAGE@}
if docker inspect @CONTAINER@ >/dev/null 2>&1; then
  echo "container @CONTAINER@ exists; run ./stop.sh first" >&2
  exit 1
fi
docker run -d \
  --name @CONTAINER@ \
  --network host \
  --privileged \
  --shm-size 512g \
@DEVICES@
  --device /dev/davinci_manager \
  --device /dev/devmm_svm \
  --device /dev/hisi_hdc \
  -v /usr/local/dcmi:/usr/local/dcmi:ro \
  -v /usr/local/bin/npu-smi:/usr/local/bin/npu-smi:ro \
  -v /usr/local/Ascend/driver/tools/hccn_tool:/usr/local/Ascend/driver/tools/hccn_tool:ro \
  -v /usr/local/Ascend/driver/lib64:/usr/local/Ascend/driver/lib64:ro \
  -v /usr/local/Ascend/driver/version.info:/usr/local/Ascend/driver/version.info:ro \
  -v /etc/ascend_install.info:/etc/ascend_install.info:ro \
  -v /etc/hccn.conf:/etc/hccn.conf:ro \
  -v @MODEL@:@MODEL@:ro \
  -v "$PWD:/deploy:ro" \
  "$IMAGE" \
  @COMMAND@
exec ./health.sh
)sh";

const std::string_view kHealthScript = R"sh(#!/usr/bin/env bash
# Waits until the server answers. Shows the end of its log if it stops, or after TIMEOUT seconds.
set -euo pipefail

TIMEOUT=${TIMEOUT:-1800}
ports=(@PORTS@)
fail() {
  echo "$1; the end of the log:" >&2
  docker logs --tail "${LOG_LINES:-100}" @CONTAINER@ >&2 || true
  exit 1
}
for port in "${ports[@]}"; do
  until curl -fsS -m 5 -o /dev/null --noproxy '*' "http://127.0.0.1:$port/health" 2>/dev/null; do
    running=$(docker inspect -f '{{.State.Running}}' @CONTAINER@ 2>/dev/null || echo gone)
    if [ "$running" != true ]; then fail "the container has stopped"; fi
    if ((SECONDS >= TIMEOUT)); then fail "port $port does not serve after $TIMEOUT s"; fi
    sleep "${PAUSE:-5}"
  done
  echo "port $port serves after $SECONDS s"
done
)sh";

const std::string_view kPullScript = R"sh(#!/usr/bin/env bash
# Pulls the image; registries cut long downloads, and a second try goes on where the first ended.
set -euo pipefail

IMAGE=${IMAGE:-@IMAGE@}
for attempt in 1 2 3 4 5; do
  if docker pull "$IMAGE"; then exit 0; fi
  echo "attempt $attempt failed" >&2
  sleep "${PAUSE:-10}"
done
echo "cannot pull $IMAGE" >&2
exit 1
)sh";

const std::string_view kStopScript = R"sh(#!/usr/bin/env bash
# Stops and removes the container on this host.
set -euo pipefail
docker stop -t 60 @CONTAINER@
docker rm @CONTAINER@
)sh";

const std::string_view kProxyScript = R"sh(#!/usr/bin/env bash
# Starts the proxy that sends prompts to the prefill ranks and their caches to the decode ranks.
# Every data-parallel rank is an entry of its own.
set -euo pipefail

IMAGE=${IMAGE:-@IMAGE@}
PROXY=${PROXY:-/vllm-workspace/vllm-ascend/examples/disaggregated_prefill_v1/load_balance_proxy_server_example.py}
docker run -d --name @CONTAINER@-proxy --network host "$IMAGE" \
  python3 "$PROXY" \
  --host 0.0.0.0 --port @PROXY_PORT@ \
  --prefiller-hosts @PREFILL_HOSTS@ \
  --prefiller-ports @PREFILL_PORTS@ \
  --decoder-hosts @DECODE_HOSTS@ \
  --decoder-ports @DECODE_PORTS@
)sh";

const std::string_view kSampleScript = R"sh(#!/usr/bin/env bash
# Samples this host while a benchmark runs: util-TAG.jsonl and util-TAG.log in this folder.
set -euo pipefail
cd "$(dirname "$0")"
exec fulgur sample "${1:-@RECIPE@}" --interval 2s --format both --folder .
)sh";

const std::string_view kBenchScript = R"sh(#!/usr/bin/env bash
# Runs the benchmark of three scenarios and four concurrencies; from the test host.
set -euo pipefail
cd "$(dirname "$0")"
exec fulgur bench run --suite "${SUITE:-seed}" --url "${URL:-@URL@}" --model @SERVED@ \
  --artifact-dir "${1:-results-@RECIPE@}"
)sh";

const std::string_view kVerifyScript = R"sh(#!/usr/bin/env bash
# Asks for one short completion.
set -euo pipefail
curl -fsS -m 120 --noproxy '*' "${URL:-@URL@}/v1/completions" \
  -H 'Content-Type: application/json' \
  -d @BODY@
echo
)sh";

}  // namespace fulgur::deploy
