#!/usr/bin/env bash
# run_fuzz.sh SECONDS [TARGET...]: builds the libFuzzer targets (all, or those named) and runs each for so long, one after
# the other. New inputs of a target stay in build/fuzz/corpus/TARGET; a finding stops the run and leaves its input there.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?usage: run_fuzz.sh SECONDS [TARGET...]}
shift
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  mapfile -t targets < <(find src -path '*/fuzz/*_fuzz.cc' -exec basename {} .cc \; | sort)
fi

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target "${targets[@]}"
for target in "${targets[@]}"; do
  source=$(find src -name "$target.cc")
  corpus=build/fuzz/corpus/$target
  mkdir -p "$corpus"
  seeds=$(dirname "$source")/seeds/${target%_fuzz}
  [ -d "$seeds" ] || seeds=
  echo "== $target"
  # shellcheck disable=SC2086  # no seeds is no argument
  "$(find build/fuzz -name "$target" -type f -executable)" "-max_total_time=$seconds" -rss_limit_mb=2048 -timeout=10 \
    -print_final_stats=1 -verbosity=0 "-artifact_prefix=$corpus/found-" "$corpus" $seeds
done
