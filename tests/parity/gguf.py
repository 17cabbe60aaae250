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
        "embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm"}
EXPERTS = {"w1": "gate", "w3": "up", "w2": "down", "gate_proj": "gate", "up_proj": "up", "down_proj": "down"}
MIXTURES = {"mixtral": "llama", "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe", "olmoe": "olmoe",
            "granitemoe": "granitemoe", "gpt_oss": "gpt-oss"}
PERMUTED = ("llama", "mistral", "mixtral", "granitemoe")
ROUTERS = {"block_sparse_moe.gate": "ffn_gate_inp", "mlp.gate": "ffn_gate_inp", "mlp.router": "ffn_gate_inp",
           "block_sparse_moe.router.layer": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
           "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
           "mlp.shared_expert.down_proj": "ffn_down_shexp"}
ARCHITECTURES = {**MIXTURES, "llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3",
                 "gemma": "gemma", "gemma2": "gemma2",
                 "gemma3_text": "gemma3", "phi3": "phi3", "starcoder2": "starcoder2", "bert": "bert"}


def named(config, name):
    """The name in a GGUF file, or None for a tensor that it does not have."""
    stem, _, kind = name.rpartition(".")
    stem = stem.removeprefix("model.").removeprefix("bert.")
    if stem in TOPS:
        return "%s.%s" % (TOPS[stem], kind)
    words = stem.split(".")
    at = next((i for i, word in enumerate(words) if word.isdigit()), None)
    if at is None:
        return None
    table = {**LAYER, **BERT, **(ROUTERS if config["model_type"] in MIXTURES else {}),
             **(BOTH if config["model_type"] in ("gemma2", "gemma3_text") else {})}
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


def mixture_keys(config, keys):
    experts = config.get("num_local_experts") or config.get("num_experts")
    if not experts:
        return
    keys.update({"expert_count": experts, "expert_used_count": config["num_experts_per_tok"]})
    width = config.get("moe_intermediate_size") or config["intermediate_size"] * (config["model_type"] == "gpt_oss")
    if width:
        keys["expert_feed_forward_length"] = width
    if "shared_expert_intermediate_size" in config:
        keys["expert_shared_feed_forward_length"] = config["shared_expert_intermediate_size"]
    for old, new in (("embedding_multiplier", "embedding_scale"), ("attention_multiplier", "attention.scale"),
                     ("residual_multiplier", "residual_scale"), ("logits_scaling", "logit_scale")):
        if old in config:
            keys[new] = config[old]


def parts(numbers, shape):
    """The matrices [rows][columns] of each expert, or rows of one number of a vector for each."""
    size = len(numbers) // shape[0]
    columns = shape[2] if len(shape) > 2 else 1
    return [[numbers[at:at + columns] for at in range(e * size, (e + 1) * size, columns)] for e in range(shape[0])]


def flat(matrices):
    return [x for rows in matrices for row in rows for x in row]


def experts_of(config, found):
    """The tensors of all experts of a layer, from those of a folder: {(layer, words): (shape, numbers)}."""
    made, experts = {}, config.get("num_local_experts") or config.get("num_experts")
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
    if words[0] != "layers" or not ("experts" in words or "input_linear" in words or "output_linear" in words):
        return None
    last = words[3:]
    return words[1], tuple(last[:-1] if last[-1] in ("weight", "bias") else last)


def keys_of(config, tensors):
    kind = config["model_type"]
    keys = {new: config[old] for old, new in SIZES.items() if config.get(old) is not None}
    rms = config.get("rms_norm_eps")
    keys["attention.layer_norm_rms_epsilon" if rms else "attention.layer_norm_epsilon"] = float(
        rms or config.get("layer_norm_eps") or config["norm_epsilon"])
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    if kind == "bert":
        keys.update({"attention.causal": False, "pooling_type": 0})
        return keys
    keys.update({"attention.key_length": head_dim, "attention.value_length": head_dim})
    mixture_keys(config, keys)
    if config.get("sliding_window") and config.get("use_sliding_window", True):
        keys["attention.sliding_window"] = config["sliding_window"]
    for name in ("attn_logit_softcapping", "final_logit_softcapping"):
        if config.get(name) and (kind != "gemma3_text" or name.startswith("final")):
            keys[name] = float(config[name])
    rope_keys(config, keys, tensors, head_dim)
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
    if kind not in ARCHITECTURES or "For" in config["architectures"][0].replace("ForCausalLM", ""):
        return None
    wanted = {}
    if kind in ("gemma2", "gemma3_text"):
        wanted["query_pre_attn_scalar"] = config["head_dim"]
    if config.get("use_sliding_window"):
        wanted.update({"use_sliding_window": False, "layer_types": ["full_attention"] * config["num_hidden_layers"]})
    if kind == "bert":
        wanted["hidden_act"] = "gelu"
    if kind == "gpt_oss":
        wanted.update({"swiglu_limit": 7.0})
    if config.get("decoder_sparse_step", 1) > 1 or config.get("mlp_only_layers"):
        return None
    if config.get("use_bidirectional_attention"):  # which has an architecture of its own
        return None
    return {key: item for key, item in wanted.items() if config.get(key) != item}


def convert(folder, more_keys=(), more_tensors=()):
    """The bytes of the file, whose tensors are F32."""
    config = config_of(folder)
    header, data = safetensors.read(os.path.join(folder, "model.safetensors"))
    architecture, tensors, of_all = ARCHITECTURES[config["model_type"]], [], {}
    for name, entry in header.items():
        expert = of_experts(name) if config["model_type"] in MIXTURES else None
        if expert:
            of_all[expert] = entry["shape"], numbers_of(entry["dtype"], data[slice(*entry["data_offsets"])])
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
    whole += more_keys
    tensors += more_tensors
    made = [(name, shape, "F32", struct.pack("<%df" % len(numbers), *numbers)) for name, shape, numbers in tensors]
    return gguf.pack(whole, made)
