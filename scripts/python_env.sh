#!/usr/bin/env bash
# Creates build/venv with the Python packages that the tests need and prints the path of its interpreter.
# Does nothing when the environment already fits tests/python/requirements.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

requirements=tests/python/requirements.txt
stamp=build/venv/requirements.txt
if ! cmp -s "$requirements" "$stamp"; then
  python3 -m venv build/venv
  build/venv/bin/pip install --quiet --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$stamp"
fi
echo "$PWD/build/venv/bin/python"
