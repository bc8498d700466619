"""Writes a trained drafter in the official formats: DSpark stages in the trunk's checkpoint, an MTP block alone.

python -m demo_model.export_drafter --checkpoint FOLDER --kind dspark|mtp --run DIR --out FOLDER (run in tools/)

FOLDER is the trunk's checkpoint (FP8 with FP4 experts). Its tensors, tokenizer and generation settings go into the DSpark
folder as they are, byte for byte; the MTP folder has only tensors "mtp.*" and a config.json that fits the trunk.
"""
import argparse
import json
import pathlib
import shutil

import torch

from . import checkpoint
from .drafters import DRAFTERS, DSPARK
from .export import SHARD_BYTES, layer_tensors, official

FORMAT = "fp8fp4"


def drafter_config(config, kind):
    """config.json of a checkpoint with that drafter, from that of the trunk."""
    blocks = len(DSPARK["dspark_target_layer_ids"]) if kind == "dspark" else 1
    own = {k: v for k, v in config.items() if k not in DSPARK}
    own["compress_ratios"] = config["compress_ratios"][: config["num_hidden_layers"]] + [0] * blocks
    own["num_nextn_predict_layers"] = 1
    return dict(own, **DSPARK) if kind == "dspark" else own


def drafter_entries(drafter, config):
    """[(stored name, dtype, array)] of a drafter, block after block, in the official order."""
    values = {}
    for name, value in drafter.state_dict().items():
        prefix, rest = drafter.place(name)
        values.update((prefix + key, v.numpy()) for key, v in layer_tensors(rest, value, True))
    counts = {"mtp": 1, "dspark": 0} if drafter.kind == "mtp" else {"mtp": 0, "dspark": len(drafter.stages)}
    out = []
    for t in (t for group in official.inventory(config, **counts) for t in group if t.name.startswith("mtp.")):
        store = official.stored_as(t, FORMAT, "A", counts["dspark"])
        arrays, _ = official.encode(t, store, values[t.name].reshape(t.shape))
        out += [(official.stored_name(t, suffix), dtype, array)
                for (suffix, dtype, _), array in zip(official.layout(t, store), arrays, strict=True)]
    return out


def trunk_entries(folder):
    """[(stored name, dtype, array)] of what a checkpoint stores of its trunk."""
    return [(name, dtype, array) for path in sorted(folder.glob("*.safetensors"))
            for name, (dtype, array) in checkpoint.read_safetensors(path).items() if not name.startswith("mtp.")]


def write_shards(folder, entries, limit):
    """Files of at most `limit` bytes and their index."""
    shards, used = [[]], 0
    for entry in entries:
        if shards[-1] and used + entry[2].nbytes > limit:
            shards.append([])
            used = 0
        shards[-1].append(entry)
        used += entry[2].nbytes
    weight_map, total = {}, 0
    for n, shard in enumerate(shards, 1):
        file = f"model-{n:05d}-of-{len(shards):05d}.safetensors"
        total += official.write_safetensors(folder / file, shard)
        weight_map.update((name, file) for name, _, _ in shard)
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))


def write(drafter, source, folder):
    """Writes the folder of a drafter that was trained on the checkpoint `source`."""
    source, folder = pathlib.Path(source), pathlib.Path(folder)
    config = drafter_config(json.loads((source / "config.json").read_text()), drafter.kind)
    entries = trunk_entries(source) if drafter.kind == "dspark" else []
    folder.mkdir(parents=True)  # a new one: files of another checkpoint would be taken for this one's
    write_shards(folder, entries + drafter_entries(drafter, config), SHARD_BYTES[FORMAT])
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    if drafter.kind == "dspark":
        for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
            shutil.copyfile(source / name, folder / name)


def load_run(folder, kind, trunk):
    """The drafter of a training folder's last checkpoint."""
    drafter = DRAFTERS[kind](trunk)
    drafter.load_state_dict(torch.load(pathlib.Path(folder) / "checkpoint.pt", weights_only=True)["drafter"])
    return drafter


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--checkpoint", required=True)
    ap.add_argument("--kind", choices=sorted(DRAFTERS), required=True)
    ap.add_argument("--run", required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    torch.set_num_threads(1)
    trunk = checkpoint.load(args.checkpoint).requires_grad_(False)
    write(load_run(args.run, args.kind, trunk), args.checkpoint, args.out)


if __name__ == "__main__":
    main()
