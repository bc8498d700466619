#!/usr/bin/env bash
# Usage: aiperf_run.sh FULGUR. Compares fulgur with aiperf; skipped (77) where aiperf cannot be installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if ! python=$("$here/aiperf_env.sh"); then
  echo "SKIPPED: aiperf cannot be installed from PyPI"
  exit 77
fi
FULGUR=$1 exec "$python" "$here/aiperf_test.py" --verbose
