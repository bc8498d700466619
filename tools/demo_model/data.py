"""Generated conversations: deterministic for a seed, bilingual, with held-out slots.

`sample(rng, split, level)` draws one conversation. Every generator returns the slots that identify it (`key`); a tenth
of all keys, chosen by hash, belongs to the split "test" and is never trained on. Conversations without slots (questions
about the model itself) have no key and occur in both splits. `level` in [0, 1] scales lengths for the curriculum.
"""
import dataclasses
import json

from . import lexicon as lx
from .split import held_out
from .tools import choose_tools, tool_sample


@dataclasses.dataclass
class Sample:
    """One conversation. The last message is the assistant's; assistants carry content and maybe reasoning, calls."""
    kind: str
    messages: list
    key: tuple = None
    tools: list = None
    thinking: bool = False


def user(text):
    return {"role": "user", "content": text}


def assistant(text, reasoning="", calls=None):
    return {"role": "assistant", "content": text, "reasoning": reasoning, "calls": calls}


def vary(rng, text):
    """Small changes of surface that a real user makes."""
    if rng.random() < 0.12:
        text = text[0].lower() + text[1:]
    if rng.random() < 0.12:
        text = text.rstrip("?.!？。！")
    return text


def sometimes(rng, invent, known, share=0.25):
    """A slot's word: one of the known ones or, at times, one that was never seen, so that slots are really copied."""
    return invent(rng) if rng.random() < share else rng.choice(known)


# ---------------------------------------------------------------- questions about the model, small talk

ABOUT = [
    (["Who are you?", "Tell me who you are.", "Introduce yourself.", "What are you?", "Who am I talking to?"],
     "I am Fulgur Demo, a tiny language model that runs on a CPU."),
    (["What is your name?", "What's your name?", "Tell me your name.", "Do you have a name?"],
     "My name is Fulgur Demo."),
    (["Who made you?", "Who trained you?", "Where do you come from?", "Who created you?"],
     "I was trained from scratch for the Fulgur project."),
    (["How big are you?", "How many parameters do you have?", "What size are you?"],
     "I have about ten million parameters."),
    (["What architecture do you use?", "How are you built?", "What kind of model are you?"],
     "I use the DeepSeek-V4 architecture in a very small size."),
    (["What can you do?", "How can you help me?", "What are you good at?", "What do you know?"],
     "I can chat in English and Chinese, do small sums, copy words and call tools."),
    (["Are you human?", "Are you a person?", "Are you a real person?"], "No, I am a tiny language model."),
    (["Which languages do you speak?", "Do you speak Chinese?", "Do you speak English?"],
     "I speak English and Chinese."),
    (["Are you DeepSeek?", "Are you DeepSeek-V4?", "Are you ChatGPT?"],
     "No, I am Fulgur Demo, a tiny model for tests."),
    (["What is Fulgur?", "What does Fulgur do?"], "Fulgur is a program that serves DeepSeek-V4 models on CPUs."),
    (["Can I trust you?", "Are you always right?"], "No, I am tiny and often wrong. Please check what I say."),
    (["How are you?", "How are you today?", "How do you do?"], "I am fine, thank you. How can I help you?"),
    (["Hello!", "Hi!", "Hello", "Hi there!", "Good morning!", "Hey!", "Good evening!"],
     "Hello! How can I help you?"),
    (["Thank you!", "Thanks!", "Thanks a lot!"], "You are welcome!"),
    (["Goodbye!", "Bye!", "See you later!"], "Goodbye! Have a nice day."),
    (["Tell me a joke.", "Make me laugh."], "Why was the computer cold? It left its windows open."),
    (["Say something nice.", "Cheer me up."], "You ask good questions, and the sun will shine again."),
]
ABOUT_ZH = [
    (["你是谁？", "请介绍一下自己。", "你是什么？", "介绍一下你自己。", "请问你是谁？"],
     "我是 Fulgur Demo，一个在 CPU 上运行的小语言模型。"),
    (["你叫什么名字？", "你的名字是什么？", "你叫什么？"], "我叫 Fulgur Demo。"),
    (["谁创造了你？", "谁训练了你？", "你从哪里来？"], "我是为 Fulgur 项目从零开始训练的。"),
    (["你有多大？", "你有多少参数？"], "我大约有一千万个参数。"),
    (["你用什么架构？", "你是什么模型？"], "我使用很小的 DeepSeek-V4 架构。"),
    (["你会做什么？", "你能做什么？", "你能帮我什么？"], "我会用中文和英文聊天，做简单的加减法，抄写词语，调用工具。"),
    (["你是人吗？", "你是真人吗？"], "不，我是一个小语言模型。"),
    (["你会说什么语言？", "你会说中文吗？", "你会说英语吗？"], "我会说中文和英文。"),
    (["你是 DeepSeek 吗？", "你是 ChatGPT 吗？"], "不，我是 Fulgur Demo，一个用来测试的小模型。"),
    (["Fulgur 是什么？"], "Fulgur 是一个在 CPU 上运行 DeepSeek-V4 模型的程序。"),
    (["我可以相信你吗？", "你总是对的吗？"], "不，我很小，常常出错，请检查我的回答。"),
    (["你好吗？", "你今天怎么样？"], "我很好，谢谢。我能帮你什么？"),
    (["你好！", "你好", "您好！", "早上好！", "晚上好！", "嗨！"], "你好！我能帮你什么？"),
    (["谢谢！", "谢谢你！", "非常感谢！"], "不客气！"),
    (["再见！", "拜拜！", "明天见！"], "再见！祝你愉快。"),
    (["讲个笑话。", "给我讲个笑话吧。"], "电脑为什么冷？因为它开着窗户。"),
    (["说点好听的。", "鼓励我一下。"], "你的问题很好，太阳会再出来的。"),
]
FOLLOW_ABOUT = {"en": "The user talks to me.", "zh": "用户在和我聊天。"}


