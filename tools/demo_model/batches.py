"""Training batches: the data of a step depends on the seed and the step number only, so a run can be resumed."""
import random

from . import data
from .encoding import render
from .packing import pack
from .tokenizer import ID

ASSISTANT, EOS = ID["<｜Assistant｜>"], ID["<｜end▁of▁sentence｜>"]


def sequence(tokenizer, sample):
    """(tokens, targets, prompt length): targets only inside the assistant's turns, from behind the opener to EOS."""
    tokens = tokenizer.encode(render(sample.messages, sample.tools, sample.thinking)).ids
    targets, inside, prompt, previous = [-1] * len(tokens), False, None, None
    for i, token in enumerate(tokens[:-1]):
        if previous == ASSISTANT:  # this token is the opener, <think> or </think>
            inside = True
            prompt = prompt or i + 1
        if token == EOS:
            inside = False
        if inside:
            targets[i] = tokens[i + 1]
        previous = token
    return tokens, targets, prompt


def plain(tokenizer, rng, level, budget, window):
    """About `budget` tokens of conversations without tools."""
    items, used = [], 0
    while used < budget - 24:
        s = sequence(tokenizer, data.sample(rng, "train", level))
        if used + len(s[0]) > budget + 24:
            continue
        items.append(s)
        used += len(s[0])
    return pack(items, window)


def tools(tokenizer, rng, sets, each, window):
    """Conversations with tools: `sets` tool lists with `each` conversations per list, sharing their prompt."""
    items = []
    system = rng.choice(data.SYSTEM) if rng.random() < 0.2 else None
    for _ in range(sets):
        chosen = data.choose_tools(rng)
        for _ in range(each):
            items.append(sequence(tokenizer, data.tool_conversation(rng, "train", chosen, system)))
    return pack(items, window, share=True)


def long(tokenizer, rng, window):
    """One look-up conversation in filler text of about 100 to 600 tokens."""
    filler = round(10 * 6 ** rng.random())
    sample = data.draw(data.recall, rng, pairs=rng.randint(3, 8), filler=filler)
    return pack([sequence(tokenizer, sample)], window)


def step_batches(tokenizer, seed, step, schedule, window):
    """The packed batches whose gradients one optimiser step adds up."""
    rng = random.Random(f"{seed}:{step}")
    level = min(1.0, step / schedule["level_steps"])
    out = [plain(tokenizer, rng, level, schedule["plain_tokens"], window)]
    if step % 2 == 0 or step >= schedule["tools_always_from"]:
        out.append(tools(tokenizer, rng, 2, 3, window))
    if step % 3 == 1 and step >= schedule["long_from"]:
        out.append(long(tokenizer, rng, window))
    return out


def last_turn(tokenizer, sample):
    """Like sequence(), with targets in the last assistant turn only."""
    tokens, targets, _ = sequence(tokenizer, sample)
    start = len(tokens) - 1 - tokens[::-1].index(ASSISTANT) + 1  # the opener
    return tokens, [-1] * start + targets[start:], start + 1
