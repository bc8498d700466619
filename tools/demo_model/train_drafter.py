"""Train a drafter on the frozen trunk of a checkpoint: python -m demo_model.train_drafter --checkpoint FOLDER
--kind dspark|mtp --answers DIR --out DIR [--resume] (run in tools/).

DIR of the answers gets the trunk's own answers to generated conversations and what the trunk made of them; it is filled
first, serves both kinds, and an interrupted run goes on where it stopped. DIR of --out gets log.jsonl, schedule.json and checkpoint.pt.
An MTP block starts from that of the checkpoint, or from that of --start; DSpark stages start as copies of the trunk's last
layers. All draws follow from the seed, so a stopped run (SIGTERM saves first) goes on as if nothing had happened.
"""
import argparse
import dataclasses
import json
import pathlib
import random
import signal
import time

import torch
from tokenizers import Tokenizer

from . import checkpoint
from .answers import Piece, anchors_of, blocks_of, pieces_of
from .drafters import DRAFTERS, loss
from .model import Mode, MoE
from .optimiser import Optimiser
from .train import rate

SCHEDULE = json.loads(pathlib.Path(__file__).with_name("drafter_schedule.json").read_text())
SAVE_SECONDS, LOG_STEPS, SHARD_PACKS = 120, 20, 20


def answers(folder, model, tokenizer, s):
    """All training pieces; those that the folder lacks are made and written."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = []
    for begin in range(0, s["packs"], SHARD_PACKS):
        file = folder / f"answers-{begin:04d}.pt"
        if not file.exists():
            made = [p for n in range(begin, min(s["packs"], begin + SHARD_PACKS))
                    for p in pieces_of(model, tokenizer, s["seed"], n)]
            torch.save([dataclasses.asdict(p) for p in made], file.with_suffix(".part"))
            file.with_suffix(".part").rename(file)
        pieces += [Piece(**fields) for fields in torch.load(file, weights_only=True)]
    return [p for p in pieces if len(anchors_of(p))]


def entropy_weight(step, s):
    """Falls from 1 to 0.1: while the distributions have nothing in common, their distance says nothing."""
    return max(0.1, 1 - 0.9 * step / s["entropy_until"])


def step_blocks(pieces, step, s, width):
    """The blocks of one optimiser step."""
    rng = random.Random(f"{s['seed']}:blocks:{step}")
    chosen = []
    for piece in rng.sample(pieces, s["pieces"]):
        rows = anchors_of(piece)
        chosen.append((piece, rows[sorted(rng.sample(range(len(rows)), min(len(rows), s["anchors"])))]))
    return blocks_of(chosen, width)


class Run:
    """The state of a training run in its folder."""

    def __init__(self, out, trunk, kind, schedule, start=None):
        self.out, self.kind = pathlib.Path(out), kind
        self.out.mkdir(parents=True, exist_ok=True)
        if not (self.out / "schedule.json").exists():
            (self.out / "schedule.json").write_text(json.dumps(schedule, indent=1))
        self.read_schedule()
        torch.manual_seed(schedule["seed"])
        self.drafter = DRAFTERS[kind](trunk)
        if start:
            checkpoint.load_drafter(self.drafter, start)
        self.optimiser = Optimiser(self.drafter, schedule["matrix_rate"], schedule["adam_rate"])
        self.step, self.seconds = 0, 0.0

    def read_schedule(self):
        """As in train.py, the file may be edited for steps still ahead."""
        schedule = json.loads((self.out / "schedule.json").read_text())
        self.schedule = dict(schedule, **schedule[self.kind])

    def save(self):
        part = self.out / "checkpoint.part"
        torch.save({"drafter": self.drafter.state_dict(), "optimiser": self.optimiser.state(), "step": self.step,
                    "seconds": self.seconds}, part)
        part.rename(self.out / "checkpoint.pt")

    def load(self):
        saved = torch.load(self.out / "checkpoint.pt", weights_only=True)
        self.drafter.load_state_dict(saved["drafter"])
        self.optimiser.load(saved["optimiser"])
        self.step, self.seconds = saved["step"], saved["seconds"]

    def train_step(self, pieces):
        s = self.schedule
        blocks = step_blocks(pieces, self.step, s, self.drafter.width)
        mode = Mode(fast=True, fp4=self.step >= s["fp4_from"])
        total, sums = loss(self.drafter, blocks, mode, entropy_weight(self.step, s))
        total.backward()
        for module in self.drafter.modules():
            if isinstance(module, MoE):
                module.balance()
        self.optimiser.step(rate(self.step, s))
        self.step += 1
        return sums

    def train(self, pieces):
        sums, mark, saved, stop = [], time.process_time(), time.time(), []
        signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
        while self.step < self.schedule["end"] and not stop:
            sums.append(self.train_step(pieces))
            now = time.process_time()
            self.seconds, mark = self.seconds + now - mark, now
            if self.step % LOG_STEPS == 0:
                self.log(sums)
                sums = []
                self.read_schedule()
            if time.time() - saved > SAVE_SECONDS:
                self.save()
                saved = time.time()
        self.save()

    def log(self, sums):
        def mean(key):
            return round(sum(t[key] for t in sums) / len(sums), 4)

        overlap, count = sum(t["overlap"] for t in sums), sum(t["count"] for t in sums)
        record = {"step": self.step, "cpu_seconds": round(self.seconds), "time": time.strftime("%H:%M:%S"),
                  "loss": mean("loss"), "overlap": [round(x, 3) for x in (overlap / count).tolist()],
                  "expected_length": mean("expected"), "confidence_bias": mean("bias"),
                  "rate": round(rate(self.step, self.schedule), 4)}
        with open(self.out / "log.jsonl", "a") as f:
            f.write(json.dumps(record) + "\n")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--checkpoint", required=True, help="folder of the trunk")
    ap.add_argument("--kind", choices=sorted(DRAFTERS), required=True)
    ap.add_argument("--answers", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--start", help="folder with a drafter of this kind to go on from")
    ap.add_argument("--resume", action="store_true")
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    folder = pathlib.Path(args.checkpoint)
    trunk = checkpoint.load(folder).requires_grad_(False)
    pieces = answers(pathlib.Path(args.answers), trunk, Tokenizer.from_file(str(folder / "tokenizer.json")), SCHEDULE)
    run = Run(args.out, trunk, args.kind, SCHEDULE, args.start)
    if args.resume and (run.out / "checkpoint.pt").exists():
        run.load()
    run.train(pieces)


if __name__ == "__main__":
    main()
