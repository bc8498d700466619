#!/usr/bin/env python3
"""Compares step_bench with llama-bench on the same weights, in turns.

The machine may be shared: only the medians of paired ratios count. Both run pinned to the same
CPUs; the first round of each is thrown away. Prints load and CPU beside the figures.

usage: compare_llama.py STEP_BENCH CHECKPOINT LLAMA_BENCH GGUF [--threads 1] [--rounds 5]
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess


def pinned(threads, command):
    cpus = ",".join(str(i) for i in range(threads))
    environment = dict(os.environ, LD_LIBRARY_PATH=str(pathlib.Path(command[0]).parent))
    return subprocess.run(["taskset", "-c", cpus, *map(str, command)], check=True, text=True, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def ours(args):
    text = pinned(args.threads, [args.step_bench, args.checkpoint, "--threads", args.threads, "--rounds", 1])
    found = re.search(r"prompt ([\d.]+) tok/s, decode ([\d.]+) tok/s.*?([\d.]+) % of the read", text)
    return tuple(float(value) for value in found.groups())


def theirs(args):
    def rate(*what):
        text = pinned(args.threads, [args.llama_bench, "-m", args.gguf, "-t", args.threads, "-r", 1,
                                     "-o", "json", *what])
        return json.loads(text)[0]["avg_ts"]
    return rate("-p", 512, "-n", 0), rate("-p", 0, "-n", 64, "-d", 512)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("step_bench", "checkpoint", "llama_bench", "gguf"):
        parser.add_argument(name)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    rows = []
    for i in range(args.rounds + 1):
        mine, peer = ours(args), theirs(args)
        print(f"ours: prompt {mine[0]:.1f}, decode {mine[1]:.1f} tok/s, {mine[2]:.0f} % of bandwidth; "
              f"llama.cpp: {peer[0]:.1f}, {peer[1]:.1f}; load {os.getloadavg()[0]:.1f}", flush=True)
        if i > 0:
            rows.append((mine, peer))
    for name, k in (("prompt", 0), ("decode", 1)):
        ratios = sorted(mine[k] / peer[k] for mine, peer in rows)
        print(f"{name}: {statistics.median(ratios):.2f} x llama.cpp ({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