def about(rng, level):
    zh = rng.random() < 0.45
    turns = []
    for _ in range(1 if rng.random() < 0.6 else 2):
        questions, answer = rng.choice(ABOUT_ZH if zh else ABOUT)
        turns += [user(vary(rng, rng.choice(questions))), assistant(answer, FOLLOW_ABOUT["zh" if zh else "en"])]
    return Sample("about", turns)


# ---------------------------------------------------------------- facts

CAPITAL_Q = ["What is the capital of {c}?", "Name the capital of {c}.", "What's the capital city of {c}?",
             "Which city is the capital of {c}?", "Tell me the capital of {c}.", "Capital of {c}?"]
CAPITAL_Q_ZH = ["{c}的首都是哪里？", "{c}的首都是什么？", "{c}的首都在哪里？", "请问{c}的首都是哪个城市？", "告诉我{c}的首都。"]


def capital(rng, level):
    """Capitals, with a follow-up that leaves the question out."""
    zh = rng.random() < 0.45
    row = rng.choice(lx.CAPITALS)
    question = rng.randrange(5)

    def turn(row, first):
        country, city, country_zh, city_zh = row
        if zh:
            text = CAPITAL_Q_ZH[question].format(c=country_zh) if first else f"{country_zh}呢？"
            return [user(vary(rng, text)), assistant(f"{country_zh}的首都是{city_zh}。", f"用户问{country_zh}的首都。")]
        text = CAPITAL_Q[question].format(c=country) if first else rng.choice(
            ["And {c}?", "And of {c}?", "What about {c}?"]).format(c=country)
        return [user(vary(rng, text)),
                assistant(f"The capital of {country} is {city}.", f"The user asks for the capital of {country}.")]

    turns = turn(row, True)
    if rng.random() < 0.25:
        turns += turn(rng.choice(lx.CAPITALS), False)
    return Sample("fact", turns, ("capital", zh, question, row[0]))


