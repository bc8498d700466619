"""Measures the demonstration model on held-out inputs, in PyTorch or through any OpenAI-compatible server.

  python -m demo_model.evaluate --run DIR | --checkpoint FOLDER [--count N] [--report FILE]
  python -m demo_model.evaluate --server http://127.0.0.1:8000 [--model NAME] [--count N] [--report FILE]

(run in tools/). The rate of a kind is the share of conversations whose last assistant turn is, with greedy decoding,
exactly the expected one: reasoning, text, tool calls and their arguments. In PyTorch one forward pass decides it: the
greedy answer equals the expected one if and only if every expected token is the most likely one after the correct
tokens before it. Through a server the answer is generated and compared.
"""
import argparse
import json
import pathlib
import random
import urllib.request

from . import data

FILLER = {"look-up in 120 tokens": 8, "look-up in 250 tokens": 22, "look-up in 500 tokens": 49,
          "look-up in 1000 tokens": 103}


def conversation_sets():
    """name -> function(rng) that draws one held-out conversation."""
    def plain(generator, **options):
        return lambda rng: data.draw(generator, rng, "test", **options)

    def tools(kind, **options):
        def draw(rng):
            while True:
                s = data.tool_conversation(rng, "test", **options)
                if s.kind == kind:
                    return s
        return draw

    sets = {"questions about itself, greetings": plain(data.about), "capitals": plain(data.capital),
            "other facts": plain(data.fact), "names remembered over turns": plain(data.memory),
            "sums and differences, thinking": plain(data.arithmetic, thinking=True),
            "sums and differences, not thinking": plain(data.arithmetic, thinking=False),
            "comparison of numbers": plain(data.compare), "copying of 2 to 12 words": plain(data.copy),
            "a word put into markup": plain(data.frame), "JSON from text": plain(data.json_form),
            "tool call": tools("tool_call"), "tool result told": tools("tool_result"),
            "tools offered, none needed": tools("tool_none"), "asked for live data without a tool": plain(data.no_tool)}
    for name, filler in FILLER.items():
        sets[name] = plain(data.recall, pairs=5, filler=filler)
    return sets


def samples(count, seed=2024):
    """name -> `count` held-out conversations; the same for every backend."""
    out = {}
    for name, draw in conversation_sets().items():
        rng = random.Random(f"{seed}:{name}")
        out[name] = [draw(rng) for _ in range(count)]
    return out


class TorchBackend:
    """Answers by the trained model or by a checkpoint folder, with fp32 products."""

    def __init__(self, model, tokenizer):
        from .model import Mode
        self.model, self.tokenizer = model, tokenizer
        self.mode = Mode(fast=False, indexer=True, sparse=True)

    def right(self, group):
        """One bool per conversation."""
        import torch
        from .batches import last_turn
        from .packing import pack
        out = []
        for at in range(0, len(group), 8):
            items = [last_turn(self.tokenizer, s) for s in group[at : at + 8]]
            with torch.no_grad():
                batch = pack(items, self.model.c.sliding_window)
                good = (self.model.logits(batch, self.mode).argmax(-1) == batch.following) | (batch.following < 0)
            start = 0
            for tokens, _, _ in items:
                out.append(bool(good[start : start + len(tokens)].all()))
                start += len(tokens)
        return out


def mtp_agreement(backend, groups):
    """Share of answer positions (teacher forcing) where the MTP block names the token that the model itself names."""
    import torch
    from .batches import last_turn
    from .packing import pack
    model, same, count = backend.model, 0, 0
    for group in groups:
        batch = pack([last_turn(backend.tokenizer, s) for s in group], model.c.sliding_window)
        with torch.no_grad():
            h, x, _ = model.hidden(batch, backend.mode)
            following = torch.cat([batch.tokens[1:], batch.tokens[-1:]])
            y = model.mtp(x, model.embed[following], following, batch,
                          model.tables(int(batch.position.max()) + 1), backend.mode)
            own, draft = ((v @ model.head.T).argmax(-1) for v in (h, y))
        at = (batch.after_next >= 0).nonzero().flatten()
        same, count = same + int((draft[at] == own[at + 1]).sum()), count + len(at)
    return same / count


