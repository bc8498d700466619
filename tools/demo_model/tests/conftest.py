"""Shared fixtures: the folder tools/ on the path, one small tokenizer."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory):
    from demo_model import tokenizer
    return tokenizer.train(tmp_path_factory.mktemp("tok") / "tokenizer.json", samples=6000)
