"""Writes src/model/testdata/random_configs.json: configs, tokens, and logits of reference_forward.py at some positions;
and random_drafters.json: the same with drafters, and the drafts behind the last token.

usage: make_config_fixtures.py
"""
import json
import random

import numpy as np

import model_oracle
from random_configs import random_config, random_drafter

import make_checkpoint as oracle
from reference_forward import Reference, sigmoid

COUNT = 10
NUM_DRAFTS = 3  # of an MTP block


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


def rounded(x):
    return [round(float(v), 6) for v in x]


def drafter_fixture(seed):
    """The same for drafts."""
    config, length, mtp, dspark = random_drafter(seed)
    config = oracle.complete_config(config, mtp, dspark, "fp32")
    values = {t.name: oracle.values(t, config) for group in oracle.inventory(config, mtp, dspark) for t in group}
    tokens = [random.Random(seed + i).randrange(config["vocab_size"]) for i in range(length + 1)]
    results = []
    for real in (np.float64, np.float32):
        reference = Reference(config, values, dict.fromkeys(values, "f32"), "A", real)
        reference.forward(tokens)
        results.append(reference.dspark(tokens, dspark) if dspark else reference.mtp_drafts(tokens, NUM_DRAFTS))
    drafts, logits = results[0][:2]
    if np.abs(logits - results[1][1]).max() > 1e-5:
        return None
    confidence = rounded(sigmoid(results[0][2])) if dspark else None
    return dict(config=config, blocks=mtp + dspark, tokens=tokens, drafts=drafts, logits=[rounded(row) for row in logits],
                confidence=confidence)


def write(name, make):
    fixtures, seed = [], 0
    while len(fixtures) < COUNT:
        found = make(seed)
        seed += 1
        if found:
            fixtures.append(found)
    path = model_oracle.ROOT / "src" / "model" / "testdata" / name
    path.write_text("[\n" + ",\n".join(json.dumps(f, separators=(",", ":")) for f in fixtures) + "\n]\n")


def main():
    write("random_configs.json", fixture)
    write("random_drafters.json", drafter_fixture)


if __name__ == "__main__":
    main()
