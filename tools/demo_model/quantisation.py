"""The rounding of the official number formats, for training with quantised weights (straight through) and export."""
import torch


def power_scale(amax, largest):
    """2^ceil(log2(amax / largest)), the division being a product with fl32(1 / largest); 1 for amax = 0."""
    mantissa, exponent = torch.frexp(amax * torch.tensor(1.0 / largest, dtype=torch.float32))
    return torch.ldexp(torch.ones_like(amax), torch.where(mantissa == 0.5, exponent - 1, exponent))


def fp4(w):
    """w rounded to E2M1 with one power-of-two scale per 32 values of the last axis; ties to the even code."""
    blocks = w.reshape(*w.shape[:-1], -1, 32)
    scale = power_scale(blocks.abs().amax(-1, keepdim=True), 6)
    x = blocks / scale
    r = x.abs()
    q = torch.where(r < 2, (r * 2).round() / 2, torch.where(r < 4, r.round(), (r / 2).round() * 2))
    return (torch.copysign(q, x) * scale).view_as(w)


def fp4_straight_through(w):
    return w + (fp4(w.detach()) - w.detach())
