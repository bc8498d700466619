"""Writes a trained model as a DeepSeek-V4 checkpoint: bf16, or the official FP8 (block 128) with FP4 experts.

python -m demo_model.export --run DIR --out FOLDER --format bf16|fp8fp4 [--no-mtp] (run in tools/)

Names, order, grouping into shards and storage types come from oracle/make_checkpoint.py, which also knows the
quantised layouts; this file only says which trained tensor stands behind which official name.
"""
import argparse
import json
import os
import pathlib
import shutil
import sys

import numpy as np
import torch

from . import tokenizer as tokens_module
from .model import CONFIG, Model
from .quantisation import fp4

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))
import make_checkpoint as official  # noqa: E402

SHARD_BYTES = {"bf16": 12_000_000, "fp8fp4": 6_000_000}  # two or three files, as large checkpoints have


def official_tensors(model, round_experts=True):
    """{official name: numpy array} of every tensor. Experts are already on the FP4 grid if round_experts."""
    out = {}
    for name, value in model.state_dict().items():
        if name.startswith("layers.") or name.startswith("mtp.layer."):
            head, rest = (f"layers.{name.split('.')[1]}.", name.split(".", 2)[2]) if name[0] == "l" else (
                "mtp.0.", name.split(".", 2)[2])
            for key, v in layer_tensors(rest, value, round_experts):
                out[head + key] = v
        elif name.startswith("mtp."):
            out["mtp.0." + _plain(name[4:])] = value
        else:
            out[_plain(name)] = value
    return {k: v.detach().numpy() for k, v in out.items()}


def _plain(name):
    """hc parameters keep underscores and no suffix; everything else is a weight."""
    if name.startswith("hc_"):
        return name.replace(".", "_")
    return name + ".weight"


def layer_tensors(name, value, round_experts):
    """(official name inside a layer or block, value) of what one trained tensor holds."""
    if name.startswith("ffn."):
        leaf = name[4:]
        if leaf in ("w13", "w2"):
            value = fp4(value) if round_experts else value
            for e, w in enumerate(value):
                if leaf == "w2":
                    yield f"ffn.experts.{e}.w2.weight", w
                else:
                    yield f"ffn.experts.{e}.w1.weight", w.chunk(2)[0]
                    yield f"ffn.experts.{e}.w3.weight", w.chunk(2)[1]
        elif leaf == "shared13":
            yield "ffn.shared_experts.w1.weight", value.chunk(2)[0]
            yield "ffn.shared_experts.w3.weight", value.chunk(2)[1]
        elif leaf == "shared2":
            yield "ffn.shared_experts.w2.weight", value
        else:
            yield {"gate": "ffn.gate.weight", "bias": "ffn.gate.bias", "tid2eid": "ffn.gate.tid2eid"}[leaf], value
    elif name == "attn.wo_a":
        yield "attn.wo_a.weight", value.flatten(0, 1)
    elif name.endswith(("ape", "attn_sink")):
        yield name, value
    else:
        yield _plain(name), value


def write(model, tokenizer_file, folder, fmt, mtp=True):
    """Writes the checkpoint folder; returns (config, dequantised tensors, storage by name)."""
    mtp = 1 if mtp and model.mtp is not None else 0
    config = official.complete_config(CONFIG, mtp, 0, fmt)
    groups = list(official.inventory(config, mtp))
    stores = {t.name: official.stored_as(t, fmt, "A", 0) for g in groups for t in g}
    tensors = official_tensors(model)
    os.makedirs(folder, exist_ok=True)
    for old in pathlib.Path(folder).glob("*.safetensors"):
        old.unlink()
    kept = official.values
    official.values = lambda t, cfg: tensors[t.name].reshape(t.shape)
    try:
        params = official.write_checkpoint(folder, config, groups, stores, fmt, str(SHARD_BYTES[fmt]))
    finally:
        official.values = kept
    shutil.copyfile(tokenizer_file, pathlib.Path(folder) / "tokenizer.json")
    with open(pathlib.Path(folder) / "tokenizer_config.json", "w", encoding="utf-8") as f:
        json.dump(tokens_module.config(), f, ensure_ascii=False, indent=1)
    return config, params, stores


def load_run(folder):
    """The model of a training folder's last checkpoint."""
    model = Model(CONFIG)
    model.load_state_dict(torch.load(pathlib.Path(folder) / "checkpoint.pt", weights_only=True)["model"])
    return model.eval()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--run", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--format", choices=sorted(SHARD_BYTES), required=True)
    ap.add_argument("--no-mtp", action="store_true")
    args = ap.parse_args()
    torch.set_num_threads(1)
    write(load_run(args.run), pathlib.Path(args.run) / "tokenizer.json", args.out, args.format, not args.no_mtp)


if __name__ == "__main__":
    main()
