"""Generated tool conversations: schemas as users write them, questions, calls, results and final answers."""
import json

from . import lexicon as lx
from .split import held_out


def _user(text):
    return {"role": "user", "content": text}


def _assistant(text, reasoning="", calls=None):
    return {"role": "assistant", "content": text, "reasoning": reasoning, "calls": calls}


def _place(rng, zh):
    if rng.random() < 0.2:
        return lx.invented_zh(rng) if zh else lx.invented(rng)
    if zh:
        return rng.choice(lx.CITIES_ZH + [r[3] for r in lx.CAPITALS])
    return rng.choice(lx.CITIES_EN + [r[1] for r in lx.CAPITALS])


# name: (descriptions, {parameter: (type, descriptions, required)})
CATALOGUE = {
    "get_weather": (["Current weather of a city", "Get the current weather in a given city", "Get weather for a city.",
                     "Get the weather.", "查询城市天气"],
                    {"city": ("string", ["The city name", "City name", "城市名称"], True),
                     "days": ("integer", ["Number of days"], False)}),
    "get_time": (["Current time in a city", "Get the local time.", "查询当地时间"],
                 {"city": ("string", ["The city name", "城市名称"], True)}),
    "calculate": (["Evaluate an arithmetic expression", "A calculator", "计算器"],
                  {"expression": ("string", ["The expression"], True)}),
    "set_timer": (["Start a timer", "Set a timer.", "设置计时器"], {"minutes": ("integer", ["Minutes to wait"], True)}),
    "send_message": (["Send a message to a person", "Send a text message.", "发送消息"],
                     {"to": ("string", ["Who gets it"], True), "text": ("string", ["The text"], True)}),
    "search": (["Search the web", "Web search.", "网络搜索"], {"query": ("string", ["What to look for"], True)}),
    "set_light": (["Switch the light in a room", "开灯或关灯"],
                  {"room": ("string", ["The room"], True), "on": ("boolean", ["true for on"], True)}),
}
WEIGHT = {"get_weather": 5, "get_time": 2, "calculate": 1.5, "set_timer": 1.5, "send_message": 2, "search": 2,
          "set_light": 1}


def schema(rng, name):
    """A tool definition with one of several wordings; optional parameters come and go."""
    descriptions, parameters = CATALOGUE[name]
    properties, required, described = {}, [], rng.random() < 0.5
    for key, (kind, texts, must) in parameters.items():
        if not must and rng.random() < 0.6:
            continue
        properties[key] = {"type": kind}
        if described:
            properties[key]["description"] = rng.choice(texts)
        if must:
            required.append(key)
    form = {"type": "object", "properties": properties}
    if rng.random() < 0.85:
        form["required"] = required
    return {"type": "function",
            "function": {"name": name, "description": rng.choice(descriptions), "parameters": form}}


def choose_tools(rng):
    """One to three different tools."""
    names, weights = list(WEIGHT), list(WEIGHT.values())
    chosen = []
    while len(chosen) < rng.choice([1, 1, 2, 3]) or not chosen:
        name = rng.choices(names, weights)[0]
        if name not in chosen:
            chosen.append(name)
    return [schema(rng, n) for n in chosen]


# Each asker returns (question, arguments, key, tool result, final answer). ---------------------------------


def ask_weather(rng, zh, tool):
    city = _place(rng, zh)
    args, result = {"city": city}, {}
    temp, (sky, sky_zh) = rng.randrange(-9, 40), rng.choice(lx.SKY)
    if zh:
        q = rng.choice(["{c}天气怎么样？", "{c}今天天气怎么样？", "查一下{c}的天气。", "{c}现在天气如何？",
                        "请告诉我{c}的天气。"]).format(c=city)
    else:
        q = rng.choice(["What is the weather in {c}?", "How is the weather in {c}?", "What's the weather like in {c}?",
                        "Weather in {c}?", "Tell me the weather in {c}.", "What is the weather in {c} today?",
                        "Is it warm in {c}?", "Check the weather in {c}, please."]).format(c=city)
    if "days" in tool["function"]["parameters"]["properties"] and rng.random() < 0.6:
        args["days"] = rng.randrange(2, 10)
        q = f"{city}未来{args['days']}天天气怎么样？" if zh else f"What is the weather in {city} for {args['days']} days?"
    if rng.random() < 0.3:
        result["city"] = city
    result[rng.choice(["temp", "temperature", "temp_c", "temperature_c"])] = temp
    result[rng.choice(["sky", "condition", "conditions", "weather"])] = sky_zh if zh and rng.random() < 0.6 else sky
    answer = f"{city}现在{temp}度，{sky_zh}。" if zh else f"It is {temp} degrees and {sky} in {city}."
    return q, args, ("get_weather", city), json.dumps(result, ensure_ascii=False), answer


def ask_time(rng, zh, tool):
    city, clock = _place(rng, zh), f"{rng.randrange(24):02d}:{rng.randrange(60):02d}"
    if zh:
        q, answer = rng.choice(["{c}现在几点？", "{c}现在是几点钟？"]).format(c=city), f"{city}现在是{clock}。"
    else:
        q = rng.choice(["What time is it in {c}?", "Tell me the time in {c}.", "Time in {c}?"]).format(c=city)
        answer = f"It is {clock} in {city}."
    result = rng.choice([clock, json.dumps({"time": clock})])
    return q, {"city": city}, ("get_time", city), result, answer


