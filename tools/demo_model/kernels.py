"""torch.autograd wrappers of kernels.cc (compiled on first use) and matrix products in bf16."""
import ctypes
import hashlib
import os
import pathlib
import subprocess
import tempfile

import torch

SOURCE = pathlib.Path(__file__).with_name("kernels.cc")
FLAGS = ["-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-shared", "-fPIC", "-std=c++17"]


def _build():
    """The shared library, compiled once per source text into the user's temporary folder."""
    tag = hashlib.sha256(SOURCE.read_bytes() + " ".join(FLAGS).encode()).hexdigest()[:16]
    path = pathlib.Path(tempfile.gettempdir()) / f"fulgur-demo-kernels-{os.getuid()}-{tag}.so"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        subprocess.run(["g++", *FLAGS, "-o", str(part), str(SOURCE), "-lmvec", "-lm"], check=True)
        part.rename(path)
    return ctypes.CDLL(str(path))


_lib = _build()


def _call(name, *args):
    """Calls a kernel; ints become int64, floats float, tensors their address, None a null pointer."""
    values = []
    for a in args:
        if a is None:
            values.append(ctypes.c_void_p(None))
        elif isinstance(a, torch.Tensor):
            assert a.is_contiguous(), name
            values.append(ctypes.c_void_p(a.data_ptr()))
        elif isinstance(a, float):
            values.append(ctypes.c_float(a))
        else:
            values.append(ctypes.c_int64(a))
    getattr(_lib, name)(*values)


class HcPre(torch.autograd.Function):
    """(y, post, comb) = hyper-connection input mixing of x [T,4,H]; see kernels.cc."""

    @staticmethod
    def forward(ctx, x, fn, scale, base, iterations, eps):
        tokens, streams, hidden = x.shape
        mix = x.view(tokens, -1) @ fn.T
        y, post = x.new_empty(tokens, hidden), x.new_empty(tokens, streams)
        comb, rho, pre = x.new_empty(tokens, streams, streams), x.new_empty(tokens), x.new_empty(tokens, streams)
        ctx.args = iterations, eps
        _call("hc_pre", tokens, hidden, iterations, eps, x, mix, scale, base, y, post, comb, rho, pre)
        ctx.save_for_backward(x, fn, mix, scale, base, rho, pre, post)
        return y, post, comb

    @staticmethod
    def backward(ctx, dy, dpost, dcomb):
        x, fn, mix, scale, base, rho, pre, post = ctx.saved_tensors
        tokens, streams, hidden = x.shape
        dx, dmix, dscale, dbase = torch.empty_like(x), torch.empty_like(mix), torch.zeros_like(scale), torch.zeros_like(base)
        _call("hc_pre_grad", tokens, hidden, *ctx.args, x, mix, scale, base, rho, pre, post, dy.contiguous(),
              dpost.contiguous(), dcomb.contiguous(), dx, dmix, dscale, dbase)
        flat = dx.view(tokens, -1)
        flat.addmm_(dmix, fn)
        return dx, dmix.T @ x.view(tokens, -1), dscale, dbase, None, None


class HcPost(torch.autograd.Function):
    """New streams [T,4,H] from a sub-layer's output o [T,H]."""

    @staticmethod
    def forward(ctx, o, x, post, comb):
        out = torch.empty_like(x)
        _call("hc_post", x.shape[0], x.shape[2], o, x, post, comb, out)
        ctx.save_for_backward(o, x, post, comb)
        return out

    @staticmethod
    def backward(ctx, dout):
        o, x, post, comb = ctx.saved_tensors
        grads = [torch.empty_like(t) for t in (o, x, post, comb)]
        _call("hc_post_grad", x.shape[0], x.shape[2], o, x, post, comb, dout.contiguous(), *grads)
        return tuple(grads)


