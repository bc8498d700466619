#!/usr/bin/env python3
"""Compares the parsed output of well-formed model texts with deepseek-recipe, DeepSeek's own
library, both given the same random pieces. Any difference is a failure.

    output_differential.py --oracle build/.../text_oracle [--count 10000] [--seed 1]

Not compared: white space around reasoning and answer (the library drops leading line breaks, this
parser trailing white space), the spacing of JSON, and malformed calls, which the library does not
repair. Values hold no DSML tags: the library ends a value at any closing tag's beginning. It is not given the end-of-sentence
token, which it takes for text.
"""
import argparse
import json
import random
import sys

from chat_differential import random_value
from oracle import Oracle, real_tokenizer_json, require
from tokenizer_differential import random_text

LOOKALIKES = ["<", "</", "<div>", "</x>", "2>&1", "<|DSML|>", "<｜", "｜", "<invoke", "&lt;", "\\n"]
TOOLS = [{"type": "function", "function": {"name": f"tool_{i}", "description": "d",
                                           "parameters": {"type": "object"}}} for i in range(3)]
END = "<｜end▁of▁sentence｜>"


def random_call(rng):
    name = f"tool_{rng.randrange(3)}"
    lines = []
    for i in range(rng.randint(1, 3)):
        value = random_value(rng, LOOKALIKES) if rng.random() < 0.5 else random_text(rng, LOOKALIKES)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        flag = "true" if isinstance(value, str) else "false"
        lines.append(f'<｜DSML｜parameter name="p{i}" string="{flag}">{text}</｜DSML｜parameter>')
    body = "\n".join(lines)
    return f'<｜DSML｜invoke name="{name}">\n{body}\n</｜DSML｜invoke>'


def random_output(rng, reasoning):
    text = random_text(rng, LOOKALIKES) + "</think>" if reasoning else ""
    text += rng.choice(["", random_text(rng, LOOKALIKES)])
    if rng.random() < 0.7:
        calls = "\n".join(random_call(rng) for _ in range(rng.randint(1, 3)))
        text += f"\n\n<｜DSML｜tool_calls>\n{calls}\n</｜DSML｜tool_calls>"
    return text


def cut(rng, text):
    longest = rng.choice([1, 3, 10, 100])
    pieces = []
    while text:
        length = rng.randint(1, longest)
        pieces.append(text[:length])
        text = text[length:]
    return pieces


def parse_with_recipe(recipe, pieces, reasoning):
    request = recipe.ChatCompletionRequest({
        "model": "DeepSeek-V4-Pro", "messages": [{"role": "user", "content": "x"}], "tools": TOOLS,
        "stream": True, "thinking": {"type": "enabled" if reasoning else "disabled"}})
    conversation = request.convert(recipe.ConversionOptions())
    generator = recipe.ChatCompletionRequest.chunk_generator(conversation, "id", "model")
    processor = recipe.StreamProcessor(generator, conversation.parsing_options)
    chunks = processor.push(recipe.InferenceChunk.ready())
    for piece in pieces:
        chunks += processor.push(recipe.InferenceChunk.text(piece))
    chunks += processor.push(recipe.InferenceChunk.finish(recipe.InferenceFinishReason.Stop))
    chunks += processor.finish()
    result = {"reasoning": "", "content": "", "calls": []}
    for chunk in chunks:
        for choice in json.loads(chunk.to_json()).get("choices", []):
            delta = choice.get("delta", {})
            result["reasoning"] += delta.get("reasoning_content") or ""
            result["content"] += delta.get("content") or ""
            for call in delta.get("tool_calls") or []:
                while len(result["calls"]) <= call["index"]:
                    result["calls"].append(["", ""])
                result["calls"][call["index"]][0] += call["function"].get("name") or ""
                result["calls"][call["index"]][1] += call["function"].get("arguments") or ""
    return result


def normalised(result):
    return (result["reasoning"].strip(), result["content"].strip(),
            [(name, json.loads(arguments)) for name, arguments in result["calls"]])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    recipe = require("deepseek_recipe")

    print(f"seed {args.seed}, {args.count} outputs, deepseek-recipe {recipe.__version__}", flush=True)
    rng = random.Random(args.seed)
    oracle = Oracle(args.oracle, real_tokenizer_json())
    differences = 0
    for begin in range(0, args.count, 500):
        expected, requests = [], []
        for _ in range(min(500, args.count - begin)):
            reasoning = rng.random() < 0.6
            pieces = cut(rng, random_output(rng, reasoning))
            expected.append(parse_with_recipe(recipe, pieces, reasoning))
            requests.append({"parse": pieces + [END], "tools": TOOLS, "reasoning": reasoning})
        for request, want, got in zip(requests, expected, oracle.ask(requests)):
            if normalised(want) != normalised(got):
                differences += 1
                print(f"DIFFERS on {''.join(request['parse'])!r}\n  expected {want}\n  actual   {got}", flush=True)
                if differences == 5:
                    sys.exit("5 differences, giving up")
    oracle.close()
    print(f"{differences} differences in {args.count} outputs")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
