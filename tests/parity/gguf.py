"""Makes a GGUF file of a folder that transformers saved, as convert_hf_to_gguf.py of llama.cpp does."""
import json
import math
import os
import struct

from lib import gguf, safetensors

SIZES = {"hidden_size": "embedding_length", "intermediate_size": "feed_forward_length", "num_hidden_layers":
         "block_count", "num_attention_heads": "attention.head_count", "num_key_value_heads": "attention.head_count_kv",
         "max_position_embeddings": "context_length"}
LAYER = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.qkv_proj": "attn_qkv",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up", "mlp.c_fc": "ffn_up",
         "mlp.c_proj": "ffn_down", "post_attention_layernorm": "ffn_norm"}
BOTH = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
        "post_feedforward_layernorm": "post_ffw_norm"}
BERT = {"attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
        "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
        "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"}
TOPS = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output",
        "embeddings.word_embeddings": "token_embd", "embeddings.position_embeddings": "position_embd",
        "embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm",
        "emb_ln": "token_embd_norm"}
EXPERTS = {"w1": "gate", "w3": "up", "w2": "down", "gate_proj": "gate", "up_proj": "up", "down_proj": "down"}
DEEPSEEK = ("deepseek_v2", "deepseek_v3")
STACKS = ("t5", "mt5", "umt5")
MIXTURES = {**dict.fromkeys(DEEPSEEK, "deepseek2"), "mixtral": "llama", "qwen2_moe": "qwen2moe",
            "qwen3_moe": "qwen3moe", "olmoe": "olmoe", "granitemoe": "granitemoe",
            "granitemoeshared": "granitemoe", "gpt_oss": "gpt-oss"}
LATENT = {"self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj":
          "attn_q_b", "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
          "self_attn.kv_b_proj": "attn_kv_b", "mlp.gate": "ffn_gate_inp", "mlp.shared_experts.gate_proj":
          "ffn_gate_shexp", "mlp.shared_experts.up_proj": "ffn_up_shexp", "mlp.shared_experts.down_proj":
          "ffn_down_shexp"}
NOMIC = {"attn.Wqkv": "attn_qkv", "attn.out_proj": "attn_output", "norm1": "attn_output_norm", "norm2":
         "layer_output_norm", "mlp.fc11": "ffn_up", "mlp.fc12": "ffn_gate", "mlp.fc2": "ffn_down"}
T5 = {"SelfAttention.q": "attn_q", "SelfAttention.k": "attn_k", "SelfAttention.v": "attn_v",
      "SelfAttention.o": "attn_o", "SelfAttention.relative_attention_bias": "attn_rel_b",
      "EncDecAttention.q": "cross_attn_q", "EncDecAttention.k": "cross_attn_k",
      "EncDecAttention.v": "cross_attn_v", "EncDecAttention.o": "cross_attn_o", "DenseReluDense.wi":
      "ffn_up", "DenseReluDense.wi_0": "ffn_gate", "DenseReluDense.wi_1": "ffn_up", "DenseReluDense.wo": "ffn_down"}
PERMUTED = ("llama", "mistral", "mixtral", "granitemoe", "granitemoeshared")
ROUTERS = {"block_sparse_moe.gate": "ffn_gate_inp", "mlp.gate": "ffn_gate_inp", "mlp.router": "ffn_gate_inp",
           "block_sparse_moe.router.layer": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
           "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
           "mlp.shared_expert.down_proj": "ffn_down_shexp", "shared_mlp.output_linear": "ffn_down_shexp"}
ARCHITECTURES = {**MIXTURES, "llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3",
                 "gemma": "gemma", "gemma2": "gemma2",
                 "gemma3_text": "gemma3", "phi3": "phi3", "starcoder2": "starcoder2", "bert": "bert",
                 "nomic_bert": "nomic-bert", **dict.fromkeys(STACKS, "t5")}


def architecture_of(config):
    encoder = config["architectures"][0].endswith("EncoderModel")
    return ARCHITECTURES[config["model_type"]] + ("encoder" if encoder else "")


