#!/usr/bin/env bash
# Sets up, builds and passes the fast tests: what to run before and after a change. The others: ctest -L slow (minutes, needs
# PyPI), ctest -L long (half an hour).
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/setup.sh
./scripts/python_env.sh >/dev/null
cmake --preset release >/dev/null
cmake --build --preset release
ctest --test-dir build/release -j "$(nproc)" --output-on-failure -LE "slow|long"
