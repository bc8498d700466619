"""Measures the demonstration model on held-out inputs, in PyTorch or through any OpenAI-compatible server.

  python -m demo_model.evaluate --run DIR | --checkpoint FOLDER [--count N] [--report FILE]
  python -m demo_model.evaluate --server http://127.0.0.1:8000 [--model NAME] [--count N] [--report FILE]

(run in tools/). The rate of a kind is the share of conversations whose last assistant turn is, with greedy decoding,
exactly the expected one: reasoning, text, tool calls and their arguments. In PyTorch one forward pass decides it: the
greedy answer equals the expected one if and only if every expected token is the most likely one after the correct
tokens before it. There the look-ups are repeated without any compressed entries and without the indexer's selection,
and the perplexity of the answers and the agreement of the MTP block are measured. Through a server the answer is
generated and compared; besides, it must end by itself and be in the language of the expected one, and a second set is
sampled at temperature 1 and checked for its form.
"""
import argparse
import concurrent.futures
import json
import math
import pathlib
import random
import re
import urllib.request

from . import data, lexicon

MARKER, CJK = re.compile("｜|</?think>|</?dsml"), re.compile("[\u4e00-\u9fff]")
CONCURRENCY = 8  # requests at a time
SENTENCE = 8.7  # tokens of one filler sentence
DISTANCES = (0, 100, 200, 500, 1000, 2000)
LOOK_UPS = {f"look-up at {d} tokens" if d else "look-up without filler": math.ceil(d / SENTENCE) for d in DISTANCES}


def plain(generator, **options):
    """Draws held-out conversations of one generator."""
    return lambda rng: data.draw(generator, rng, "test", **options)


def tools(kind):
    """Draws held-out conversations with tools of one kind."""
    def draw(rng):
        while True:
            s = data.tool_conversation(rng, "test")
            if s.kind == kind:
                return s
    return draw


def invented(draw, wanted):
    """Draws only conversations that do, or do not, turn on a word that no list holds."""
    def filtered(rng):
        while True:
            s = draw(rng)
            if wanted == any(not lexicon.known(str(word)) for word in s.key[1:] if word not in FORMS):
                return s
    return filtered


FORMS = {where for where, _, _ in data.FRAMES}
SLOTS = {"names remembered over turns": plain(data.memory), "a word put into markup": plain(data.frame),
         "JSON from text": plain(data.json_form)}


def conversation_sets():
    """name -> function(rng) that draws one held-out conversation."""
    sets = {"questions about itself, greetings": plain(data.about), "capitals": plain(data.capital),
            "other facts": plain(data.fact),
            "sums and differences, thinking": plain(data.arithmetic, thinking=True),
            "sums and differences, not thinking": plain(data.arithmetic, thinking=False),
            "sums of four digits, thinking": plain(data.long_sum, thinking=True, digits=4),
            "comparison of numbers": plain(data.compare), "copying of 2 to 20 words": plain(data.copy),
            "tool call": tools("tool_call"), "tool result told": tools("tool_result"),
            "tools offered, none needed": tools("tool_none"),
            "asked for live data without a tool": plain(data.no_tool)}
    for name, draw in SLOTS.items():
        sets[name] = invented(draw, False)
        sets[name + ", invented words"] = invented(draw, True)
    for name, filler in LOOK_UPS.items():
        sets[name] = plain(data.recall, pairs=5, filler=filler, turns=1, ask=1)
    return sets


def samples(count, only="", seed=2024):
    """name -> `count` held-out conversations of every kind that `only` matches; the same for every backend."""
    out = {}
    for name, draw in conversation_sets().items():
        if not re.search(only, name):
            continue
        rng = random.Random(f"{seed}:{name}")
        out[name] = [draw(rng) for _ in range(count)]
    return out


class TorchBackend:
    """Answers by the trained model or by a checkpoint folder, with fp32 products."""

    def __init__(self, model, tokenizer):
        from .model import Mode
        self.model, self.tokenizer = model, tokenizer
        self.mode = Mode(fast=False, indexer=True, sparse=True)

    def right(self, group, entries=True, all_entries=False):
        """One bool per conversation; without `entries` nothing compressed is seen, with `all_entries` all of it."""
        return [bool((values.argmax(-1) == wanted).all())
                for values, wanted in self.answers(group, entries, all_entries)]

    def answers(self, group, entries=True, all_entries=False):
        """(logits, tokens) of the last turn of every conversation."""
        import torch
        from .batches import last_turn
        from .model import Mode
        from .packing import pack
        mode = Mode(fast=False) if all_entries else self.mode
        for at in range(0, len(group), 8):
            items = [last_turn(self.tokenizer, s) for s in group[at : at + 8]]
            batch = pack(items, self.model.c.sliding_window)
            if not entries:
                for keys in batch.compressed.values():
                    keys.mask.zero_()
            with torch.no_grad():
                hidden = self.model.hidden(batch, mode)[0]
            start = 0
            for tokens, _, _ in items:
                wanted = batch.following[start : start + len(tokens)]
                yield hidden[start : start + len(tokens)][wanted >= 0] @ self.model.head.T, wanted[wanted >= 0]
                start += len(tokens)


