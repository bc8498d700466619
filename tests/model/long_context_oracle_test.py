"""200,000 real positions through one compressed layer, against the oracle at some positions near the end.

usage: long_context_oracle_test.py --oracle MODEL_ORACLE [--tokens N]

One layer only, so that a position's result needs no other position's: the oracle computes all keys and entries, but
attends and selects for the asked positions alone.
"""
import argparse
import random
import tempfile

import numpy as np

import model_oracle

import make_checkpoint
from reference_forward import Reference

TOLERANCE = 5e-5


class SomePositions(Reference):
    """Attention and index of the positions `asked` only."""

    def attention(self, p, ratio, x, positions, context=None):
        c, freq, asked = self.c, self.freq[1], self.asked
        qr = self.rms(self.linear(p + "wq_a", x[asked]), p + "q_norm")
        q = self.rope(self.rms(self.linear(p + "wq_b", qr).reshape(len(asked), -1, c.head_dim)), asked, freq)
        keys = self.rope(self.rms(self.linear(p + "wkv", x), p + "kv_norm"), positions, freq)
        entries = self.compress(p + "compressor.", ratio, x, freq)
        if ratio == 4:
            index_keys = self.compress(p + "indexer.compressor.", 4, x, freq)
            index_q = self.rope(self.linear(p + "indexer.wq_b", qr).reshape(len(asked), c.index_n_heads, -1), asked, freq)
            weight = x[asked] @ self.p[p + "indexer.weights_proj.weight"].T
        out = []
        for i, t in enumerate(asked):
            seen = entries[: (t + 1) // ratio]
            if ratio == 4:
                score = np.maximum(index_q[i] @ index_keys[: len(seen)].T, 0).T @ weight[i]
                seen = seen[np.sort(np.argsort(-score, kind="stable")[: c.index_topk])]
            own = np.concatenate([keys[max(0, t - c.sliding_window + 1): t + 1], seen])
            z = q[i] @ own.T * c.head_dim**-0.5
            e, sink = np.exp(z - z.max(-1, keepdims=True)), np.exp(self.p[p + "attn_sink"][:, None] - z.max(-1, keepdims=True))
            out.append(e / (e.sum(-1, keepdims=True) + sink) @ own)
        o = self.rope(np.array(out), asked, freq, -1).reshape(len(asked), c.o_groups, -1).swapaxes(0, 1)
        wo_a = self.p[p + "wo_a.weight"].reshape(c.o_groups, c.o_lora_rank, -1)
        result = self.linear(p + "wo_b", (o @ wo_a.swapaxes(1, 2)).swapaxes(0, 1).reshape(len(asked), -1))
        full = np.zeros((len(x), result.shape[1]))
        full[asked] = result
        return full


def config_of(ratio):
    return dict(
        make_checkpoint.TINY, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, head_dim=16, qk_rope_head_dim=4,
        q_lora_rank=16, o_lora_rank=8, o_groups=1, sliding_window=16, compress_ratios=[ratio], index_n_heads=2,
        index_head_dim=4, index_topk=8, n_routed_experts=4, moe_intermediate_size=16, num_hash_layers=0, vocab_size=64,
        hc_mult=2, num_nextn_predict_layers=0)


def check(program, ratio, count):
    r = random.Random(ratio)
    asked = np.array([0, 5, 127, 128, 70000, count // 2, count - 257, count - 2, count - 1])
    with tempfile.TemporaryDirectory() as folder:
        config, values = model_oracle.write_fp32_checkpoint(folder, config_of(ratio))
        tokens = [r.randrange(64) for _ in range(count)]
        oracle = SomePositions(config, values, dict.fromkeys(values, "f32"), "A")
        oracle.asked = asked
        expected = oracle.forward(tokens)[asked]
        ours = model_oracle.logits(program, folder, [tokens], 64, "--precision", "reference", "--chunks", "5000",
                                   "--threads", "2")[asked]
    difference = np.abs(ours - expected).max(1)
    assert difference.max() <= TOLERANCE, f"ratio {ratio}: {difference} at {asked}"
    print(f"ratio {ratio}: largest difference {difference.max():.2e} over {count} tokens", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--oracle", required=True)
    ap.add_argument("--tokens", type=int, default=200_003)
    args = ap.parse_args()
    check(args.oracle, 128, args.tokens)
    check(args.oracle, 4, args.tokens)


if __name__ == "__main__":
    main()
