"""attnc import on keys with the values that they have by default: a key with its default (defaults.json, written by
make_defaults.py) gives the same spec as the config without the key, in every family, and so do the keys that
transformers 1 to 4 wrote for all models. A tenth of the keys has its turn with each commit; ATTNC_LONG=1 tries all."""
import json
import os
import shutil
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor

from lib.attnc import LONG, ROOT
from lib.searches import without_search
from lib.turns import turn

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(ROOT, "tests", "parity", "fixtures")
TURNS = 10
# Defaults that transformers cannot run.
NEEDED = {("deepseek_v2", "num_experts_per_tok"), ("esm", "vocab_size"), ("dots1", "n_routed_experts"),
          ("dots1", "n_shared_experts"), ("dots1", "num_experts_per_tok"), ("hunyuan_v1_dense", "head_dim"),
          ("hunyuan_v1_moe", "head_dim")}
# What a config computes from other keys: its value in a new config is no default of these.
COMPUTED = {("deit", "pooler_output_size"), ("vit", "pooler_output_size"), ("qwen2", "sliding_window"),
            ("smollm3", "sliding_window"), ("t5", "dense_act_fn"), ("umt5", "dense_act_fn"),
            ("t5gemma", "bos_token_id"), ("modernbert-decoder", "sliding_window")}
