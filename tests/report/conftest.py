"""Workbook and report of the published comparison, made once by the program itself."""

import json
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTDATA = ROOT / "src/bench/report/testdata"


def pytest_addoption(parser):
    parser.addoption("--fulgur", required=True)


@pytest.fixture(scope="session")
def fulgur(pytestconfig):
    def run(*words, expect=0):
        done = subprocess.run([pytestconfig.getoption("--fulgur"), *map(str, words)],
                              capture_output=True, text=True, timeout=120, cwd=ROOT)
        assert done.returncode == expect, (words, done.returncode, done.stdout, done.stderr)
        return done

    return run


@pytest.fixture(scope="session")
def published():
    return json.loads((TESTDATA / "published_results.json").read_text())


@pytest.fixture(scope="session")
def comparison_file():
    return TESTDATA / "published_comparison.json"


@pytest.fixture(scope="session")
def made(fulgur, comparison_file, tmp_path_factory):
    """The folder with report.xlsx (English headers), report.md, report.zh.md, report.html."""
    folder = tmp_path_factory.mktemp("report")
    fulgur("bench", "report", comparison_file, "--xlsx", folder / "report.xlsx", "--lang", "en")
    fulgur("bench", "report", comparison_file, "--md", folder / "report.md", "--html",
           folder / "report.html")
    return folder
