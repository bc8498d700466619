#!/usr/bin/env python3
"""Compares rendered prompts and their token ids with deepseek-recipe, DeepSeek's own library, on
random conversations. Any difference is a failure.

    chat_differential.py --oracle build/.../text_oracle [--count 20000] [--seed 1]

The library is known to differ from the script in the checkpoints, which this project follows, in
what the generator therefore leaves out:
  * a call without arguments: the library writes no empty line between the tags;
  * numbers with exponents and integers beyond 64 bits: printed its own way;
  * more than one system message: the library merges them into the first;
  * a reminder behind a user turn: the library puts the assistant header behind it;
  * a tool without description or parameters: the library writes an empty text, not null;
  * chat mode with tools: the library keeps the reasoning of earlier turns, the script does not;
  * calls of one turn: the library orders them by their ids, the script as they came;
  * an assistant turn without reasoning where reasoning is kept: an empty pair of think tags here,
    the mark of a turn without thinking there.
"""
import argparse
import json
import random
import sys

from oracle import Oracle, real_tokenizer_json, require
from tokenizer_differential import random_text

ADDED = ["<｜User｜>", "<｜Assistant｜>", "<think>", "</think>", "｜DSML｜", "<｜end▁of▁sentence｜>",
         "<｜begin▁of▁sentence｜>", "<｜latest_reminder｜>", "<tool_result>", "</tool_result>",
         "<｜DSML｜tool_calls>", "</｜DSML｜invoke>"]


def random_value(rng, tokens=ADDED, depth=0):
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return None
    if kind == 1:
        return rng.random() < 0.5
    if kind == 2:
        return rng.randint(-10**12, 10**12)
    if kind == 3:
        return round(rng.uniform(-1000, 1000), rng.randint(0, 6))
    if kind in (4, 5):
        return random_text(rng, tokens)
    if kind == 6:
        return [random_value(rng, tokens, depth + 1) for _ in range(rng.randint(0, 3))]
    return {random_text(rng, tokens): random_value(rng, tokens, depth + 1) for _ in range(rng.randint(0, 3))}


def random_arguments(rng):
    kind = rng.randrange(10)
    if kind == 0:  # no JSON object
        return rng.choice(["not json", "[1, 2]", "3", "null", '"text"', '{"cut": "of', "{}x"])
    arguments = {random_text(rng, ADDED): random_value(rng) for _ in range(rng.randint(1, 3))}
    compact = (",", ":") if kind < 5 else None
    return json.dumps(arguments, ensure_ascii=kind % 2 == 0, separators=compact)


def random_tool(rng, index):
    return {"type": "function", "function": {
        "name": f"tool_{index}", "description": random_text(rng, ADDED),
        "parameters": {"type": "object", "properties": {
            f"p{i}": {"type": rng.choice(["string", "integer"]), "description": random_text(rng, ADDED)}
            for i in range(rng.randint(0, 3))}}}}


def random_conversation(rng, thinking):
    tools = [random_tool(rng, i) for i in range(rng.randint(1, 3))] if rng.random() < 0.5 else []
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": "system", "content": random_text(rng, ADDED)})
    call_number = 0
    for _ in range(rng.randint(1, 4)):
        if rng.random() < 0.15 and (not messages or messages[-1]["role"] in ("system", "assistant")):
            messages.append({"role": "latest_reminder", "content": random_text(rng, ADDED)})
        for _ in range(rng.choice([1, 1, 1, 2])):
            messages.append({"role": "user", "content": random_text(rng, ADDED)})
        if rng.random() < 0.7:
            turn = {"role": "assistant", "content": rng.choice(["", random_text(rng, ADDED)])}
            if thinking or not tools:
                turn["reasoning_content"] = random_text(rng, ADDED)
            messages.append(turn)
            if tools and rng.random() < 0.6:
                turn["tool_calls"] = []
                for _ in range(rng.randint(1, 3)):
                    call_number += 1
                    turn["tool_calls"].append({"id": f"c{call_number:03}", "type": "function", "function": {
                        "name": rng.choice(tools)["function"]["name"], "arguments": random_arguments(rng)}})
                results = [{"role": "tool", "tool_call_id": c["id"], "content": random_text(rng, ADDED)}
                           for c in turn["tool_calls"]]
                rng.shuffle(results)
                messages.extend(results)
    if messages[-1]["role"] == "assistant":
        messages.append({"role": "user", "content": random_text(rng, ADDED)})
    return messages, tools


def to_recipe(recipe, messages, tools, thinking, effort):
    def convert(message):
        role, content = message["role"], message["content"]
        if role == "system":
            return recipe.SystemMessage(content)
        if role == "user":
            return recipe.UserMessage(content)
        if role == "latest_reminder":
            return recipe.LatestReminderMessage(content)
        if role == "tool":
            return recipe.ToolMessage(content, message["tool_call_id"])
        calls = [recipe.ToolCall(c["id"], c["function"]["name"], c["function"]["arguments"])
                 for c in message.get("tool_calls", [])]
        return recipe.AssistantMessage(content, message.get("reasoning_content"), calls or None)

    definitions = [recipe.ToolDefinition(t["function"]["name"], t["function"]["description"],
                                         t["function"]["parameters"]) for t in tools]
    return recipe.Conversation([convert(m) for m in messages], thinking_mode=thinking,
                               tools=definitions or None, reasoning_effort=effort)


def show_difference(expected, actual):
    at = next((i for i, (a, b) in enumerate(zip(expected, actual)) if a != b), min(len(expected), len(actual)))
    print(f"  at {at}: expected {expected[max(0, at - 20):at + 40]!r}\n  actual {actual[max(0, at - 20):at + 40]!r}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    recipe = require("deepseek_recipe")
    path = real_tokenizer_json()
    encoding = recipe.DeepseekV4Encoding().with_tokenizer(recipe.Tokenizer.from_file(path))

    print(f"seed {args.seed}, {args.count} conversations, deepseek-recipe {recipe.__version__}", flush=True)
    rng = random.Random(args.seed)
    oracle = Oracle(args.oracle, path)
    differences = 0
    for begin in range(0, args.count, 500):
        expected, requests = [], []
        for _ in range(min(500, args.count - begin)):
            thinking, effort = rng.random() < 0.6, rng.choice(["low", "high", "max"])
            messages, tools = random_conversation(rng, thinking)
            conversation = to_recipe(recipe, messages, tools, thinking, effort)
            expected.append((encoding.render_conversation(conversation).prompt, encoding.encode(conversation)))
            requests.append({"chat": messages, "thinking": thinking, "effort": effort,
                             **({"tools": tools} if tools else {})})
        for request, (prompt, ids), answer in zip(requests, expected, oracle.ask(requests)):
            if answer["prompt"] != prompt or answer["ids"] != ids:
                differences += 1
                print(f"DIFFERS on {json.dumps(request)}", flush=True)
                show_difference(prompt, answer["prompt"])
                show_difference(ids, answer["ids"])
                if differences == 5:
                    sys.exit("5 differences, giving up")
    oracle.close()
    print(f"{differences} differences in {args.count} conversations")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
