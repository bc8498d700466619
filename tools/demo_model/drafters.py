"""Trainable drafters of a frozen DeepSeek-V4: three DSpark stages, and an MTP block that is fed its own output.

Both draft a block of tokens behind an anchor at position P, whose own streams are not known yet: they read what the
trunk made of the positions before P. Legend: R context rows, N blocks, G drafts of a block, W window, V vocabulary.
Parameter names are the official tensor names inside a block; `place` says which block holds a parameter.
"""
import dataclasses

import torch
import torch.nn.functional as F
from torch import nn

from .kernels import HcPost, linear, rms
from .model import HyperHead, Layer, Mtp, matrix, ones

DSPARK = {"dspark_block_size": 5, "dspark_noise_token_id": 8, "dspark_target_layer_ids": [3, 4, 5],
          "dspark_markov_rank": 32}
DISTANCE_WEIGHT = 0.9


@dataclasses.dataclass
class Rows:
    """What the trunk made of the positions that blocks may see."""
    tokens: torch.Tensor    # [R] int64
    position: torch.Tensor  # [R]
    means: torch.Tensor     # [R,S,H] mean streams after the captured layers
    streams: torch.Tensor   # [R,4,H] after the last layer


@dataclasses.dataclass
class Blocks:
    rows: Rows
    anchor: torch.Tensor    # [N] row of the anchor
    start: torch.Tensor     # [N] first row of its conversation
    labels: torch.Tensor    # [N,G] the trunk's own tokens behind the anchor, 0 where there is none
    known: torch.Tensor     # [N,G] whether label j and all before it exist
    hidden: torch.Tensor    # [N,G,H] the trunk's normed output that predicts label j

    def window(self, end, width):
        """(index [N,width] of the rows before row `end` [N], whether they belong to the conversation)."""
        index = end[:, None] + torch.arange(-width, 0)
        return index.clamp_min(0), index >= self.start[:, None]


class DraftLayer(Layer):
    """An uncompressed layer whose queries see given keys of the context and the rows of their own block."""

    def __init__(self, c):
        super().__init__(c, 0, False)

    def forward(self, x, at, context, mask, mode):
        """Streams x [N*G,4,H] at positions at[0]; context keys [N,K,D]; mask [N,G,K+G]. Returns (streams, own keys)."""
        y, post, comb = self.hc_attn(x)
        y = rms(y, self.attn_norm)
        own = self.attn.keys(y, at, mode.fast).view(len(context), -1, context.shape[2])
        _, q = self.attn.queries(y, at, mode.fast)
        keys = torch.cat([context, own], 1)
        o = self.attn.attend(self.attn.chunked(q, len(keys)), keys, mask, at, mode.fast)
        x = HcPost.apply(o, x, post, comb)
        y, post, comb = self.hc_ffn(x)
        return HcPost.apply(self.ffn(rms(y, self.ffn_norm), None, mode), x, post, comb), own


def take(parameters, source):
    """Copies what a module of the trunk has under the same names."""
    with torch.no_grad():
        given = dict([*source.named_parameters(), *source.named_buffers()])
        for name, p in [*parameters.named_parameters(), *parameters.named_buffers()]:
            p.copy_(given[name])


def gather(rows, index):
    """rows[index] whose gradient adds up fast."""
    return F.embedding(index, rows)


class Dspark(nn.Module):
    """Stages that fill a block at once, a Markov chain over its tokens, and a head that says how sure it is."""

    kind, width, decay = "dspark", DSPARK["dspark_block_size"], 0.75

    def __init__(self, trunk):
        super().__init__()
        self.c, self.trunk = trunk.c, [trunk]  # the trunk's parameters are not the drafter's
        hidden, layers, rank = self.c.hidden_size, DSPARK["dspark_target_layer_ids"], DSPARK["dspark_markov_rank"]
        self.stages = nn.ModuleList(DraftLayer(self.c) for _ in layers)
        for stage, n in zip(self.stages, layers):
            take(stage, trunk.layers[n])
        self.main_proj = nn.Parameter(torch.cat([torch.zeros(hidden, (len(layers) - 1) * hidden), torch.eye(hidden)], 1))
        self.main_norm, self.norm, self.hc_head = ones(hidden), nn.Parameter(trunk.norm.detach().clone()), HyperHead(self.c)
        take(self.hc_head, trunk.hc_head)
        self.markov_head, self.confidence_head = nn.Module(), nn.Module()
        self.markov_head.markov_w1 = nn.Parameter(torch.randn(self.c.vocab_size, rank) * 0.1)
        self.markov_head.markov_w2 = nn.Parameter(torch.zeros(self.c.vocab_size, rank))
        self.confidence_head.proj = nn.Parameter(torch.zeros(1, hidden + rank))

    def place(self, name):
        """(official prefix, name inside that block) of a parameter."""
        if name.startswith("stages."):
            _, stage, rest = name.split(".", 2)
            return f"mtp.{stage}.", rest
        return ("mtp.0." if name.startswith("main_") else f"mtp.{len(self.stages) - 1}."), name

    def forward(self, blocks, mode, choose=None):
        """(logits [N,G,V], confidence logits [N,G], tokens [N,G]); after the labels, or after what `choose` takes."""
        trunk, rows, count = self.trunk[0], blocks.rows, len(blocks.anchor)
        main = rms(linear(rows.means.flatten(1), self.main_proj, mode.fast), self.main_norm)
        ids = torch.full((count, self.width), DSPARK["dspark_noise_token_id"])
        ids[:, 0] = rows.tokens[blocks.anchor]
        position = (rows.position[blocks.anchor][:, None] + torch.arange(self.width)).flatten()
        table = trunk.tables(int(rows.position.max()) + self.width + 1)[0]
        index, seen = blocks.window(blocks.anchor, self.c.sliding_window)
        mask = F.pad(seen, (0, self.width), value=True)[:, None].expand(-1, self.width, -1).to(torch.uint8)
        x = F.embedding(ids.flatten(), trunk.embed)[:, None].expand(-1, self.c.hc_mult, -1).contiguous()
        for stage in self.stages:
            context = gather(stage.attn.keys(main, (rows.position, *table), mode.fast), index)
            x, _ = stage(x, (position, *table), context, mask, mode)
        z = self.hc_head(x)
        base = linear(rms(z, self.norm), trunk.head, mode.fast).view(count, self.width, -1)
        return self.chain(base, z.view(count, self.width, -1), ids[:, 0], blocks.labels, choose)

    def chain(self, base, z, previous, labels, choose):
        w1, w2 = self.markov_head.markov_w1, self.markov_head.markov_w2
        if choose is None:
            before = F.embedding(torch.cat([previous[:, None], labels[:, :-1]], 1), w1)
            return base + before @ w2.T, (torch.cat([z, before], 2) @ self.confidence_head.proj.T)[..., 0], labels
        logits, confidence, tokens = [], [], []
        for j in range(self.width):
            before = w1[previous]
            logits.append(base[:, j] + before @ w2.T)
            confidence.append((torch.cat([z[:, j], before], 1) @ self.confidence_head.proj.T)[:, 0])
            previous = choose(logits[-1], j)
            tokens.append(previous)
        return torch.stack(logits, 1), torch.stack(confidence, 1), torch.stack(tokens, 1)