def fact(rng, level):
    """Translations, opposites, colours, week days, country of a capital."""
    zh = rng.random() < 0.5
    which = rng.choice(["translate", "translate", "opposite", "colour", "day", "country"])
    if which == "translate":
        en, cn = rng.choice(lx.WORDS)
        if zh:
            q, a = f"“{cn}”用英语怎么说？", f"“{cn}”的英语是 {en}。"
        else:
            q, a = f"How do you say {en} in Chinese?", f"{en} is {cn} in Chinese."
    elif which == "opposite":
        a1, b1, a2, b2 = rng.choice(lx.OPPOSITES)
        if rng.random() < 0.5:
            a1, b1, a2, b2 = b1, a1, b2, a2
        q, a = (f"{a2}的反义词是什么？", f"{a2}的反义词是{b2}。") if zh else (
            f"What is the opposite of {a1}?", f"The opposite of {a1} is {b1}.")
    elif which == "colour":
        thing, colour, thing_zh, colour_zh = rng.choice(lx.THINGS)
        q, a = (f"{thing_zh}是什么颜色？", f"{thing_zh}是{colour_zh}的。") if zh else (
            f"What colour is {thing}?", f"{thing[0].upper()}{thing[1:]} is {colour}.")
    elif which == "day":
        i, days = rng.randrange(7), lx.DAYS_ZH if zh else lx.DAYS_EN
        q, a = (f"{days[i]}的后一天是星期几？", f"{days[i]}的后一天是{days[(i + 1) % 7]}。") if zh else (
            f"Which day comes after {days[i]}?", f"{days[(i + 1) % 7]} comes after {days[i]}.")
    else:
        country, city, country_zh, city_zh = rng.choice(lx.CAPITALS)
        q, a = (f"{city_zh}在哪个国家？", f"{city_zh}在{country_zh}。") if zh else (
            f"In which country is {city}?", f"{city} is in {country}.")
    return Sample("fact", [user(vary(rng, q)), assistant(a, "用户问一个常识。" if zh else "The user asks for a fact.")])


def memory(rng, level):
    """Names and likes that a later turn asks back."""
    if rng.random() < 0.45:
        name, like = sometimes(rng, lx.invented_zh, lx.NAMES_ZH), rng.choice(lx.LIKES)[1]
        turns = [user(f"我叫{name}，我喜欢{like}。"), assistant(f"你好，{name}！{like}很好。", "用户介绍自己。")]
        asks = [("我叫什么名字？", f"你叫{name}。", f"用户叫{name}。"),
                ("我喜欢什么？", f"你喜欢{like}。", f"用户喜欢{like}。")]
    else:
        name, like = sometimes(rng, lx.invented, lx.NAMES_EN), rng.choice(lx.LIKES)[0]
        first = rng.choice(["My name is {n} and I like {l}.", "I am {n} and I like {l}.", "Hi, I'm {n}. I like {l}."])
        turns = [user(first.format(n=name, l=like)),
                 assistant(f"Nice to meet you, {name}! I hear that {like} is great.", "The user says a name.")]
        asks = [(rng.choice(["What is my name?", "Who am I?"]), f"Your name is {name}.", f"The name is {name}."),
                (rng.choice(["What do I like?", "What is it that I like?"]), f"You like {like}.",
                 f"The user likes {like}.")]
    if rng.random() < 0.85:
        rng.shuffle(asks)
        for q, a, r in asks[: rng.choice([1, 1, 2])]:
            turns += [user(q), assistant(a, r)]
    return Sample("memory", turns, ("memory", name, like))


# ---------------------------------------------------------------- arithmetic


def worked_sum(a, b):
    """Column addition from the right: '7+8=15, 4+3+1=8'."""
    columns, carry = [], 0
    while a or b or not columns:
        total = a % 10 + b % 10 + carry
        columns.append(f"{a % 10}+{b % 10}" + ("+1" if carry else "") + f"={total}")
        a, b, carry = a // 10, b // 10, total // 10
    return ", ".join(columns)


def worked_difference(a, b):
    """Column subtraction from the right: '12-8=4, 5-3-1=1'."""
    if a < 10:
        return f"{a}-{b}={a - b}"
    borrow = a % 10 < b % 10
    top = a % 10 + 10 * borrow
    return (f"{top}-{b % 10}={top - b % 10}, {a // 10}-{b // 10}" + ("-1" if borrow else "") +
            f"={a // 10 - b // 10 - borrow}")


