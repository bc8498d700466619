#!/usr/bin/env bash
# Fails if clang-format would change a source file; `--fix` changes them.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(--dry-run --Werror)
[ "${1:-}" = "--fix" ] && mode=(-i)
git ls-files -z '*.h' '*.cc' | xargs -0 clang-format "${mode[@]}"
echo "format: clean"
