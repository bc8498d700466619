"""Failures that users of other benchmark tools have reported, tried on ours."""

import json
import pathlib
import shutil
import subprocess
import sys

import openpyxl
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
from load_server import timed  # noqa: E402  pylint: disable=wrong-import-position

TOKENIZER = pathlib.Path(__file__).resolve().parents[2] / "models/demo/tokenizer.json"
PATIENT = ["--max-client-lag", "10000"]
SHORT = ["--isl", "16", "--osl", "8", "--no-warmup"]


@pytest.mark.parametrize("requests, concurrency", [(7, 4), (1, 8)])
def test_counts_that_concurrency_does_not_divide(fulgur, tmp_path, requests, concurrency):
    with timed() as server:
        done = fulgur("bench", "run", "--url", server.url, "--artifact-dir", tmp_path / "r", *SHORT,
                      *PATIENT, "--request-count", requests, "--concurrency", concurrency)
    assert f"{requests} requests, 0 failed" in done.stdout


def test_no_requests_is_a_mistake(fulgur, tmp_path):
    done = fulgur("bench", "run", "--url", "http://127.0.0.1:1", "--artifact-dir", tmp_path / "r",
                  "--request-count", "0", "--concurrency", "1", expect=2)
    assert "--request-count" in done.stderr


def test_repeated_inputs_add_up(fulgur, tmp_path):
    with timed() as server:
        fulgur("bench", "profile", "--model", "timed", "--url", server.url, "--streaming",
               "--output-artifact-dir", tmp_path / "r", "--isl", "16", "--osl", "8", "--request-count", "2",
               "--concurrency", "1", "--extra-inputs", "ignore_eos:true", "--extra-inputs", "min_tokens:8", *PATIENT)
    bodies = json.loads((tmp_path / "r/inputs.json").read_text())["data"]
    assert bodies[0]["payloads"][0]["ignore_eos"] is True and bodies[0]["payloads"][0]["min_tokens"] == 8


@pytest.mark.parametrize("place", ["tok", "./tok", "a folder/tok"])
def test_a_tokenizer_on_disk_needs_no_network(pytestconfig, tmp_path, place):
    """The server is out of reach too: what is refused is the connection, not the tokenizer."""
    folder = tmp_path / place
    folder.mkdir(parents=True)
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    words = [pytestconfig.getoption("--fulgur"), "bench", "run", "--model", "org/model", "--url",
             "http://127.0.0.1:9", "--tokenizer", place, "--artifact-dir", "r", *SHORT, "--request-count", "1"]
    if subprocess.run(["unshare", "-rn", "true"], check=False).returncode != 0:
        pytest.skip("unshare cannot make a network namespace here")
    done = subprocess.run(["unshare", "-rn", *words], capture_output=True, text=True, timeout=60, cwd=tmp_path,
                          check=False)
    assert done.returncode != 0
    assert "127.0.0.1:9" in done.stderr and "tok" not in done.stderr.replace("token", "")


def test_texts_of_others_stay_texts_in_cells(fulgur, comparison_file, tmp_path):
    told = json.loads(comparison_file.read_text())
    told["problems"] = ["=HYPERLINK(\"http://x\")", "+1", "@cmd", "a\u0000b\u000bc", "x" * 40000]
    for system in told["systems"]:
        if system["id"] == "baseline":
            system["label"] = "=1+1"
        if system["id"] == "dspark":
            system["label"] = "'x'"
    path = tmp_path / "comparison.json"
    path.write_text(json.dumps(told))
    fulgur("bench", "report", path, "--xlsx", tmp_path / "r.xlsx")
    book = openpyxl.load_workbook(tmp_path / "r.xlsx")
    assert len({name.lower() for name in book.sheetnames}) == 5
    assert not any(name[0] == "'" or name[-1] == "'" for name in book.sheetnames)
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert not any(cell.data_type == "f" and ("HYPERLINK" in cell.value or cell.value == "=1+1") for cell in cells)
    assert any(cell.data_type == "s" and "=1+1" in str(cell.value) for cell in cells)


def test_latency_over_rates_is_drawn(fulgur, tmp_path):
    """Open-loop cells from the load generator itself to figure F7."""
    with timed() as server:
        for rate in (20, 40):
            fulgur("bench", "run", "--url", server.url, "--artifact-dir", tmp_path / f"runs/chat-r{rate}", *SHORT,
                   *PATIENT, "--request-count", 10, "--request-rate", rate)
    fulgur("bench", "aggregate", "--system", f"one={tmp_path / 'runs'}", "--json", tmp_path / "comparison.json")
    told = json.loads((tmp_path / "comparison.json").read_text())
    assert [scenario["id"] for scenario in told["scenarios"]] == ["custom-rate20", "custom-rate40"]
    fulgur("bench", "report", tmp_path / "comparison.json", "--out", tmp_path / "out")
    assert (tmp_path / "out/report_files/F7.svg").exists()
