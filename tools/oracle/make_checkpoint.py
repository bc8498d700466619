#!/usr/bin/env python3
"""Write a small DeepSeek-V4 checkpoint with deterministic weights, and the logits an engine must get from it.

usage:
  make_checkpoint.py OUT_DIR [--config C] [--format F] [--recipe A|B] [--mtp N | --dspark N] [--shard official|BYTES]
                     [--golden FILE] [--tokens N|id,id,...] [--positions p,p,...] [--greedy N]
  make_checkpoint.py --dry-run [--list] [--config C] [--format F] [--recipe A|B] [--mtp N | --dspark N]

C  a config.json with the official field names, or a built-in name: tiny (seven layers of every kind), flash,
   flash-0731, pro.
F  fp32    every float tensor F32                          golden modes A, B
   bf16    official names and dtypes without quantisation  golden modes A, B
   fp8fp4  official: FP8 blocks, FP4 routed experts        golden modes A, E
   fp8base as the -Base checkpoints: FP8 experts too, F32  golden mode A
           scales that are no powers of two
   w8a8    modelslim W8A8_DYNAMIC, recipe A or B           golden modes A, C
   w4a8    modelslim, routed experts W4A8_DYNAMIC          golden modes A, D
--mtp N     add N MTP blocks; --dspark N adds N DSpark stages instead.
--golden    JSON with the logits of the dequantised weights (mode A) and of the format's own activation
            rounding (modes as in reference_forward.py). Every number comes from the *stored* tensors: norms are
            BF16 in all formats but fp32, so only fp32 has the exact values. "noise" is the difference between an
            fp32 and an fp64 evaluation: where it is large, a rounding or top-k tie flips and the position must
            not be compared tightly.
--dry-run   writes nothing; prints tensor count and payload bytes (works for the real sizes too).

Weights are hashed from tensor names, names are the official ones. Needs numpy and reference_forward.py beside it.
Writes no tokenizer and applies no QuaRot rotation. Without --shard BYTES the files are cut as the official ones: embedding,
one per layer, norm + head, one per draft stage.

Choices where no published checkpoint decides: DSpark main_proj is W8A8_DYNAMIC in both recipes; weight_scale,
weight_offset and scale_bias carry their linear's type in the descriptor; scale_bias is [out,16] for w2 and [out,1] for w1, w3; a block of
zeros gets scale 1; sizes that are no multiple of 128 end in a short FP8 block; group_size is 0.
"""
import argparse
import collections
import copy
import json
import math
import os
import types

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # these matrices are too small for threads
import numpy as np

from reference_forward import E2M1, E4M3, Reference, nearest_code, power_scale

TINY = dict(
    architectures=["DeepseekV4ForCausalLM"], model_type="deepseek_v4", hidden_size=256, num_hidden_layers=7,
    num_attention_heads=8, num_key_value_heads=1, head_dim=128, qk_rope_head_dim=64, q_lora_rank=128, o_lora_rank=64,
    o_groups=2, sliding_window=16, compress_ratios=[0, 0, 4, 128, 4, 128, 4, 0], compress_rope_theta=160000,
    rope_theta=10000, rope_scaling=dict(type="yarn", factor=16, original_max_position_embeddings=65536, beta_fast=32,
                                        beta_slow=1), max_position_embeddings=1048576, index_n_heads=16,
    index_head_dim=128, index_topk=8, n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=2,
    moe_intermediate_size=128, num_hash_layers=3, scoring_func="sqrtsoftplus", topk_method="noaux_tc",
    norm_topk_prob=True, routed_scaling_factor=1.5, swiglu_limit=10.0, hc_mult=4, hc_sinkhorn_iters=20, hc_eps=1e-6,
    rms_norm_eps=1e-6, hidden_act="silu", vocab_size=512, tie_word_embeddings=False, bos_token_id=0, eos_token_id=1,
    num_nextn_predict_layers=1, attention_bias=False, attention_dropout=0.0, initializer_range=0.02, use_cache=True)
FLASH = dict(
    TINY, hidden_size=4096, num_hidden_layers=43, num_attention_heads=64, head_dim=512, q_lora_rank=1024,
    o_lora_rank=1024, o_groups=8, sliding_window=128, compress_ratios=[0, 0] + [4, 128] * 20 + [4, 0],
    index_n_heads=64, index_topk=512, n_routed_experts=256, num_experts_per_tok=6, moe_intermediate_size=2048,
    vocab_size=129280)
