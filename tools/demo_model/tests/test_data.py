"""Every generated conversation survives the encoder, the tokenizer and the parser; the splits are disjoint."""
import json
import random

import pytest

from demo_model import data
from demo_model.batches import sequence
from demo_model.encoding import ASSISTANT, EOS, THINK, THINK_END, parse_answer, render
from demo_model.split import held_out

COUNT = 1500


def conversations(split="train", count=COUNT):
    rng = random.Random(11)
    for i in range(count):
        yield data.tool_conversation(rng, split) if i % 3 == 0 else data.sample(rng, split)


def test_assistant_turns_parse_back():
    for s in conversations():
        text = render(s.messages, s.tools, s.thinking)
        last = text.rsplit(ASSISTANT, 1)[1]
        thinking = last.startswith(THINK)
        opener = THINK if thinking else THINK_END
        assert thinking == s.thinking and last.startswith(opener) and last.endswith(EOS)
        m = s.messages[-1]
        parsed = parse_answer(last[len(opener) : -len(EOS)], thinking)
        assert parsed == (m["reasoning"] if thinking else "", m["content"], m.get("calls") or []), text


def test_calls_fit_their_schemas():
    kinds = {"string": str, "integer": int, "boolean": bool}
    for s in conversations():
        schemas = {t["function"]["name"]: t["function"]["parameters"] for t in s.tools or []}
        for name, arguments in s.messages[-1].get("calls") or []:
            properties = schemas[name]["properties"]
            assert set(schemas[name].get("required", [])) <= set(arguments) <= set(properties)
            assert all(type(v) is kinds[properties[k]["type"]] for k, v in arguments.items())


def test_splits_are_disjoint():
    assert not any(held_out(s.key) for s in conversations("train"))
    assert all(s.key is None or held_out(s.key) for s in conversations("test", 300))


def test_same_seed_same_data():
    once, again = ([render(s.messages, s.tools, s.thinking) for s in conversations(count=60)] for _ in range(2))
    assert once == again


@pytest.mark.parametrize("a, b, work", [(47, 38, "7+8=15, 4+3+1=8"), (4, 5, "4+5=9"), (99, 1, "9+1=10, 9+0+1=10"),
                                        (7068, 954, "8+4=12, 6+5+1=12, 0+9+1=10, 7+0+1=8")])
def test_worked_sum(a, b, work):
    assert data.worked_sum(a, b) == work


@pytest.mark.parametrize("a, b, work", [(52, 38, "12-8=4, 5-3-1=1"), (9, 4, "9-4=5"), (40, 40, "0-0=0, 4-4=0")])
def test_worked_difference(a, b, work):
    assert data.worked_difference(a, b) == work


@pytest.mark.parametrize("a, b, work", [(34, 71, "3?7=<"), (5, 34, "0?3=<"), (38, 34, "3?3==, 8?4=>")])
def test_worked_comparison(a, b, work):
    assert data.worked_comparison(a, b) == work


def test_look_ups_answer_from_their_list():
    rng = random.Random(4)
    for _ in range(300):
        s = data.draw(data.recall, rng, "train", form=": ")
        messages = [m for m in s.messages if m["role"] != "system"]
        for m in messages[1::2]:
            assert all(line in messages[0]["content"].split("\n") for line in m["content"].split("\n"))


def test_tokens_decode_to_the_text_and_digits_stand_alone(tokenizer):
    for s in conversations(count=300):
        text = render(s.messages, s.tools, s.thinking)
        ids = tokenizer.encode(text).ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == text
    assert len(tokenizer.encode("1234567").ids) == 7


def test_targets_cover_exactly_the_assistant_turns(tokenizer):
    for s in conversations(count=300):
        tokens, targets, prompt = sequence(tokenizer, s)
        text = render(s.messages, s.tools, s.thinking)
        wanted = [part.split(EOS)[0] + EOS for part in text.split(ASSISTANT)[1:]]
        learned = tokenizer.decode([t for t in targets if t >= 0], skip_special_tokens=False)
        bare = "".join(w[len(THINK if w.startswith(THINK) else THINK_END) :] for w in wanted)
        assert learned == bare
        assert targets[:prompt - 1] == [-1] * (prompt - 1) and targets[prompt - 1] >= 0


def test_prompts_equal_the_publishers_encoder(tokenizer):
    """Text and token ids; the publisher's library matches special tokens only where it wrote them itself."""
    recipe = pytest.importorskip("deepseek_recipe")
    encoder = recipe.DeepseekV4Encoding().with_tokenizer(recipe.Tokenizer.from_str(tokenizer.to_str()))
    for s in conversations(count=600):
        text, conversation = render(s.messages[:-1], s.tools, s.thinking), recipe_conversation(recipe, s)
        assert text == encoder.render_conversation(conversation).prompt
        assert tokenizer.encode(text).ids == encoder.encode(conversation)


def recipe_conversation(recipe, s):
    """Everything but the last answer, for DeepSeek's own library."""
    messages, pending = [], []
    for m in s.messages[:-1]:
        if m["role"] == "system":
            messages.append(recipe.SystemMessage(m["content"]))
        elif m["role"] == "user":
            messages.append(recipe.UserMessage(m["content"]))
        elif m["role"] == "tool":
            messages.append(recipe.ToolMessage(m["content"], pending.pop(0)))
        else:
            calls = [recipe.ToolCall(f"c{i}", n, json.dumps(a, ensure_ascii=False))
                     for i, (n, a) in enumerate(m.get("calls") or [])]
            pending = [c.id for c in calls]
            messages.append(recipe.AssistantMessage(m["content"], m["reasoning"] if s.thinking else None,
                                                    calls or None))
    tools = [recipe.ToolDefinition(t["function"]["name"], t["function"]["description"],
                                   t["function"]["parameters"])
             for t in s.tools or []]
    return recipe.Conversation(messages, thinking_mode=s.thinking, tools=tools or None,
                               reasoning_effort="low" if s.thinking else None)
