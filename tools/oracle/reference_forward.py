"""DeepSeek-V4 forward in numpy: whole sequences at once, any config, any precision mode.

Independent of tiny_reference.py (token by token, one config); the two agree to rounding. `Reference` takes the
dequantised tensors under their official names, how each is stored ("fp8", "fp4", "int8", "int4", or anything else
for no activation rounding) and the mode:
  A no rounding; B cached latents rounded to FP8 and indexer q/k to FP4; C, D int8 activations before int8/int4
  weights; E = B plus FP8 activations before FP8/FP4 weights (not wo_a).
"""
import math
import types

import numpy as np

# ---------------------------------------------------------------- number formats

E4M3 = np.array([(c & 7) * 2.0**-9 if c < 8 else (8 + (c & 7)) * 2.0 ** ((c >> 3) - 10) for c in range(127)])
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def nearest_code(magnitude, grid):
    """Index of the nearest grid value, ties to the even code; values past the end saturate."""
    middle = (grid[1:] + grid[:-1]) / 2
    code = np.searchsorted(middle, magnitude)
    tie = (code % 2 == 1) & (magnitude == middle[np.minimum(code, len(middle) - 1)])
    return code + tie


def power_scale(amax, largest):
    """2^ceil(log2(amax / largest)), the division being an fp32 product with fl32(1/largest); 1 for amax = 0."""
    mantissa, exponent = np.frexp(amax.astype(np.float32) * np.float32(1 / largest))
    return np.ldexp(1.0, np.where(mantissa == 0.5, exponent - 1, exponent)).astype(np.float32)


