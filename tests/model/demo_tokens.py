"""Prints held-out conversations of the demonstration model as token ids, one a line: input for `model_oracle distance`.

usage: demo_tokens.py CHECKPOINT [COUNT]
"""
import pathlib
import random
import sys

from tokenizers import Tokenizer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from demo_model import data  # noqa: E402
from demo_model.encoding import render  # noqa: E402


def main():
    tokenizer = Tokenizer.from_file(str(pathlib.Path(sys.argv[1]) / "tokenizer.json"))
    rng = random.Random(7)
    for i in range(int(sys.argv[2]) if len(sys.argv) > 2 else 60):
        sample = data.tool_conversation(rng, "test") if i % 4 == 0 else data.sample(rng, "test")
        print(*tokenizer.encode(render(sample.messages, sample.tools, sample.thinking)).ids)


if __name__ == "__main__":
    main()
