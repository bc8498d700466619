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


def fill(tokenizer, draw, budget):
    """Sequences of about `budget` tokens in all."""
    items, used = [], 0
    while used < budget - 24:
        s = sequence(tokenizer, draw())
        if used + len(s[0]) > budget + 24:
            continue
        items.append(s)
        used += len(s[0])
    return items


def tools(tokenizer, rng, sets, each, window):
    """Conversations with tools: `sets` tool lists with `each` conversations per list, sharing their prompt."""
    items = []
    system = rng.choice(data.SYSTEM) if rng.random() < 0.2 else None
    for _ in range(sets):
        chosen = data.choose_tools(rng)
        for _ in range(each):
            items.append(sequence(tokenizer, data.tool_conversation(rng, "train", chosen, system)))
    return pack(items, window, share=True)


def far(tokenizer, rng, sentences, window):
    """One look-up conversation with up to about `sentences` sentences of filler between the list and the questions."""
    filler = round(4 * (sentences / 4) ** rng.random())
    sample = data.draw(data.recall, rng, pairs=rng.randint(2, 8), filler=filler, turns=rng.randint(1, 3),
                       ask=rng.randint(1, 3))
    return pack([sequence(tokenizer, sample)], window)


def step_batches(tokenizer, seed, step, phase, level, window):
    """The packed batches whose gradients one optimiser step adds up.

    `phase` says how much of everything: tokens of the `mixture`, tokens of the look-up `drill` with its range of
    `pairs`, and every how many steps a batch with `tools` or a `far` look-up comes. The drill runs in one of the
    phase's `windows`: in a narrow one even neighbours must be looked up through compressed entries.
    """
    rng = random.Random(f"{seed}:{step}")
    out = [pack(fill(tokenizer, lambda: data.sample(rng, "train", level), phase["mixture"]), window)]
    if step % phase["tools"] == 0:
        out.append(tools(tokenizer, rng, 2, 3, window))
    if phase["drill"]:
        items = fill(tokenizer, lambda: data.draw(data.drill, rng, pairs=phase["pairs"]), phase["drill"])
        out.append(pack(items, rng.choice(phase["windows"])))
    if phase["far"] and step % phase["far"] == 1:
        out.append(far(tokenizer, rng, phase["sentences"], window))
    return out


def last_turn(tokenizer, sample):
    """Like sequence(), with targets in the last assistant turn only."""
    tokens, targets, _ = sequence(tokenizer, sample)
    start = len(tokens) - 1 - tokens[::-1].index(ASSISTANT) + 1  # the opener
    return tokens, [-1] * start + targets[start:], start + 1
