"""Random configs in reference precision against tools/oracle/reference_forward.py.

usage: random_configs_test.py --oracle MODEL_ORACLE [--count N] [--seed S]
"""
import argparse
import random
import tempfile

import numpy as np

import model_oracle
from random_configs import random_config

from reference_forward import Reference

TOLERANCE = 3e-5


def check(program, seed):
    config, length = random_config(seed)
    r = random.Random(~seed)
    with tempfile.TemporaryDirectory() as folder:
        config, values = model_oracle.write_fp32_checkpoint(folder, config)
        vocabulary = config["vocab_size"]
        tokens = [r.randrange(vocabulary) for _ in range(length)]
        fine, coarse = (Reference(config, values, dict.fromkeys(values, "f32"), "A", real).forward(tokens)
                        for real in (np.float64, np.float32))
        chunks = ",".join(str(r.choice([1, 2, 3, 7, 64, 129])) for _ in range(8))
        threads = str(r.choice([1, 2]))
        ours = model_oracle.logits(program, folder, [tokens], vocabulary, "--precision", "reference", "--chunks", chunks,
                                   "--threads", threads)
    # Where fp32 and fp64 differ much, a choice between near ties flipped: nothing to compare there.
    noise = np.abs(fine - coarse).max(1)
    difference = np.abs(ours - fine).max(1)
    wrong = np.nonzero(difference > TOLERANCE + 10 * noise)[0]
    assert not len(wrong), f"seed {seed}: position {wrong[0]} differs by {difference[wrong[0]]}; {config}"
    return difference[noise < TOLERANCE].max(initial=0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--oracle", required=True)
    ap.add_argument("--count", type=int, default=60)
    ap.add_argument("--seed", type=int, default=random.randrange(10**9))
    args = ap.parse_args()
    print(f"seeds from {args.seed}", flush=True)
    worst = max(check(args.oracle, args.seed + i) for i in range(args.count))
    print(f"{args.count} configs, largest difference {worst:.2e}")


if __name__ == "__main__":
    main()