def ask_calculate(rng, zh, tool):
    a, b, op = rng.randrange(10, 1000), rng.randrange(2, 100), rng.choice("*/+-")
    text = f"{a}{op}{b}" if rng.random() < 0.6 else f"{a} {op} {b}"
    value = {"*": a * b, "/": a // b, "+": a + b, "-": a - b}[op]
    q = f"用工具计算{text}" if zh else rng.choice(["Use the tool to compute {t}", "Calculate {t} with the tool.",
                                             "Evaluate {t}"]).format(t=text)
    return q, {"expression": text}, ("calculate", a, b), str(value), f"结果是{value}。" if zh else f"The result is {value}."


def ask_timer(rng, zh, tool):
    n = rng.randrange(1, 100)
    q = rng.choice(["{n}分钟后提醒我。", "设置{n}分钟的计时器。"]) if zh else rng.choice(
        ["Set a timer for {n} minutes.", "Wake me in {n} minutes.", "Start a timer of {n} minutes."])
    answer = f"计时器设为{n}分钟。" if zh else f"The timer is set to {n} minutes."
    return q.format(n=n), {"minutes": n}, ("set_timer", n), "ok", answer


def ask_message(rng, zh, tool):
    to = rng.choice(lx.NAMES_ZH if zh else lx.NAMES_EN)
    if rng.random() < 0.2:
        to = lx.invented_zh(rng) if zh else lx.invented(rng)
    text = rng.choice(["我到家了", "明天见", "生日快乐", "会议取消了", "我晚一点到", "谢谢你"] if zh else
                      ["I am home", "see you tomorrow", "happy birthday", "the meeting is off", "I will be late",
                       "thank you", "dinner is ready", "call me back"])
    q = f"给{to}发消息：{text}" if zh else rng.choice(["Send {t} a message: {x}", "Text {t}: {x}",
                                                  "Write to {t}: {x}"]).format(t=to, x=text)
    answer = f"消息已发给{to}。" if zh else f"The message to {to} is sent."
    return q, {"to": to, "text": text}, ("send_message", to, text), "ok", answer


def ask_search(rng, zh, tool):
    n = rng.randrange(1, 4)
    words = [rng.choice(lx.CHINESE if zh else lx.ENGLISH) for _ in range(n)]
    query = "".join(words) if zh else " ".join(words)
    found = rng.choice(lx.CHINESE if zh else lx.ENGLISH)
    q = rng.choice(["搜索{x}", "在网上搜索{x}"] if zh else ["Search for {x}", "Look up {x} on the web",
                                                   "Find pages about {x}"]).format(x=query)
    return q, {"query": query}, ("search", *words), found, f"我找到：{found}" if zh else f"I found: {found}"


def ask_light(rng, zh, tool):
    room, room_zh = rng.choice([("kitchen", "厨房"), ("bedroom", "卧室"), ("garden", "花园"), ("office", "办公室"),
                                ("hall", "大厅"), ("garage", "车库"), ("bathroom", "浴室"), ("cellar", "地下室")])
    on = rng.random() < 0.5
    if zh:
        q, answer = f"{'打开' if on else '关掉'}{room_zh}的灯。", f"{room_zh}的灯已{'打开' if on else '关掉'}。"
    else:
        word = "on" if on else "off"
        q, answer = f"Turn {word} the light in the {room}.", f"The light in the {room} is {word}."
    return q, {"room": room_zh if zh else room, "on": on}, ("set_light", room, on), "ok", answer


ASKERS = {"get_weather": ask_weather, "get_time": ask_time, "calculate": ask_calculate, "set_timer": ask_timer,
          "send_message": ask_message, "search": ask_search, "set_light": ask_light}


def thought(zh, name, args):
    first = str(next(iter(args.values())))
    return f"我调用 {name}：{first}" if zh else f"I call {name} with {first}."


def tool_sample(rng, tools=None):
    """(kind, messages, key, tools): a call, a call with its result and answer, two calls, or no call at all."""
    tools = tools or choose_tools(rng)
    zh, r = rng.random() < 0.4, rng.random()
    if r < 0.14:
        return no_call(rng, zh, tools)
    tool = rng.choice(tools)
    name = tool["function"]["name"]
    q, args, key, result, answer = ASKERS[name](rng, zh, tool)
    calls, reasoning = [(name, args)], thought(zh, name, args)
    if name == "get_weather" and r < 0.22 and "days" not in args:
        other = _place(rng, zh)
        q = f"{args['city']}和{other}天气怎么样？" if zh else f"What is the weather in {args['city']} and {other}?"
        calls.append((name, {"city": other}))
        reasoning = f"我调用 {name}：{args['city']}，{other}" if zh else f"I call {name} with {args['city']} and {other}."
        keys = [key, (name, other)]
        return "tool_call", [_user(q), _assistant("", reasoning, calls)], next(filter(held_out, keys), key), tools
    messages = [_user(q), _assistant("", reasoning, calls)]
    if r > 0.6:
        messages += [{"role": "tool", "content": result},
                     _assistant(answer, "工具回答了。" if zh else "The tool has answered.")]
        return "tool_result", messages, key, tools
    return "tool_call", messages, key, tools


def no_call(rng, zh, tools):
    """Tools are offered, but the question needs none."""
    from . import data
    generator = rng.choice([data.about, data.about, data.capital, data.arithmetic])
    s = generator(rng, 1.0)
    return "tool_none", s.messages[:2], s.key, tools
