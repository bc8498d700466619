#!/usr/bin/env python3
"""Writes the small checkpoints that C++ tests read: every storage format, both modelslim recipes, both shardings.

usage: make_test_checkpoints.py OUT_DIR

For each checkpoint: OUT_DIR/<name>/ (the folder as published) and OUT_DIR/<name>.values.safetensors with the fp32
values that its tensors stand for. OUT_DIR/<name>.golden.json holds the logits that an engine must get. Does nothing if
the folder is already what this version of the scripts writes.
"""
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORACLE = ROOT / "tools" / "oracle"
sys.path.insert(0, str(ORACLE))
import make_checkpoint as oracle  # noqa: E402
import numpy as np  # noqa: E402

# name: arguments of tools/oracle/make_checkpoint.py
CHECKPOINTS = {
    "fp32": ["--format", "fp32"],
    "bf16": ["--format", "bf16", "--mtp", "1"],
    "fp8fp4": ["--format", "fp8fp4", "--mtp", "1"],
    "fp8fp4_resharded": ["--format", "fp8fp4", "--shard", "400000"],
    "fp8fp4_dspark": ["--format", "fp8fp4", "--dspark", "3"],
    "fp8base": ["--format", "fp8base"],
    "w8a8_recipe_a": ["--format", "w8a8", "--recipe", "A", "--mtp", "1"],
    "w8a8_recipe_b": ["--format", "w8a8", "--recipe", "B", "--dspark", "3"],
    "w4a8": ["--format", "w4a8", "--recipe", "A", "--shard", "1000000"],
}


def stamp():
    """Changes when anything that decides the output changes."""
    digest = hashlib.sha256()
    for path in [pathlib.Path(__file__), ORACLE / "make_checkpoint.py", ORACLE / "reference_forward.py"]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def write_values(path, arguments):
    """The values behind the stored tensors, computed once more and kept as fp32."""
    options = dict(zip(arguments[::2], arguments[1::2]))
    fmt, recipe = options["--format"], options.get("--recipe", "A")
    mtp, dspark = int(options.get("--mtp", 0)), int(options.get("--dspark", 0))
    config = oracle.complete_config(oracle.TINY, mtp, dspark, fmt)
    entries = []
    for group in oracle.inventory(config, 0, 0, fmt in ("w8a8", "w4a8")):
        for tensor in group:
            store = oracle.stored_as(tensor, fmt, recipe, dspark)
            _, value = oracle.encode(tensor, store, oracle.values(tensor, config))
            entries.append((tensor.name, "F32", np.asarray(value, dtype=np.float32)))
    oracle.write_safetensors(path, entries)


def main():
    out = pathlib.Path(sys.argv[1])
    mark = out / "stamp"
    if mark.exists() and mark.read_text() == stamp():
        return
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name, arguments in CHECKPOINTS.items():
        golden = ["--golden", str(out / f"{name}.golden.json"), "--greedy", "0"]
        command = [sys.executable, str(ORACLE / "make_checkpoint.py"), str(out / name), *arguments, *golden]
        subprocess.run(command, check=True)
        write_values(out / f"{name}.values.safetensors", arguments)
    (out / "arguments.json").write_text(json.dumps(CHECKPOINTS, indent=1))
    mark.write_text(stamp())


if __name__ == "__main__":
    main()
