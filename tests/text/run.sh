#!/usr/bin/env bash
# run.sh NAME TEXT_ORACLE: runs NAME.py in the Python environment of scripts/python_env.sh.
# Exit status 77, which CTest shows as "Skipped", if there is none.
set -euo pipefail
cd "$(dirname "$0")"
python=../../build/venv/bin/python
if [ ! -x "$python" ]; then
  echo "SKIPPED: no build/venv; scripts/python_env.sh makes it"
  exit 77
fi
exec "$python" "$1.py" --oracle "$2"
