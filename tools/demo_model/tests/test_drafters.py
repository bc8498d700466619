"""The trainable drafters equal the numpy oracle; answers are the trunk's own; export reads back; a killed run goes on."""
import json
import random

import pytest
import torch

from demo_model import answers, checkpoint, drafters, export, export_drafter, train_drafter
from demo_model.acceptance import greedy, greedy_lengths
from demo_model.model import CONFIG, Mode, Model
from demo_model.packing import pack

from reference_forward import Reference

EXACT = Mode(fast=False, indexer=True, sparse=True)


def shake(module):
    """Away from the symmetric start."""
    with torch.no_grad():
        for name, p in [*module.named_parameters(), *module.named_buffers()]:
            if p.is_floating_point():
                p.add_(torch.randn_like(p) * 0.1 * (p.std() if p.numel() > 8 and p.std() > 0 else 1))


@pytest.fixture(scope="module")
def trunk():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    m = Model(dict(CONFIG, vocab_size=4096))
    shake(m)
    with torch.no_grad():
        m.head.mul_(10)
        for layer in m.layers[: m.c.num_hash_layers]:
            layer.ffn.tid2eid.copy_(torch.stack([torch.randperm(8)[:2] for _ in range(4096)]))
    return m.requires_grad_(False)


def drafter_of(kind, trunk):
    drafter = drafters.DRAFTERS[kind](trunk)
    shake(drafter)
    return drafter


def tokens_of(length):
    rng = random.Random(length)
    return [rng.randrange(4096) for _ in range(length)]


@torch.no_grad()
def piece_of(trunk, tokens):
    """All of a token list as one piece, as if every token was the trunk's own."""
    item = answers.Answer((tokens, tokens[1:] + [-1], 1), 0, 0)
    means, streams, hidden = next(answers.run(trunk, [item], False))
    n = len(tokens) - 1
    return answers.Piece(torch.tensor(tokens), 0, torch.tensor(tokens[1:]), means[:n], streams[:n], hidden[:n])


def oracle(trunk, drafter, tokens):
    """The independent program with the same weights, after the tokens."""
    values = export.official_tensors(trunk, round_experts=False)
    values = {k: v for k, v in values.items() if not k.startswith("mtp.")}
    for name, value in drafter.state_dict().items():
        prefix, rest = drafter.place(name)
        values.update((prefix + k, v.numpy()) for k, v in export.layer_tensors(rest, value, False))
    config = export_drafter.drafter_config(CONFIG, drafter.kind)
    reference = Reference(config, values, {name: "f32" for name in values}, "A")
    reference.forward(tokens)
    return reference


@pytest.mark.parametrize("length", [2, 60, 128, 129, 200])
@torch.no_grad()
def test_dspark_stages_equal_the_oracle(trunk, length):
    drafter, tokens = drafter_of("dspark", trunk), tokens_of(length)
    blocks = answers.blocks_of([(piece_of(trunk, tokens + [0, 0]), torch.tensor([length - 1]))], drafter.width)
    logits, confidence, drafts = drafter(blocks, EXACT, greedy)
    wanted, wanted_logits, wanted_confidence = oracle(trunk, drafter, tokens).dspark(tokens, len(drafter.stages))
    assert drafts[0].tolist() == wanted
    assert (logits[0] - torch.tensor(wanted_logits)).abs().max() < 2e-3
    assert (confidence[0] - torch.tensor(wanted_confidence)).abs().max() < 2e-3


@pytest.mark.parametrize("length", [3, 60, 130, 200])
@torch.no_grad()
def test_mtp_drafts_equal_the_oracle(trunk, length):
    drafter, tokens = drafter_of("mtp", trunk), tokens_of(length)
    blocks = answers.blocks_of([(piece_of(trunk, tokens + [0]), torch.tensor([length - 1]))], drafter.width)
    logits, _, drafts = drafter(blocks, EXACT, greedy)
    wanted, wanted_logits = oracle(trunk, drafter, tokens).mtp_drafts(tokens, drafter.width)
    assert drafts[0].tolist() == list(wanted)
    for j in range(drafter.width):
        assert (logits[0, j] - torch.tensor(wanted_logits[j])).abs().max() < 2e-3


