"""DeepSeek-V4 chat encoding, as far as the training data needs it, and the parser for what it produces.

`render` turns OpenAI-style messages into the prompt string that the published encoder writes (tests compare it with
`deepseek-recipe`); `parse_answer` takes an assistant turn apart again. Both are plain string code.
"""
import json
import re

BOS, EOS, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
USER, ASSISTANT = "<｜User｜>", "<｜Assistant｜>"
THINK, THINK_END, DSML = "<think>", "</think>", "｜DSML｜"

TOOLS_BLOCK = """## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜tool_calls>" block like the following:

<｜DSML｜tool_calls>
<｜DSML｜invoke name="$TOOL_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$TOOL_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜tool_calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

{TOOL_SCHEMAS}

You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.
"""


def schema_line(tool):
    """One tool's schema as the encoder prints it: name, description, parameters, on one line."""
    f = tool["function"]
    keys = ["name", "description", "parameters"] + [k for k in f if k not in ("name", "description", "parameters")]
    return json.dumps({k: f.get(k) for k in keys}, ensure_ascii=False)


def render_calls(calls):
    """The DSML block of an assistant turn; calls are (name, arguments dict)."""
    invokes = []
    for name, arguments in calls:
        lines = []
        for key, value in arguments.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            flag = "true" if isinstance(value, str) else "false"
            lines.append(f'<{DSML}parameter name="{key}" string="{flag}">{text}</{DSML}parameter>')
        body = "\n".join(lines)
        invokes.append(f'<{DSML}invoke name="{name}">\n{body}\n</{DSML}invoke>')
    body = "\n".join(invokes)
    return f"\n\n<{DSML}tool_calls>\n{body}\n</{DSML}tool_calls>"


def render(messages, tools=None, thinking=False):
    """The whole conversation as one string.

    messages: dicts with role (system, user, assistant, tool), content, and for assistants optionally `reasoning` and
    `calls`. If the last message is not an assistant's, the string ends with the opener of the next assistant turn.
    Without tools only the reasoning after the last user turn is kept, as the published encoder does.
    """
    turns = fold_results(messages)
    if tools and turns[0]["role"] != "system":
        turns.insert(0, {"role": "system", "content": ""})
    last_user = max((i for i, t in enumerate(turns) if t["role"] == "user"), default=-1)
    out = BOS
    for i, turn in enumerate(turns):
        if turn["role"] == "system":
            out += turn["content"]
            if tools:
                out += "\n\n" + TOOLS_BLOCK.replace("{TOOL_SCHEMAS}", "\n".join(schema_line(t) for t in tools))
        elif turn["role"] == "user":
            keep = thinking and (tools or i >= last_user)
            out += USER + turn["content"] + ASSISTANT + (THINK if keep else THINK_END)
        else:
            if thinking and (tools or i > last_user):
                out += turn.get("reasoning", "") + THINK_END
            out += turn["content"] + (render_calls(turn["calls"]) if turn.get("calls") else "") + EOS
    return out


def fold_results(messages):
    """Tool results become user turns; neighbouring user blocks are joined by a blank line."""
    turns = []
    for m in messages:
        if m["role"] in ("user", "tool"):
            text = m["content"] if m["role"] == "user" else f"<tool_result>{m['content']}</tool_result>"
            if turns and turns[-1]["role"] == "user":
                turns[-1]["content"] += "\n\n" + text
            else:
                turns.append({"role": "user", "content": text})
        else:
            turns.append(dict(m))
    return turns


CALLS = re.compile(f"\n\n<{DSML}tool_calls>\n(.*)\n</{DSML}tool_calls>$", re.S)
INVOKE = re.compile(f'<{DSML}invoke name="([^"]*)">\n(.*?)\n</{DSML}invoke>', re.S)
PARAMETER = re.compile(f'<{DSML}parameter name="([^"]*)" string="(true|false)">(.*?)</{DSML}parameter>', re.S)


def parse_answer(text, thinking):
    """(reasoning, content, calls) of generated text that follows the opener, without EOS; None if malformed."""
    reasoning = ""
    if thinking:
        if THINK_END not in text:
            return None
        reasoning, text = text.split(THINK_END, 1)
    calls = []
    block = CALLS.search(text)
    if block:
        text = text[: block.start()]
        invokes = INVOKE.findall(block.group(1))
        if "\n".join(f'<{DSML}invoke name="{n}">\n{b}\n</{DSML}invoke>' for n, b in invokes) != block.group(1):
            return None
        for name, body in invokes:
            try:
                calls.append((name, {k: v if flag == "true" else json.loads(v)
                                     for k, flag, v in PARAMETER.findall(body)}))
            except ValueError:
                return None
    if DSML in text or THINK in text or THINK_END in text:
        return None
    return reasoning, text, calls
