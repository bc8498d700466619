#!/usr/bin/env python3
"""aiperf and fulgur against the same server with known times: each reads the other's files, and every shared metric
is compared with the server's truth."""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import unittest

from answer_server import ANSWERS, AnswerServer, tokens_of

FULGUR = os.environ["FULGUR"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
AIPERF = str(pathlib.Path(sys.executable).parent / "aiperf")
REQUESTS = 24
GOOD = [answer for answer in ANSWERS if not answer[0][1].isdigit()]
ROUNDS = REQUESTS // len(ANSWERS)

# The services of aiperf start slowly on a busy machine.
PATIENCE = {"AIPERF_SERVICE_REGISTRATION_TIMEOUT": "300", "AIPERF_SERVICE_REGISTRATION_MAX_ATTEMPTS": "100",
            "AIPERF_SERVICE_START_TIMEOUT": "300", "AIPERF_SERVICE_HEARTBEAT_MISSED_THRESHOLD": "100"}

# Their values rest on no clock, so they must be equal.
COUNTED = ["request_count", "error_request_count", "total_osl", "total_isl", "output_sequence_length",
           "input_sequence_length", "reasoning_token_count", "output_token_count", "total_reasoning_tokens",
           "total_output_tokens", "osl_mismatch_count"]


def make_tokenizer(folder):
    """A tokenizer as both tools take it: a folder, since a name would be looked up on the network."""
    folder.mkdir()
    shutil.copy(ROOT / "src/text/testdata/tiny_tokenizer.json", folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return folder


def flags(url, tokenizer, folder):
    return ["--model", "m", "--streaming", "--endpoint-type", "chat", "--tokenizer", str(tokenizer),
            "--use-server-token-count", "--url", url, "--concurrency", "2", "--request-count", str(REQUESTS),
            "--isl", "64", "--osl", "8", "--random-seed", "7", "--ui", "none", "--output-artifact-dir", str(folder)]


def summary_of(folder):
    return json.loads((folder / "profile_export_aiperf.json").read_text())


def records_of(folder):
    return [json.loads(line) for line in (folder / "profile_export.jsonl").read_text().splitlines()]


def error_counts(summary):
    counts = {}
    for entry in summary["error_summary"]:
        code = entry["error_details"].get("code")
        counts[code] = counts.get(code, 0) + entry["count"]
    return counts


class AiperfTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.server = AnswerServer()
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{cls.server.server_address[1]}"
        tokenizer = make_tokenizer(cls.folder / "tokenizer")
        cls.truth = {}
        cls.folders = {name: cls.folder / f"{name}-c2" for name in ("aiperf", "fulgur")}
        for name, command in (("aiperf", [AIPERF, "profile"]), ("fulgur", [FULGUR, "bench", "profile"])):
            cls.server.restart()
            done = subprocess.run(command + flags(url, tokenizer, cls.folders[name]), capture_output=True, text=True,
                                  timeout=900, env={**os.environ, **PATIENCE})
            print(f"{name}: exit code {done.returncode}, {cls.server.served} requests served")
            if not (cls.folders[name] / "profile_export_aiperf.json").exists():
                raise RuntimeError(f"{name} wrote no result\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
            cls.truth[name] = dict(cls.server.truth)

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        shutil.rmtree(cls.folder)

    def test_counts_are_those_of_the_server(self):
        for name, folder in self.folders.items():
            summary = summary_of(folder)
            with self.subTest(name):
                self.assertEqual(summary["request_count"]["avg"], ROUNDS * len(GOOD))
                self.assertEqual(summary["total_osl"]["avg"], ROUNDS * sum(map(tokens_of, GOOD)))
                self.assertEqual(error_counts(summary), {400: ROUNDS, 503: ROUNDS})

    def test_counted_metrics_are_equal(self):
        theirs, ours = (summary_of(self.folders[name]) for name in ("aiperf", "fulgur"))
        for tag in COUNTED:
            with self.subTest(tag):
                self.assertIn(tag, theirs)
                self.assertEqual(ours[tag]["unit"], theirs[tag]["unit"])
                for statistic, value in theirs[tag].items():
                    if statistic != "unit":
                        self.assertAlmostEqual(ours[tag][statistic], value, places=6, msg=statistic)

    def test_times_are_near_the_truth(self):
        print(f"\n{'':8}{'metric':22}{'mean error ms':>14}{'worst ms':>10}{'requests':>10}")
        for name, folder in self.folders.items():
            for tag, pick in (("time_to_first_token", 0), ("request_latency", -1)):
                errors = self.errors_of(name, folder, tag, pick)
                print(f"{name:8}{tag:22}{statistics.mean(errors):14.2f}{max(errors):10.2f}{len(errors):10}")
                with self.subTest(f"{name} {tag}"):
                    self.assertEqual(len(errors), ROUNDS * len(GOOD))
                    # The clock starts before the server has the request and stops after it sent the frame.
                    # How well the other tool keeps time is shown, not judged.
                    if name == "fulgur":
                        self.assertGreater(min(errors), -2.0)
                    self.assertLess(statistics.median(errors), 60.0)

    def errors_of(self, name, folder, tag, pick):
        errors = []
        for record in records_of(folder):
            sent = self.truth[name].get(record["metadata"]["x_request_id"])
            if "error" in record or sent is None:
                continue
            visible = [at for kind, at in sent if kind in ("content", "reasoning")]
            errors.append(record["metrics"][tag]["value"] - visible[pick])
        return errors

    def test_every_shared_metric_is_shown_and_has_the_same_shape(self):
        theirs, ours = (summary_of(self.folders[name]) for name in ("aiperf", "fulgur"))
        shared = [tag for tag, block in theirs.items()
                  if isinstance(block, dict) and "unit" in block and isinstance(ours.get(tag), dict)]
        self.assertGreater(len(shared), 40)
        print(f"\n{'metric':42}{'unit':16}{'aiperf':>12}{'fulgur':>12}")
        for tag in sorted(shared):
            pair = [summary[tag].get("avg", summary[tag].get("p50")) for summary in (theirs, ours)]
            print(f"{tag:42}{theirs[tag]['unit']:16}" + "".join(f"{value:12.3f}" for value in pair if value is not None))
            with self.subTest(tag):
                self.assertEqual(ours[tag]["unit"], theirs[tag]["unit"])
                self.assertEqual(set(ours[tag]), set(theirs[tag]))

    def test_aiperf_reads_our_files(self):
        from aiperf.common.models.export_models import JsonExportData
        from aiperf.common.models.record_models import MetricRecordInfo
        folder = self.folders["fulgur"]
        data = JsonExportData.model_validate_json((folder / "profile_export_aiperf.json").read_text())
        self.assertEqual(data.request_count.avg, ROUNDS * len(GOOD))
        for line in (folder / "profile_export.jsonl").read_text().splitlines():
            MetricRecordInfo.model_validate_json(line)

    def test_we_read_what_aiperf_wrote(self):
        out = self.folder / "all.json"
        system = self.folder / "system"
        shutil.copytree(self.folders["aiperf"], system / "mixed-c2")
        done = subprocess.run([FULGUR, "bench", "aggregate", f"--system=aiperf={system}", "--json", out],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        cell = json.loads(out.read_text())["cells"][0]
        self.assertEqual(cell["errors_by_code"], {"400": ROUNDS, "503": ROUNDS})
        for tag, block in summary_of(self.folders["aiperf"]).items():
            if not isinstance(block, dict) or "unit" not in block or not any(k in block for k in ("avg", "p50")):
                continue
            for statistic, value in block.items():
                if statistic != "unit" and value is not None:
                    self.assertAlmostEqual(cell["metrics"][tag][statistic], value, places=6, msg=f"{tag}.{statistic}")

    def test_lint_finds_nothing_in_either_but_what_the_server_did(self):
        for name, folder in self.folders.items():
            out = self.folder / f"{name}.json"
            subprocess.run([FULGUR, "bench", "lint", folder, "--json", out], capture_output=True, timeout=120)
            findings = json.loads(out.read_text())["results"][0]["findings"]
            fired = {finding["rule"] for finding in findings if finding["severity"] != "pass"}
            with self.subTest(name):
                # Errors, lengths other than asked for, a short run, and first messages of several tokens.
                self.assertLessEqual(fired, {"L9", "L10", "L12", "P2", "A1"}, findings)


if __name__ == "__main__":
    unittest.main()