class MtpDrafter(Mtp):
    """The trunk's MTP block, going on from its own streams and drafts."""

    kind, width, decay = "mtp", 3, 0.6

    def __init__(self, trunk):
        super().__init__(trunk.c)
        self.c, self.trunk = trunk.c, [trunk]
        self.layer = DraftLayer(trunk.c)
        if trunk.mtp is not None:
            take(self, trunk.mtp)

    def place(self, name):
        return "mtp.0.", name.removeprefix("layer.")

    def mix(self, streams, tokens, fast):
        """The block's input [R,4,H] from the streams of a position and the token behind it."""
        e = linear(rms(F.embedding(tokens, self.trunk[0].embed), self.enorm), self.e_proj, fast)
        h = linear(rms(streams.contiguous(), self.hnorm).flatten(0, 1), self.h_proj, fast).view_as(streams)
        return (e[:, None] + h).contiguous()

    def forward(self, blocks, mode, choose=None):
        """As Dspark.forward; MTP has no confidence head, so None in its place."""
        trunk, rows, width = self.trunk[0], blocks.rows, self.c.sliding_window
        following = torch.cat([rows.tokens[1:], rows.tokens[-1:]])
        table = trunk.tables(int(rows.position.max()) + self.width + 1)[0]
        y, _, _ = self.layer.hc_attn(self.mix(rows.streams, following, mode.fast))
        keys = self.layer.attn.keys(rms(y, self.layer.attn_norm), (rows.position, *table), mode.fast)
        pair = blocks.anchor - 1
        index, seen = blocks.window(pair, width)
        context, streams, previous = gather(keys, index), rows.streams[pair], rows.tokens[blocks.anchor]
        logits, tokens = [], []
        for j in range(self.width):
            at = (rows.position[pair] + j, *table)
            near = seen & (torch.arange(width) > j)  # the window moves on with the block
            mask = F.pad(near, (0, j + 1), value=True)[:, None].to(torch.uint8)
            streams, own = self.layer(self.mix(streams, previous, mode.fast), at, context, mask, mode)
            context = torch.cat([context, own], 1)
            logits.append(linear(rms(self.hc_head(streams), self.norm), trunk.head, mode.fast))
            previous = blocks.labels[:, j] if choose is None else choose(logits[-1], j)
            tokens.append(previous)
        return torch.stack(logits, 1), None, torch.stack(tokens, 1)


DRAFTERS = {"dspark": Dspark, "mtp": MtpDrafter}


def overlap(logits, blocks, head, fast=False):
    """(1 - total variation to the trunk's distribution [N,G], its gradient-carrying double distance)."""
    with torch.no_grad():
        wanted = linear(blocks.hidden.flatten(0, 1), head, fast).view_as(logits).softmax(-1)
    distance = (logits.softmax(-1) - wanted).abs().sum(-1)
    return 1 - distance.detach() / 2, distance


def loss(drafter, blocks, mode, entropy_weight):
    """(loss, sums for the log): cross entropy and distance to the trunk's distribution, and the confidence's error.

    Later slots weigh less, and the confidence of a slot learns its overlap with the trunk.
    """
    logits, confidence, _ = drafter(blocks, mode)
    overlaps, distance = overlap(logits, blocks, drafter.trunk[0].head, mode.fast)
    weight = blocks.known * drafter.decay ** torch.arange(drafter.width)
    weight = weight / weight.sum()
    entropy = F.cross_entropy(logits.flatten(0, 1), blocks.labels.flatten(), reduction="none").view_as(weight)
    total = (weight * (entropy_weight * entropy + DISTANCE_WEIGHT * distance)).sum()
    if confidence is not None:
        error = F.binary_cross_entropy_with_logits(confidence, overlaps.clamp(0, 1), reduction="none")
        total = total + (weight * error).sum()
    known = blocks.known.float()
    sums = {"loss": total.item(), "count": known.sum(0), "overlap": (overlaps * known).sum(0),
            "expected": float((1 + (overlaps * known).cumprod(1).sum(1)).mean()),
            "bias": float(((confidence.detach().sigmoid() - overlaps) * known).sum() / known.sum())
            if confidence is not None else 0.0}
    return total, sums
