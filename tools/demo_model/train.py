"""Train the demonstration model: python -m demo_model.train --out DIR [--resume] (run in tools/).

DIR gets tokenizer.json, log.jsonl, checkpoint.pt (every few minutes, with optimiser state) and schedule.json. The data
of every step follows from the seed and the step number, so a run that was stopped (SIGTERM saves first) continues with
--resume as if nothing had happened. schedule.json may be edited while training for steps still ahead (to fit the time
left); its last version, given with --schedule, reproduces the run.
"""
import argparse
import json
import pathlib
import random
import signal
import time

import torch
from tokenizers import Tokenizer

from . import data, tokenizer as tokens_module
from .batches import sequence, step_batches
from .model import CONFIG, Mode, Model
from .optimiser import Optimiser
from .packing import pack

SCHEDULE = json.loads(pathlib.Path(__file__).with_name("schedule.json").read_text())
SAVE_SECONDS, LOG_STEPS, TEST_STEPS = 300, 20, 400
TESTS = {"about": data.about, "fact": data.fact, "capital": data.capital, "memory": data.memory,
         "arithmetic": data.arithmetic, "long_sum": data.long_sum, "compare": data.compare,
         "frame": data.frame, "copy": data.copy, "recall": data.recall,
         "recall_250": lambda rng, level: data.recall(rng, level, 5, 16, 1, 1),
         "recall_700": lambda rng, level: data.recall(rng, level, 5, 50, 1, 1),
         "json": data.json_form, "tools": None}


def hash_table(tokenizer, config, seed):
    """tid2eid [V,k]: experts dealt out by token frequency so that every expert gets an equal share."""
    count = torch.zeros(config["vocab_size"])
    rng = random.Random(f"{seed}:hash")
    for i in range(4000):
        s = data.tool_conversation(rng) if i % 8 == 0 else data.sample(rng)
        for t in sequence(tokenizer, s)[0][-120:]:
            count[t] += 1
    experts = config["n_routed_experts"]
    table, load = torch.zeros(config["vocab_size"], 2, dtype=torch.int64), torch.zeros(experts)
    for t in count.argsort(descending=True, stable=True).tolist():
        pair = load.argsort(stable=True)[:2]
        table[t] = pair
        load[pair] += count[t] + 1e-3
    return table


def rate(step, s):
    """Learning rate factor: linear between the points (step, factor) of the schedule."""
    points = s["rate"]
    for (a, low), (b, high) in zip(points, points[1:]):
        if step < b:
            return low + (high - low) * (step - a) / (b - a)
    return points[-1][1]


def phase_at(step, s):
    """The settings in force: every phase of the schedule changes some fields of the one before."""
    fields = {}
    for phase in s["phases"]:
        if step >= phase["from"]:
            fields.update(phase)
    return fields


def mode_at(step, s):
    phase = phase_at(step, s)
    return Mode(True, phase["index"], phase["sparse"], phase["mtp"], phase["fp4"], phase["frozen"])


def train_step(model, optimiser, batches, step, s):
    """One optimiser step; returns the sums that the log averages."""
    mode = mode_at(step, s)
    answers = sum(int((b.following >= 0).sum()) for b in batches)
    totals = {"loss": 0.0, "answers": answers, "correct": 0, "tokens": 0, "index": 0.0, "mtp": 0.0, "mtp_answers": 0}
    for batch in batches:
        main, _, index, extra, count, correct = model.loss(batch, mode)
        loss = main / answers + s["index_weight"] * index / len(batches) + s["mtp_weight"] * extra / answers
        loss.backward()
        totals["loss"] += main.item()
        totals["correct"] += correct
        totals["tokens"] += batch.real_tokens
        totals["index"] += float(index.detach()) / len(batches)
        totals["mtp"] += float(extra.detach())
        totals["mtp_answers"] += count
        for layer in [*([] if mode.frozen else model.layers), model.mtp.layer]:
            layer.ffn.balance()
    optimiser.step(rate(step, s))
    return totals


@torch.no_grad()
def exact_rates(model, tokenizer, mode, count=16):
    """Share of held-out conversations whose answer tokens are all right (teacher forcing), per kind."""
    out = {}
    for name, generator in TESTS.items():
        rng = random.Random(7)
        samples = [data.draw(generator, rng, "test") if generator else data.tool_conversation(rng, "test")
                   for _ in range(count)]
        items = [sequence(tokenizer, s) for s in samples]
        batch = pack(items, model.c.sliding_window)
        right = (model.logits(batch, mode).argmax(-1) == batch.following) | (batch.following < 0)
        at, exact = 0, 0
        for tokens, _, _ in items:
            exact += bool(right[at : at + len(tokens)].all())
            at += len(tokens)
        out[name] = round(exact / count, 3)
    return out


