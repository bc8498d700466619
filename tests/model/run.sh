#!/usr/bin/env bash
# run.sh VENV TEST MODEL_ORACLE: runs TEST.py in the Python environment build/VENV.
# Exit status 77, which CTest shows as "Skipped", if there is none.
set -euo pipefail
cd "$(dirname "$0")"
python=../../build/$1/bin/python
if [ ! -x "$python" ]; then
  echo "SKIPPED: no build/$1"
  exit 77
fi
export OPENBLAS_NUM_THREADS=1
exec "$python" "$2.py" --oracle "$3"