def fake_quant(x, size, grid, floor):
    """Round x to grid * 2^n with one power-of-two scale per block of the last axis (the last block may be short)."""
    shape, width = x.shape, x.shape[-1]
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -width % size)])
    b = padded.reshape(*shape[:-1], padded.shape[-1] // size, size)
    scale = power_scale(np.maximum(np.abs(b).max(-1, keepdims=True), floor), grid[-1]).astype(x.dtype)
    q = np.sign(b) * grid[nearest_code(np.abs(b / scale), grid)] * scale
    return q.reshape(padded.shape)[..., :width].astype(x.dtype)


# ---------------------------------------------------------------- forward


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def hadamard(n):
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h / math.sqrt(n)


def rope_frequencies(c, compressed):
    """fp32 frequencies in the official order of roundings: power, reciprocal, YaRN mix."""
    dim, base = c.qk_rope_head_dim, c.compress_rope_theta if compressed else c.rope_theta
    exponent = (np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim)).astype(np.float64)
    f = np.float32(1) / (base**exponent).astype(np.float32)
    if not compressed:
        return f
    y = c.rope_scaling

    def turns(n):
        return dim * math.log(y["original_max_position_embeddings"] / (n * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(turns(y["beta_fast"])), 0), min(math.ceil(turns(y["beta_slow"])), dim - 1)
    keep = 1 - np.clip((np.arange(dim // 2, dtype=np.float32) - low) / np.float32(high - low or 0.001), 0, 1)
    return f / np.float32(y["factor"]) * (1 - keep) + f * keep


class Reference:
    """One-shot forward over whole sequences. Shapes: T tokens, S streams, H hidden; x [T,H], X [T,S,H]."""

    def __init__(self, cfg, params, stores, mode, real=np.float64):
        self.c, self.stores, self.mode, self.real = types.SimpleNamespace(**cfg), stores, mode, real
        self.p = {n: v if v.dtype.kind == "i" else v.astype(real) for n, v in params.items()}
        self.freq = [rope_frequencies(self.c, compressed) for compressed in (False, True)]
        self.states = {}

    def linear(self, name, x):
        """Matrix product behind the activation rounding that this weight's storage has in this mode."""
        store = self.stores[name + ".weight"]
        if self.mode in "CD" and store in ("int8", "int4"):
            scale = np.abs(x).max(-1, keepdims=True) / x.dtype.type(127)
            scale[scale == 0] = 1
            x = np.clip(np.rint(x / scale), -128, 127) * scale
        elif self.mode == "E" and store in ("fp8", "fp4"):
            x = fake_quant(x, 128, E4M3, 1e-4)
        return x @ self.p[name + ".weight"].T

    def rms(self, x, name=None):
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.real(self.c.rms_norm_eps))
        return y * self.p[name + ".weight"] if name else y

    def rope(self, x, positions, freq, sign=1):
        """Rotate the last dims of x [T,...,D]; the angle is an fp32 product."""
        angle = (positions.astype(np.float32)[:, None] * freq).astype(self.real)
        angle = angle.reshape(len(positions), *[1] * (x.ndim - 2), len(freq))
        cos, sin, n = np.cos(angle), sign * np.sin(angle), x.shape[-1] - 2 * len(freq)
        even, odd = x[..., n::2], x[..., n + 1 :: 2]
        rotated = np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(*x.shape[:-1], 2 * len(freq))
        return np.concatenate([x[..., :n], rotated], -1)

    def latent(self, v):
        """FP8 rounding of the non-rotated dims of a cached row (modes B and E)."""
        n = self.c.head_dim - self.c.qk_rope_head_dim
        if self.mode not in "BE":
            return v
        return np.concatenate([fake_quant(v[..., :n], 64, E4M3, 1e-4), v[..., n:]], -1)

    def hc_pre(self, X, p):
        """(y, post, comb) of a hyper-connection, or y alone for the head parameters."""
        S, eps = self.c.hc_mult, self.real(self.c.hc_eps)
        scale, base = self.p[p + "_scale"], self.p[p + "_base"]
        m = self.rms(X.reshape(len(X), -1)) @ self.p[p + "_fn"].T
        pre = sigmoid(m[:, :S] * scale[0] + base[:S]) + eps
        if len(base) == S:
            return (pre[..., None] * X).sum(1)
        post = 2 * sigmoid(m[:, S : 2 * S] * scale[1] + base[S : 2 * S])
        comb = softmax((m[:, 2 * S :] * scale[2] + base[2 * S :]).reshape(-1, S, S), 2) + eps
        comb = comb / (comb.sum(1, keepdims=True) + eps)
        for _ in range(self.c.hc_sinkhorn_iters - 1):
            comb = comb / (comb.sum(2, keepdims=True) + eps)
            comb = comb / (comb.sum(1, keepdims=True) + eps)
        return (pre[..., None] * X).sum(1), post, comb

    def compress(self, p, ratio, x, freq):
        """Compressed entries [T // ratio, D]."""
        n, ape = len(x) // ratio, self.p[p + "ape"]
        u, g = ((x[: n * ratio] @ self.p[p + w + ".weight"].T).reshape(n, *ape.shape) for w in ("wkv", "wgate"))
        g = g + ape
        if ratio == 4:
            half = u.shape[-1] // 2
            shift = [np.concatenate([np.full((min(n, 1), 4, half), first, self.real), v[:-1, :, :half]])
                     for v, first in ((u, 0), (g, -np.inf))]
            u, g = np.concatenate([shift[0], u[..., half:]], 1), np.concatenate([shift[1], g[..., half:]], 1)
        return self.rope(self.rms((softmax(g, 1) * u).sum(1), p + "norm"), np.arange(n) * ratio, freq)

    def choose(self, scores, k):
        """Indices of the k largest per row, ties to the lower index."""
        return np.argsort(-scores, axis=-1, kind="stable")[:, :k]

    def select(self, p, x, qr, visible, freq):
        """The indexer's choice among the visible entries, as a mask [T, n]."""
        c, (T, n) = self.c, visible.shape
        q = self.rope(self.linear(p + "wq_b", qr).reshape(T, c.index_n_heads, -1), np.arange(T), freq)
        k = self.compress(p + "compressor.", 4, x, freq)
        if self.mode in "BE":
            h = hadamard(c.index_head_dim).astype(self.real)
            q, k = (fake_quant(v @ h, 32, E2M1, 6 * 2.0**-126) for v in (q, k))
        w = x @ self.p[p + "weights_proj.weight"].T * self.real((c.index_head_dim * c.index_n_heads) ** -0.5)
        score = np.where(visible, (w[:, None] @ np.maximum(q @ k.T, 0))[:, 0], -np.inf)
        mask = np.zeros((T, n), bool)
        np.put_along_axis(mask, self.choose(score, c.index_topk), True, 1)
        return mask & visible

    def attention(self, p, ratio, x, positions, context=None):
        """Attention output; with context rows: the two-way attention of a DSpark block."""
        c, T, freq = self.c, len(x), self.freq[ratio > 1]
        qr = self.rms(self.linear(p + "wq_a", x), p + "q_norm")
        q = self.rope(self.rms(self.linear(p + "wq_b", qr).reshape(T, -1, c.head_dim)), positions, freq)
        keys = self.latent(self.rope(self.rms(self.linear(p + "wkv", x), p + "kv_norm"), positions, freq))
        if context is not None:
            keys = np.concatenate([context, keys])
            mask = np.ones((T, len(keys)), bool)
        else:
            age = positions[:, None] - positions
            mask = (age >= 0) & (age < c.sliding_window)
        if ratio > 1:
            entries = self.latent(self.compress(p + "compressor.", ratio, x, freq))
            visible = np.arange(len(entries)) < (positions[:, None] + 1) // ratio
            if ratio == 4 and len(entries):
                visible = self.select(p + "indexer.", x, qr, visible, freq)
            keys, mask = np.concatenate([keys, entries]), np.concatenate([mask, visible], 1)
        z = np.where(mask, q.swapaxes(0, 1) @ keys.T * self.real(c.head_dim**-0.5), -np.inf)
        peak = z.max(-1, keepdims=True)
        e, sink = np.exp(z - peak), np.exp(self.p[p + "attn_sink"][:, None, None] - peak)
        o = (e / (e.sum(-1, keepdims=True) + sink) @ keys).swapaxes(0, 1)
        o = self.rope(o, positions, freq, -1).reshape(T, c.o_groups, -1).swapaxes(0, 1)
        wo_a = self.p[p + "wo_a.weight"].reshape(c.o_groups, c.o_lora_rank, -1)
        return self.linear(p + "wo_b", (o @ wo_a.swapaxes(1, 2)).swapaxes(0, 1).reshape(T, -1))

    def expert(self, p, x, weight=1):
        limit = self.c.swiglu_limit
        a, b = np.minimum(self.linear(p + "w1", x), limit), np.clip(self.linear(p + "w3", x), -limit, limit)
        return self.linear(p + "w2", a * sigmoid(a) * b * weight)

    def moe(self, p, x, tokens):
        """Section 4. Hash-routed layers are those with a tid2eid table."""
        s = np.sqrt(np.logaddexp(0, x @ self.p[p + "gate.weight"].T))
        if p + "gate.tid2eid" in self.p:
            chosen = self.p[p + "gate.tid2eid"][tokens]
        else:
            chosen = self.choose(s + self.p[p + "gate.bias"], self.c.num_experts_per_tok)
        weight = np.take_along_axis(s, chosen, 1)
        weight = weight / weight.sum(1, keepdims=True) * self.real(self.c.routed_scaling_factor)
        out = self.expert(p + "shared_experts.", x)
        for e in range(self.c.n_routed_experts):
            row, slot = np.nonzero(chosen == e)
            if len(row):
                out[row] += self.expert(f"{p}experts.{e}.", x[row], weight[row, slot][:, None])
        return out

    def block(self, p, ratio, X, tokens, positions, context=None):
        """One decoder layer."""
        for side in ("attn", "ffn"):
            y, post, comb = self.hc_pre(X, f"{p}hc_{side}")
            x = self.rms(y, f"{p}{side}_norm")
            if side == "attn":
                o = self.attention(p + "attn.", ratio, x, positions, context)
            else:
                o = self.moe(p + "ffn.", x, tokens)
            X = post[..., None] * o[:, None] + comb.swapaxes(1, 2) @ X
        return X

    def streams(self, tokens):
        return np.repeat(self.p["embed.weight"][tokens][:, None], self.c.hc_mult, 1)

    def head(self, y, norm):
        return self.rms(y, norm) @ self.p["head.weight"].T

    def forward(self, tokens):
        """Logits [T,V]; keeps every layer's output streams for mtp() and dspark()."""
        tokens, positions, X = np.asarray(tokens), np.arange(len(tokens)), self.streams(tokens)
        for n in range(self.c.num_hidden_layers):
            X = self.states[n] = self.block(f"layers.{n}.", self.c.compress_ratios[n], X, tokens, positions)
        return self.head(self.hc_pre(X, "hc_head"), "norm")

    def mtp_block(self, X, tokens):
        """Streams of mtp.0 at positions 0 .. len(tokens) - 1, from the states there and the tokens behind them."""
        p = "mtp.0."
        e = self.linear(p + "e_proj", self.rms(self.p["embed.weight"][tokens], p + "enorm"))
        Y = e[:, None] + self.linear(p + "h_proj", self.rms(X, p + "hnorm"))
        return self.block(p, 0, Y, tokens, np.arange(len(tokens)))

    def mtp_head(self, Y):
        return self.head(self.hc_pre(Y, "mtp.0.hc_head"), "mtp.0.norm")

    def mtp(self, tokens):
        """After forward(tokens): logits of mtp.0 at positions 0 .. T-2."""
        return self.mtp_head(self.mtp_block(self.states[self.c.num_hidden_layers - 1][:-1], np.asarray(tokens[1:])))

    def mtp_drafts(self, tokens, count):
        """After forward(tokens): greedy drafts behind the last token and their logits, fed back one by one."""
        X, tokens, drafts, logits = self.states[self.c.num_hidden_layers - 1][:-1], list(tokens[1:]), [], []
        for _ in range(count):
            last = self.mtp_block(X, np.array(tokens))[-1:]
            logits.append(self.mtp_head(last)[0])
            drafts.append(int(logits[-1].argmax()))
            X, tokens = np.concatenate([X, last]), tokens + drafts[-1:]
        return drafts, np.array(logits)

    def dspark(self, tokens, stages):
        """After forward(tokens): greedy drafts behind the last token and their logits, confidence logits."""
        c, P = self.c, len(tokens) - 1
        feature = np.concatenate([self.states[n][:P].mean(1) for n in sorted(c.dspark_target_layer_ids)], -1)
        main = self.rms(self.linear("mtp.0.main_proj", feature), "mtp.0.main_norm")
        ids = np.array([tokens[P]] + [c.dspark_noise_token_id] * (c.dspark_block_size - 1))
        X, old = self.streams(ids), np.arange(max(0, P - c.sliding_window), P)
        for i in range(stages):
            a = f"mtp.{i}.attn."
            rows = self.rope(self.rms(self.linear(a + "wkv", main[old]), a + "kv_norm"), old, self.freq[0])
            X = self.block(f"mtp.{i}.", 0, X, ids, P + np.arange(len(ids)), self.latent(rows))
        p, previous, logits, confidence, drafts = f"mtp.{stages - 1}.", tokens[P], [], [], []
        y = self.hc_pre(X, p + "hc_head")
        for j, base in enumerate(self.head(y, p + "norm")):
            e = self.p[p + "markov_head.markov_w1.weight"][previous]
            logits.append(base + self.p[p + "markov_head.markov_w2.weight"] @ e)
            confidence.append(self.p[p + "confidence_head.proj.weight"][0] @ np.concatenate([y[j], e]))
            previous = int(logits[-1].argmax())
            drafts.append(previous)
        return drafts, np.array(logits), np.array(confidence)
