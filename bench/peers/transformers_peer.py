#!/usr/bin/env python3
"""transformers on the architecture of a checkpoint with random bf16 weights: a reference, not a rival in speed.

usage: transformers_peer.py CHECKPOINT --threads N      prints tokens/s of a prompt of 512 tokens and of decoding
"""
import argparse
import json
import pathlib
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("checkpoint")
parser.add_argument("--threads", type=int, default=1)
args = parser.parse_args()
torch.set_num_threads(args.threads)
fields = json.loads((pathlib.Path(args.checkpoint) / "config.json").read_text())
fields.pop("quantization_config", None)
fields.pop("expert_dtype", None)
config = AutoConfig.for_model(fields.pop("model_type"), **fields)
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="eager").eval()
tokens = torch.randint(8, 264, (1, 512))
with torch.inference_mode():
    model(tokens[:, :16], use_cache=True)  # start-up
    begin = time.perf_counter()
    output = model(tokens, use_cache=True)
    prefill = time.perf_counter() - begin
    begin = time.perf_counter()
    for _ in range(4):
        output = model(output.logits[:, -1:].argmax(-1), past_key_values=output.past_key_values, use_cache=True)
    decode = (time.perf_counter() - begin) / 4
print(json.dumps({"prefill": 512 / prefill, "decode": 1 / decode}))
