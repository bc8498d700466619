"""Measures how much of a drafter's blocks its trunk accepts, on held-out conversations, kind by kind.

python -m demo_model.acceptance --checkpoint FOLDER [--drafter FOLDER] [--count N] [--report FILE] [--golden FILE]
python -m demo_model.acceptance --server http://127.0.0.1:8000 [--count N] [--report FILE]
(run in tools/)

The answers are the trunk's own (answers.py), greedy and sampled at temperature 1. Greedy: the drafts behind every token
are computed at once, then an answer is walked through as an engine would, and the accept length is the number of tokens
per verification, the trunk's own one included; answers are short, so their last verification is often cut off by the
end. At temperature 1 it is what rejection sampling accepts on average: the overlap of both distributions. --golden
writes prompts with greedy answers and the tokens accepted in every verification, which any engine must reproduce.

A server must draft in every step ("adaptive": false) and serve nobody else meanwhile: its counters are read.
"""
import argparse
import json
import pathlib
import re
import urllib.request

import torch
from tokenizers import Tokenizer

from . import checkpoint
from .answers import EXACT, Answer, anchors_of, blocks_of, own_words
from .batches import last_turn
from .drafters import DRAFTERS, overlap
from .evaluate import ServerBackend, samples

GROUP = 16  # conversations at a time
ROUNDS = re.compile(r"^vllm:spec_decode_num_drafts(?:_total)?(?:\{[^}]*\})? (\S+)", re.M)


def greedy(logits, _):
    return logits.argmax(-1)


def lengths(accepted, total):
    """Tokens gained per verification of an answer: `accepted` [A] drafts behind each of its tokens but the last."""
    out, at = [], 0
    while at < total:
        out.append(min(int(accepted[at]) + 1, total - at))
        at += out[-1]
    return out


@torch.no_grad()
def greedy_lengths(drafter, pieces, width):
    """[[tokens per verification] of each piece], with at most `width` drafts."""
    out = []
    for piece in pieces:
        blocks = blocks_of([(piece, anchors_of(piece))], drafter.width)
        _, _, tokens = drafter(blocks, EXACT, greedy)
        same = ((tokens == blocks.labels) & (blocks.known > 0))[:, :width]
        out.append(lengths(same.int().cumprod(1).sum(1), len(same)))
    return out


@torch.no_grad()
def sampled(drafter, pieces):
    """(sum over blocks of 1 + expected accepted drafts, overlap per slot, counts per slot, confidence - overlap)."""
    blocks = blocks_of([(p, anchors_of(p)) for p in pieces], drafter.width)
    logits, confidence, _ = drafter(blocks, EXACT)
    share = overlap(logits, blocks, drafter.trunk[0].head)[0] * blocks.known
    bias = torch.zeros(()) if confidence is None else ((confidence.sigmoid() - share) * blocks.known).sum(0)
    return (1 + share.cumprod(1).sum(1)).sum(), share.sum(0), blocks.known.sum(0), bias


def answers_of(model, tokenizer, group, temperature):
    """The trunk's own last turns."""
    out = []
    for at in range(0, len(group), GROUP):
        items = [last_turn(tokenizer, s) for s in group[at : at + GROUP]]
        out += own_words(model, [Answer(item, temperature, at + n) for n, item in enumerate(items)])
    return [p for p in out if len(anchors_of(p))]


def measure(drafter, plain, random, widths):
    """The numbers of one kind of conversation from its greedy and its sampled answers."""
    out = {}
    for width in widths:
        steps = sum(greedy_lengths(drafter, plain, width), [])
        out[f"greedy, {width} drafts"] = [sum(steps), len(steps)]
    parts = [sampled(drafter, random[at : at + GROUP]) for at in range(0, len(random), GROUP)]
    total, share, count, bias = (sum(p[n] for p in parts) for n in range(4))
    out["sampled"] = [float(total), int(count[0])]
    out["overlap"], out["count"], out["bias"] = share.tolist(), count.tolist(), bias.tolist()
    return out


def summary(kinds):
    """Over all kinds: overlap with the trunk and bias of the confidence per slot."""
    out, count = {}, torch.tensor([k["count"] for k in kinds.values()]).sum(0)
    for name in ("overlap", "bias"):
        value = torch.tensor([k[name] for k in kinds.values()]).sum(0) / count
        out[name] = [round(float(x), 4) for x in value.reshape(-1)]
    return out


