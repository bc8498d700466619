"""Drafters of random configs in reference precision against tools/oracle/reference_forward.py.

usage: random_drafters_test.py --oracle MODEL_ORACLE [--count N] [--seed S]
"""
import argparse
import random
import tempfile

import numpy as np

import model_oracle
from random_configs import random_drafter

from reference_forward import Reference, sigmoid

TOLERANCE = 3e-5

# Checked every time. Steps of one token, while more rows than that wait for the drafter's keys.
FIXED_SEEDS = (865294075,)


def expected(config, values, tokens, count, stages, real):
    """Logits [count, V] and confidence (DSpark only) behind the last token."""
    reference = Reference(config, values, dict.fromkeys(values, "f32"), "A", real)
    reference.forward(tokens)
    if stages:
        drafts, logits, confidence = reference.dspark(tokens, stages)
        return drafts[:count], logits[:count], sigmoid(confidence)[:count]
    return *reference.mtp_drafts(tokens, count), None


def check(program, seed):
    config, length, mtp, stages = random_drafter(seed)
    r = random.Random(f"tokens {seed}")
    count = r.randint(1, config["dspark_block_size"] if stages else 4)
    with tempfile.TemporaryDirectory() as folder:
        config, values = model_oracle.write_fp32_checkpoint(folder, config, mtp, stages)
        tokens = [r.randrange(config["vocab_size"]) for _ in range(length + 1)]
        chunks = ",".join(str(r.choice([1, 2, 3, 7, 64, 129])) for _ in range(8))
        ids, ours, confidence = model_oracle.drafts(program, folder, tokens, count, config["vocab_size"], "--precision",
                                                    "reference", "--chunks", chunks, "--threads", str(r.choice([1, 2])))
    fine, coarse = (expected(config, values, tokens, count, stages, real) for real in (np.float64, np.float32))
    noise = np.abs(fine[1] - coarse[1]).max()
    if noise > TOLERANCE:  # a choice between near ties flipped: nothing to compare
        return 0
    worst = np.abs(ours - fine[1]).max()
    assert ids == fine[0], f"seed {seed}: drafts {ids}, expected {fine[0]}; {config}"
    assert worst < TOLERANCE + 10 * noise, f"seed {seed}: logits differ by {worst}; {config}"
    if stages:
        assert np.abs(np.array(confidence) - fine[2]).max() < TOLERANCE, f"seed {seed}: {confidence}, expected {fine[2]}"
    return worst


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--oracle", required=True)
    ap.add_argument("--count", type=int, default=60)
    ap.add_argument("--seed", type=int, default=random.randrange(10**9))
    args = ap.parse_args()
    print(f"seeds from {args.seed}", flush=True)
    seeds = [*FIXED_SEEDS, *range(args.seed, args.seed + args.count)]
    worst = max(check(args.oracle, seed) for seed in seeds)
    print(f"{args.count} configs, largest difference {worst:.2e}")


if __name__ == "__main__":
    main()
