#!/usr/bin/env python3
"""Writes the fixtures src/text/testdata/tiny_tokenizer.json and tiny_tokenizer_vectors.json.

The tokenizer has the structure of DeepSeek-V4's (same pre-tokenizer, same kinds of added tokens)
and a vocabulary of about a thousand tokens, so that the fast tests need no download. The vectors
are what Hugging Face `tokenizers` makes of random strings. Run it in the environment of
scripts/python_env.sh.
"""
import json
import pathlib
import random

import tokenizers

from oracle import real_tokenizer_json
from tokenizer_differential import random_text

TESTDATA = pathlib.Path(__file__).parents[2] / "src/text/testdata"
CORPUS = [
    "The ferry leaves at dawn, whether or not the fog has lifted. She asked for the weather.",
    "What is the weather in Paris today? It will be sunny and warm, about 21 degrees.",
    "def add(a, b):\n    return a + b\n\nfor i in range(10):\n    print(i)\n",
    '{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {}}}}',
    "<tool_result>sunny</tool_result> tool_calls invoke name= parameter string=\"true\">",
    "你好，世界！今天的天气怎么样？我们一起学习人工智能和深度学习。",
    "こんにちは。ありがとう。 Привет, мир! Как дела? 안녕하세요.",
] * 30
MARKUP = ["<｜User｜>", "<｜Assistant｜>", "<think>", "</think>", "｜DSML｜", "<｜latest_reminder｜>",
          "<｜action｜>", "<｜query｜>", "<｜authority｜>", "<｜domain｜>", "<｜title｜>", "<｜read_url｜>",
          "<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>", "<|EOT|>"]
SPECIAL = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"]


def train():
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    real = tokenizers.Tokenizer.from_file(real_tokenizer_json())
    tokenizer.pre_tokenizer = real.pre_tokenizer
    tokenizer.decoder = real.decoder
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1000, show_progress=False, special_tokens=SPECIAL,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([tokenizers.AddedToken("<｜end_of_query｜>", normalized=False)])
    tokenizer.add_tokens([tokenizers.AddedToken(t, normalized=i % 2 == 0) for i, t in enumerate(MARKUP)])
    return tokenizer


def main():
    tokenizer = train()
    (TESTDATA / "tiny_tokenizer.json").write_text(
        json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
    rng = random.Random(5)
    texts = CORPUS[:7] + [random_text(rng, MARKUP + SPECIAL) for _ in range(400)]
    vectors = [{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False).ids} for t in texts]
    lines = ",\n".join(json.dumps(v, ensure_ascii=True, separators=(",", ":")) for v in vectors)
    (TESTDATA / "tiny_tokenizer_vectors.json").write_text("[\n" + lines + "\n]\n")


if __name__ == "__main__":
    main()
