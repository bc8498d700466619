"""Answers in the trunk's own words, with what the trunk made of them: the training data of drafters.

The answer is sampled as if token by token, but by few forward passes: the generator's answer is the first guess; every
pass takes the trunk's token at each position (the position's own random number decides), keeps the guess up to the
first difference, puts the trunk's token there and goes on with the rest of the guess. What is left unchecked after the
last pass is cut off.
"""
import dataclasses
import random

import torch

from . import data
from .batches import EOS, fill, sequence
from .drafters import DSPARK, Blocks, Rows
from .model import Mode
from .packing import pack, segments

PASSES = 8
EXACT = Mode(fast=False, indexer=True, sparse=True)


@dataclasses.dataclass
class Piece:
    """The end of a conversation, from a window before its first answer token on; rows as in Rows."""
    tokens: torch.Tensor   # [R+1] int32, one more than there are rows
    first: int             # position of the first row
    targets: torch.Tensor  # [R] int32, the next token where it is the trunk's own, else -1
    means: torch.Tensor    # [R,S,H] bf16
    streams: torch.Tensor  # [R,4,H] bf16
    hidden: torch.Tensor   # [R,H] fp32


class Answer:
    """A conversation on its way to the trunk's own words."""

    def __init__(self, item, temperature, seed):
        self.tokens, self.targets, self.prompt = list(item[0]), list(item[1]), item[2]
        self.temperature = temperature
        self.uniform = torch.rand(len(self.tokens), generator=torch.Generator().manual_seed(seed))
        self.places = torch.tensor([i for i, t in enumerate(self.targets) if t >= 0])

    def own(self, logits):
        """The trunk's tokens at all answer places, given the logits [T,V] of the whole conversation."""
        logits = logits[self.places]
        if self.temperature == 0:
            return logits.argmax(-1)
        shares = (logits / self.temperature).softmax(-1).cumsum(-1)
        return (shares < self.uniform[self.places, None]).sum(-1).clamp_max(logits.shape[1] - 1)

    def check(self, logits, last):
        """Takes the trunk's token at the first difference; whether all rows now hold what they should."""
        own = self.own(logits)
        wrong = (own != torch.tensor([self.targets[i] for i in self.places])).nonzero()
        if not len(wrong):
            return True
        at, token = int(self.places[int(wrong[0])]), int(own[int(wrong[0])])
        ends = EOS in (token, self.targets[at])
        self.targets[at] = self.tokens[at + 1] = token
        if not ends and not last:
            return False
        self.tokens, self.targets = self.tokens[: at + 2], [*self.targets[: at + 1], -1]
        return True

    def piece(self, means, streams, hidden, window):
        low = max(0, int(self.places[0]) - window)
        high = len(self.tokens) - 1
        cut = slice(low, high)
        return Piece(torch.tensor(self.tokens[low:], dtype=torch.int32), low,
                     torch.tensor(self.targets[cut], dtype=torch.int32), means[cut].bfloat16(), streams[cut].bfloat16(),
                     hidden[cut].clone())


def run(model, answers, share):
    """(means, streams, hidden) of every conversation, from one pass over all of them."""
    items = [(a.tokens, a.targets, a.prompt) for a in answers]
    batch = pack(items, model.c.sliding_window, share=share)
    after = []
    hidden, streams, _ = model.hidden(batch, EXACT, after)
    means = torch.stack([after[n] for n in DSPARK["dspark_target_layer_ids"]], 1)
    paths = {tuple(batch.tokens[s.path].tolist()): s.path for s in segments(items, share)}
    for a in answers:
        path = paths[tuple(a.tokens)]
        yield means[path], streams[path], hidden[path]


@torch.no_grad()
def own_words(model, answers, share=False):
    """A Piece of every answer, in order."""
    pieces, waiting = {}, list(enumerate(answers))
    for turn in range(PASSES):
        rest = []
        for (n, a), (means, streams, hidden) in zip(waiting, run(model, [a for _, a in waiting], share)):
            if a.check(hidden @ model.head.T, turn == PASSES - 1):
                pieces[n] = a.piece(means, streams, hidden, model.c.sliding_window)
            else:
                rest.append((n, a))
        waiting = rest
        if not waiting:
            break
    return [pieces[n] for n in range(len(answers))]


def drawn(tokenizer, seed, step, tokens=1200):
    """([(tokens, targets, prompt length)], whether prompts are shared) of one pack of training conversations."""
    rng = random.Random(f"{seed}:drafter:{step}")
    if step % 3 == 1:
        chosen = data.choose_tools(rng)
        return [sequence(tokenizer, data.tool_conversation(rng, "train", chosen)) for _ in range(6)], True
    if step % 6 == 2:
        far = [data.draw(data.recall, rng, pairs=rng.randint(3, 6), filler=round(40 ** rng.random()), ask=1)
               for _ in range(3)]
        return [sequence(tokenizer, s) for s in far], False
    return fill(tokenizer, lambda: data.sample(rng, "train"), tokens), False


def pieces_of(model, tokenizer, seed, step):
    """The pieces of one pack; half of the answers are greedy, half sampled at temperature 1."""
    items, share = drawn(tokenizer, seed, step)
    return own_words(model, [Answer(item, n % 2, hash_seed(seed, step, n)) for n, item in enumerate(items)], share)


def hash_seed(*parts):
    return random.Random(":".join(map(str, parts))).getrandbits(62)


def anchors_of(piece):
    """Rows that hold an answer token behind which another one follows."""
    known = piece.targets >= 0
    return (known[1:] & known[:-1]).nonzero().flatten() + 1


def blocks_of(chosen, width):
    """Blocks of (piece, its anchor rows) pairs with `width` drafts."""
    anchor, start, labels, known, hidden, base = [], [], [], [], [], 0
    for piece, rows in chosen:
        last = len(piece.targets) - 1
        at = rows[:, None] + torch.arange(width)
        inside, at = at <= last, at.clamp_max(last)
        target = piece.targets[at].long()
        known.append((inside & (target >= 0)).int().cumprod(1))
        labels.append(target.clamp_min(0))
        hidden.append(piece.hidden[at])
        anchor.append(base + rows)
        start.append(torch.full_like(rows, base))
        base += last + 1
    pieces = [piece for piece, _ in chosen]
    rows = Rows(torch.cat([p.tokens[:-1].long() for p in pieces]),
                torch.cat([p.first + torch.arange(len(p.targets)) for p in pieces]),
                torch.cat([p.means for p in pieces]).float(), torch.cat([p.streams for p in pieces]).float())
    return Blocks(rows, torch.cat(anchor), torch.cat(start), torch.cat(labels), torch.cat(known), torch.cat(hidden))