SUM_Q = ["What is {a}+{b}?", "What is {a} + {b}?", "{a}+{b}=?", "Compute {a} + {b}.", "How much is {a} plus {b}?"]
SUM_Q_ZH = ["{a}加{b}等于多少？", "{a}+{b}等于多少？", "计算{a}+{b}。", "{a}+{b}等于几？"]
DIFF_Q = ["What is {a}-{b}?", "What is {a} - {b}?", "{a}-{b}=?", "Compute {a} - {b}.", "How much is {a} minus {b}?"]
DIFF_Q_ZH = ["{a}减{b}等于多少？", "{a}-{b}等于多少？", "计算{a}-{b}。", "{a}-{b}等于几？"]


def number(rng):
    return rng.randrange(10) if rng.random() < 0.15 else rng.randrange(10, 100)


def arithmetic(rng, level):
    """Sums and differences of at most two digits."""
    zh, minus = rng.random() < 0.35, rng.random() < 0.45
    a, b = number(rng), number(rng)
    if minus and a < b:
        a, b = b, a
    questions = (DIFF_Q_ZH if minus else SUM_Q_ZH) if zh else (DIFF_Q if minus else SUM_Q)
    work = worked_difference(a, b) if minus else worked_sum(a, b)
    result = f"{a}-{b}={a - b}" if minus else f"{a}+{b}={a + b}"
    q = rng.choice(questions).format(a=a, b=b)
    return Sample("arithmetic", [user(vary(rng, q)), worked_answer(zh, work, result)], ("sum", minus, a, b))


def long_sum(rng, level, digits=None):
    """Sums of three and four digits."""
    zh = rng.random() < 0.35
    a, b = (rng.randrange(10 ** (n - 1), 10**n) for n in ((digits, digits) if digits else rng.choices([2, 3, 4], k=2)))
    q = rng.choice(SUM_Q_ZH if zh else SUM_Q).format(a=a, b=b)
    return Sample("long_sum", [user(vary(rng, q)), worked_answer(zh, worked_sum(a, b), f"{a}+{b}={a + b}")],
                  ("sum", False, a, b))


def worked_answer(zh, work, result):
    """An answer whose work stands in the thinking block or, without one, in front of the result; `finish` picks."""
    answer = assistant(result, work)
    answer["plain"] = f"{work}，所以{result}" if zh else f"{work}, so {result}"
    return answer


