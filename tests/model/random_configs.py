"""Random small DeepSeek-V4 configs: every size, layer order and constant that a checkpoint may choose."""
import random


def random_config(seed):
    """A config.json as a dict, and a number of tokens to run."""
    r = random.Random(seed)
    layers = r.randint(1, 6)
    groups = r.choice([1, 2, 3])
    rope = 2 * r.randint(1, 12)
    experts = r.randint(2, 10)
    config = dict(
        architectures=["DeepseekV4ForCausalLM"], model_type="deepseek_v4", hidden_size=r.randint(9, 90) * 2,
        num_hidden_layers=layers, num_attention_heads=groups * r.randint(1, 3), num_key_value_heads=1,
        head_dim=rope + 2 * r.randint(0, 20), qk_rope_head_dim=rope, q_lora_rank=r.randint(4, 50),
        o_lora_rank=r.randint(3, 40), o_groups=groups, sliding_window=r.choice([1, 2, 3, 7, 16, 33, 130]),
        compress_ratios=[r.choice([0, 4, 4, 128]) for _ in range(layers)], compress_rope_theta=r.choice([160000, 5000]),
        rope_theta=r.choice([10000, 500]),
        rope_scaling=dict(type="yarn", factor=r.choice([4, 16]), original_max_position_embeddings=r.choice([64, 4096, 65536]),
                          beta_fast=32, beta_slow=1),
        max_position_embeddings=65536, index_n_heads=r.randint(1, 9), index_head_dim=rope + 2 * r.randint(0, 20),
        index_topk=r.randint(1, 12), n_routed_experts=experts, n_shared_experts=1,
        num_experts_per_tok=r.randint(1, min(experts, 4)), moe_intermediate_size=r.randint(5, 70),
        num_hash_layers=r.randint(0, layers), scoring_func="sqrtsoftplus", topk_method="noaux_tc", norm_topk_prob=True,
        routed_scaling_factor=r.choice([1.0, 1.5, 2.5]), swiglu_limit=r.choice([1.0, 7.0, 10.0]),
        hc_mult=r.randint(1, 6), hc_sinkhorn_iters=r.randint(1, 20), hc_eps=r.choice([1e-6, 1e-4]),
        rms_norm_eps=r.choice([1e-6, 1e-5]), hidden_act="silu", vocab_size=r.randint(20, 150), tie_word_embeddings=False,
        bos_token_id=0, eos_token_id=1, num_nextn_predict_layers=0, attention_bias=False, attention_dropout=0.0)
    return config, r.choice([1, 3, 5, 40, 140, 300])


def random_drafter(seed):
    """The same with one MTP block or some DSpark stages: config, number of tokens, blocks of each kind."""
    config, length = random_config(seed)
    r = random.Random(f"drafter {seed}")
    if r.random() < 0.5:
        return config, length, 1, 0
    stages = r.randint(1, min(3, config["num_hidden_layers"]))
    config.update(dspark_block_size=r.randint(1, 7), dspark_noise_token_id=r.randrange(config["vocab_size"]),
                  dspark_target_layer_ids=sorted(r.sample(range(config["num_hidden_layers"]), stages)),
                  dspark_markov_rank=r.randint(1, 40))
    return config, length, 0, stages