def controls(backend, groups):
    """Look-ups without compressed entries and with all of them attended, and the perplexity of the other answers."""
    import torch.nn.functional as F
    out, loss, tokens = {}, 0.0, 0
    for name, group in groups.items():
        if name in LOOK_UPS:
            out[name + ", compressed entries masked"] = sum(backend.right(group, entries=False)) / len(group)
            out[name + ", all entries attended"] = sum(backend.right(group, all_entries=True)) / len(group)
            continue
        for values, wanted in backend.answers(group):
            loss += float(F.cross_entropy(values, wanted, reduction="sum").detach())
            tokens += len(wanted)
    return {**out, "perplexity of answers": math.exp(loss / tokens)} if tokens else out


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
        return [equal(self.ask(s)["message"], s) for s in group]

    def ask(self, s, **options):
        """The first choice of the server's answer to the conversation without its last turn."""
        return self.complete(s, **options)["choices"][0]

    def complete(self, s, **options):
        """The server's whole answer."""
        body = {"model": self.model, "messages": openai_messages(s.messages[:-1], s.thinking), "temperature": 0,
                "max_tokens": 256, "chat_template_kwargs": {"thinking": s.thinking}, **options}
        if s.tools:
            body["tools"] = s.tools
        request = urllib.request.Request(self.url + "/v1/chat/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request))


def calls_of(message):
    return [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in message.get("tool_calls") or []]


def reasoning_of(message):
    return (message.get("reasoning_content") or message.get("reasoning") or "").strip()


def equal(message, s):
    """Whether a server's message is the expected last turn."""
    wanted = s.messages[-1]
    return ((message.get("content") or "").strip() == wanted["content"].strip()
            and calls_of(message) == [(n, a) for n, a in wanted.get("calls") or []]
            and (not s.thinking or reasoning_of(message) == wanted["reasoning"].strip()))


def well_formed(choice, s):
    """Whether an answer ended by itself, has its parts and no stray markers, and calls offered tools as declared."""
    message, text = choice["message"], choice["message"].get("content") or ""
    if choice["finish_reason"] not in ("stop", "tool_calls") or MARKER.search(text + reasoning_of(message)):
        return False
    try:
        calls = calls_of(message)
    except ValueError:
        return False
    forms = {t["function"]["name"]: t["function"]["parameters"] for t in s.tools or []}
    fit = all(n in forms and set(forms[n].get("required", [])) <= set(a) <= set(forms[n]["properties"]) for n, a in calls)
    return fit and bool(text.strip() or calls) and bool(reasoning_of(message)) == s.thinking


def behaviour(backend, groups):
    """Greedy: rates of exact answers, of ends within the limit and of the right language; sampled: of right form."""
    rates, ends, language, form, total = {}, 0, 0, 0, 0
    pool = concurrent.futures.ThreadPoolExecutor(CONCURRENCY)
    for name, group in groups.items():
        choices = list(pool.map(backend.ask, group))
        rates[name] = sum(equal(c["message"], s) for c, s in zip(choices, group)) / len(group)
        ends += sum(c["finish_reason"] != "length" for c in choices)
        language += sum(bool(CJK.search(c["message"].get("content") or "")) == bool(CJK.search(s.messages[-1]["content"]))
                        for c, s in zip(choices, group))
        sampled = pool.map(lambda at: backend.ask(at[1], temperature=1, top_p=0.95, seed=at[0]), enumerate(group))
        form += sum(well_formed(choice, s) for choice, s in zip(sampled, group))
        total += len(group)
    return rates, {"ended by itself": ends / total, "language of the question": language / total,
                   "well-formed at T = 1, top-p 0.95": form / total}


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


def evaluate(backend, groups):
    """name -> share of right answers."""
    return {name: sum(backend.right(group)) / len(group) for name, group in groups.items()}


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
    ap.add_argument("--only", default="", help="regular expression for the kinds to measure")
    ap.add_argument("--report", help="write the rates as JSON")
    args = ap.parse_args()
    groups = samples(args.count, args.only)
    if args.server:
        rates, more = behaviour(ServerBackend(args.server, args.model), groups)
    else:
        backend = torch_backend(args)
        rates, more = evaluate(backend, groups), controls(backend, groups)
        short = [group[:20] for name, group in groups.items() if name not in LOOK_UPS]
        if backend.model.mtp is not None and short:
            more["MTP names the model's next token"] = mtp_agreement(backend, short)
    print(table(rates, args.count), *(f"{name}: {value:.4f}" for name, value in more.items()), sep="\n")
    if args.report:
        pathlib.Path(args.report).write_text(json.dumps({"count": args.count, "rates": rates, **more}, indent=1))


if __name__ == "__main__":
    main()
