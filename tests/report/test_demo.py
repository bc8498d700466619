"""The demo: two servers, load, sampling, comparison, workbook and report, in one command."""

import json
import pathlib
import subprocess
import time

import openpyxl

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_demo_goes_all_the_way(pytestconfig, tmp_path):
    start = time.monotonic()
    done = subprocess.run([pytestconfig.getoption("--fulgur"), "bench", "demo", "--out", tmp_path],
                          cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert time.monotonic() - start < 120
    told = json.loads((tmp_path / "comparison.json").read_text())
    assert {cell["system"] for cell in told["cells"]} == {"baseline", "speculative"}
    assert all(cell["errors"] == 0 for cell in told["cells"])
    speedups = [c["speedup"] for c in told["contrasts"]
                if c["metric"] == "output_token_throughput_per_user" and c["statistic"] == "avg"]
    assert len(speedups) == 3 and all(1.5 < s < 3 for s in speedups)
    assert len(openpyxl.load_workbook(tmp_path / "report.xlsx").sheetnames) == 5
    page = (tmp_path / "report.html").read_text()
    for figure in ("F1", "F2", "F4", "F5", "F6", "F9", "F10", "F11"):
        assert f'id="en-{figure}"' in page and f'id="zh-{figure}"' in page, figure
    assert (tmp_path / "report.zh.md").exists()
    assert str(tmp_path / "report.html") in done.stdout


def test_demo_keeps_what_is_there(fulgur, tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    assert "is not empty" in fulgur("bench", "demo", "--out", tmp_path, expect=1).stderr
