"""Byte-level BPE of 4096 entries with the special tokens and the split rules of DeepSeek-V4, trained on generated text.

The written tokenizer.json has V4's own pre-tokenizer. While training, digits are split one by one, so no merge joins
two digits and numbers come out digit by digit under the official three-digit rule too.
"""
import json
import random

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from . import data, lexicon
from .encoding import BOS, EOS, PAD, render

VOCABULARY = 4096
LONGEST_TOKEN = 18  # bytes
# While training, these Chinese words stand apart, so that no token spans a slot of a template and the words around it.
APART = """天气怎么样 天气 首都 现在 未来 今天 分钟 反义词 城市 国家 颜色 的 是 在 和 呢 加 减 用 我 你 问 给 把 叫 搜索
打开 关掉 发消息 查一下 喜欢 我喜欢 很好 等于 英语 参数 模型 架构 语言 工具 计时器 重复 请 调用 查询""".split()
CJK = "[一-龥\u3040-ゟ゠-ヿ]+"
MAIN = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
        " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")
# ids 0.. in this order; the flag says whether V4 marks the token as special
SPECIAL = [(BOS, True), (EOS, True), (PAD, True), ("<｜User｜>", False), ("<｜Assistant｜>", False), ("<think>", False),
           ("</think>", False), ("｜DSML｜", False), ("<｜place▁holder▁no▁0｜>", True), ("<｜fim▁hole｜>", False),
           ("<｜fim▁begin｜>", False), ("<｜fim▁end｜>", False), ("<|EOT|>", False), ("<｜begin▁sys｜>", False),
           ("<｜end▁sys｜>", False), ("<｜latest_reminder｜>", False), ("<｜action｜>", False), ("<｜query｜>", False),
           ("<｜authority｜>", False), ("<｜domain｜>", False), ("<｜task｜>", False), ("<｜political｜>", False),
           ("<｜entity｜>", False), ("<｜title｜>", False), ("<｜safety｜>", False), ("<｜answer｜>", False),
           ("<｜search｜>", False), ("<dsml:", False), ("</dsml:", False), ("<｜search▁begin｜>", False),
           ("<｜search▁end｜>", False), ("<｜extracted_url｜>", False), ("<｜read_url｜>", False),
           ("<｜end_of_query｜>", True), ("<｜image｜>", True)]
ID = {name: i for i, (name, _) in enumerate(SPECIAL)}


def training_split():
    """V4's pre-tokenizer with finer cuts: single digits, and Chinese slot and template words by themselves."""
    words = sorted({*APART, *lexicon.chinese()}, key=lambda w: (-len(w), w))
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex("\\p{N}"), "isolated"), pre_tokenizers.Split(Regex("|".join(words)), "isolated"),
        pre_tokenizers.Split(Regex(CJK), "isolated"),
        pre_tokenizers.Split(Regex(MAIN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False)])


def corpus(samples, seed):
    """Generated conversations; one in twelve with tools, so that the tool prompt's words become single tokens."""
    rng = random.Random(seed)
    for i in range(samples):
        s = data.tool_conversation(rng) if i % 12 == 0 else data.sample(rng)
        yield render(s.messages, s.tools, s.thinking)
    for word in lexicon.COMMON_EN:  # words of ordinary prose, so that it does not fall apart into letters
        yield f"{word} {word}"
    yield from lexicon.COMMON_ZH


def train(path, samples=20000, seed=0):
    """Trains the vocabulary and writes tokenizer.json and, beside it, tokenizer_config.json."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = training_split()
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(corpus(samples, seed), trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[name for name, _ in SPECIAL], max_token_length=LONGEST_TOKEN,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    trained = json.loads(tok.to_str())
    document = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": name, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": special} for i, (name, special) in enumerate(SPECIAL)],
        "normalizer": {"type": "Sequence", "normalizers": []},
        "pre_tokenizer": v4_pre_tokenizer(),
        "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "vocab": trained["model"]["vocab"],
                  "merges": [m if isinstance(m, str) else " ".join(m) for m in trained["model"]["merges"]]}}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(document, f, ensure_ascii=False, indent=1)
    return Tokenizer.from_file(str(path))


def v4_pre_tokenizer():
    def split(pattern):
        return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}

    return {"type": "Sequence", "pretokenizers": [
        split("\\p{N}{1,3}"), split(CJK), split(MAIN),
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}


def config():
    """tokenizer_config.json as V4 publishes it."""
    def added(content):
        return {"__type": "AddedToken", "content": content, "lstrip": False, "normalized": True, "rstrip": False,
                "single_word": False}

    return {"add_bos_token": False, "add_eos_token": False, "bos_token": added(BOS),
            "clean_up_tokenization_spaces": False, "eos_token": added(EOS), "legacy": True,
            "model_max_length": 65536, "pad_token": added(EOS), "sp_model_kwargs": {}, "unk_token": None,
            "tokenizer_class": "PreTrainedTokenizerFast"}