FLASH_0731 = dict(
    FLASH, compress_ratios=[0, 0] + [4, 128] * 20 + [4, 0, 0, 0], dspark_block_size=5, dspark_noise_token_id=128799,
    dspark_target_layer_ids=[40, 41, 42], dspark_markov_rank=256)
PRO = dict(
    FLASH, hidden_size=7168, num_hidden_layers=61, num_attention_heads=128, q_lora_rank=1536, o_groups=16,
    compress_ratios=[128, 128] + [4, 128] * 29 + [4, 0], index_topk=1024, n_routed_experts=384,
    moe_intermediate_size=3072, routed_scaling_factor=2.5)
CONFIGS = {"tiny": TINY, "flash": FLASH, "flash-0731": FLASH_0731, "pro": PRO}


# ---------------------------------------------------------------- inventory of the official checkpoints

Tensor = collections.namedtuple("Tensor", "name shape rule store source")
"""rule: value class, see values(); store: official storage (fp8, fp4, bf16, f32, i64); source: name hashed for them."""


def inventory(cfg, mtp=0, dspark=0, modelslim=False):
    """All tensors of a checkpoint, in the order and grouping of the official shards (a list of lists)."""
    c = types.SimpleNamespace(**cfg)
    hidden, streams, index = c.hidden_size, c.hc_mult, c.index_n_heads * c.index_head_dim
    group = []

    def add(name, shape, rule, store, source=None):
        group.append(Tensor(name, tuple(shape), rule, store, source or name))

    def linear(name, out, inp, store="fp8", rule="linear"):
        add(name + ".weight", (out, inp), rule, store)

    def norm(name, n):
        add(name + ".weight", (n,), "norm", "bf16")

    def hyper_head(p):
        add(p + "hc_head_fn", (streams, streams * hidden), "fn", "f32")
        add(p + "hc_head_base", (streams,), "unit", "f32")
        add(p + "hc_head_scale", (1,), "scale", "f32")

    def compressor(p, ratio, dim):
        width = dim * (2 if ratio == 4 else 1)
        linear(p + "wkv", width, hidden, "bf16")
        linear(p + "wgate", width, hidden, "bf16")
        add(p + "ape", (ratio, width), "double", "f32")
        norm(p + "norm", dim)

    def block(p, ratio, hashed):
        a, f = p + "attn.", p + "ffn."
        norm(p + "attn_norm", hidden)
        norm(p + "ffn_norm", hidden)
        linear(a + "wq_a", c.q_lora_rank, hidden)
        norm(a + "q_norm", c.q_lora_rank)
        linear(a + "wq_b", c.num_attention_heads * c.head_dim, c.q_lora_rank)
        linear(a + "wkv", c.head_dim, hidden)
        norm(a + "kv_norm", c.head_dim)
        linear(a + "wo_a", c.o_groups * c.o_lora_rank, c.num_attention_heads * c.head_dim // c.o_groups)
        linear(a + "wo_b", hidden, c.o_groups * c.o_lora_rank)
        add(a + "attn_sink", (c.num_attention_heads,), "double", "f32")
        if ratio > 1:
            compressor(a + "compressor.", ratio, c.head_dim)
        if ratio == 4:
            linear(a + "indexer.wq_b", index, c.q_lora_rank)
            linear(a + "indexer.weights_proj", c.index_n_heads, hidden, "bf16")
            compressor(a + "indexer.compressor.", ratio, c.index_head_dim)
        for side in ("attn", "ffn"):
            add(f"{p}hc_{side}_fn", (streams * (streams + 2), streams * hidden), "fn", "f32")
            add(f"{p}hc_{side}_base", (streams * (streams + 2),), "unit", "f32")
            add(f"{p}hc_{side}_scale", (3,), "scale", "f32")
        linear(f + "gate", c.n_routed_experts, hidden, "bf16", "gate")
        if hashed:
            add(f + "gate.tid2eid", (c.vocab_size, c.num_experts_per_tok), "table", "i64")
        else:
            add(f + "gate.bias", (c.n_routed_experts,), "eighth", "f32")
        for e in [f"experts.{i}" for i in range(c.n_routed_experts)] + ["shared_experts"]:
            store = "fp8" if e == "shared_experts" else "fp4"
            linear(f"{f}{e}.w1", c.moe_intermediate_size, hidden, store, "up")
            linear(f"{f}{e}.w2", hidden, c.moe_intermediate_size, store, "down")
            linear(f"{f}{e}.w3", c.moe_intermediate_size, hidden, store, "up")

    def take():
        done = list(group)
        group.clear()
        return done

    add("embed.weight", (c.vocab_size, hidden), "unit", "bf16")
    yield take()
    for n in range(c.num_hidden_layers):
        block(f"layers.{n}.", c.compress_ratios[n], n < c.num_hash_layers)
        yield take()
    norm("norm", hidden)
    linear("head", c.vocab_size, hidden, "bf16")
    hyper_head("")
    yield take()
    for i in range(mtp):
        p = f"mtp.{i}."
        block(p, 0, False)
        linear(p + "e_proj", hidden, hidden)
        linear(p + "h_proj", hidden, hidden)
        for n in ("enorm", "hnorm", "norm"):
            norm(p + n, hidden)
        hyper_head(p)
        if modelslim:
            add(p + "emb.tok_emb.weight", (c.vocab_size, hidden), "unit", "bf16", "embed.weight")
            add(p + "head.weight", (c.vocab_size, hidden), "linear", "bf16", "head.weight")
        yield take()
    for i in range(dspark):
        p = f"mtp.{i}."
        block(p, 0, False)
        if i == 0:
            linear(p + "main_proj", hidden, hidden * len(c.dspark_target_layer_ids))
            norm(p + "main_norm", hidden)
        if i == dspark - 1:
            norm(p + "norm", hidden)
            hyper_head(p)
            add(p + "markov_head.markov_w1.weight", (c.vocab_size, c.dspark_markov_rank), "unit", "bf16")
            linear(p + "markov_head.markov_w2", c.vocab_size, c.dspark_markov_rank, "bf16")
            linear(p + "confidence_head.proj", 1, hidden + c.dspark_markov_rank, "bf16")
        yield take()


def complete_config(cfg, mtp, dspark, fmt):
    """The config.json that belongs to the written tensors."""
    cfg = copy.deepcopy(cfg)
    layers = cfg["num_hidden_layers"]
    cfg["compress_ratios"] = cfg["compress_ratios"][:layers] + [0] * (mtp + dspark)
    cfg["num_nextn_predict_layers"] = 1 if dspark else mtp
    cfg["torch_dtype"] = "float32" if fmt == "fp32" else "bfloat16"
    for key in ("quantization_config", "expert_dtype"):
        cfg.pop(key, None)
    if fmt in ("fp8fp4", "fp8base"):
        cfg["quantization_config"] = dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic",
                                          weight_block_size=[128, 128])
    if fmt == "fp8fp4":
        cfg["quantization_config"]["scale_fmt"] = "ue8m0"
        cfg["expert_dtype"] = "fp4"
    if dspark:
        cfg.setdefault("dspark_block_size", 5)
        cfg.setdefault("dspark_noise_token_id", cfg["vocab_size"] - 1)
        cfg.setdefault("dspark_target_layer_ids", list(range(layers - dspark, layers)))
        cfg.setdefault("dspark_markov_rank", 32)
    return cfg


