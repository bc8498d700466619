#!/usr/bin/env python3
"""Runs every fenced `sh` block of README.md from the repository root, one shell per block, as a newcomer would.

A block whose fence says `sh no-ci` is not run: it needs something a build machine lacks (weights, another server), and
the text beside it says what. `--skip COMMAND` leaves out a line that the caller has just run itself.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def blocks(text):
    for match in re.finditer(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield match.group(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skip", action="append", default=[], help="a command line that is not run again")
    args = parser.parse_args()
    for block in blocks((ROOT / "README.md").read_text()):
        lines = [line for line in block.splitlines() if line.strip() not in args.skip]
        script = "\n".join(lines).strip()
        if not script:
            continue
        print(f"README: {script}", flush=True)
        if subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, check=False).returncode != 0:
            print(f"README: this block failed:\n{script}")
            return 1
    print("README: every command works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
