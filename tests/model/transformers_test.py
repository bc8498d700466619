"""Reference precision against transformers' deepseek_v4: the tiny config and random ones.

usage: transformers_test.py --oracle MODEL_ORACLE [--count N]

transformers rounds its fp32 choices its own way, so only positions whose choices are clear are compared (as measured by
reference_forward.py in fp32 and fp64).
"""
import argparse
import copy
import random
import tempfile

import numpy as np

import model_oracle
from random_configs import random_config

import make_checkpoint
import transformers_oracle
from reference_forward import Reference

TOLERANCE = 5e-5


def check(program, config, length, seed):
    r = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        config, values = model_oracle.write_fp32_checkpoint(folder, config)
        tokens = [r.randrange(config["vocab_size"]) for _ in range(length)]
        ours = model_oracle.logits(program, folder, [tokens], config["vocab_size"], "--precision", "reference", "--chunks",
                                   "64")
    fine, coarse = (Reference(config, values, dict.fromkeys(values, "f32"), "A", real).forward(tokens)
                    for real in (np.float64, np.float32))
    theirs = transformers_oracle.prefill(transformers_oracle.build(copy.deepcopy(config), values), tokens)
    clear = np.abs(fine - coarse).max(1) < TOLERANCE
    difference = np.abs(ours - theirs).max(1)[clear].max(initial=0)
    assert difference <= TOLERANCE, f"seed {seed}: {difference}; {config}"
    return difference, clear.sum()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--oracle", required=True)
    ap.add_argument("--count", type=int, default=10)
    args = ap.parse_args()
    difference, positions = check(args.oracle, make_checkpoint.TINY, 300, 0)
    print(f"tiny: largest difference {difference:.2e} at {positions} positions", flush=True)
    for seed in range(args.count):
        config, length = random_config(seed)
        # transformers takes the rotated part of both kinds of heads as one fraction of head_dim.
        config["qk_rope_head_dim"] = random.Random(seed).choice([4, 8, 16])
        config["head_dim"] = config["index_head_dim"] = 2 * config["qk_rope_head_dim"]
        # With few heads many scores are exactly zero, and its top-k takes any of them.
        config["index_n_heads"] = 24
        difference, positions = check(args.oracle, config, length, seed)
        print(f"random config {seed}: {difference:.2e} at {positions} positions", flush=True)


if __name__ == "__main__":
    main()
