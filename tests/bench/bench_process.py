"""Runs `fulgur bench ...` and reads the files that it writes."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
from fulgur_process import FULGUR, ROOT, TINY_TOKENIZER, run  # noqa: E402,F401  pylint: disable=wrong-import-position


# A busy machine makes the program late; that is not what these tests are about.
PATIENT = ["--max-client-lag", "10000"]


def bench(server, folder, *flags, command="run", timeout=60):
    return run("bench", command, "--url", server.url, "--artifact-dir", folder, *PATIENT, *flags, timeout=timeout)


def load(folder, *names):
    with open(os.path.join(folder, *names), encoding="utf-8") as file:
        return json.load(file)


def summary(folder, *below):
    return load(folder, *below, "profile_export_aiperf.json")


def lines(folder, *below):
    with open(os.path.join(folder, *below, "profile_export.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def measured(records):
    return [record for record in records if record["metadata"]["benchmark_phase"] == "profiling"]