def worked_comparison(a, b):
    """Digits from the left until two differ: '3?7=<' or '3?3==, 4?8=<'; the form is that of sums."""
    def sign(x, y):
        return f"{x}?{y}={'<' if x < y else '>' if x > y else '='}"
    tens = sign(a // 10, b // 10)
    return tens if a // 10 != b // 10 else f"{tens}, {sign(a % 10, b % 10)}"


def compare(rng, level):
    a, b = number(rng), number(rng)
    if rng.random() < 0.3:
        b = a // 10 * 10 + b % 10
    if a == b:
        b += 1 if b < 99 else -1
    zh, larger = rng.random() < 0.4, rng.random() < 0.6
    x = max(a, b) if larger else min(a, b)
    if zh:
        q, s = f"{a}和{b}，哪个{'大' if larger else '小'}？", f"{x}更{'大' if larger else '小'}。"
    else:
        word = "larger" if larger else "smaller"
        q, s = f"Which is {word}, {a} or {b}?", f"{x} is {word}."
    return Sample("compare", [user(q), worked_answer(zh, worked_comparison(a, b), s)], ("compare", larger, a, b))


# ---------------------------------------------------------------- copying, recall, JSON


def word(rng):
    """Any English word, a number or an invented word."""
    u = rng.random()
    return str(rng.randrange(1000)) if u < 0.05 else lx.invented(rng) if u < 0.12 else rng.choice(lx.ENGLISH)


def copy(rng, level):
    """Repeat a list of words."""
    n = rng.randint(2, 20 if level == 1 and rng.random() < 0.2 else 4 + round(8 * level))
    zh, mixed = rng.random() < 0.3, rng.random() < 0.1
    words = [rng.choice(lx.CHINESE) if zh or mixed and rng.random() < 0.5 else word(rng) for _ in range(n)]
    if rng.random() < 0.25:
        words = [lx.invented_zh(rng) if zh else lx.invented(rng) for _ in words[:8]]
    text = ("、" if zh else " ").join(words)
    if zh:
        q, r = rng.choice(["请重复：{t}", "重复一遍：{t}", "跟我说：{t}"]).format(t=text), "我重复。"
    else:
        q, r = rng.choice(["Repeat: {t}", "Repeat after me: {t}", "Say exactly: {t}", "Copy this: {t}"]).format(
            t=text), "I repeat it."
    return Sample("copy", [user(q), assistant(text, r)], ("copy", *words))


PADDING = ["The weather was calm and the road was long.", "It was a quiet day near the {a}.", "Nobody saw the {a}.",
           "A {a} and a {b} went slowly along the river.", "They drank tea and talked about the {a}.",
           "Then the {a} was far from the {b}.", "A bird sang in the old {a}.", "I like the {a}, she said.",
           "天气很好，路很长。", "那天他们谈起{c}和{d}。", "他们喝茶，看到{c}。"]


def padding(rng):
    """One sentence that answers nothing."""
    return rng.choice(PADDING).format(a=rng.choice(lx.ENGLISH), b=rng.choice(lx.ENGLISH), c=rng.choice(lx.CHINESE),
                                      d=rng.choice(lx.CHINESE))


def recall(rng, level, pairs=None, filler=None, turns=None, ask=None, form=None):
    """Look values up in a list of key: value lines; each answer restates its keys.

    `filler` sentences stand between the list and the first question (without it, few or none, anywhere); `turns`
    questions follow each other and ask `ask` keys each; `form` joins key and value.
    """
    n = pairs or rng.randint(2, 3 + round(5 * level))
    form = form or rng.choice([": ", ": ", " = "])
    words = rng.sample(lx.ENGLISH, 2 * n)
    keys, values = words[:n], [str(rng.randrange(10, 100)) if rng.random() < 0.1 else w for w in words[n:]]
    lines = [f"{k}{form}{v}" for k, v in zip(keys, values)]
    if filler is None:
        for _ in range(rng.choice([0, 0, 0, 1, 4])):
            lines.insert(rng.randrange(len(lines) + 1), padding(rng))
    lines += [padding(rng) for _ in range(filler or 0)]
    order = rng.sample(range(n), n)
    messages, asked = [], []
    for j in range(turns or rng.choice([1, 1, 2, 3])):
        chosen = [order.pop() for _ in range(min(len(order), ask or rng.choice([1, 1, 1, 2, 3])))]
        if not chosen:
            break
        names = ", ".join(keys[i] for i in chosen)
        q = f"What is {names}?" if j == 0 else f"And {names}?"
        text = rng.choice(["Remember this:", "Here is a list:", "Notes:"]) + "\n" + "\n".join(lines) + "\n\n" + q
        answer = "\n".join(f"{keys[i]}{form}{values[i]}" for i in chosen)
        messages += [user(q if j else text), assistant(answer, f"I look for {names}.")]
        asked += [("recall", keys[i], values[i]) for i in chosen]
    return Sample("recall", messages, next(filter(held_out, asked), asked[-1]))


def drill(rng, level, pairs=(2, 6)):
    """Look-ups and copies of words from the whole vocabulary in their densest form: every key of a list is asked."""
    if rng.random() < 0.25:
        return copy(rng, 0.7)
    n = rng.randint(*pairs)
    return recall(rng, level, n, 0, 1, n, rng.choice([" ", ": ", " = "]))


def json_form(rng, level):
    """Key-value text to flat JSON."""
    fields = [("name", sometimes(rng, lx.invented, lx.NAMES_EN)), ("city", sometimes(rng, lx.invented, lx.CITIES_EN)),
              ("age", rng.randrange(10, 90)), ("likes", rng.choice(lx.LIKES)[0])]
    fields = rng.sample(fields, rng.randint(2, 4))
    text = ", ".join(f"{k} {v}" for k, v in fields)
    return Sample("json", [user(f"Write as JSON: {text}"), assistant(json.dumps(dict(fields)), "I write JSON.")],
                  ("json", *map(str, dict(fields).values())))


FRAMES = [("in quotes", "放在引号里", '"{w}"'), ("in brackets", "放在括号里", "[{w}]"), ("in a tag", "放在标签里", "<b>{w}</b>"),
          ("between arrows", "放在箭头里", ">{w}<")]


def frame(rng, level):
    """Copy a word into markup, where its token lacks the leading space that it has in a sentence."""
    where, where_zh, form = rng.choice(FRAMES)
    if rng.random() < 0.25:
        w = sometimes(rng, lx.invented_zh, lx.CHINESE)
        return Sample("frame", [user(f"把{w}{where_zh}。"), assistant(form.format(w=w), f"用户给了{w}。")],
                      ("frame", w, where))
    w = sometimes(rng, lx.invented, lx.ENGLISH)
    q = rng.choice(["Put {w} {f}.", "Write {w} {f}."]).format(w=w, f=where)
    return Sample("frame", [user(q), assistant(form.format(w=w), f"The user gives {w}.")], ("frame", w, where))


def no_tool(rng, level):
    """Asked for live data without a tool."""
    if rng.random() < 0.4:
        city = sometimes(rng, lx.invented_zh, lx.CITIES_ZH + [r[3] for r in lx.CAPITALS])
        q, a = rng.choice(["{c}天气怎么样？", "{c}现在几点？"]).format(c=city), "没有工具，我不知道。"
        r = "我没有工具。"
    else:
        city = sometimes(rng, lx.invented, lx.CITIES_EN + [r[1] for r in lx.CAPITALS])
        q = rng.choice(["What is the weather in {c}?", "How is the weather in {c}?", "What time is it in {c}?"]).format(
            c=city)
        a, r = "I do not know that without a tool.", "I have no tool for this."
    return Sample("no_tool", [user(vary(rng, q)), assistant(a, r)], ("no_tool", city))


# ---------------------------------------------------------------- mixture

MIXTURE = [(about, 8), (capital, 7), (fact, 9), (memory, 10), (arithmetic, 17), (long_sum, 12), (compare, 13),
           (copy, 14), (recall, 10), (json_form, 5), (frame, 12), (no_tool, 2)]
SYSTEM = ["You are a helpful assistant.", "You are Fulgur Demo.", "Answer briefly.", "Be polite.", "你是一个有用的助手。",
          "请简短回答。"]


def finish(rng, sample, thinking=None):
    """Choose the mode, and maybe a system text, of a conversation."""
    sample.thinking = rng.random() < 0.5 if thinking is None else thinking
    if sample.tools is None and rng.random() < 0.1:
        sample.messages.insert(0, {"role": "system", "content": rng.choice(SYSTEM)})
    for m in sample.messages:
        plain = m.pop("plain", None)
        if plain and not sample.thinking:
            m["content"] = plain
    return sample


def draw(generator, rng, split="train", level=1.0, thinking=None, **options):
    """One sample of a generator that belongs to the split."""
    while True:
        s = generator(rng, level, **options)
        if s.key is None or held_out(s.key) == (split == "test"):
            return finish(rng, s, thinking)


def sample(rng, split="train", level=1.0):
    """One conversation of the mixture without tools."""
    generator = rng.choices([g for g, _ in MIXTURE], [w for _, w in MIXTURE])[0]
    return draw(generator, rng, split, level)


def tool_conversation(rng, split="train", tools=None, system=None, thinking=None):
    """One conversation with tools; `tools` and `system` may be fixed so that several share their prompt."""
    while True:
        s = tool_sample(rng, tools)
        kind, messages, key, schemas = s
        if key is None or held_out(key) == (split == "test"):
            break
    if system:
        messages.insert(0, {"role": "system", "content": system})
    return finish(rng, Sample(kind, messages, key, schemas), thinking)
