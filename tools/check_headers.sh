#!/usr/bin/env bash
# Compiles every header alone, so that including one never needs another to come first.
set -euo pipefail
cd "$(dirname "$0")/.."

check() {
  g++ -std=c++20 -Wall -Wextra -Wconversion -Isrc -include "$1" -x c++ -fsyntax-only /dev/null ||
    { echo "not self-contained: $1"; return 1; }
}
export -f check

find src -name '*.h' -print0 | sort -z | xargs -0 -P "$(nproc)" -I{} bash -c 'check {}'
echo "headers: each compiles alone"