def named_t5(name):
    if name in ("shared.weight", "lm_head.weight"):
        return "token_embd.weight" if name == "shared.weight" else "output.weight"
    stack, rest = name.split(".", 1)
    if rest.endswith("embed_tokens.weight"):
        return None
    if rest == "final_layer_norm.weight":
        return "%s.output_norm.weight" % stack[:3]
    _, block, _, layer, *words, kind = rest.split(".")
    norms = ("attn_norm", "cross_attn_norm" if stack == "decoder" else "ffn_norm", "ffn_norm")
    new = norms[int(layer)] if words == ["layer_norm"] else \
        "ffn_norm" if words[-1] == "layer_norm" else T5[".".join(words)]
    return "%s.blk.%s.%s.%s" % (stack[:3], block, new, kind)


def named(config, name):
    """The name in a GGUF file, or None for a tensor that it does not have."""
    if config["model_type"] in STACKS:
        return named_t5(name)
    stem, _, kind = name.rpartition(".")
    if kind == "e_score_correction_bias":
        return "blk.%s.exp_probs_b.bias" % name.split(".")[2]
    stem = stem.removeprefix("model.").removeprefix("bert.")
    if stem in TOPS:
        return "%s.%s" % (TOPS[stem], kind)
    words = stem.split(".")
    at = next((i for i, word in enumerate(words) if word.isdigit()), None)
    if at is None:
        return None
    table = {**LAYER, **BERT, **(ROUTERS if config["model_type"] in MIXTURES else {}),
             **(BOTH if config["model_type"] in ("gemma2", "gemma3_text") else {})}
    table.update(LATENT if config["model_type"] in DEEPSEEK else NOMIC if config["model_type"] == "nomic_bert" else {})
    if config["model_type"] == "gpt_oss":
        table["post_attention_layernorm"] = "post_attention_norm"
    return "blk.%s.%s.%s" % (words[at], table[".".join(words[at + 1:])], kind)


def rows_of_pairs(numbers, shape, heads):
    """The rows of each head, whose halves rotate together, as neighbours."""
    columns = len(numbers) // shape[0]
    rows = [numbers[i * columns:(i + 1) * columns] for i in range(shape[0])]
    half = shape[0] // heads // 2
    order = [h * 2 * half + part * half + i for h in range(heads) for i in range(half) for part in range(2)]
    return [number for row in order for number in rows[row]]


