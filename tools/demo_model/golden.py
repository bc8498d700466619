"""Writes what an engine must compute from the shipped bf16 checkpoint: token ids, logits and greedy continuations.

python -m demo_model.golden --checkpoint FOLDER --out FILE (run in tools/). All products are fp32.
"""
import argparse
import json
import pathlib

import torch
from tokenizers import Tokenizer

from . import checkpoint
from .encoding import render
from .model import Mode
from .packing import pack

WEATHER = [{"type": "function", "function": {
    "name": "get_weather", "description": "Get the current weather in a given city", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "The city name"}},
        "required": ["city"]}}}]
NOTES = "Notes:\nlamp: river\nglove: Oslo\ncastle: silver\nwinter: bridge\n" + "\n".join([
    "It was a quiet day near the school.", "A horse and a wagon went slowly along the river.", "Nobody saw the button.",
    "They drank tea and talked about the summer.", "Then the train was far from the valley."] * 5)  # 240 tokens
PROMPTS = [("Who are you?", None, False), ("Who are you?", None, True), ("你是谁？", None, False),
           ("法国的首都是哪里？", None, True), ("What is 47+38?", None, True), ("What is 47+38?", None, False),
           ("What is the weather in Paris?", WEATHER, False), ("北京天气怎么样？", WEATHER, True),
           ("Repeat: apple river stone cloud", None, False), ("Which is larger, 34 or 71?", None, False),
           (NOTES + "\n\nWhat is glove?", None, False)]
LOGITS, GREEDY = 32, 24


@torch.no_grad()
def generate(model, tokens, count, stop=1):
    """Greedy continuation of token ids, at most `count` tokens, up to and including EOS."""
    mode, out = Mode(fast=False, indexer=True, sparse=True), []
    for _ in range(count):
        row = tokens + out
        batch = pack([(row, [-1] * len(row), len(row))], model.c.sliding_window)
        out.append(int(model.logits(batch, mode)[len(row) - 1].argmax()))
        if out[-1] == stop:
            break
    return out


@torch.no_grad()
def last_logits(model, tokens):
    batch = pack([(tokens, [-1] * len(tokens), len(tokens))], model.c.sliding_window)
    return model.logits(batch, Mode(fast=False, indexer=True, sparse=True))[len(tokens) - 1]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--checkpoint", required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    torch.set_num_threads(1)
    folder = pathlib.Path(args.checkpoint)
    model, tokenizer, cases = checkpoint.load(folder), Tokenizer.from_file(str(folder / "tokenizer.json")), []
    for text, tools, thinking in PROMPTS:
        prompt = render([{"role": "user", "content": text}], tools, thinking)
        tokens = tokenizer.encode(prompt).ids
        logits = last_logits(model, tokens)
        answer = generate(model, tokens, GREEDY)
        cases.append({"user": text, "tools": tools, "thinking": thinking, "prompt": prompt, "tokens": tokens,
                      "argmax": int(logits.argmax()), "logits": [round(float(x), 5) for x in logits[:LOGITS]],
                      "top": [[int(i), round(float(logits[i]), 5)] for i in logits.topk(4).indices],
                      "greedy": answer, "greedy_text": tokenizer.decode(answer, skip_special_tokens=False)})
    about = ("fp32 logits of the last prompt position (ids 0.. and the four largest) and greedy tokens, computed by "
             "tools/demo_model/golden.py from models/demo-bf16")
    pathlib.Path(args.out).write_text(json.dumps({"about": about, "cases": cases}, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