def table(kinds, names):
    """Markdown: a row per kind and one for all."""
    rows = ["| held-out conversations | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    rows += [f"| {kind} | " + " | ".join(f"{v[n][0] / v[n][1]:.2f}" for n in names) + " |" for kind, v in kinds.items()]
    whole = {n: sum(k[n][0] for k in kinds.values()) / sum(k[n][1] for k in kinds.values()) for n in names}
    return "\n".join([*rows, "| all, per verification | " + " | ".join(f"{whole[n]:.2f}" for n in names) + " |"])


def through_server(backend, groups):
    """kind -> {greedy, sampled: [tokens but the first of every answer, verifications]}."""
    def rounds():
        return float(ROUNDS.search(urllib.request.urlopen(backend.url + "/metrics").read().decode()).group(1))

    kinds = {}
    for kind, group in groups.items():
        kinds[kind] = {}
        for name, temperature in (("greedy", 0), ("sampled", 1)):
            before = rounds()
            said = [backend.complete(s, temperature=temperature, seed=n) for n, s in enumerate(group)]
            tokens = sum(d["usage"]["completion_tokens"] - 1 for d in said)
            kinds[kind][name] = [tokens, rounds() - before]
    return kinds


def golden(drafter, model, tokenizer, groups, widths, per_kind=1, longest=400):
    """Cases for other engines: prompt tokens, greedy answer and tokens per verification for each number of drafts."""
    cases = []
    for kind, group in groups.items():
        items = [last_turn(tokenizer, s) for s in group[:per_kind]]
        items = [item for item in items if len(item[0]) <= longest]
        for item, piece in zip(items, own_words(model, [Answer(item, 0, 0) for item in items])):
            tokens = item[0][: piece.first] + piece.tokens.tolist()
            cases.append({"kind": kind, "prompt": tokens[: item[2]], "answer": tokens[item[2] :], "lengths": {
                str(w): greedy_lengths(drafter, [piece], w)[0] for w in widths}})
    return cases


def in_torch(args, groups):
    """Measures, or writes the golden cases of, a drafter folder; (kinds, column names) or None."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    folder = pathlib.Path(args.checkpoint)
    source = pathlib.Path(args.drafter or folder)
    kind = "dspark" if "dspark_block_size" in json.loads((source / "config.json").read_text()) else "mtp"
    model, tokenizer = checkpoint.load(folder).requires_grad_(False), Tokenizer.from_file(str(folder / "tokenizer.json"))
    drafter = checkpoint.load_drafter(DRAFTERS[kind](model), source)
    widths = [drafter.width] if kind == "dspark" else range(1, drafter.width + 1)
    if args.golden:
        cases = golden(drafter, model, tokenizer, groups, widths)
        pathlib.Path(args.golden).write_text(json.dumps({"kind": kind, "cases": cases}))
        return None
    kinds = {name: measure(drafter, *(answers_of(model, tokenizer, group, t) for t in (0, 1)), widths)
             for name, group in groups.items()}
    return kinds, [f"greedy, {w} drafts" for w in widths] + ["sampled"]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = ap.add_mutually_exclusive_group(required=True)
    where.add_argument("--checkpoint", help="folder of the trunk")
    where.add_argument("--server", help="base URL")
    ap.add_argument("--drafter", help="folder with the drafter (default: that of the trunk)")
    ap.add_argument("--count", type=int, default=20)
    ap.add_argument("--only", default="", help="regular expression for the kinds to measure")
    ap.add_argument("--report", help="write the numbers as JSON")
    ap.add_argument("--golden", help="write cases for other engines instead of measuring")
    args = ap.parse_args()
    groups = samples(args.count, args.only)
    measured = (through_server(ServerBackend(args.server), groups), ["greedy", "sampled"]) if args.server else (
        in_torch(args, groups))
    if measured is None:
        return
    kinds, names = measured
    more = {} if args.server else summary(kinds)
    print(table(kinds, names), json.dumps(more), sep="\n")
    if args.report:
        pathlib.Path(args.report).write_text(json.dumps({"count": args.count, "kinds": kinds, **more}, indent=1))


if __name__ == "__main__":
    main()