def rope_keys(config, keys, tensors, head_dim):
    rope = config.get("rope_parameters") or {}
    rope = rope.get("full_attention", rope)
    kind = rope.get("rope_type", "default")
    keys["rope.freq_base"] = float(rope.get("rope_theta", config.get("rope_theta", 10000)))
    keys["rope.dimension_count"] = int(head_dim * rope.get("partial_rotary_factor", 1))
    if kind in ("linear", "yarn"):
        keys.update({"rope.scaling.type": kind, "rope.scaling.factor": float(rope["factor"])})
    for old, new in (("beta_fast", "beta_fast"), ("beta_slow", "beta_slow"), ("attention_factor", "attn_factor")):
        if kind == "yarn" and rope.get(old) is not None:
            keys["rope.scaling.yarn_" + new] = float(rope[old])
    if "mscale_all_dim" in rope:
        keys["rope.scaling.yarn_log_multiplier"] = 0.1 * rope["mscale_all_dim"]
    if "original_max_position_embeddings" in rope:
        keys["rope.scaling.original_context_length"] = rope["original_max_position_embeddings"]
    if kind == "longrope":
        original = config["original_max_position_embeddings"]
        keys["rope.scaling.original_context_length"] = original
        scale = config["max_position_embeddings"] / original
        keys["rope.scaling.attn_factor"] = math.sqrt(1 + math.log(scale) / math.log(original)) if scale > 1 else 1.0
        for way in ("long", "short"):
            tensors.append(("rope_factors_%s.weight" % way, [head_dim // 2], rope[way + "_factor"]))
    if kind == "llama3":
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        original, factors = rope["original_max_position_embeddings"], []
        for i in range(head_dim // 2):
            turns = original / (2 * math.pi * keys["rope.freq_base"] ** (2 * i / head_dim))
            smooth = min(max((turns - low) / (high - low), 0), 1)
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
        tensors.append(("rope_freqs.weight", [head_dim // 2], factors))


def experts_in(config):
    return config.get("num_local_experts") or config.get("num_experts") or config.get("n_routed_experts")


def mixture_keys(config, keys):
    experts = experts_in(config)
    if not experts:
        return
    keys.update({"expert_count": experts, "expert_used_count": config["num_experts_per_tok"]})
    width = config.get("moe_intermediate_size") or config["intermediate_size"] * (config["model_type"] == "gpt_oss")
    if width:
        keys["expert_feed_forward_length"] = width
    shared = config.get("shared_expert_intermediate_size") or config.get("shared_intermediate_size")
    if shared:
        keys["expert_shared_feed_forward_length"] = shared
    for old, new in (("embedding_multiplier", "embedding_scale"), ("attention_multiplier", "attention.scale"),
                     ("residual_multiplier", "residual_scale"), ("logits_scaling", "logit_scale")):
        if old in config:
            keys[new] = config[old]


def latent_keys(config, keys):
    """Files of DeepSeek-V2 are older ones here: they count a head of keys for each of queries, and name no function of
    the router."""
    older, rope = config["model_type"] == "deepseek_v2", config["qk_rope_head_dim"]
    lengths = config["qk_nope_head_dim"] + rope, config["v_head_dim"]
    keys.update({"attention.kv_lora_rank": config["kv_lora_rank"], "rope.dimension_count": rope,
                 "leading_dense_block_count": config["first_k_dense_replace"],
                 "expert_shared_count": config["n_shared_experts"],
                 "expert_weights_scale": float(config["routed_scaling_factor"]),
                 "expert_weights_norm": config["norm_topk_prob"]})
    for old, new in (("q_lora_rank", "attention.q_lora_rank"), ("n_group", "expert_group_count"),
                     ("topk_group", "expert_group_used_count")):
        if config.get(old):
            keys[new] = config[old]
    if older:
        keys.update({"attention.key_length": lengths[0], "attention.value_length": lengths[1]})
    else:
        keys.update({"attention.head_count_kv": 1, "attention.key_length": config["kv_lora_rank"] + rope,
                     "attention.value_length": config["kv_lora_rank"], "attention.key_length_mla": lengths[0],
                     "attention.value_length_mla": lengths[1], "expert_gating_func": 2})


def heads_apart(config, stem, numbers):
    """Of newer files: the keys of each head, transposed, and the values."""
    heads, latent = config["num_attention_heads"], config["kv_lora_rank"]
    keys, values = config["qk_nope_head_dim"], config["v_head_dim"]
    matrices = parts(numbers, [heads, keys + values, latent])
    return [(stem % "k", [heads, latent, keys], flat([[list(c) for c in zip(*m[:keys])] for m in matrices])),
            (stem % "v", [heads, values, latent], flat([m[keys:] for m in matrices]))]


def t5_keys(config):
    keys = {"context_length": config.get("n_positions", 512), "embedding_length": config["d_model"],
            "feed_forward_length": config["d_ff"], "block_count": config["num_layers"],
            "attention.head_count": config["num_heads"], "attention.key_length": config["d_kv"],
            "attention.value_length": config["d_kv"], "attention.layer_norm_epsilon": config["layer_norm_epsilon"],
            "attention.relative_buckets_count": config["relative_attention_num_buckets"],
            "attention.layer_norm_rms_epsilon": config["layer_norm_epsilon"]}
    if not config["architectures"][0].endswith("EncoderModel"):
        keys.update({"decoder_block_count": config["num_decoder_layers"],
                     "decoder_start_token_id": config["decoder_start_token_id"]})
    return keys


def parts(numbers, shape):
    """The matrices [rows][columns] of each expert, or rows of one number of a vector for each."""
    size = len(numbers) // shape[0]
    columns = shape[2] if len(shape) > 2 else 1
    return [[numbers[at:at + columns] for at in range(e * size, (e + 1) * size, columns)] for e in range(shape[0])]


def flat(matrices):
    return [x for rows in matrices for row in rows for x in row]


def experts_of(config, found):
    """The tensors of all experts of a layer, from those of a folder: {(layer, words): (shape, numbers)}."""
    made, experts = {}, experts_in(config)
    for (layer, words), (shape, numbers) in found.items():
        stem = "blk.%s.ffn_%%s_exps.%s" % (layer, "bias" if words[-1].endswith("bias") else "weight")
        if words[0] == "experts" and words[1].isdigit():
            name = stem % EXPERTS[words[2]]
            made.setdefault(name, ([experts, *shape], [None] * experts))[1][int(words[1])] = numbers
            continue
        matrices = parts(numbers, shape)
        last = words[1] if words[0] == "experts" else words[0]
        if last.startswith("down") or last == "output_linear":
            names = {"down": matrices}
        elif last == "input_linear":
            half = shape[1] // 2
            names = {"gate": [m[:half] for m in matrices], "up": [m[half:] for m in matrices]}
        else:  # of GPT-OSS, in columns
            rows = matrices if last.endswith("bias") else [[list(c) for c in zip(*m)] for m in matrices]
            names = {"gate": [m[::2] for m in rows], "up": [m[1::2] for m in rows]}
        if last == "down_proj":
            names = {"down": [[list(c) for c in zip(*m)] for m in matrices]}
        for part, whole in names.items():
            shape_of = [len(whole), len(whole[0])] + ([len(whole[0][0])] if not last.endswith("bias") else [])
            made[stem % part] = (shape_of, [flat([m]) for m in whole])
    return [(name, shape, [x for own in numbers for x in own]) for name, (shape, numbers) in made.items()]


def of_experts(name):
    """(layer, the words behind it that name experts), or None."""
    words = name.removeprefix("model.").split(".")
    own = "shared_mlp" not in words and {"experts", "input_linear", "output_linear"} & set(words)
    if words[0] != "layers" or not own:
        return None
    last = words[3:]
    return words[1], tuple(last[:-1] if last[-1] in ("weight", "bias") else last)


def keys_of(config, tensors):
    kind = config["model_type"]
    if kind in STACKS:
        return t5_keys(config)
    keys = {new: config[old] for old, new in SIZES.items() if config.get(old) is not None}
    rms = config.get("rms_norm_eps")
    keys["attention.layer_norm_rms_epsilon" if rms else "attention.layer_norm_epsilon"] = float(
        rms or config.get("layer_norm_eps") or config["norm_epsilon"])
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    if kind in ("bert", "nomic_bert"):
        keys.update({"attention.causal": False, "pooling_type": 0})
        if kind == "nomic_bert":
            keys["rope.freq_base"] = config["rope_parameters"]["rope_theta"]
        return keys
    keys.update({"attention.key_length": head_dim, "attention.value_length": head_dim})
    mixture_keys(config, keys)
    if config.get("sliding_window") and config.get("use_sliding_window", True):
        keys["attention.sliding_window"] = config["sliding_window"]
    for name in ("attn_logit_softcapping", "final_logit_softcapping"):
        if config.get(name) and (kind != "gemma3_text" or name.startswith("final")):
            keys[name] = float(config[name])
    rope_keys(config, keys, tensors, head_dim)
    if kind in DEEPSEEK:
        latent_keys(config, keys)
    return keys


def numbers_of(kind, data):
    if kind == "BF16":
        data, kind = b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2)), "F32"
    code, size = {"F32": ("f", 4), "F16": ("e", 2), "F64": ("d", 8)}[kind]
    return list(struct.unpack("<%d%s" % (len(data) // size, code), data))


def config_of(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        return json.load(file)


def mended(config):
    """What a config must say for a GGUF file to say it, too: an empty dictionary where it says so already. None where
    no file can."""
    kind = config["model_type"]
    plain = config["architectures"][0].replace("ForConditionalGeneration" if kind in STACKS else "ForCausalLM", "")
    if kind not in ARCHITECTURES or "For" in plain or config.get("is_decoder") or \
            config.get("clip_qkv"):
        return None
    wanted = {}
    if kind in ("gemma2", "gemma3_text"):
        wanted["query_pre_attn_scalar"] = config["head_dim"]
    if config.get("use_sliding_window"):
        wanted.update({"use_sliding_window": False, "layer_types": ["full_attention"] * config["num_hidden_layers"]})
    if kind == "bert":
        wanted["hidden_act"] = "gelu"
    rope = config.get("rope_parameters") or {}
    if rope.get("mscale") != rope.get("mscale_all_dim"):
        wanted["rope_parameters"] = {**rope, "mscale": rope["mscale_all_dim"]}
    if rope.get("partial_rotary_factor", 1) != 1 and \
            int(config["hidden_size"] // config["num_attention_heads"] * rope["partial_rotary_factor"]) % 2:
        return None  # of which llama.cpp rotates an even number of columns
    if "rope_interleave" in config:
        wanted["rope_interleave"] = True
    if kind == "mt5":  # whose head without a matrix of its own is not scaled, unlike that of T5
        return None
    if kind in STACKS:
        wanted["relative_attention_max_distance"] = 128
        wanted.update({"scale_decoder_outputs": True} if "scale_decoder_outputs" in config else {})
    if kind == "gpt_oss":
        wanted.update({"swiglu_limit": 7.0})
    if config.get("decoder_sparse_step", 1) > 1 or config.get("mlp_only_layers"):
        return None
    if config.get("use_bidirectional_attention"):  # which has an architecture of its own
        return None
    return {key: item for key, item in wanted.items() if config.get(key) != item}


def convert(folder, more_keys=(), more_tensors=()):
    """The bytes of the file, whose tensors are F32. More keys stand for those of the same name; None removes one."""
    config = config_of(folder)
    header, data = safetensors.read(os.path.join(folder, "model.safetensors"))
    architecture, tensors, of_all = architecture_of(config), [], {}
    for name, entry in header.items():
        expert = of_experts(name) if config["model_type"] in MIXTURES else None
        if expert:
            of_all[expert] = entry["shape"], numbers_of(entry["dtype"], data[slice(*entry["data_offsets"])])
            continue
        if name.endswith(".shared_mlp.input_linear.weight"):
            stem, (rows, columns) = "blk.%s.ffn_%%s_shexp.weight" % name.split(".")[2], entry["shape"]
            numbers = numbers_of(entry["dtype"], data[slice(*entry["data_offsets"])])
            half = len(numbers) // 2
            tensors += [(stem % "gate", [rows // 2, columns], numbers[:half]),
                        (stem % "up", [rows // 2, columns], numbers[half:])]
            continue
        if name.endswith(".self_attn.sinks"):
            tensors.append(("blk.%s.attn_sinks.weight" % name.split(".")[2], entry["shape"],
                            numbers_of(entry["dtype"], data[slice(*entry["data_offsets"])])))
            continue
        new = None if name == "__metadata__" else named(config, name)
        if new is None or (new == "output.weight" and config.get("tie_word_embeddings")):
            continue
        begin, end = entry["data_offsets"]
        numbers, shape = numbers_of(entry["dtype"], data[begin:end]), entry["shape"]
        if config["model_type"] == "deepseek_v3" and ".attn_kv_b." in new:
            tensors += heads_apart(config, new.replace("kv_b", "%s_b"), numbers)
            continue
        if new.endswith("shexp.weight") and "inp" in new:
            shape = shape[1:]
        if config["model_type"] in PERMUTED and ".attn_q." in new:
            numbers = rows_of_pairs(numbers, shape, config["num_attention_heads"])
        if config["model_type"] in PERMUTED and ".attn_k." in new:
            numbers = rows_of_pairs(numbers, shape, config["num_key_value_heads"])
        if architecture.startswith("gemma") and new.endswith("norm.weight"):
            numbers = [x + 1 for x in numbers]
        tensors.append((new, shape, numbers))
    tensors += experts_of(config, of_all)
    keys = keys_of(config, tensors)
    whole = [("general.architecture", architecture), ("general.name", "odd")]
    whole += [("%s.%s" % (architecture, key), item) for key, item in keys.items()]
    for old, new in (("bos_token_id", "bos"), ("eos_token_id", "eos"), ("pad_token_id", "padding")):
        if isinstance(config.get(old), int) and 0 <= config[old] < config["vocab_size"]:
            whole.append(("tokenizer.ggml.%s_token_id" % new, config[old]))
    whole = [(key, item) for key, item in {**dict(whole), **dict(more_keys)}.items() if item is not None]
    tensors += more_tensors
    made = [(name, shape, "F32", struct.pack("<%df" % len(numbers), *numbers)) for name, shape, numbers in tensors]
    return gguf.pack(whole, made)
