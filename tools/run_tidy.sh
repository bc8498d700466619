#!/usr/bin/env bash
# clang-tidy over the product's sources, with the compile commands of the release build.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/release}
# The commands are g++'s: clang does not know all of its warnings, nor the code generation flags of avx2/ and avx512/.
git ls-files 'src/*.cc' | grep -v -e _test.cc -e _benchmark.cc -e /fuzz/ -e /testing/ -e /avx2/ -e /avx512/ |
  xargs -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option 2>/dev/null
echo "clang-tidy: clean"
