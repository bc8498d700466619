"""Writes src/model/testdata/random_configs.json: configs, tokens, and logits of reference_forward.py at some positions.

usage: make_config_fixtures.py
"""
import json
import random

import numpy as np

import model_oracle
from random_configs import random_config

import make_checkpoint as oracle
from reference_forward import Reference

COUNT = 10


def fixture(seed):
    """None if a choice between near ties makes some position useless for comparison."""
    config, length = random_config(seed)
    config = oracle.complete_config(config, 0, 0, "fp32")
    values = {t.name: oracle.values(t, config) for group in oracle.inventory(config) for t in group}
    tokens = [random.Random(seed).randrange(config["vocab_size"]) for _ in range(length)]
    fine, coarse = (Reference(config, values, dict.fromkeys(values, "f32"), "A", real).forward(tokens)
                    for real in (np.float64, np.float32))
    if np.abs(fine - coarse).max() > 1e-5:
        return None
    positions = sorted({0, length // 2, length - 1})
    return dict(config=config, tokens=tokens, positions={p: [round(float(v), 6) for v in fine[p]] for p in positions})


def main():
    fixtures, seed = [], 0
    while len(fixtures) < COUNT:
        found = fixture(seed)
        seed += 1
        if found:
            fixtures.append(found)
    path = model_oracle.ROOT / "src" / "model" / "testdata" / "random_configs.json"
    path.write_text("[\n" + ",\n".join(json.dumps(f, separators=(",", ":")) for f in fixtures) + "\n]\n")


if __name__ == "__main__":
    main()