class Run:
    """The state of a training run in its folder."""

    def __init__(self, out, schedule, tokenizer=None):
        self.out = pathlib.Path(out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.schedule_file = self.out / "schedule.json"
        if not self.schedule_file.exists():
            self.schedule_file.write_text(json.dumps(schedule, indent=1))
        self.schedule = json.loads(self.schedule_file.read_text())
        seed = self.schedule["seed"]
        path = self.out / "tokenizer.json"
        if tokenizer and not path.exists():
            path.write_bytes(pathlib.Path(tokenizer).read_bytes())
        self.tokenizer = Tokenizer.from_file(str(path)) if path.exists() else tokens_module.train(path, seed=seed)
        torch.manual_seed(seed)
        self.model = Model(CONFIG)
        table = hash_table(self.tokenizer, CONFIG, seed)
        for layer in self.model.layers:
            if layer.ffn.hashed:
                layer.ffn.tid2eid.copy_(table)
        s = self.schedule
        self.optimiser = Optimiser(self.model, s["matrix_rate"], s["adam_rate"], s["index_rate"])
        self.step, self.seconds, self.tokens = 0, 0.0, 0

    def save(self):
        part = self.out / "checkpoint.part"
        torch.save({"model": self.model.state_dict(), "optimiser": self.optimiser.state(), "step": self.step,
                    "seconds": self.seconds, "tokens": self.tokens}, part)
        part.rename(self.out / "checkpoint.pt")

    def load(self):
        saved = torch.load(self.out / "checkpoint.pt", weights_only=True)
        self.model.load_state_dict(saved["model"])
        self.optimiser.load(saved["optimiser"])
        self.step, self.seconds, self.tokens = saved["step"], saved["seconds"], saved["tokens"]

    def log(self, record):
        with open(self.out / "log.jsonl", "a") as f:
            f.write(json.dumps(record) + "\n")

    def train(self):
        window, sums, mark = CONFIG["sliding_window"], [], time.process_time()
        saved, stop = time.time(), []
        signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
        while self.step < self.schedule["end"] and not stop:
            s = self.schedule
            if self.step == s["entries_from_keys"]:
                self.start_entries()
            level = min(1.0, self.step / s["level_steps"])
            batches = step_batches(self.tokenizer, s["seed"], self.step, phase_at(self.step, s), level, window)
            sums.append(train_step(self.model, self.optimiser, batches, self.step, s))
            self.step += 1
            now = time.process_time()
            self.seconds, mark = self.seconds + now - mark, now
            self.tokens += sums[-1]["tokens"]
            if self.step % LOG_STEPS == 0:
                self.log(self.summary(sums))
                sums = []
                self.schedule = json.loads(self.schedule_file.read_text())
            if self.step % TEST_STEPS == 0:
                self.log({"step": self.step, "exact": exact_rates(self.model, self.tokenizer, mode_at(self.step, s))})
            if time.time() - saved > SAVE_SECONDS:
                self.save()
                saved = time.time()
        self.save()

    def start_entries(self):
        """Once the window knows look-ups, the ratio-4 entries take over its keys; from noise they don't learn to match."""
        for layer in self.model.layers:
            if layer.ratio == 4:
                layer.attn.compressor.start_from(layer.attn.wkv, layer.attn.kv_norm)

    def summary(self, sums):
        total = {k: sum(t[k] for t in sums) for k in sums[0]}
        loads = [layer.ffn.load.float() for layer in self.model.layers if not layer.ffn.hashed]
        return {"step": self.step, "tokens": self.tokens, "cpu_seconds": round(self.seconds),
                "time": time.strftime("%H:%M:%S"), "loss": round(total["loss"] / total["answers"], 4),
                "token_accuracy": round(total["correct"] / total["answers"], 4),
                "index_kl": round(total["index"] / len(sums), 4),
                "mtp_loss": round(total["mtp"] / max(1, total["mtp_answers"]), 4),
                "rate": round(rate(self.step, self.schedule), 4),
                "max_load": round(max(float(x.max() / x.mean()) for x in loads), 2)}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", required=True)
    ap.add_argument("--schedule", help="JSON file with fields that replace the defaults")
    ap.add_argument("--tokenizer", help="tokenizer.json to use; without it one is trained")
    ap.add_argument("--resume", action="store_true")
    ap.add_argument("--threads", type=int, default=1)
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    schedule = dict(SCHEDULE, **(json.loads(pathlib.Path(args.schedule).read_text()) if args.schedule else {}))
    run = Run(args.out, schedule, args.tokenizer)
    if args.resume:
        run.load()
    run.train()


if __name__ == "__main__":
    main()
