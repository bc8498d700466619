#!/usr/bin/env bash
# Writes the small checkpoints that tests read to the given folder. Does nothing if they are up to date.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(scripts/python_env.sh)
"$python" tests/python/make_test_checkpoints.py "$1"
