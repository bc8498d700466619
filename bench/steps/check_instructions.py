#!/usr/bin/env python3
"""Compares the instructions of a prefill and a decode step with the stored numbers.

A change of more than 3 % is either a regression or an improvement to store:

usage: check_instructions.py BUILD_FOLDER [--store]
"""
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
STORED = HERE / "instructions.json"
TOLERANCE = 0.03


def count(build, step):
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null",
               f"{build}/bench/steps/step_instructions", HERE.parents[1] / "models/demo", step]
    result = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", result.stderr)
    if result.returncode or not found:
        sys.exit(f"callgrind could not count the {step} step:\n{result.stderr}")
    return int(found[1])


def main():
    build = sys.argv[1]
    counted = {step: count(build, step) for step in ("prefill", "decode")}
    if "--store" in sys.argv:
        STORED.write_text(json.dumps(counted, indent=1) + "\n")
        return
    stored = json.loads(STORED.read_text())
    bad = False
    for step, instructions in counted.items():
        change = instructions / stored[step] - 1
        bad |= abs(change) > TOLERANCE
        print(f"{step}: {instructions:,} instructions, {change:+.1%} against the stored number")
    if bad:
        sys.exit("more than 3 % away: find the cause, or store an improvement with --store")


if __name__ == "__main__":
    main()