class NormRope(torch.autograd.Function):
    """RMS norm over the last dim (optional, optional weight), then rotation of its last dims by position (optional).

    x [T,...,D]; table is (position [T], cosines, sines) or None.
    """

    @staticmethod
    def forward(ctx, x, weight, norm, table, sign):
        x = x.contiguous()
        dim, rows = x.shape[-1], x.numel() // x.shape[-1]
        position, cosine, sine = table if table else (None, None, None)
        rot, per = (2 * cosine.shape[1], rows // max(1, len(position))) if table else (0, 1)
        inverse, y = (x.new_empty(rows) if norm else None), torch.empty_like(x)
        ctx.args = rows, dim, rot, max(1, per), sign
        _call("norm_rope", *ctx.args, x, weight, position, cosine, sine, inverse, y)
        ctx.save_for_backward(x, weight, position, cosine, sine, inverse)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, position, cosine, sine, inverse = ctx.saved_tensors
        dx, dweight = torch.empty_like(x), None if weight is None else torch.zeros_like(weight)
        _call("norm_rope_grad", *ctx.args, x, weight, position, cosine, sine, inverse, dy.contiguous(), dx, dweight)
        return dx, dweight, None, None, None


def rms(x, weight=None):
    return NormRope.apply(x, weight, True, None, 1.0)


class SinkSoftmax(torch.autograd.Function):
    """Attention weights [C,heads,Q,K] from raw scores (overwritten), mask [C,Q,K] uint8 and sink logits [heads]."""

    @staticmethod
    def forward(ctx, scores, sink, mask, scale):
        chunks, heads, queries, keys = scores.shape
        _call("sink_softmax", chunks, heads, queries, keys, scale, mask, sink, scores)
        ctx.mark_dirty(scores)
        ctx.scale = scale
        ctx.save_for_backward(scores, sink)
        return scores

    @staticmethod
    def backward(ctx, dp):
        p, sink = ctx.saved_tensors
        dp, dsink = dp.contiguous().clone(), torch.zeros_like(sink)
        _call("sink_softmax_grad", *p.shape, ctx.scale, p, dp, dsink)
        return dp, dsink, None, None


class Swiglu(torch.autograd.Function):
    """Clamped SwiGLU of ab [N,2F] times a weight per row (or None)."""

    @staticmethod
    def forward(ctx, ab, weight, limit):
        rows, width = ab.shape[0], ab.shape[1] // 2
        h = ab.new_empty(rows, width)
        ctx.limit = limit
        _call("swiglu", rows, width, limit, ab, weight, h)
        ctx.save_for_backward(ab, weight)
        return h

    @staticmethod
    def backward(ctx, dh):
        ab, weight = ctx.saved_tensors
        dab, dweight = torch.empty_like(ab), None if weight is None else torch.empty_like(weight)
        _call("swiglu_grad", ab.shape[0], ab.shape[1] // 2, ctx.limit, ab, weight, dh.contiguous(), dab, dweight)
        return dab, dweight, None


class Pool(torch.autograd.Function):
    """Compressed entries [E,D] (before norm) from u, g [T,parts*D], ape [ratio,parts*D] and index [E,slots]."""

    @staticmethod
    def forward(ctx, u, g, ape, index):
        entries, slots = index.shape
        parts = slots // ape.shape[0]
        dim = u.shape[1] // parts
        p, out = u.new_empty(entries, slots, dim), u.new_empty(entries, dim)
        ctx.args = entries, slots, parts, dim
        _call("pool", *ctx.args, index, u, g, ape, p, out)
        ctx.save_for_backward(u, ape, index, p, out)
        return out

    @staticmethod
    def backward(ctx, dout):
        u, ape, index, p, out = ctx.saved_tensors
        du, dg, dape = torch.zeros_like(u), torch.zeros_like(u), torch.zeros_like(ape)
        _call("pool_grad", *ctx.args, index, u, p, out, dout.contiguous(), du, dg, dape)
        return du, dg, dape, None


class _Bf16Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        xb, wb = x.bfloat16(), w.bfloat16()
        ctx.save_for_backward(xb, wb)
        return (xb @ wb.T).float()

    @staticmethod
    def backward(ctx, dy):
        xb, wb = ctx.saved_tensors
        g = dy.bfloat16()
        return (g @ wb).float(), (g.T @ xb).float() if ctx.needs_input_grad[1] else None


def linear(x, w, fast):
    """x [N,in] times w [out,in] transposed; with `fast` in bf16 with fp32 results."""
    return _Bf16Linear.apply(x, w) if fast else x @ w.T


def muon_direction(grads, momenta, momentum, shape):
    """Updates the momenta in place; the unit-norm directions of all matrices as one bf16 batch [B,*shape]."""
    size = shape[0] * shape[1]
    out = torch.empty(sum(g.numel() for g in grads) // size, *shape, dtype=torch.bfloat16)
    at = 0
    for g, v in zip(grads, momenta):
        n = g.numel() // size
        _call("muon_direction", n, size, momentum, g, v, out[at : at + n])
        at += n
    return out