# ---------------------------------------------------------------- deterministic values


def fnv1a(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & (2**64 - 1)
    return h


def uniform(name, count):
    """count values in [-1, 1), multiples of 1/128, from the tensor's name."""
    with np.errstate(over="ignore"):
        z = np.uint64(fnv1a(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return ((z >> np.uint64(56)).astype(np.float32) - 128) / 128


def expert_table(vocab, experts, k):
    """tid2eid: k distinct experts per token."""
    t = np.arange(vocab)[:, None]
    first = (5 * t + 3) % experts
    others = (first + 1 + (t + np.arange(k - 1)) % (experts - 1)) % experts
    return np.concatenate([first, others], axis=1).astype(np.int64)


def values(t, cfg):
    if t.rule == "table":
        return expert_table(cfg["vocab_size"], cfg["n_routed_experts"], cfg["num_experts_per_tok"])
    v = uniform(t.source, math.prod(t.shape)).reshape(t.shape)
    gain = {"linear": 1, "gate": 2, "up": 8, "down": 1 / 16}
    if t.rule in gain:
        return v * np.float32(gain[t.rule] * 2.0 ** -math.floor(math.log2(t.shape[1]) / 2))
    scale, offset = {"unit": (1, 0), "norm": (1 / 4, 1), "double": (2, 0), "eighth": (1 / 8, 0), "fn": (1 / 16, 0),
                     "scale": (1 / 2, 1)}[t.rule]
    return v * np.float32(scale) + np.float32(offset)


# ---------------------------------------------------------------- stored formats


def bf16_bits(x):
    u = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)


def e8m0(scale):
    return (np.frexp(scale)[1] - 1 + 127).astype(np.uint8)


def layout(t, store):
    """(suffix, dtype, shape) of each stored tensor that stands for t."""
    whole = {"f32": "F32", "bf16": "BF16", "i64": "I64"}
    if store in whole:
        return [("", whole[store], t.shape)]
    out, inp = t.shape
    row = [("_scale", "F32", (out, 1)), ("_offset", "F32", (out, 1))]
    if store in ("fp8", "fp8base"):
        kind = "F8_E8M0" if store == "fp8" else "F32"
        return [("", "F8_E4M3", t.shape), ("scale", kind, (-(-out // 128), -(-inp // 128)))]
    if store == "fp4":
        return [("", "I8", (out, inp // 2)), ("scale", "F8_E8M0", (out, inp // 32))]
    if store == "int8":
        return [("", "I8", t.shape), *row]
    return [("", "I8", (out // 2, inp)), *row, ("scale_bias", "F32", (out, 16 if t.rule == "down" else 1))]


def encode(t, store, w):
    """The arrays of layout(t, store), and the values that they stand for."""
    if store in ("f32", "i64"):
        return [w], w
    if store == "bf16":
        bits = bf16_bits(w)
        return [bits], (bits.astype(np.uint32) << 16).view(np.float32)
    out, inp = w.shape
    if store in ("fp8", "fp8base"):
        tiles = np.pad(w, [(0, -out % 128), (0, -inp % 128)]).reshape(-(-out // 128), 128, -(-inp // 128), 128)
        amax = np.abs(tiles).max((1, 3))
        scale = power_scale(amax, 448) if store == "fp8" else np.maximum(amax, np.float32(1e-5)) / np.float32(448)
        full = scale.repeat(128, 0).repeat(128, 1)[:out, :inp]
        code = nearest_code(np.abs(w / full), E4M3)
        byte = code.astype(np.uint8) | np.signbit(w).astype(np.uint8) << 7
        value = np.sign(w) * E4M3[code].astype(np.float32) * full
        return [byte, e8m0(scale) if store == "fp8" else scale], value
    if store == "fp4":
        scale = power_scale(np.abs(w.reshape(out, -1, 32)).max(-1), 6)
        full = scale.repeat(32, 1)
        code = nearest_code(np.abs(w / full), E2M1)
        nibble = code.astype(np.uint8) | np.signbit(w).astype(np.uint8) << 3
        return [nibble[:, ::2] | nibble[:, 1::2] << 4, e8m0(scale)], np.sign(w) * E2M1[code].astype(np.float32) * full
    top = 127 if store == "int8" else 7
    scale = np.maximum(np.abs(w).max(1, keepdims=True), np.float32(1e-5)) / np.float32(top)
    q = np.clip(np.rint(w / scale), -top - 1, top).astype(np.int8)
    arrays, value = [scale, np.zeros_like(scale)], q * scale
    if store == "int8":
        return [q, *arrays], value
    slices = value.reshape(out, 16 if t.rule == "down" else 1, -1)
    nibble = q.view(np.uint8) & 15
    return [nibble[::2] | nibble[1::2] << 4, *arrays, 8 * slices.sum(-1, dtype=np.float32)], value


def stored_as(t, fmt, recipe, dspark):
    """Storage of t in a format: f32, bf16, i64, fp8, fp8base, fp4, int8 or int4 (these two by modelslim recipe)."""
    if t.store == "i64" or t.store == "f32" or fmt == "fp8fp4":
        return t.store
    if fmt == "fp32":
        return "f32"
    if t.store == "bf16" or fmt == "bf16":
        return "bf16"
    if fmt == "fp8base":
        return "fp8base"
    if t.store == "fp4":
        return "int4" if fmt == "w4a8" else "int8"
    leaf = t.name.split(".")[-2]
    if leaf == "wo_a" and recipe == "B" and dspark and t.name.startswith("mtp."):
        return "fp8"
    kept = {"A": ("wo_a", "wo_b", "e_proj", "h_proj"), "B": ("wo_a", "wq_a", "wkv")}
    return "bf16" if leaf in kept[recipe] else "int8"


def stored_name(t, suffix):
    """X.weight, X.weight_scale, X.scale ...; t.name itself for tensors stored whole."""
    return t.name[: -len("weight")] + suffix if suffix and suffix[0] != "_" else t.name + suffix


# ---------------------------------------------------------------- files

BYTES = {"I64": 8, "F32": 4, "BF16": 2, "I8": 1, "F8_E4M3": 1, "F8_E8M0": 1}


def payload(parts):
    return sum(math.prod(shape) * BYTES[dtype] for _, dtype, shape in parts)


def write_safetensors(path, entries):
    """entries: (name, dtype, array). Wider elements first, so that every tensor is aligned."""
    entries = sorted(entries, key=lambda e: (-BYTES[e[1]], e[0]))
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, array in entries:
        header[name] = dict(dtype=dtype, shape=list(array.shape), data_offsets=[offset, offset + array.nbytes])
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for _, _, array in entries:
            f.write(np.ascontiguousarray(array).tobytes())
    return offset


def plan_shards(groups, limit, size):
    """The official grouping, or shards of at most `limit` bytes that ignore it."""
    if limit == "official":
        return groups
    shards, used = [[]], 0
    for t in (t for group in groups for t in group):
        if shards[-1] and used + size(t) > int(limit):
            shards.append([])
            used = 0
        shards[-1].append(t)
        used += size(t)
    return shards


def write_checkpoint(out_dir, cfg, groups, store_of, fmt, limit):
    """Write shards, index, config and descriptor; return the dequantised tensors by name."""
    modelslim = fmt in ("w8a8", "w4a8")
    stem = "quant_model_weights" if modelslim else "model"
    shards = plan_shards(groups, limit, lambda t: payload(layout(t, store_of[t.name])))
    weight_map, kinds, params, total = {}, {}, {}, 0
    os.makedirs(out_dir, exist_ok=True)
    for i, shard in enumerate(shards, 1):
        entries, file = [], f"{stem}-{i:05d}-of-{len(shards):05d}.safetensors"
        for t in shard:
            store = store_of[t.name]
            arrays, params[t.name] = encode(t, store, values(t, cfg))
            for (suffix, dtype, shape), array in zip(layout(t, store), arrays, strict=True):
                name = stored_name(t, suffix)
                assert array.shape == tuple(shape) and array.itemsize == BYTES[dtype], name
                entries.append((name, dtype, array))
                weight_map[name] = file
                kinds[name] = {"int8": "W8A8_DYNAMIC", "int4": "W4A8_DYNAMIC"}.get(store, "FLOAT")
        total += write_safetensors(os.path.join(out_dir, file), entries)

    def dump(name, value):
        with open(os.path.join(out_dir, name), "w") as f:
            json.dump(value, f, indent=1)

    dump(f"{stem}.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map})
    dump("config.json", cfg)
    dump("generation_config.json", {"bos_token_id": cfg["bos_token_id"], "eos_token_id": cfg["eos_token_id"],
                                    "do_sample": True, "temperature": 1.0, "top_p": 1.0})
    if modelslim:
        kind = "W4A8_DYNAMIC" if fmt == "w4a8" else "W8A8_DYNAMIC"
        dump("quant_model_description.json", {"version": "1.0.0", "model_quant_type": kind, "group_size": 0,
                                              "metadata": {}, **kinds})
    return params


# ---------------------------------------------------------------- golden numbers and command line

MODES = {"fp32": "AB", "bf16": "AB", "fp8fp4": "AE", "fp8base": "A", "w8a8": "AC", "w4a8": "AD"}


def rounded(x):
    return [round(float(v), 6) for v in x]


def golden_mode(cfg, params, stores, mode, tokens, positions, steps, mtp, dspark):
    fine, coarse = (Reference(cfg, params, stores, mode, real) for real in (np.float64, np.float32))
    logits = fine.forward(tokens)
    noise = np.abs(logits - coarse.forward(tokens)).max(1)
    top = np.sort(logits, 1)
    result = {"positions": {p: dict(argmax=int(logits[p].argmax()), margin=float(top[p, -1] - top[p, -2]),
                                    noise=float(noise[p]), logits=rounded(logits[p])) for p in positions}}
    if mtp:
        m = fine.mtp(tokens)
        result["mtp"] = {p: dict(argmax=int(m[p].argmax()), logits=rounded(m[p])) for p in positions if p < len(m)}
        drafts, scores = fine.mtp_drafts(tokens, 3)
        result["mtp_drafts"] = dict(anchor_position=len(tokens) - 1, drafts=drafts, logits=[rounded(s) for s in scores])
    if dspark:
        drafts, scores, confidence = fine.dspark(tokens, dspark)
        result["dspark"] = dict(anchor_position=len(tokens) - 1, drafts=drafts, confidence_logits=rounded(confidence),
                                logits=[rounded(s) for s in scores])
    line, margins = list(tokens), []
    for _ in range(steps):
        last = fine.forward(line)[-1] if margins else logits[-1]
        margins.append(float(np.diff(np.sort(last)[-2:])[0]))
        line.append(int(last.argmax()))
    return dict(result, greedy=line[len(tokens):], greedy_margin=rounded(margins))


def token_list(text, vocab):
    """N: N tokens by rule; otherwise comma-separated ids ("7," is a prompt of one)."""
    if "," in text:
        return [int(t) for t in text.split(",") if t]
    return [(37 * i + 11 + i * i % 13) % vocab for i in range(int(text))]


def load_config(name):
    if name in CONFIGS:
        return CONFIGS[name]
    with open(name) as f:
        return json.load(f)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out_dir", nargs="?")
    ap.add_argument("--config", default="tiny")
    ap.add_argument("--format", default="fp32", choices=MODES)
    ap.add_argument("--recipe", default="A", choices="AB")
    ap.add_argument("--mtp", type=int, default=0)
    ap.add_argument("--dspark", type=int, default=0)
    ap.add_argument("--shard", default="official")
    ap.add_argument("--golden")
    ap.add_argument("--tokens", default="300")
    ap.add_argument("--positions")
    ap.add_argument("--greedy", type=int, default=16)
    ap.add_argument("--dry-run", action="store_true")
    ap.add_argument("--list", action="store_true")
    args = ap.parse_args()
    if args.mtp and args.dspark:
        ap.error("--mtp and --dspark exclude each other: both use the names mtp.*")
    cfg = complete_config(load_config(args.config), args.mtp, args.dspark, args.format)
    groups = list(inventory(cfg, args.mtp, args.dspark, args.format in ("w8a8", "w4a8")))
    stores = {t.name: stored_as(t, args.format, args.recipe, args.dspark) for g in groups for t in g}
    for t in (t for g in groups for t in g):
        step = {"fp4": 32, "int4": 16 if t.rule == "down" else 1}.get(stores[t.name], 1)
        if t.shape[-1] % step or (stores[t.name] == "int4" and t.shape[0] % 2):
            ap.error(f"{t.name} {list(t.shape)} cannot be stored as {stores[t.name]}: rows are cut into {step} columns")
    if args.dry_run:
        parts = [(stored_name(t, s), d, shape) for g in groups for t in g for s, d, shape in layout(t, stores[t.name])]
        if args.list:
            print("\n".join(f"{name} {dtype} {list(shape)}" for name, dtype, shape in parts))
        print(f"{len(parts)} tensors, {payload(parts)} bytes, {len(groups)} shards")
        return
    if not args.out_dir:
        ap.error("OUT_DIR is missing")
    params = write_checkpoint(args.out_dir, cfg, groups, stores, args.format, args.shard)
    if args.golden:
        tokens = token_list(args.tokens, cfg["vocab_size"])
        asked = args.positions or f"0,1,2,3,4,15,16,127,128,131,255,256,{len(tokens) - 1}"
        positions = sorted({int(p) for p in asked.split(",") if int(p) < len(tokens)})
        modes = {mode: golden_mode(cfg, params, stores, mode, tokens, positions, args.greedy, args.mtp, args.dspark)
                 for mode in MODES[args.format]}
        with open(args.golden, "w") as f:
            json.dump(dict(format=args.format, recipe=args.recipe, config=cfg, tokens=tokens, modes=modes), f)


if __name__ == "__main__":
    main()
