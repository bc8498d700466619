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


def drafts(program, folder, tokens, count, vocabulary, *options):
    """Greedy drafts behind the last token: tokens, logits [count, V] and confidence."""
    with tempfile.NamedTemporaryFile() as out:
        command = [program, "drafts", "--model", str(folder), "--out", out.name, "--drafts", str(count), *options]
        result = subprocess.run(command, input=" ".join(map(str, tokens)), text=True, check=True, stdout=subprocess.PIPE)
        logits = np.fromfile(out.name, dtype=np.float32).reshape(-1, vocabulary)
    ids, confidence = result.stdout.splitlines()
    return [int(t) for t in ids.split()], logits, [float(c) for c in confidence.split()]


def write_fp32_checkpoint(folder, config, mtp=0, dspark=0):
    """A checkpoint of computed weights stored as fp32; returns the completed config and the values by name."""
    import make_checkpoint as oracle

    config = oracle.complete_config(config, mtp, dspark, "fp32")
    groups = list(oracle.inventory(config, mtp, dspark))
    stores = {t.name: oracle.stored_as(t, "fp32", "A", dspark) for group in groups for t in group}
    return config, oracle.write_checkpoint(folder, config, groups, stores, "fp32", "official")