# What PretrainedConfig.to_dict of transformers 1 to 4 gave for every model.
OLD = {
    "return_dict": True, "output_hidden_states": False, "output_attentions": False, "use_cache": True,
    "output_past": True, "torchscript": False, "torch_dtype": None, "use_bfloat16": False, "tf_legacy_loss": False,
    "pruned_heads": {}, "tie_word_embeddings": True, "is_encoder_decoder": False, "is_decoder": False,
    "cross_attention_hidden_size": None, "add_cross_attention": False, "tie_encoder_decoder": False, "max_length": 20,
    "min_length": 0, "do_sample": False, "early_stopping": False, "num_beams": 1, "num_beam_groups": 1,
    "diversity_penalty": 0.0, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "typical_p": 1.0,
    "repetition_penalty": 1.0, "length_penalty": 1.0, "no_repeat_ngram_size": 0, "encoder_no_repeat_ngram_size": 0,
    "bad_words_ids": None, "num_return_sequences": 1, "chunk_size_feed_forward": 0, "output_scores": False,
    "return_dict_in_generate": False, "forced_bos_token_id": None, "forced_eos_token_id": None,
    "remove_invalid_values": False, "exponential_decay_length_penalty": None, "suppress_tokens": None,
    "begin_suppress_tokens": None, "finetuning_task": None, "tokenizer_class": None, "prefix": None,
    "sep_token_id": None, "task_specific_params": None, "problem_type": None, "xla_device": None,
    "eos_token_ids": None, "num_labels": 2, "_num_labels": 2, "is_composition": False, "gradient_checkpointing": False,
    "auto_map": {"AutoConfig": "configuration.Config", "AutoModel": "modeling.Model"}, "_commit_hash": "0123",
    "attn_implementation": None, "_attn_implementation_autoset": True,
}
# Keys of published configs that transformers does not read, by the model_type.
PUBLISHED = {
    "bert": {"directionality": "bidi", "pooler_fc_size": 768, "pooler_num_attention_heads": 12,
             "pooler_num_fc_layers": 3, "pooler_size_per_head": 128, "pooler_type": "first_token_transform"},
    "albert": {"layers_to_keep": [], "down_scale_factor": 1, "gap_size": 0, "net_structure_type": 0,
               "num_memory_blocks": 0},
    "distilbert": {"tie_weights_": True, "sinusoidal_pos_embds": False},
    "gpt2": {"n_ctx": 1024, "n_special": 0, "predict_special_tokens": True},
    "deberta": {"padding_idx": 0},
    "deberta-v2": {"padding_idx": 0, "summary_activation": "tanh", "summary_last_dropout": 0, "summary_type": "first",
                   "summary_use_proj": False},
    "falcon": {"apply_residual_connection_post_layernorm": False},
    "llama": {"max_sequence_length": 2048, "pretraining_tp": 1},
    "phi3": {"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False, "mlp_bias": False},
    "hunyuan_v1_dense": {"use_qk_norm": True, "use_cla": False, "cla_share_factor": 2, "norm_type": "hf_rms",
                         "mlp_bias": False, "use_mla": False, "num_experts": 1, "moe_topk": 1, "num_shared_expert": 1,
                         "use_mixed_mlp_moe": False, "moe_layer_num_skipped": 0, "class_num": 0, "pool_type": "last",
                         "use_rotary_pos_emb": True, "add_classification_head": False, "org_vocab_size": 128167},
    "hunyuan_v1_moe": {"use_qk_norm": True, "use_cla": False, "cla_share_factor": 2, "norm_type": "rms",
                       "use_mixed_mlp_moe": True, "moe_layer_num_skipped": 0, "moe_drop_tokens": False,
                       "num_shared_expert": [1, 1, 1], "norm_topk_prob": True, "routed_scaling_factor": 1.0,
                       "moe_random_routing_dropped_token": False, "group_limited_greedy": False, "pad_id": 127961,
                       "position_embedding_xdrope": False, "kv_lora_rank": 512, "im_start_id": 4, "text_end_id": 7},
    "whisper": {"forced_decoder_ids": [[1, 50259], [2, 50359]]},
    "bart": {"extra_pos_embeddings": 2, "force_bos_token_to_be_generated": False, "_num_labels": 3},
}


def leaves(value, path=()):
    """(path, value) of all keys whose value is no list: the length of a list depends on the model's sizes. The settings
    of rotations are one default."""
    for key, inner in value.items():
        if isinstance(inner, dict) and inner and key != "rope_parameters":
            yield from leaves(inner, (*path, key))
        elif not isinstance(inner, list):
            yield (*path, key), inner


def holder_of(config, path):
    for key in path[:-1]:
        config = config.get(key) if isinstance(config, dict) else None
    return config if isinstance(config, dict) else None


def changed(config, changes):
    """A copy with paths set, or taken out where the value is `...`; paths into absent objects are left out."""
    config = json.loads(json.dumps(config))
    for path, value in changes.items():
        holder = holder_of(config, path)
        if holder is None:
            continue
        if value is ...:
            holder.pop(path[-1], None)
        else:
            holder[path[-1]] = value
    return config


def unfit_words(path, value):
    """What a refusal may say where the fixture has another value."""
    if type(value) is int or "rope_parameters" in path:
        return ("",)
    return (" wants [", "no tensor `", *(("makes no valid spec", "`pad_token_id` is null") if value is None else ()))


class Model:
    """A fixture, of which only config.json changes."""

    def __init__(self, run, name):
        self.run, self.name = run, name
        self.options = ("--part", name.split("_part_")[1]) if "_part_" in name else ()
        with open(os.path.join(FIXTURES, name, "config.json"), encoding="utf-8") as file:
            self.config = json.load(file)
        self.type = self.config["model_type"]

    def spec(self, changes):
        """(the spec without comments and without the search, which a key may state at its default; the reason)"""
        folder = tempfile.mkdtemp()
        os.symlink(os.path.join(FIXTURES, self.name, "model.safetensors"), os.path.join(folder, "model.safetensors"))
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(changed(self.config, changes), file)
        result = self.run("import", folder, "-o", os.path.join(folder, "out.attn"), *self.options)
        text = None
        if result.returncode == 0:
            with open(os.path.join(folder, "out.attn"), encoding="utf-8") as file:
                text = "".join(line for line in file if not line.startswith("#"))
            text = without_search(text)
        shutil.rmtree(folder)
        return text, result.stderr

    def has(self, path):
        holder = holder_of(self.config, path)
        return holder is not None and path[-1] in holder

    def key(self, path, value):
        """What is wrong with a key that has its default, or None."""
        given, reason = self.spec({path: value})
        if given is None and self.has(path) and any(word in reason for word in unfit_words(path, value)):
            return None  # the fixture's tensors or other keys belong to another value
        if given is None:
            return None if (self.type, *path) in NEEDED else "its default is refused: " + reason
        absent, reason = self.spec({path: ...})
        if absent is None:
            return None if "is missing" in reason else "without it: " + reason
        return None if given == absent else "the spec differs:\n%s\nwithout the key:\n%s" % (given, absent)

    def together(self, changes):
        given, reason = self.spec(changes)
        if given is None:
            return reason
        plain = self.spec({})[0]
        return None if given == plain else "the spec differs:\n%s\nwithout the keys:\n%s" % (given, plain)

    def absent(self, table):
        """The keys that the fixture lacks; older configs have the settings of rotations under other names."""
        return {path: value for path, value in table if not self.has(path) and path[-1] != "rope_parameters"}


def jobs_of(model, known):
    """(name, a call that gives what is wrong): the keys that the fixture lacks at once, and each key by itself."""
    tables = {"defaults": list(leaves(known))}
    own = {path[-1] for path, _ in tables["defaults"]}
    objects = [()] + [(key,) for key, value in known.items() if isinstance(value, dict) and "hidden_size" in value]
    tables["old"] = [((*at, key), value) for at in objects for key, value in OLD.items() if key not in own]
    tables["published"] = [((key,), value) for key, value in PUBLISHED.get(model.type, {}).items()]
    for name, table in tables.items():
        changes = model.absent(table)
        if changes:
            yield name, lambda changes=changes: model.together(changes)
    for path, value in tables["defaults"]:
        name = ".".join(path)
        if (model.type, *path) in COMPUTED:
            continue
        if LONG or zlib.crc32((model.name + name).encode()) % TURNS == turn() % TURNS:
            yield name, lambda path=path, value=value: model.key(path, value)


def check(run, report):
    with open(os.path.join(HERE, "defaults.json"), encoding="utf-8") as file:
        defaults = json.load(file)
    met, jobs = {}, []
    for name in sorted(os.listdir(FIXTURES)):
        model = Model(run, name)
        kind = (model.type, model.options)
        met[kind] = met.get(kind, 0) + 1
        if met[kind] == 1 or LONG:
            jobs += [("defaults/%s/%s" % (name, key), call) for key, call in jobs_of(model, defaults[model.type])]
    untried = set(defaults) - {kind for kind, _ in met}
    report(not untried, "defaults/all_types", "no fixture has the types %s" % untried)
    with ThreadPoolExecutor(2) as pool:
        for (name, _), problem in zip(jobs, pool.map(lambda job: job[1](), jobs)):
            report(problem is None, name, problem)
