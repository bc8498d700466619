#!/usr/bin/env python3
"""The subcommands on result files, as processes: lint, aggregate, import and their exit codes."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

FULGUR = os.environ["FULGUR"]
DATA = pathlib.Path("src/bench/results/testdata").resolve()
PUBLISHED = DATA / "published"
OK, FAILED, MISTAKE, GATE, PARTIAL = 0, 1, 2, 3, 4


def run(*words):
    return subprocess.run([FULGUR, "bench", *map(str, words)], capture_output=True, text=True, timeout=60)


def published(*words):
    systems = [f"--system={name}={PUBLISHED / name}.json" for name in ("baseline", "dspark", "qwen")]
    return run("aggregate", *systems, *words)


class ResultsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())

    def tearDown(self):
        shutil.rmtree(self.folder)

    def test_published_numbers_give_published_verdicts(self):
        out = self.folder / "comparison.json"
        done = published("--json", out, "--trials", PUBLISHED / "trials.json")
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertIn("9 improved, 1 neutral, 2 regression(s), 0 undecided", done.stdout)
        self.assertIn("geometric mean of 12 cell(s), all: 1.544x", done.stdout)
        self.assertIn("engine: vLLM 0.22.1rc1 (vllm-ascend) -> vLLM 0.25.1 (vllm-ascend)", done.stdout)
        data = json.loads(out.read_text(), parse_constant=self.fail)
        self.assertEqual(len(data["cells"]), 36)
        cell = next(c for c in data["cells"]
                    if (c["system"], c["scenario"], c["concurrency"]) == ("dspark", "coding", 1))
        self.assertEqual(cell["metrics"]["output_token_throughput_per_user"]["avg"], 89.17)
        self.assertFalse(cell["valid"])
        self.assertIn("31 of 50", " ".join(cell["reasons"]))

    def test_gate(self):
        self.assertEqual(published("--fail-on", "regression").returncode, GATE)
        done = published("--min-ratio", "0.95")
        self.assertEqual(done.returncode, GATE)
        self.assertIn("no cell has output tokens per second", done.stderr)
        same = run("aggregate", f"--system=a={PUBLISHED}/baseline.json", f"--system=b={PUBLISHED}/baseline.json",
                   "--fail-on=regression")
        self.assertEqual(same.returncode, OK, same.stderr)

    def test_gate_on_failed_requests(self):
        systems = [f"--system={name}={DATA}/real/mixed" for name in ("old", "new")]
        self.assertEqual(run("aggregate", *systems, "--max-error-percent=50").returncode, OK)
        done = run("aggregate", *systems, "--max-error-percent=10")
        self.assertEqual(done.returncode, GATE)
        self.assertIn("8 of 24 requests failed, more than 10 %", done.stderr)
        self.assertIn("16/8 !", done.stdout)

    def test_partial(self):
        system = self.folder / "new"
        shutil.copytree(DATA / "real/mixed", system / "chat-c2")
        (system / "chat-c4").mkdir()
        (system / "chat-c4/profile_export_aiperf.json").write_text("{\"request_count\": ")
        out = self.folder / "all.json"
        done = run("aggregate", f"--system=new={system}:New engine", "--json", out)
        self.assertEqual(done.returncode, PARTIAL)
        self.assertIn("as if it was cut off; it was skipped", done.stderr)
        data = json.loads(out.read_text())
        self.assertEqual(data["systems"][0]["label"], "New engine")
        self.assertEqual(len(data["cells"]), 1)
        self.assertEqual(data["cells"][0]["errors_by_code"]["503"], 2)

    def test_mistakes(self):
        for words, sentence in [
            (["aggregate"], "--system NAME=PATH is needed"),
            (["aggregate", "--system", "x"], "not NAME=VALUE"),
            (["aggregate", "--system", "a=b", "--util", "c=d"], "no --system is called"),
            (["aggregate", "--system", "a=b", "--devices", "a=none"], "number above 0"),
            (["aggregate", "--system", "a=b", "--threshold", "7"], "at most 1"),
            (["lint"], "name result files"),
            (["import", "x"], "--out FOLDER is needed"),
            (["import", "x", "--out", "y", "--scenario", "../z"], "file name"),
        ]:
            done = run(*words)
            self.assertEqual(done.returncode, MISTAKE, words)
            self.assertIn(sentence, done.stderr)

    def test_nothing_readable(self):
        done = run("aggregate", "--system", "a=/no/such/folder")
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("/no/such/folder", done.stderr)
        self.assertEqual(run("lint", self.folder).returncode, FAILED)

    def test_lint_explains_the_published_coding_cells(self):
        done = run("lint", PUBLISHED / "dspark.json", "--json", self.folder / "lint.json")
        self.assertEqual(done.returncode, FAILED)
        self.assertEqual(done.stdout.count("exactly 19 of 50 requests ask for fewer tokens than min_tokens"), 4)
        findings = json.loads((self.folder / "lint.json").read_text())
        self.assertEqual(len(findings["results"]), 12)

    def test_lint_of_real_files(self):
        done = run("lint", DATA / "real")
        self.assertEqual(done.returncode, FAILED)  # a third of the requests failed
        self.assertIn("8 of 24 requests failed (33.3 %)", done.stdout)
        self.assertNotIn("phases/", done.stdout)

    def test_import(self):
        out = self.folder / "imported"
        done = run("import", DATA / "real/vllm_bench_0_33/openai-chat.json", DATA / "sglang/results.jsonl",
                   DATA / "aisbench/gsm8kdataset.json", "--out", out, "--scenario", "night")
        self.assertEqual(done.returncode, OK, done.stderr)
        names = sorted(path.name for path in out.iterdir())
        self.assertEqual(names, ["night-c2", "night-c32", "night-c4", "night-c8"])
        summary = json.loads((out / "night-c2/profile_export_aiperf.json").read_text(), parse_constant=self.fail)
        source = json.loads((DATA / "real/vllm_bench_0_33/openai-chat.json").read_text())
        self.assertAlmostEqual(summary["time_to_first_token"]["avg"], source["mean_ttft_ms"], places=6)
        self.assertAlmostEqual(summary["inter_token_latency"]["avg"], source["mean_tpot_ms"], places=6)
        self.assertEqual(summary["request_count"], {"unit": "requests", "avg": 16.0})
        again = run("aggregate", f"--system=vllm={out}")
        self.assertEqual(again.returncode, OK, again.stderr)


if __name__ == "__main__":
    unittest.main()
