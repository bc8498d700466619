"""The trainable model equals the numpy oracle, packing changes nothing, a killed run continues as if it had not been."""
import json
import random
import subprocess
import sys

import numpy as np
import pytest
import torch

from demo_model import checkpoint, data, export
from demo_model.model import CONFIG, Mode, Model
from demo_model.packing import pack, segments
from demo_model.quantisation import fp4

sys.path.insert(0, str(export.pathlib.Path(export.__file__).resolve().parents[1] / "oracle"))
from reference_forward import Reference  # noqa: E402

SMALL = dict(CONFIG, vocab_size=512, hidden_size=128, num_hidden_layers=4, compress_ratios=[0, 4, 128, 4, 0],
             num_attention_heads=2, sliding_window=32, index_topk=8, n_routed_experts=4)


@pytest.fixture(scope="module")
def model():
    """A small model away from its symmetric start."""
    torch.manual_seed(5)
    torch.set_num_threads(1)
    m = Model(SMALL)
    with torch.no_grad():
        for name, p in m.named_parameters():
            if name.endswith(("ape", "wgate", "attn_sink", "norm")):
                p.add_(torch.randn_like(p) * 0.2)
        m.head.mul_(10)
        for layer in [*m.layers, m.mtp.layer]:
            if layer.ffn.hashed:
                layer.ffn.tid2eid.copy_(torch.stack([torch.randperm(4)[:2] for _ in range(512)]))
            else:
                layer.ffn.bias.add_(torch.randn(4) * 0.1)
    return m


def alone(tokens):
    return pack([(tokens, tokens[1:] + [-1], 1)], SMALL["sliding_window"])


def oracle(model):
    return Reference(SMALL, export.official_tensors(model, round_experts=False), {
        n: "f32" for n in export.official_tensors(model)}, "A")


@pytest.mark.parametrize("length", [1, 4, 5, 31, 33, 128, 129, 300])
@torch.no_grad()
def test_logits_equal_the_oracle(model, length):
    rng = random.Random(length)
    tokens = [rng.randrange(512) for _ in range(length)]
    got = model.logits(alone(tokens), Mode(fast=False, indexer=True, sparse=True))[:length].numpy()
    assert np.abs(got - oracle(model).forward(tokens)).max() < 1e-4


@torch.no_grad()
def test_mtp_equals_the_oracle(model):
    rng = random.Random(1)
    tokens = [rng.randrange(512) for _ in range(200)]
    batch, mode = alone(tokens), Mode(fast=False, indexer=True, sparse=True)
    _, x, _ = model.hidden(batch, mode)
    following = torch.cat([batch.tokens[1:], batch.tokens[-1:]])
    y = model.mtp(x, model.embed[following], following, batch, model.tables(256), mode)
    got = (y @ model.head.T)[:199].numpy()
    reference = oracle(model)
    reference.forward(tokens)
    assert np.abs(got - reference.mtp(tokens)).max() < 1e-4


def random_conversations(rng, count):
    """Token lists, some with a common prefix, in the form that pack() takes."""
    prefix = [rng.randrange(512) for _ in range(70)]
    items = []
    for i in range(count):
        tail = [rng.randrange(512) for _ in range(rng.randint(5, 90))]
        tokens = (prefix if i % 2 else []) + tail
        items.append((tokens, tokens[1:] + [-1], len(tokens) - 3))
    return items


@pytest.mark.parametrize("share", [False, True])
@torch.no_grad()
def test_packed_conversations_do_not_see_each_other(model, share):
    items = random_conversations(random.Random(3), 9)
    mode = Mode(fast=False, indexer=True, sparse=True)
    logits = model.logits(pack(items, 32, share=share), mode)
    parts = segments(items, share)
    assert len(parts) == (9 + share)
    batch = pack(items, 32, share=share)
    for s in parts:
        own = batch.tokens[s.path].tolist()
        expected = model.logits(alone(own), mode)[: len(own)]
        assert (logits[s.path] - expected).abs().max() < 1e-4


def test_shared_prefix_gives_the_same_gradients(model):
    items = [(t, [-1] * (p - 1) + t[p:] + [-1], p) for t, _, p in random_conversations(random.Random(4), 6)]
    grads = []
    for share in (False, True):
        model.zero_grad()
        main, *_ = model.loss(pack(items, 32, share=share), Mode(fast=False))
        main.backward()
        grads.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    for a, b in zip(*grads):
        assert (a - b).abs().max() <= 1e-4 * (1 + a.abs().max())


