"""Trainable DeepSeek-V4: sliding window, ratio-4 and ratio-128 compression with indexer, hyper-connections, hash and
learned routing, one MTP block. Runs on packed conversations (packing.py). Legend: T tokens, H hidden, D head dim,
C chunks, Q queries of a chunk, K keys, E entries or experts.

Parameter names are the official tensor names with dots where modules nest; export.py lists the few that differ.
"""
import json
import math
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

from .kernels import HcPost, HcPre, NormRope, Pool, SinkSoftmax, Swiglu, linear, rms
from .quantisation import fp4_straight_through

CONFIG = json.loads(pathlib.Path(__file__).with_name("config.json").read_text())
LOAD_STEP = 0.002  # how far a selection bias moves per optimiser step


class Config:
    """The fields of config.json as attributes."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


def frequencies(c, compressed):
    """Rotation frequencies [rot/2], fp32 in the official order of roundings; YaRN for compressed layers."""
    dim, base = c.qk_rope_head_dim, c.compress_rope_theta if compressed else c.rope_theta
    f = 1.0 / (torch.tensor(float(base)) ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    if not compressed:
        return f
    y = c.rope_scaling

    def turns(n):
        return dim * math.log(y["original_max_position_embeddings"] / (n * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(turns(y["beta_fast"])), 0), min(math.ceil(turns(y["beta_slow"])), dim - 1)
    keep = 1 - ((torch.arange(dim // 2, dtype=torch.float32) - low) / (high - low or 0.001)).clamp(0, 1)
    return f / y["factor"] * (1 - keep) + f * keep


def matrix(rows, columns, gain=1.0):
    return nn.Parameter(torch.randn(rows, columns) * gain / math.sqrt(columns))


def ones(n):
    return nn.Parameter(torch.ones(n))


class HyperConnection(nn.Module):
    """Mixing of four residual streams around a sub-layer. Starts as an ordinary residual network."""

    def __init__(self, c):
        super().__init__()
        n = c.hc_mult
        self.fn = nn.Parameter(torch.randn(n * (n + 2), n * c.hidden_size) * 0.02 / math.sqrt(n))
        self.scale = nn.Parameter(torch.full((3,), 0.3))
        base = torch.zeros(n * (n + 2))
        base[:n] = -math.log(n - 1)
        base[2 * n :] = 4 * torch.eye(n).flatten()
        self.base = nn.Parameter(base)
        self.iterations, self.eps = c.hc_sinkhorn_iters, c.hc_eps

    def forward(self, x):
        return HcPre.apply(x, self.fn, self.scale, self.base, self.iterations, self.eps)


class HyperHead(nn.Module):
    """Weighted sum of the streams after the last layer."""

    def __init__(self, c):
        super().__init__()
        n = c.hc_mult
        self.fn = nn.Parameter(torch.randn(n, n * c.hidden_size) * 0.02 / math.sqrt(n))
        self.base, self.scale = nn.Parameter(torch.full((n,), -math.log(n - 1))), nn.Parameter(torch.tensor([0.3]))
        self.eps = c.hc_eps

    def forward(self, x):
        flat = x.flatten(1)
        m = (flat @ self.fn.T) * torch.rsqrt(flat.square().mean(-1, keepdim=True) + 1e-6)
        return ((torch.sigmoid(m * self.scale + self.base) + self.eps)[:, :, None] * x).sum(1)


class Compressor(nn.Module):
    """Pools `ratio` tokens (ratio 4: with the four before) into one entry. Starts as mean pooling."""

    def __init__(self, c, ratio, dim):
        super().__init__()
        width = dim * (2 if ratio == 4 else 1)
        self.ratio = ratio
        self.wkv = matrix(width, c.hidden_size)
        self.wgate = nn.Parameter(torch.zeros(width, c.hidden_size))
        self.ape = nn.Parameter(torch.zeros(ratio, width))
        self.norm = ones(dim)

    @torch.no_grad()
    def start_from(self, wkv, norm):
        """Makes an entry the plain mean of its tokens' window keys, so that queries which match those match it too."""
        self.wkv.copy_(wkv.repeat(len(self.wkv) // len(wkv), 1))
        self.norm.copy_(norm)
        self.wgate.zero_()
        self.ape.zero_()

    def forward(self, x, batch, tables, fast):
        """Entries [E,D]."""
        e = Pool.apply(linear(x, self.wkv, fast), linear(x, self.wgate, fast), self.ape, batch.entries[self.ratio])
        return NormRope.apply(e, self.norm, True, (batch.entry_position[self.ratio], *tables), 1.0)


class Indexer(nn.Module):
    """Scores compressed entries per query; trained to follow the attention it selects for."""

    def __init__(self, c):
        super().__init__()
        self.heads, self.dim, self.topk = c.index_n_heads, c.index_head_dim, c.index_topk
        self.wq_b = matrix(self.heads * self.dim, c.q_lora_rank)
        self.weights_proj = matrix(self.heads, c.hidden_size)
        self.compressor = Compressor(c, 4, self.dim)

    def forward(self, x, latent, batch, tables, fast):
        """Scores [C,Q,K] of the entries in batch.compressed[4]; gradients stay inside the indexer."""
        x, latent, keys = x.detach(), latent.detach(), batch.compressed[4]
        k = self.compressor(x, batch, tables, fast)[keys.index]  # [C,K,D]
        q = NormRope.apply(linear(latent, self.wq_b, fast).view(-1, self.heads, self.dim), None, False,
                           (batch.position, *tables), 1.0)
        w = (x @ self.weights_proj.T) * (self.heads * self.dim) ** -0.5
        chunks, queries = keys.index.shape[0], keys.mask.shape[1]
        q = q.view(chunks, queries, self.heads, self.dim).transpose(1, 2).reshape(chunks, -1, self.dim)
        dots = F.relu(torch.bmm(q, k.transpose(1, 2))).view(chunks, self.heads, queries, -1)
        return (dots * w.view(chunks, queries, self.heads, 1).transpose(1, 2)).sum(1)


class Attention(nn.Module):
    def __init__(self, c, ratio):
        super().__init__()
        self.c, self.ratio = c, ratio
        heads, dim, hidden = c.num_attention_heads, c.head_dim, c.hidden_size
        self.wq_a, self.q_norm = matrix(c.q_lora_rank, hidden), ones(c.q_lora_rank)
        self.wq_b = matrix(heads * dim, c.q_lora_rank)
        self.wkv, self.kv_norm = matrix(dim, hidden), ones(dim)
        group = heads * dim // c.o_groups
        self.wo_a = nn.Parameter(torch.randn(c.o_groups, c.o_lora_rank, group) / math.sqrt(group))
        self.wo_b = matrix(hidden, c.o_groups * c.o_lora_rank, 0.5)
        self.attn_sink = nn.Parameter(torch.zeros(heads))
        if ratio:
            self.compressor = Compressor(c, ratio, dim)
        if ratio == 4:
            self.indexer = Indexer(c)

    def queries(self, x, at, fast):
        """(latents [T,L], rotated queries [T,heads,D]) of x [T,H]; at = (positions, cosines, sines)."""
        latent = rms(linear(x, self.wq_a, fast), self.q_norm)
        q = linear(latent, self.wq_b, fast).view(len(x), self.c.num_attention_heads, self.c.head_dim)
        return latent, NormRope.apply(q, None, True, at, 1.0)

    def keys(self, x, at, fast):
        """Rotated keys [T,D], which are the values too."""
        return NormRope.apply(linear(x, self.wkv, fast), self.kv_norm, True, at, 1.0)

    def attend(self, q, keys, mask, at, fast):
        """Output [T,H] of queries [C,heads*Q,D] over keys [C,K,D] where mask [C,Q,K] says so; T = C*Q."""
        c, (chunks, queries) = self.c, mask.shape[:2]
        heads, dim = c.num_attention_heads, c.head_dim
        scores = torch.bmm(q, keys.transpose(1, 2)).view(chunks, heads, queries, -1)
        p = SinkSoftmax.apply(scores, self.attn_sink, mask.contiguous(), dim**-0.5)
        o = torch.bmm(p.view(chunks, heads * queries, -1), keys).view(chunks, heads, queries, dim)
        o = NormRope.apply(o.transpose(1, 2).reshape(-1, heads, dim), None, False, at, -1.0)
        o = torch.cat([linear(g, w, fast) for g, w in zip(
            o.view(len(o), c.o_groups, -1).unbind(1), self.wo_a.unbind(0))], 1)
        return linear(o, self.wo_b, fast)

    def chunked(self, q, chunks):
        """Queries [T,heads,D] as [C,heads*Q,D]."""
        heads, dim = q.shape[1:]
        return q.view(chunks, -1, heads, dim).transpose(1, 2).reshape(chunks, -1, dim)

    def forward(self, x, batch, tables, mode):
        """x [T,H] -> [T,H]; also the indexer's loss (or None)."""
        fast, at = mode.fast, (batch.position, *tables)
        latent, q = self.queries(x, at, fast)
        keys, mask, loss = self.keys(x, at, fast)[batch.raw.index], batch.raw.mask, None
        q = self.chunked(q, len(mask))
        if self.ratio and len(batch.entries[self.ratio]):
            listed = batch.compressed[self.ratio]
            e = self.compressor(x, batch, tables, fast)[listed.index]
            seen = listed.mask
            if self.ratio == 4 and mode.indexer and seen.shape[2] > 1:
                loss, seen = self.select(q, e, seen, self.indexer(x, latent, batch, tables, fast), mode)
            keys, mask = torch.cat([keys, e], 1), torch.cat([mask, seen], 2)
        return self.attend(q, keys, mask, at, fast), loss

    def select(self, q, e, seen, index_scores, mode):
        """(KL of indexer to attention over the seen entries, mask after top-k if mode.sparse)."""
        chunks, queries, n = seen.shape
        visible = seen.bool()
        masked = index_scores.masked_fill(~visible, -1e30)
        with torch.no_grad():
            z = torch.bmm(q, e.transpose(1, 2)).view(chunks, -1, queries, n) * self.c.head_dim**-0.5
            target = z.masked_fill(~visible[:, None], -1e30).softmax(-1).mean(1)
        many = visible.sum(-1) > (self.indexer.topk if mode.sparse else 8)
        loss = -(target * masked.log_softmax(-1)).masked_fill(~visible, 0).sum(-1)
        entropy = -(target * target.clamp_min(1e-9).log()).sum(-1)
        loss = ((loss - entropy) * many).sum() / many.sum().clamp_min(1)
        if mode.sparse and n > self.indexer.topk:
            order = masked.detach().argsort(dim=-1, descending=True, stable=True)  # ties to the older entry
            chosen = torch.zeros_like(visible).scatter_(-1, order[..., : self.indexer.topk], True)
            seen = (visible & chosen).to(torch.uint8)
        return loss, seen


class MoE(nn.Module):
    def __init__(self, c, hashed):
        super().__init__()
        self.c, self.hashed = c, hashed
        experts, width, hidden = c.n_routed_experts, c.moe_intermediate_size, c.hidden_size
        self.gate = matrix(experts, hidden)
        self.w13 = nn.Parameter(torch.randn(experts, 2 * width, hidden) / math.sqrt(hidden))
        self.w2 = nn.Parameter(torch.randn(experts, hidden, width) * 0.5 / math.sqrt(width))
        self.shared13, self.shared2 = matrix(2 * width, hidden), matrix(hidden, width, 0.5)
        if hashed:
            self.register_buffer("tid2eid", torch.zeros(c.vocab_size, c.num_experts_per_tok, dtype=torch.int64))
        else:
            self.register_buffer("bias", torch.zeros(experts))
        self.load = None

    def forward(self, x, tokens, mode):
        c, fast = self.c, mode.fast
        w13, w2 = (fp4_straight_through(self.w13), fp4_straight_through(self.w2)) if mode.fp4 else (self.w13, self.w2)
        scores = F.softplus(x @ self.gate.T).sqrt()
        chosen = self.tid2eid[tokens] if self.hashed else (
            scores.detach() + self.bias).topk(c.num_experts_per_tok, -1).indices
        weight = scores.gather(1, chosen)
        weight = weight / weight.sum(-1, keepdim=True) * c.routed_scaling_factor
        flat = chosen.flatten()
        self.load = torch.bincount(flat, minlength=c.n_routed_experts)
        order = flat.argsort(stable=True)
        rows = order // c.num_experts_per_tok
        sorted_x, sorted_weight, outs, at = x[rows], weight.flatten()[order], [], 0
        for e, n in enumerate(self.load.tolist()):
            if n:
                h = Swiglu.apply(linear(sorted_x[at : at + n], w13[e], fast),
                                 sorted_weight[at : at + n].contiguous(), c.swiglu_limit)
                outs.append(linear(h, w2[e], fast))
                at += n
        out = linear(Swiglu.apply(linear(x, self.shared13, fast), None, c.swiglu_limit), self.shared2, fast)
        return out.index_add(0, rows, torch.cat(outs))

    def balance(self):
        """Loss-free load balancing: moves the selection bias against the last load."""
        if not self.hashed and self.load is not None:
            load = self.load.float()
            self.bias += LOAD_STEP * torch.sign(load.mean() - load)


class Layer(nn.Module):
    def __init__(self, c, ratio, hashed):
        super().__init__()
        self.ratio = ratio
        self.attn, self.ffn = Attention(c, ratio), MoE(c, hashed)
        self.hc_attn, self.hc_ffn = HyperConnection(c), HyperConnection(c)
        self.attn_norm, self.ffn_norm = ones(c.hidden_size), ones(c.hidden_size)

    def forward(self, x, tokens, batch, tables, mode):
        y, post, comb = self.hc_attn(x)
        o, loss = self.attn(rms(y, self.attn_norm), batch, tables[self.ratio > 0], mode)
        x = HcPost.apply(o, x, post, comb)
        y, post, comb = self.hc_ffn(x)
        return HcPost.apply(self.ffn(rms(y, self.ffn_norm), tokens, mode), x, post, comb), loss


class Mtp(nn.Module):
    """Predicts the token after next from the final streams and the next token."""

    def __init__(self, c):
        super().__init__()
        self.e_proj, self.h_proj = matrix(c.hidden_size, c.hidden_size), matrix(c.hidden_size, c.hidden_size)
        self.enorm, self.hnorm, self.norm = ones(c.hidden_size), ones(c.hidden_size), ones(c.hidden_size)
        self.layer, self.hc_head = Layer(c, 0, False), HyperHead(c)

    def forward(self, x, embedded, following, batch, tables, mode):
        e = linear(rms(embedded, self.enorm), self.e_proj, mode.fast)
        h = linear(rms(x, self.hnorm).flatten(0, 1), self.h_proj, mode.fast).view_as(x)
        x, _ = self.layer((e[:, None] + h).contiguous(), following, batch, tables, mode)
        return rms(self.hc_head(x), self.norm)


class Mode:
    """How to run: fast = bf16 products; indexer = compute its scores and loss; sparse = apply its top-k; mtp =
    its loss too; fp4 = round the routed experts' weights; frozen = no gradients but those of the MTP block."""

    def __init__(self, fast=True, indexer=False, sparse=False, mtp=False, fp4=False, frozen=False):
        self.fast, self.indexer, self.sparse, self.mtp, self.fp4 = fast, indexer, sparse, mtp, fp4
        self.frozen = frozen


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        c = self.c = Config(**config)
        self.embed = nn.Parameter(torch.randn(c.vocab_size, c.hidden_size) * 0.5)
        self.head = nn.Parameter(torch.randn(c.vocab_size, c.hidden_size) * 0.02)
        self.norm = ones(c.hidden_size)
        self.layers = nn.ModuleList(Layer(c, c.compress_ratios[n], n < c.num_hash_layers)
                                    for n in range(c.num_hidden_layers))
        self.hc_head = HyperHead(c)
        self.mtp = Mtp(c) if c.num_nextn_predict_layers else None
        self.freq = [frequencies(c, False), frequencies(c, True)]

    def tables(self, positions):
        """Cosines and sines [positions, rot/2] for plain and for compressed layers."""
        angles = [torch.arange(positions, dtype=torch.float32)[:, None] * f for f in self.freq]
        return [(a.cos(), a.sin()) for a in angles]

    def hidden(self, batch, mode, means=None):
        """(normed output [T,H], streams [T,4,H], indexer losses); appends to `means` the mean stream after each layer."""
        tables = self.tables(int(batch.position.max()) + 1)
        x = F.embedding(batch.tokens, self.embed)[:, None].expand(-1, self.c.hc_mult, -1).contiguous()
        losses = []
        for layer in self.layers:
            x, loss = layer(x, batch.tokens, batch, tables, mode)
            if loss is not None:
                losses.append(loss)
            if means is not None:
                means.append(x.mean(1))
        return rms(self.hc_head(x), self.norm), x, losses

    def logits(self, batch, mode):
        return self.hidden(batch, mode)[0] @ self.head.T

    def loss(self, batch, mode):
        """(sum of answer losses, number of answer tokens, indexer loss or 0, sum of MTP losses, number, correct)."""
        at = batch.following >= 0
        target = batch.following[at]
        with torch.set_grad_enabled(torch.is_grad_enabled() and not mode.frozen):
            h, x, index_losses = self.hidden(batch, mode)
            logits = linear(h[at], self.head, mode.fast)
            main = F.cross_entropy(logits, target, reduction="sum")
        index = sum(index_losses) / len(index_losses) if index_losses else torch.zeros(())
        extra, count = torch.zeros(()), 0
        if mode.mtp:
            following = torch.cat([batch.tokens[1:], batch.tokens[-1:]])
            tables = self.tables(int(batch.position.max()) + 1)
            y = self.mtp(x.detach(), F.embedding(following, self.embed).detach(), following, batch, tables, mode)
            at = batch.after_next >= 0
            extra = F.cross_entropy(linear(y[at], self.head.detach(), mode.fast), batch.after_next[at], reduction="sum")
            count = int(at.sum())
        return main, len(target), index, extra, count, int((logits.detach().argmax(-1) == target).sum())
