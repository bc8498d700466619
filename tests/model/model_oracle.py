"""Runs the program model_oracle and reads what it writes."""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "oracle"))


def logits(program, folder, sequences, vocabulary, *options):
    """Logits of all tokens of all sequences, [T, V]."""
    lines = "\n".join(" ".join(map(str, tokens)) for tokens in sequences)
    with tempfile.NamedTemporaryFile() as out:
        command = [program, "logits", "--model", str(folder), "--out", out.name, *options]
        subprocess.run(command, input=lines, text=True, check=True)
        return np.fromfile(out.name, dtype=np.float32).reshape(-1, vocabulary)


def write_fp32_checkpoint(folder, config):
    """A checkpoint of computed weights stored as fp32; returns the completed config and the values by name."""
    import make_checkpoint as oracle

    config = oracle.complete_config(config, 0, 0, "fp32")
    groups = list(oracle.inventory(config))
    stores = {t.name: oracle.stored_as(t, "fp32", "A", 0) for group in groups for t in group}
    return config, oracle.write_checkpoint(folder, config, groups, stores, "fp32", "official")
