"""Muon for the matrices of the layers, AdamW for everything else."""
import math

import torch

ADAM_ONLY = ("gate", "wgate", "ape", "indexer", "hc_", "embed", "head", "norm", "sink")
STEPS, COEFFICIENTS = 5, (3.4445, -4.7750, 2.0315)


def orthogonalise(g):
    """Newton-Schulz iteration on a batch of matrices [B,rows,cols], in bf16."""
    x = (g / (g.norm(dim=(-2, -1), keepdim=True) + 1e-7)).bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.transpose(-2, -1)
    a, b, c = COEFFICIENTS
    for _ in range(STEPS):
        s = x @ x.transpose(-2, -1)
        x = a * x + (b * s + c * s @ s) @ x
    return (x.transpose(-2, -1) if tall else x).float()


class Optimiser:
    """Both optimisers behind one step(rate), rate in [0, 1] scaling both learning rates."""

    def __init__(self, model, matrix_rate=0.02, adam_rate=2.5e-3, index_rate=1e-3, momentum=0.95):
        self.matrices, rest, index = {}, [], []
        for name, p in model.named_parameters():
            if p.ndim >= 2 and not any(k in name for k in ADAM_ONLY):
                self.matrices.setdefault(tuple(p.shape[-2:]), []).append(p)
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
        updates = []
        for p, v in active:
            v.mul_(self.momentum).add_(p.grad)
            updates.append((p.grad + self.momentum * v).view(-1, *shape))
        step = orthogonalise(torch.cat(updates))
        scale, at = self.matrix_rate * rate * math.sqrt(max(1, shape[0] / shape[1])), 0
        for (p, _), u in zip(active, updates):
            p.add_(step[at : at + len(u)].view_as(p), alpha=-scale)
            at += len(u)

    def state(self):
        return {"adam": self.adam.state_dict(), "momenta": self.momenta}

    def load(self, state):
        self.adam.load_state_dict(state["adam"])
        for shape, saved in state["momenta"].items():
            for v, s in zip(self.momenta[shape], saved):
                v.copy_(s)
