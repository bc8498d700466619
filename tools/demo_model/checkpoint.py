"""Reads an exported checkpoint folder (bf16, or FP8 with FP4 experts) back into the trainable model."""
import json
import pathlib

import numpy as np
import torch

from .model import Model

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
E4M3 = np.array([(c & 7) * 2.0**-9 if c < 8 else (8 + (c & 7)) * 2.0 ** ((c >> 3) - 10) for c in range(128)], np.float32)


def read_safetensors(path):
    """{name: (dtype, array of raw elements)} of one file."""
    kinds = {"I64": np.int64, "F32": np.float32, "BF16": np.uint16, "I8": np.uint8, "F8_E4M3": np.uint8,
             "F8_E8M0": np.uint8}
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    out = {}
    for name, entry in json.loads(raw[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            data = np.frombuffer(raw[8 + size + begin : 8 + size + end], kinds[entry["dtype"]])
            out[name] = entry["dtype"], data.reshape(entry["shape"])
    return out


def tensors(folder):
    """{official name: dequantised array}."""
    stored = {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        stored.update(read_safetensors(path))
    out = {}
    for name, (dtype, a) in stored.items():
        if dtype == "F8_E8M0":
            continue
        scale = stored.get(name[: -len("weight")] + "scale")
        if dtype == "BF16":
            a = (a.astype(np.uint32) << 16).view(np.float32)
        elif dtype == "I8":
            a = E2M1[np.stack([a & 15, a >> 4], -1).reshape(a.shape[0], -1)]
            a = a * np.ldexp(np.float32(1), scale[1].astype(int) - 127).repeat(32, 1)
        elif dtype == "F8_E4M3":
            full = np.ldexp(np.float32(1), scale[1].astype(int) - 127).repeat(128, 0).repeat(128, 1)
            a = np.where(a & 128, -1, 1).astype(np.float32) * E4M3[a & 127] * full[: a.shape[0], : a.shape[1]]
        out[name] = a
    return out


def torch_tensors(folder):
    return {k: torch.from_numpy(np.array(v)) for k, v in tensors(folder).items()}


def load(folder):
    """The model of a checkpoint folder, with the MTP block if there is one (DSpark stages: load_drafter)."""
    config, t = json.loads((pathlib.Path(folder) / "config.json").read_text()), torch_tensors(folder)
    model = Model(dict(config, num_nextn_predict_layers=int("mtp.0.e_proj.weight" in t)))
    state = {}
    for name, value in model.state_dict().items():
        if name.startswith(("layers.", "mtp.layer.")):
            prefix = ".".join(name.split(".")[:2]) + "." if name[0] == "l" else "mtp.0."
            state[name] = _layer_value(t, prefix, name.split(".", 2)[2], value)
        else:
            state[name] = t[_official(name)].view_as(value)
    model.load_state_dict(state)
    return model.eval()


def load_drafter(drafter, folder):
    """Reads the parameters of a drafter (drafters.py) from a checkpoint folder that holds its kind."""
    t, state = torch_tensors(folder), {}
    for name, value in drafter.state_dict().items():
        state[name] = _layer_value(t, *drafter.place(name), value).view_as(value)
    drafter.load_state_dict(state)
    return drafter


def _official(name):
    head = "mtp.0." if name.startswith("mtp.") else ""
    name = name.removeprefix("mtp.")
    return head + (name.replace(".", "_") if name.startswith("hc_") else name + ".weight")


def _layer_value(t, prefix, name, like):
    if name.startswith("ffn."):
        f, leaf = prefix + "ffn.", name[4:]
        experts = range(len(like))
        if leaf == "w13":
            return torch.stack([torch.cat([t[f"{f}experts.{e}.w{i}.weight"] for i in (1, 3)]) for e in experts])
        if leaf == "w2":
            return torch.stack([t[f"{f}experts.{e}.w2.weight"] for e in experts])
        if leaf == "shared13":
            return torch.cat([t[f"{f}shared_experts.w{i}.weight"] for i in (1, 3)])
        return t[f + {"shared2": "shared_experts.w2.weight", "gate": "gate.weight", "bias": "gate.bias",
                      "tid2eid": "gate.tid2eid"}[leaf]]
    if name.endswith(("ape", "attn_sink")):
        return t[prefix + name]
    return t[prefix + _official(name)].view_as(like)
