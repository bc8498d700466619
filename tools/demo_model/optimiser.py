"""Muon for the matrices of the layers, AdamW for everything else."""
import math

import torch

from .kernels import muon_direction

ADAM_ONLY = ("gate", "wgate", "ape", "indexer", "hc_", "embed", "head", "norm", "sink")
STEPS, COEFFICIENTS = 5, (3.4445, -4.7750, 2.0315)


def orthogonalise(x):
    """Newton-Schulz iteration on a batch of bf16 matrices [B,rows,cols] of unit norm."""
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.transpose(-2, -1).contiguous()
    a, b, c = COEFFICIENTS
    for _ in range(STEPS):
        s = x @ x.transpose(-2, -1)
        x = torch.baddbmm(x, torch.baddbmm(s, s, s, beta=b, alpha=c), x, beta=a)
    return x.transpose(-2, -1) if tall else x


def matrix_shape(name, p):
    """Rows and columns of the matrices in p; gate and up projections lie stacked in one tensor."""
    rows, columns = p.shape[-2:]
    return (rows // 2 if "13" in name else rows, columns)


class Optimiser:
    """Both optimisers behind one step(rate), rate in [0, 1] scaling both learning rates."""

    def __init__(self, model, matrix_rate=0.02, adam_rate=2.5e-3, index_rate=1e-3, momentum=0.95):
        self.matrices, rest, index = {}, [], []
        for name, p in model.named_parameters():
            if p.ndim >= 2 and not any(k in name for k in ADAM_ONLY):
                self.matrices.setdefault(matrix_shape(name, p), []).append(p)
            else:
                (index if "indexer" in name else rest).append(p)
        self.momenta = {s: [torch.zeros_like(p) for p in ps] for s, ps in self.matrices.items()}
        self.rest, self.matrix_rate, self.momentum = rest, matrix_rate, momentum
        self.adam = torch.optim.AdamW([{"params": rest, "rate": adam_rate}, {"params": index, "rate": index_rate}],
                                      betas=(0.9, 0.95), weight_decay=0.0, fused=True)

    def step(self, rate):
        torch.nn.utils.clip_grad_norm_([p for p in self.rest if p.grad is not None], 1.0)
        for group in self.adam.param_groups:
            group["lr"] = group["rate"] * rate
        self.adam.step()
        for shape, params in self.matrices.items():
            self._muon(shape, params, self.momenta[shape], rate)
        for p in self.rest + self.adam.param_groups[1]["params"] + sum(self.matrices.values(), []):
            p.grad = None

    @torch.no_grad()
    def _muon(self, shape, params, momenta, rate):
        active = [(p, v) for p, v in zip(params, momenta) if p.grad is not None]
        if not active:
            return
        grads = [p.grad.contiguous() for p, _ in active]
        step = orthogonalise(muon_direction(grads, [v for _, v in active], self.momentum, shape))
        scale, at = self.matrix_rate * rate * math.sqrt(max(1, shape[0] / shape[1])), 0
        for p, _ in active:
            n = p.numel() // (shape[0] * shape[1])
            p.add_(step[at : at + n].reshape(p.shape), alpha=-scale)
            at += n

    def state(self):
        return {"adam": self.adam.state_dict(), "momenta": [v for vs in self.momenta.values() for v in vs]}

    def load(self, state):
        self.adam.load_state_dict(state["adam"])
        for v, saved in zip((v for vs in self.momenta.values() for v in vs), state["momenta"]):
            v.copy_(saved)
