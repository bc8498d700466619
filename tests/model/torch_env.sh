#!/usr/bin/env bash
# Creates build/torch-venv with torch and transformers from PyPI and prints the path of its interpreter. The CUDA
# libraries that PyPI's torch wants (several GB) are replaced by stubs.
set -euo pipefail
cd "$(dirname "$0")/../.."

requirements=tests/model/torch_requirements.txt
venv=build/torch-venv
if ! cmp -s "$requirements" "$venv/requirements.txt"; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps torch==2.15.0 >&2
  lib=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch/lib
  "$venv/bin/python" tools/oracle/torch_cpu_stubs.py "$lib" >&2
  cp "$requirements" "$venv/requirements.txt"
fi
echo "$PWD/$venv/bin/python"