@pytest.mark.parametrize("kind", ["dspark", "mtp"])
@torch.no_grad()
def test_labels_give_what_the_same_chosen_tokens_give(trunk, kind):
    drafter, tokens = drafter_of(kind, trunk), tokens_of(150)
    blocks = answers.blocks_of([(piece_of(trunk, tokens), torch.tensor([20, 140, 145]))], drafter.width)
    known = blocks.known.bool()
    by_label, _, _ = drafter(blocks, EXACT)
    by_choice, _, _ = drafter(blocks, EXACT, lambda _, j: blocks.labels[:, j])
    assert (by_label - by_choice)[known].abs().max() < 1e-3
    assert known.sum(1).tolist() == [drafter.width, drafter.width, min(drafter.width, 4)]


@pytest.mark.parametrize("temperature", [0, 1])
@torch.no_grad()
def test_answers_are_the_trunks_own(trunk, temperature):
    """Token by token with the same random numbers gives the same answer."""
    tokens, start = tokens_of(40), 30
    item = (tokens, [-1] * start + tokens[start + 1 :] + [-1], start + 1)
    piece = answers.own_words(trunk, [answers.Answer(item, temperature, 9)])[0]
    one, own = answers.Answer(item, temperature, 9), tokens[: start + 1]
    for at in range(start, start + int((piece.targets >= 0).sum())):
        one.places = torch.tensor([at])
        batch = pack([(own, [-1] * len(own), len(own))], trunk.c.sliding_window)
        own.append(int(one.own(trunk.logits(batch, EXACT)[: len(own)])[0]))
    assert own == tokens[: piece.first] + piece.tokens.tolist()
    assert len(own) > start + 2


def test_accept_lengths_add_up_to_the_answer(trunk):
    piece = piece_of(trunk, tokens_of(60))
    for width in (1, 3):
        steps = greedy_lengths(drafter_of("mtp", trunk), [piece], width)[0]
        assert sum(steps) == 58 and max(steps) <= width + 1


@pytest.mark.parametrize("kind", ["dspark", "mtp"])
def test_a_drafter_reads_back(trunk, tokenizer, tmp_path, kind):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    export.write(trunk, tmp_path / "tokenizer.json", tmp_path / "trunk", "fp8fp4", mtp=False)
    drafter = drafter_of(kind, trunk)
    export_drafter.write(drafter, tmp_path / "trunk", tmp_path / "out")
    again = checkpoint.load_drafter(drafters.DRAFTERS[kind](trunk), tmp_path / "out")
    for (name, a), b in zip(drafter.state_dict().items(), again.state_dict().values()):
        assert (a - b).abs().max() <= 0.2 * a.abs().max(), name
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())["weight_map"]
    trunk_names = set(checkpoint.tensors(tmp_path / "trunk"))
    assert (trunk_names <= set(index)) == (kind == "dspark")
    assert all(name.startswith("mtp.") for name in set(index) - trunk_names if "scale" not in name)


def test_a_killed_run_continues_with_the_same_losses(trunk, tmp_path):
    pieces = [piece_of(trunk, tokens_of(50 + n)) for n in range(4)]
    schedule = dict(train_drafter.SCHEDULE, pieces=2, anchors=4)

    def losses(folder, steps, resume=False):
        run = train_drafter.Run(tmp_path / folder, trunk, "mtp", schedule)
        if resume:
            run.load()
        out = [run.train_step(pieces)["loss"] for _ in range(steps)]
        run.save()
        return out

    assert losses("a", 4) == losses("b", 2) + losses("b", 2, resume=True)
