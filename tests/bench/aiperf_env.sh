#!/usr/bin/env bash
# Creates build/aiperf-venv with aiperf from PyPI and prints the path of its interpreter. Does nothing when it is there.
set -euo pipefail
cd "$(dirname "$0")/../.."

requirements=tests/bench/aiperf_requirements.txt
venv=build/aiperf-venv
if ! cmp -s "$requirements" "$venv/requirements.txt"; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements" >&2
  cp "$requirements" "$venv/requirements.txt"
fi
echo "$PWD/$venv/bin/python"
