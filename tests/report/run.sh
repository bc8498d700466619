#!/usr/bin/env bash
# run.sh FULGUR: runs the tests of this folder against that binary, in the Python environment of
# scripts/python_env.sh. Exit status 77, which CTest shows as "Skipped", if there is none.
set -euo pipefail
cd "$(dirname "$0")"
python=../../build/venv/bin/python
if ! "$python" -c 'import openpyxl, pytest' 2>/dev/null; then
  echo "SKIPPED: build/venv lacks openpyxl or pytest; scripts/python_env.sh makes it"
  exit 77
fi
exec "$python" -m pytest -q -p no:cacheprovider --fulgur "$(realpath "$1")" "${@:2}" .