class ServerBackend:
    """Answers by an OpenAI-compatible server."""

    def __init__(self, url, model=None):
        self.url = url.rstrip("/")
        self.model = model or json.load(urllib.request.urlopen(self.url + "/v1/models"))["data"][0]["id"]

    def right(self, group):
        return [self.one(s) for s in group]

    def one(self, s):
        body = {"model": self.model, "messages": openai_messages(s.messages[:-1], s.thinking), "temperature": 0,
                "max_tokens": 256, "chat_template_kwargs": {"thinking": s.thinking}}
        if s.tools:
            body["tools"] = s.tools
        request = urllib.request.Request(self.url + "/v1/chat/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        answer = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
        wanted = s.messages[-1]
        calls = [(c["function"]["name"], json.loads(c["function"]["arguments"]))
                 for c in answer.get("tool_calls") or []]
        reasoning = answer.get("reasoning_content") or answer.get("reasoning") or ""
        return ((answer.get("content") or "").strip() == wanted["content"].strip()
                and calls == [(n, a) for n, a in wanted.get("calls") or []]
                and (not s.thinking or reasoning.strip() == wanted["reasoning"].strip()))


def openai_messages(messages, thinking):
    """Our messages in the form of the OpenAI API."""
    out, pending = [], []
    for m in messages:
        if m["role"] != "assistant":
            extra = {"tool_call_id": pending.pop(0)} if m["role"] == "tool" else {}
            out.append({"role": m["role"], "content": m["content"], **extra})
            continue
        calls = [{"id": f"call_{len(out)}_{i}", "type": "function",
                  "function": {"name": n, "arguments": json.dumps(a, ensure_ascii=False)}}
                 for i, (n, a) in enumerate(m.get("calls") or [])]
        pending = [c["id"] for c in calls]
        out.append({"role": "assistant", "content": m["content"], **({"tool_calls": calls} if calls else {}),
                    **({"reasoning_content": m.get("reasoning", "")} if thinking else {})})
    return out


def evaluate(backend, count, seed=2024):
    """name -> share of right answers."""
    return {name: sum(backend.right(group)) / count for name, group in samples(count, seed).items()}


def table(rates, count):
    lines = [f"| held-out conversations, {count} of each | exactly right |", "|---|---|"]
    return "\n".join(lines + [f"| {name} | {100 * rate:.1f} % |" for name, rate in rates.items()])


def torch_backend(args):
    import torch
    from tokenizers import Tokenizer
    from . import checkpoint, export
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    folder = pathlib.Path(args.run or args.checkpoint)
    model = export.load_run(folder) if args.run else checkpoint.load(folder)
    return TorchBackend(model, Tokenizer.from_file(str(folder / "tokenizer.json")))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = ap.add_mutually_exclusive_group(required=True)
    source.add_argument("--run", help="training folder")
    source.add_argument("--checkpoint", help="exported checkpoint folder")
    source.add_argument("--server", help="base URL")
    ap.add_argument("--model", help="model name at the server (default: its first)")
    ap.add_argument("--count", type=int, default=200)
    ap.add_argument("--report", help="write the rates as JSON")
    args = ap.parse_args()
    backend = ServerBackend(args.server, args.model) if args.server else torch_backend(args)
    rates = evaluate(backend, args.count)
    print(table(rates, args.count))
    report = {"count": args.count, "rates": rates}
    if not args.server and backend.model.mtp is not None:
        short = [group[:20] for name, group in samples(20).items() if name not in FILLER]
        report["mtp_agreement"] = mtp_agreement(backend, short)
        print(f"\nMTP block: {100 * report['mtp_agreement']:.1f} % of its drafts are the model's own next token")
    if args.report:
        pathlib.Path(args.report).write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