def test_kernel_gradients_against_finite_differences(model):
    """Directional derivative of the loss, for every parameter tensor at once and for a few alone."""
    items = random_conversations(random.Random(5), 3)
    items = [(t, [-1] * (p - 1) + t[p:] + [-1], p) for t, _, p in items]
    batch, m = pack(items, 32), model

    def loss():
        return m.loss(batch, Mode(fast=False))[0]

    m.zero_grad()
    loss().backward()
    names = ["layers.1.attn.compressor.wgate", "layers.1.attn.compressor.ape", "layers.2.attn.compressor.wkv",
             "layers.0.hc_attn.fn", "layers.1.hc_ffn.base", "layers.3.hc_attn.scale", "layers.1.attn.attn_sink",
             "layers.1.attn.kv_norm", "layers.0.attn.wq_b", "layers.0.ffn.gate", "hc_head.fn", "embed"]
    parameters = dict(m.named_parameters())
    for name in names:
        p = parameters[name]
        direction = torch.randn_like(p)
        direction *= p.detach().norm() / direction.norm()
        step, values = 2e-3, []
        with torch.no_grad():
            for sign in (1, -1):
                p.add_(direction, alpha=sign * step)
                values.append(float(loss()))
                p.sub_(direction, alpha=sign * step)
        measured = (values[0] - values[1]) / (2 * step)
        expected = float((p.grad * direction).sum())
        assert abs(measured - expected) < 0.02 * abs(expected) + 0.02, name


def test_fp4_matches_the_oracle():
    from make_checkpoint import Tensor, encode
    w = torch.randn(64, 128) * torch.logspace(-3, 1, 64)[:, None]
    tensor = Tensor("x.weight", (64, 128), "linear", "fp4", "x.weight")
    _, values = encode(tensor, "fp4", w.numpy())
    assert np.array_equal(fp4(w).numpy(), values.astype(np.float32))


def test_export_writes_every_official_tensor(tmp_path, tokenizer):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    m = Model(CONFIG)
    config, params, _ = export.write(m, tmp_path / "tokenizer.json", tmp_path / "out", "fp8fp4")
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    wanted = {official.name for group in export.official.inventory(config, 1) for official in group}
    assert wanted == set(params) and len(index["weight_map"]) > len(wanted)
    assert np.array_equal(params["layers.2.ffn.experts.3.w1.weight"], fp4(m.layers[2].ffn.w13[3])[:128].detach().numpy())


RUN = """
import json, sys
from demo_model import model, train
import torch
model.CONFIG.update(json.loads(sys.argv[2])); torch.set_num_threads(1)
run = train.Run(sys.argv[1], train.SCHEDULE)
if len(sys.argv) > 4: run.load()
s = run.schedule
while run.step < int(sys.argv[3]):
    phase = dict(train.phase_at(run.step, s), mixture=256)
    batches = train.step_batches(run.tokenizer, 1, run.step, phase, 0.0, 128)
    r = train.train_step(run.model, run.optimiser, batches, run.step, s)
    run.step += 1
    print(r["loss"])
run.save()
"""


def test_a_killed_run_continues_with_the_same_losses(tmp_path):
    """Four steps in one go equal two steps, a new process, and two more."""
    small = json.dumps(dict(num_hidden_layers=2, compress_ratios=[0, 4, 0], num_hash_layers=1))

    def losses(folder, end, *resume):
        tools = export.pathlib.Path(export.__file__).resolve().parents[1]
        out = subprocess.run([sys.executable, "-c", RUN, str(tmp_path / folder), small, str(end), *resume], cwd=tools,
                             capture_output=True, text=True, check=True)
        return [float(x) for x in out.stdout.split()]

    whole = losses("a", 4)
    assert whole == losses("b", 2) + losses("b", 4, "resume")
    assert len(whole) == 4


@pytest.mark.parametrize("fmt", ["bf16", "fp8fp4"])
def test_a_checkpoint_reads_back(tmp_path, tokenizer, fmt):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    _, params, _ = export.write(Model(CONFIG), tmp_path / "tokenizer.json", tmp_path / "out", fmt)
    again = export.official_tensors(checkpoint.load(tmp_path / "out"), round_experts=False)
    assert set(again) == set(params)
    for name, value in params.items():
        assert np.array_equal(again[name].astype(value.dtype), value.reshape(again[name].shape)), name


def test_evaluation_through_a_server_compares_whole_turns():
    """A server that answers rightly scores 1, one that changes an argument scores 0."""
    import http.server
    import threading
    from demo_model import evaluate
    rng = random.Random(2)
    group = [data.tool_conversation(rng, "test") for _ in range(6)]
    answers = {json.dumps(evaluate.openai_messages(s.messages[:-1], s.thinking)): s.messages[-1] for s in group}

    class Handler(http.server.BaseHTTPRequestHandler):
        spoil = False

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            m = answers[json.dumps(body["messages"])]
            calls = [{"function": {"name": n, "arguments": json.dumps(dict(a, x=1) if self.spoil else a)}}
                     for n, a in m.get("calls") or []]
            message = {"content": m["content"] or None, "reasoning_content": m["reasoning"], "tool_calls": calls}
            if self.spoil and not calls:
                message["content"] += "!"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode())

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    backend = evaluate.ServerBackend(f"http://127.0.0.1:{server.server_port}", "demo")
    assert all(backend.right(group))
    Handler.spoil = True
    assert not any(backend.right(group))
    server.shutdown()
