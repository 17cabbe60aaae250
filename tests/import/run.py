#!/usr/bin/env python3
"""attnc import on folders that are wrong: each is an error (exit 1) that names what is wrong, and no spec written."""
import json
import os
import re
import shutil
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import defaults  # noqa: E402
import folders  # noqa: E402
import sentences  # noqa: E402
from lib.attnc import ROOT  # noqa: E402
from lib.attnc import attnc as run  # noqa: E402
from lib.tap import Report  # noqa: E402

FIXTURES = os.path.join(ROOT, "tests", "parity", "fixtures")
REPORT = Report("import")


def report(good, name, why=""):
    REPORT.result(name, None if good else why or "no reason given")


def drop_tensor(path, name, shape=None):
    """Takes a tensor out of a safetensors file, or gives it another shape of as many elements."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    entry = header.pop(name)
    if shape:
        entry["shape"] = shape
        header[name] = entry
        body = data[8 + size:]
    else:
        begin, end = entry["data_offsets"]
        body = data[8 + size:8 + size + begin] + data[8 + size + end:]
        for other in header.values():
            if other["data_offsets"][0] >= end:
                other["data_offsets"] = [o - (end - begin) for o in other["data_offsets"]]
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


class Folder:
    """A copy of a fixture that a test may spoil."""

    def __init__(self, fixture):
        self.path = tempfile.mkdtemp()
        for name in ("config.json", "model.safetensors"):
            shutil.copy(os.path.join(FIXTURES, fixture, name), self.path)
        self.spec = os.path.join(self.path, "out.attn")

    def config(self, **changes):
        path = os.path.join(self.path, "config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        for key, value in changes.items():
            if value is Folder:
                config.pop(key)
            else:
                config[key] = value
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        return self

    def text(self, text):
        with open(os.path.join(self.path, "config.json"), "w", encoding="utf-8") as file:
            file.write(text)
        return self

    def refused(self, name, *said, unsaid=None, options=(), status=1):
        result = run("import", self.path, "-o", self.spec, *options)
        missing = [word for word in said if word not in result.stderr]
        missing += [unsaid] if unsaid and unsaid in result.stderr else []
        wrote = os.path.exists(self.spec)
        report(result.returncode == status and not missing and not wrote, name,
               "status %d, not said, or said and untrue: %s, wrote a spec: %s\n%s" % (result.returncode, missing, wrote,
                   result.stderr))
        shutil.rmtree(self.path)

    def accepted(self, name, *said, unsaid=None, options=()):
        result = run("import", self.path, "-o", self.spec, *options)
        text = ""
        if result.returncode == 0:
            with open(self.spec, encoding="utf-8") as file:
                text = file.read()
        missing = [word for word in said if word not in text]
        missing += ["without " + unsaid] if unsaid and unsaid in text else []
        report(result.returncode == 0 and not missing, name,
               "status %d, not in the spec: %s\n%s" % (result.returncode, missing, result.stderr))
        shutil.rmtree(self.path)


def configs():
    absent = Folder
    Folder("bert_odd").config(model_type="bort").refused("model_type", "config.json", "`model_type`", "\"bort\"",
                                                         "nearest is `bert`")
    Folder("bert_odd").config(model_type=absent).refused("no_model_type", "`model_type` is missing")
    Folder("bert_odd").config(model_type=7).refused("model_type_number", "`model_type` is 7")
    Folder("bert_odd").config(use_magic=3).refused("unknown_key", "config.json", "`use_magic` (3) is unknown")
    Folder("bert_odd").config(quantization_config={"bits": 4}).refused("quantized",
        "`quantization_config` is {\"bits\"")
    Folder("bert_odd").config(hidden_act="prelu").refused("activation", "`hidden_act` is \"prelu\"", "gelu_new")
    Folder("bert_odd").config(hidden_act="leaky_relu").accepted("leaky_relu", "activation leaky_relu")
    Folder("bert_odd").config(hidden_act="hardswish").accepted("hard_swish", "activation hard_swish")
    Folder("bert_odd").config(is_decoder=True).accepted("is_decoder", "decoder {", "mask causal")
    Folder("bert_odd").config(is_decoder=True, add_cross_attention=True).refused("cross_decoder",
        "`add_cross_attention` is true")
    for name in ("mpnet_odd", "albert_odd", "bart_odd", "t5_odd", "llama_odd", "vit_odd"):
        Folder(name).config(is_decoder=True).accepted("decoder_unread_" + name, unsaid="is_decoder")
    Folder("t5_encoder").config(is_decoder=True).refused("t5_decoder_alone", "`is_decoder` is true")
    Folder("bert_decoder_odd").config(is_decoder=False).accepted("lm_head_encoder", "encoder {", "mask padding",
                                                                 "head logits", unsaid="start")
    Folder("bert_decoder_odd").accepted("decoder_tokens", "start 5", "end 6")
    for kind in ("relative_key", "relative_key_query"):
        Folder("bert_odd").config(position_embedding_type=kind).refused("position_" + kind,
            "`position_embedding_type` is \"%s\"" % kind)
    Folder("bert_odd").config(architectures=["BertForSpeech"]).refused("class",
        "`architectures` is \"BertForSpeech\"", "BertForMaskedLM")
    Folder("bert_odd").config(architectures="BertModel").refused("class_text", "`architectures` is \"BertModel\"")
    Folder("bert_odd").config(hidden_size=absent).refused("missing_key", "`hidden_size` is missing")
    Folder("bert_odd").config(hidden_size=None).refused("null", "`hidden_size` is null")
    Folder("bert_odd").config(hidden_size="35").refused("text", "`hidden_size` is \"35\"")
    for value in (0, -3, 35.5, 1e30):
        Folder("bert_odd").config(hidden_size=value).refused("hidden_size_%s" % value, "`hidden_size` is")
    Folder("bert_odd").config(num_hidden_layers=10**9).refused("layers", "1000000000 layers")
    Folder("bert_odd").config(num_attention_heads=4).refused("heads", "makes no valid spec")
    Folder("modernbert_odd").config(layer_types=["full_attention"] * 4).refused("layer_types",
        "`layer_types` has 4 entries for 5 layers")
    Folder("modernbert_odd").config(layer_types=["full_attention"] * 4 + ["chunked_attention"]).refused("layer_type",
        "chunked_attention")
    Folder("llama_linear").config(rope_parameters={"rope_type": "spiral"}).refused("rope_type",
        "`rope_parameters.rope_type` is \"spiral\"")
    Folder("llama_linear").config(rope_parameters={"rope_type": "linear"}).refused("rope_factor",
        "`rope_parameters.factor` is missing")
    Folder("llama_linear").config(rope_parameters={"rope_type": "linear", "factor": 2, "twist": 1}).refused("rope_key",
        "`rope_parameters.twist`")
    Folder("llama_linear").config(rope_scaling={"type": "linear", "factor": 2}).refused("rope_twice",
        "both `rope_parameters` and `rope_scaling`")
    Folder("opt_odd").config(word_embed_proj_dim=8).refused("opt_projection", "`word_embed_proj_dim`")
    Folder("ernie_odd").config(use_task_id=True).refused("ernie_task", "`use_task_id` is true")
    Folder("rembert_masked").config(output_embedding_size=11).accepted("rembert_wide_head",
        "is left out: the head of", unsaid="head logits")
    Folder("mvp_odd").config(use_prompt=True).refused("mvp_prompt", "`use_prompt` is true")
    Folder("blenderbot_odd").config(normalize_before=False).refused("blenderbot_post", "`normalize_before` is false")
    Folder("blenderbot_small_odd").accepted("blenderbot_small", "embedding normalized scale sqrt(d_model)",
                                            "embedding normalized before_positions")
    Folder("blenderbot_small_odd").config(do_blenderbot_90_layernorm=False).refused("blenderbot_small_order",
        "`do_blenderbot_90_layernorm` is false")
    Folder("openai_gpt_odd").config(afn="gelu_new").refused("gpt_activation", "`afn` is \"gelu_new\"")
    Folder("cwm_odd").config(sliding_window=None).refused("cwm_window", "`sliding_window`")
    Folder("cwm_odd").config(rope_parameters=Folder, layer_types=Folder).accepted(
        "cwm_defaults", "scaling llama3 factor 16 low 1 high 4 original 8192", "window 4")
    Folder("eurobert_classifier").config(classifier_pooling="late").accepted("eurobert_late",
        "is left out: the head of", unsaid="head pool")
    Folder("eurobert_classifier").config(classifier_pooling="max").refused("eurobert_max",
        "`classifier_pooling` is \"max\"")
    Folder("dots1_odd").config(n_shared_experts=Folder).refused("dots1_shared", "`n_shared_experts` is missing")
    Folder("ernie4_5_moe_odd").config(moe_layer_end_index=1).refused("ernie_moe_end", "`moe_layer_end_index`")
    Folder("ernie4_5_moe_odd").config(moe_layer_end_index=-1).accepted("ernie_moe_last", "router softmax corrected")
    rope = dict(rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=4)
    Folder("ministral3_odd").config(rope_parameters=rope).refused("ministral3_beta", "`llama_4_scaling_beta`")
    Folder("ministral3_odd").config(rope_parameters=dict(rope, llama_4_scaling_beta=0)).accepted("ministral3_none",
        "scaling yarn", unsaid="score")
    Folder("ministral3_odd").config(rope_parameters=dict(rope, llama_4_scaling_beta=-1)).refused(
        "ministral3_negative", "`rope_parameters.llama_4_scaling_beta` is -1")
    Folder("ministral3_odd").config(rope_parameters=absent).accepted("ministral3_defaults",
        "score s*(1 + 0.1*log(1 + floor(q/16384)))", "factor 16 original 16384 attention_factor 1")
    Folder("llama_yarn").config(rope_parameters=dict(rope, llama_4_scaling_beta=0.1)).refused("llama_beta",
        "`rope_parameters.llama_4_scaling_beta` is 0.1")
    Folder("nanochat_odd").accepted("nanochat_halves", "rows 3..6 0..3 9..12 6..9 15..18 12..15 21..24 18..21",
                                    "plus_one", "embedding normalized")
    Folder("nanochat_odd").config(head_dim=5).refused("nanochat_odd_head", "`head_dim` is 5", "an even number")
    Folder("nanochat_odd").config(num_attention_heads=2048).refused("nanochat_heads", "`heads` is 2048")
    Folder("switch_transformers_odd").accepted("switch_bound", "seq <= 24", "experts 5", "router softmax")
    Folder("switch_transformers_odd").refused("switch_beyond", "--seq 25", "24 rows", "`expert_capacity`",
                                              options=("--seq", "25"))
    Folder("switch_transformers_odd").config(is_gated_act=True).refused("switch_gate", "`is_gated_act` is true")
    Folder("switch_transformers_odd").config(router_dtype="bfloat16").refused("switch_router", "`router_dtype`")
    Folder("aimv2_vision_odd").config(is_native=True, hidden_size=15).refused("aimv2_width", "a width that 4 divides")
    Folder("aimv2_part_vision").config(vision_config=dict(json.load(open(os.path.join(
        FIXTURES, "aimv2_part_vision", "config.json"), encoding="utf-8"))["vision_config"], use_head=False)).refused(
        "aimv2_head", "`use_head` is false", options=("--part", "vision"))
    Folder("aimv2_part_text").refused("aimv2_part", "`--part text`")
    Folder("modernbert_decoder_odd").config(sliding_window=3).accepted("modernbert_decoder_window", "window 3")
    Folder("modernbert_decoder_odd").config(local_attention=None).refused("modernbert_decoder_null",
        "`local_attention` is null")
    Folder("ernie4_5_moe_odd").config(moe_layer_interval=2).refused("ernie_moe_interval", "`moe_layer_interval` is 2")
    Folder("minimax_m2_odd").config(rope_parameters=Folder, rotary_dim=5).refused("minimax_rotary", "`rotary_dim`")
    Folder("minimax_m2_odd").config(rope_parameters=Folder, rotary_dim=6).accepted("minimax_half", "theta 5000000",
                                                                                 "partial 0.5")
    Folder("albert_odd").config(num_hidden_groups=2).refused("albert_groups", "`num_hidden_groups` is 2")


def inner_norms():
    """HunYuan and BitNet, whose sublayers have norms inside."""
    absent = Folder  # the class stands for a key to take out, as in `configs`
    alpha = dict(type="dynamic", alpha=1000.0, factor=1.0, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0)

    def dense(**changes):
        return Folder("hunyuan_v1_dense_odd").config(**changes)
    dense().accepted("hunyuan_alpha", "qk_norm rmsnorm after_rotation", "theta %r" % (1e4 * 50 ** 1.5))
    dense(rope_parameters=absent, rope_scaling=alpha, rope_theta=500.0).accepted(
        "hunyuan_published", "theta %r" % (500.0 * 1000 ** 1.5), unsaid="scaling")
    dense(rope_parameters=dict(rope_type="dynamic", factor=4.0)).accepted("hunyuan_dynamic", "theta 10000\n",
                                                                        unsaid="scaling")
    dense(rope_parameters=dict(rope_type="linear", factor=4.0, alpha=2.0)).accepted(
        "hunyuan_linear", "theta 10000 scaling linear factor 4")
    dense(rope_parameters=dict(alpha, alpha=0)).refused("hunyuan_no_alpha", "`rope_parameters.alpha` is 0")
    dense(head_dim=2).refused("hunyuan_alpha_head", "`rope_parameters.alpha`", "and there are 2")
    dense(head_dim=None).refused("hunyuan_no_head", "`head_dim` is null")
    dense(head_dim=absent).refused("hunyuan_head_absent", "the key `head_dim` is missing")
    dense(head_dim=absent, attention_head_dim=6).accepted("hunyuan_head_of_makers", "head_dim 6")
    dense(head_dim=6, attention_head_dim=8).refused("hunyuan_heads_differ", "`head_dim` and `attention_head_dim`")
    dense(use_qk_norm=False).refused("hunyuan_qk_norm", "`use_qk_norm` is false")
    dense(use_cla=True).refused("hunyuan_cla", "`use_cla` is true")
    dense(norm_type="fused").refused("hunyuan_norm_type", "`norm_type` is")

    def moe(**changes):
        return Folder("hunyuan_v1_moe_odd").config(**changes)
    moe().accepted("hunyuan_top_of_layers", "top 3", "top 1", "top 2", "shared_expert 11", "softmax renormalized")
    moe(moe_topk=[2, 2, 2, 2, 2]).accepted("hunyuan_one_top", "layers 3 {\n            attention", "top 2")
    moe(moe_topk=absent, num_experts_per_tok=3).accepted("hunyuan_other_name", "top 3")
    moe(moe_topk=[2, 2]).refused("hunyuan_few_tops", "`moe_topk` has 2 entries for 3 layers")
    moe(moe_topk=[2, 0, 2]).refused("hunyuan_top_zero", "`moe_topk` holds 0")
    moe(moe_topk=[2, 7, 2]).refused("hunyuan_top_beyond", "`top 7` of 6 experts")
    moe(moe_topk=None).refused("hunyuan_no_top", "`moe_topk` is null")
    moe(num_experts=[6, 6, 6]).refused("hunyuan_experts_of_layers", "`num_experts` is [6")
    moe(norm_topk_prob=False).refused("hunyuan_unnormalized", "`norm_topk_prob` is false")
    moe(moe_layer_num_skipped=1).refused("hunyuan_skipped", "`moe_layer_num_skipped` is 1")
    moe(moe_intermediate_size=[11, 11, 11], num_shared_expert=[1, 1, 1], routed_scaling_factor=1.0).accepted(
        "hunyuan_widths", "d_ff 11")

    Folder("bitnet_odd").accepted("bitnet", "inner_norm rmsnorm", "relu2 gated")
    Folder("bitnet_odd").config(head_dim=12).refused("bitnet_head", "`attn_sub_norm`")
    online = dict(quant_method="bitnet", linear_class="autobitlinear", quantization_mode="online")
    Folder("bitnet_odd").config(quantization_config=online).refused("bitnet_online", "says bitnet", "three values")
    Folder("nanochat_yarn").accepted("nanochat_yarn", "qk_norm rmsnorm plus_one after_rotation", "scaling yarn")


def unknown():
    """Keys that nothing knows, and --ignore-key."""
    two = dict(use_magic=3, more_magic="x", magic={"a": [1], "b": 2})
    Folder("bert_odd").config(**two).refused("unknown_keys",
                                             "the keys `use_magic` (3), `more_magic` (\"x\"), `magic` ({\"a\": …, …}) "
                                             "are unknown", "--ignore-key")
    Folder("bert_odd").config(**two).refused("unknown_rest", "the key `magic`", unsaid="use_magic",
                                             options=("--ignore-key", "use_magic,more_magic"))
    Folder("bert_odd").config(**two).accepted("ignore_key", "# The key `use_magic` (3) is left out",
                                              "# The key `magic`",
                                              options=("--ignore-key", "use_magic,magic", "--ignore-key", "more_magic"))
    Folder("bert_odd").config(**{"x\ny\u0085": "a\rb"}).accepted("ignored_control", "# The key `x?y??` (\"a?b\")",
        options=("--ignore-key", "x\ny\u0085"))
    Folder("bert_odd").config(**{"magic%d" % i: i for i in range(200)}).refused("many_unknown",
        "`magic39` (39) and 160 more are unknown", unsaid="`magic40`")
    Folder("bert_odd").refused("ignore_absent", "config.json", "no key `use_magic`",
                               options=("--ignore-key", "use_magic"))
    Folder("bert_odd").refused("ignore_obeyed", "it obeys `hidden_size`", options=("--ignore-key", "hidden_size"))
    Folder("bert_odd").config(quantization_config={"bits": 4}).refused("ignore_must", "`quantization_config` is",
        options=("--ignore-key", "quantization_config"))
    Folder("bert_odd").accepted("ignore_irrelevant", "model bert", options=("--ignore-key", "initializer_range"))
    for option in ("", "a,,b", "a,", ",a"):
        Folder("bert_odd").refused("ignore_" + option, "a name is empty", options=("--ignore-key", option), status=2)
    for key in ("_commit_hash", "use_return_dict", "transformers.js_config", "_attn_implementation_internal"):
        Folder("bert_odd").config(**{key: {"x": 1}}).accepted("library_" + key, "model bert", unsaid=key)
    Folder("bert_odd").config(auto_map={"AutoModel": "x.Y"}).accepted("auto_map", "model bert", unsaid="auto_map",
        options=("--ignore-key", "auto_map"))
    Folder("bert_odd").config(_own=1).refused("underscore", "`_own` (1) is unknown")
    Folder("bert_odd").config(use_magic=None, hidden_dim=None).accepted("null_unknown", "model bert", unsaid="magic")
    rope = {"rope_type": "linear", "factor": 2, "twist": 1}
    Folder("llama_linear").config(rope_parameters=rope).accepted("ignore_dotted", "scaling linear factor 2",
        options=("--ignore-key", "rope_parameters.twist"))
    Folder("llama_linear").config(rope_parameters=rope).refused("ignore_dotted_obeyed",
                                                                "it obeys `rope_parameters.factor`",
                                                                options=("--ignore-key",
                                                                    "rope_parameters.twist,rope_parameters.factor"))
    Folder("mpt_odd").config(attn_config={"alibi": True, "clip": 3}).refused("unknown_in_object",
        "`attn_config.clip` (3) is unknown")
    Folder("mpt_odd").config(attn_config={"alibi": True, "clip": 3}).accepted("ignore_in_object", "alibi",
        options=("--ignore-key", "attn_config.clip"))
    for wrong, near in (("prophetnet", None), ("canine", None), ("fnet", None), ("robertta", "roberta")):
        Folder("bert_odd").config(model_type=wrong).refused("type_" + wrong, "\"%s\", which is unknown" % wrong,
                                                            "nearest is `%s`" % near if near else "--list",
                                                             unsaid=None if near else "nearest")


def texts():
    Folder("bert_odd").text("").refused("empty", "config.json", "not JSON")
    Folder("bert_odd").text("{\"a\": }").refused("not_json", "config.json", "not JSON")
    Folder("bert_odd").text("[1, 2]").refused("not_an_object", "not an object")
    Folder("bert_odd").text("{} {}").refused("two_values", "follows its JSON")
    Folder("bert_odd").text("{\"a\": 1, \"a\": 2}").refused("duplicate", "`a` stands twice")
    Folder("bert_odd").text("{\"a\\u0000b\": 1}").refused("nul", "NUL")
    Folder("bert_odd").text("[" * 100000 + "]" * 100000).refused("depth", "nests more than")
    Folder("bert_odd").text(" " * (17 << 20)).refused("size", "config.json")


def files():
    folder = Folder("bert_odd")
    os.remove(os.path.join(folder.path, "config.json"))
    folder.refused("no_config", "config.json")
    folder = Folder("bert_odd")
    os.remove(os.path.join(folder.path, "model.safetensors"))
    folder.refused("no_weights", "model.safetensors")
    folder = Folder("bert_odd")
    os.remove(os.path.join(folder.path, "model.safetensors"))
    index = os.path.join(folder.path, "model.safetensors.index.json")
    os.symlink(index, index)  # which is there, whatever it is
    folder.refused("unreachable_index", "model.safetensors.index.json: cannot be reached")
    folder = Folder("bert_odd")
    drop_tensor(os.path.join(folder.path, "model.safetensors"), "encoder.layer.1.output.dense.bias")
    folder.refused("no_tensor", "encoder.layer.1.output.dense.bias", unsaid="the nearest is")
    folder = Folder("bert_odd")
    drop_tensor(os.path.join(folder.path, "model.safetensors"), "encoder.layer.1.output.dense.weight", [11, 35])
    folder.refused("shape", "encoder.layer.1.output.dense.weight", "[11, 35]")
    Folder("bert_odd").config(vocab_size=38).refused("vocab", "embeddings.word_embeddings.weight")
    Folder("bert_classifier").config(architectures=["BertModel"]).accepted("pooler_left_out", "BertModel")


def cost_of_rest():
    """The bytes that a note names for the rows that are cut off are those of attnc explain."""
    folder = Folder("llama_odd").config(max_position_embeddings=131072)
    short = run("import", folder.path, "-o", folder.spec)
    run("import", folder.path, "-o", folder.spec, "--seq", "131072")
    told = re.search(r"131072 rows, and the bound is 2048: --seq 131072 takes ([0-9.]+) MB of state and ([0-9.]+) MB "
                     r"of workspace", short.stderr)
    explained = run("explain", folder.spec).stdout
    state = re.search(r"131072 rows takes ([0-9.]+) MB", explained)
    workspace = re.search(r"workspace +([0-9]+) bytes", explained)
    # explain adds a header of 64 bytes and the lists of a call, which are bytes a row
    good = told and state and workspace and abs(float(told[1]) - float(state[1])) < 0.1
    good = good and abs(float(told[2]) / (1e-6 * int(workspace[1])) - 1) < 0.05
    report(good, "cost_of_bound", "%s\n%s" % (short.stderr, explained))
    shutil.rmtree(folder.path)


def bounds():
    Folder("bert_odd").accepted("bound", "seq <= 19")
    Folder("bert_odd").accepted("seq", "seq <= 7", options=("--seq", "7"))
    Folder("bert_odd").refused("seq_beyond", "--seq 20", "19 rows", options=("--seq", "20"))
    Folder("roberta_odd").accepted("offset_bound", "seq <= 14", "offset 5")
    Folder("llama_odd").accepted("seq_beyond_rope", "seq <= 4096", options=("--seq", "4096"))
    Folder("llama_odd").config(max_position_embeddings=131072).accepted("most", "seq <= 2048")
    Folder("llama_odd").config(max_position_embeddings=131072).accepted("most_seq", "seq <= 131072", unsaid="allow",
        options=("--seq", "131072"))
    Folder("llama_odd").config(max_position_embeddings=2**40).accepted("no_plan", "seq <= 2048",
        "attnc has no plan for --seq 1099511627776")
    cost_of_rest()
    Folder("vit_odd").refused("seq_of_images", "--seq", options=("--seq", "5"))
    Folder("bert_odd").accepted("name", "model my_bert2 {", options=("--name", "my_bert2"))
    for name, word in (("while", "a word of C"), ("2bert", "is no name"), ("a b", "is no name"), ("", "is no name"),
                       ("_x", "begins with a letter"), ("x" * 64, "too long"), ("a\x1bb", "is no name")):
        Folder("bert_odd").refused("name_%d" % len(name), word, options=("--name", name), status=2)
    Folder("bert_odd").refused("seq_zero", "--seq", options=("--seq", "0"), status=2)
    folder = Folder("bert_odd").config(architectures=Folder)
    folder.accepted("no_class", "BertModel")


def older():
    """Configs as older versions wrote them."""
    Folder("llama_linear").config(rope_parameters=Folder, rope_theta=500.0,
                                  rope_scaling={"type": "linear", "factor": 3.0}).accepted(
        "rope_scaling", "theta 500", "scaling linear factor 3")
    Folder("qwen2_windows").config(layer_types=Folder).accepted("max_window_layers", "layers 1 {", "layers 2 {",
                                                                "window 4")
    Folder("gemma3_odd").config(layer_types=Folder, rope_parameters=Folder, rope_theta=1e6, rope_local_base_freq=1e4,
                                sliding_window_pattern=6).accepted(
        "sliding_window_pattern", "layers 5 {", "theta 1000000", "theta 10000")
    Folder("modernbert_odd").config(layer_types=Folder, rope_parameters=Folder, global_attn_every_n_layers=3,
                                    global_rope_theta=160000.0, local_rope_theta=10000.0).accepted(
        "global_attn_every_n_layers", "window 4", "theta 160000", "theta 10000")


def rename_tensors(path, change):
    """Gives every tensor of a safetensors file the name that CHANGE makes of its name."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    text = json.dumps({name if name == "__metadata__" else change(name): entry
                       for name, entry in header.items()}).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data[8 + size:])


def per_layer():
    """Keys with an entry a layer."""
    Folder("smollm3_windows").accepted("no_rope_layers", "layers 1 {", "layers 2 {", "window 4")
    Folder("smollm3_windows").config(no_rope_layers=[1, 0, 0, 1]).accepted("no_rope_layers_longer", "layers 2 {")
    Folder("smollm3_windows").config(no_rope_layers=[1, 0]).refused("no_rope_layers_short",
        "`no_rope_layers` has 2 entries for 3 layers")
    Folder("smollm3_windows").config(no_rope_layers=[1, 0, 2]).refused("no_rope_layers_two", "`no_rope_layers` holds 2",
        "0 and 1")
    Folder("smollm3_windows").config(no_rope_layers="101").refused("no_rope_layers_text", "`no_rope_layers` is \"101\"")
    Folder("smollm3_windows").config(no_rope_layers=None, no_rope_layer_interval=2, layer_types=None).accepted(
        "no_rope_layer_interval", "layers 3 {", "window 4")
    Folder("smollm3_windows").config(no_rope_layers=None, no_rope_layer_interval=0).refused("interval",
        "`no_rope_layer_interval` is 0")
    Folder("smollm3_windows").config(sliding_window=None).refused("types_without_window", "sliding_attention",
        "`sliding_window`")
    Folder("smollm3_windows").config(use_sliding_window=False).accepted("window_against_flag", "window 4",
        "# `layer_types` has sliding_attention and `use_sliding_window` is false")
    Folder("ministral_odd").config(sliding_window=None).refused("ministral_window", "`sliding_window`")
    Folder("ministral_odd").config(sliding_window=None, layer_types=None).accepted("ministral_full", "layers 3 {",
        "position rope")
    Folder("ministral_odd").config(layer_types=["chunked_attention"] * 3).refused("chunked", "\"chunked_attention\"",
        "sliding_attention full_attention")
    absent = Folder
    Folder("gpt_neo_odd").config(attention_layers=absent).accepted("attention_types", "layers 1 {", "layers 3 {",
        "window 4")
    Folder("gpt_neo_odd").config(attention_types=absent).accepted("attention_layers", "layers 1 {", "layers 3 {")
    Folder("gpt_neo_odd").config(attention_types=[[["local"], 9]]).accepted("attention_both", "layers 1 {",
        "# `attention_types` differs from the list beside it")
    Folder("gpt_neo_odd").config(attention_layers=absent, attention_types=absent).refused("attention_neither",
        "`attention_layers`", "`attention_types`")
    Folder("gpt_neo_odd").config(attention_layers=absent, attention_types=[[["local"], 3]]).refused("attention_few",
        "`attention_types` describes fewer than the 4 layers")
    Folder("gpt_neo_odd").config(attention_layers=absent,
                                 attention_types=[[["local"], 4000], [["local"], 4000]]).refused("attention_many",
                                     "more than the 4 layers")
    for i, value in enumerate(([[["local"], 1e9]], [[["local"], -1]], [[[], 4]], [["local", 4]], [7], [[["far"], 4]],
                               [[["local"], 1.5]])):
        Folder("gpt_neo_odd").config(attention_layers=absent, attention_types=value).refused("attention_wrong_%d" % i,
            "`attention_types` holds")
    Folder("gpt_neo_odd").config(attention_layers=["global"] * 5).refused("attention_layers_long",
        "`attention_layers` has 5 entries for 4 layers")


def distances():
    """DeBERTa's products: those that `pos_att_type` names, and none without it."""
    odd = "deberta_v2_odd"
    for name, value in (("absent", Folder), ("null", None)):
        Folder(odd).config(pos_att_type=value).accepted("products_" + name, "encoder", unsaid="position content")
        Folder(odd).config(pos_att_type=value).accepted("products_%s_scale" % name, "encoder", unsaid="scale")
    Folder(odd).config(relative_attention=False).accepted("products_unused", "scale 1/sqrt(3*5)",
                                                          unsaid="position content")
    Folder(odd).config(pos_att_type=["c2p"]).accepted("products_query", "scale 1/sqrt(2*5)",
                                                      "position content by_query rows 16", unsaid="by_key")
    Folder(odd).config(pos_att_type="p2c").accepted("products_key", "position content by_key rows 16",
                                                    unsaid="by_query")
    for i, value in enumerate(([], "", ["c2p", "c2p"], ["c2p", "p2p"], ["p2c|c2p"], ["c2p", 1], "C2P", True)):
        Folder(odd).config(pos_att_type=value).refused("products_%d" % i, "`pos_att_type` is", "p2c|c2p")
    beside = "deberta_v2_convolution"
    Folder(beside).accepted("convolution", "convolution { kernel 3, activation gelu }")
    Folder(beside).config(conv_groups=1).accepted("convolution_groups_one", "convolution { kernel 3, activation gelu }")
    Folder(beside).config(conv_act=Folder).accepted("convolution_plain", "convolution { kernel 3, activation tanh }")
    Folder("deberta_v2_grouped").accepted("convolution_groups", "convolution { kernel 5 groups 4, activation tanh }")
    Folder(beside).config(conv_kernel_size=4).refused("convolution_even", "`conv_kernel_size` is even")
    Folder(beside).config(conv_act="elu").refused("convolution_activation", "`conv_act` is \"elu\"")
    for i, value in enumerate((0, -1, 1.5, None)):
        Folder(beside).config(conv_groups=value).refused("convolution_groups_%d" % i, "`conv_groups` is")
    Folder(odd).config(conv_kernel_size=0, conv_act="tanh").accepted("no_convolution", "position content")
    Folder(odd).config(conv_kernel_size=None).refused("convolution_null", "`conv_kernel_size` is null")
    Folder(odd).config(embedding_size=7).refused("embedding_size", "`embedding_size` is not `hidden_size`")
    Folder(odd).config(pooler_hidden_size=7).refused("pooler_size", "`pooler_hidden_size` is not `hidden_size`")
    Folder(odd).config(max_relative_positions=9).accepted("distances_bound", "rows 16 logarithmic 9")
    for i, value in enumerate((None, "9", 1.5)):
        Folder(odd).config(max_relative_positions=value).refused("distances_bound_%d" % i, "`max_relative_positions`")
    Folder("deberta_odd").config(max_relative_positions=0).accepted("spans_of_positions", "rows 38 projected own")
    Folder("deberta_odd").config(talking_head=True).refused("talking_head", "`talking_head` is true")
    Folder("deberta_odd").config(talking_head=None).accepted("talking_head_null", "bias q v o up down")
    Folder(odd).config(position_buckets=-1).refused("buckets", "`position_buckets` is -1")
    Folder(odd).config(norm_rel_ebd="batch_norm").refused("distances_norm", "`norm_rel_ebd` is \"batch_norm\"")


def heads():
    """Heads that a config's keys decide, and heads of which one is left out."""
    Folder("electra_choice").accepted("choice", "head pooler gelu classifier 1", "`logits` is the score of one")
    Folder("electra_choice").config(summary_activation="tanh").accepted("summary_activation",
                                                                        "head pooler tanh classifier 1")
    for key, value in (("summary_type", "mean"), ("summary_use_proj", False)):
        Folder("electra_choice").config(**{key: value}).accepted(key, "`logits` is left out", unsaid="head pooler")
    Folder("electra_odd").config(summary_type="mean").accepted("summary_of_none", "model electra")
    Folder("whisper_classifier").config(use_weighted_layer_sum=True).refused("layer_sum", "`use_weighted_layer_sum`")
    Folder("whisper_odd").config(use_weighted_layer_sum=True).accepted("no_layer_sum", "head logits tied")
    Folder("bert_pretrained").accepted("pretrained", "head logits tied bias transform", "two sentences is left out")


def images():
    """Lines and columns that fill no whole patch: of both sides, and of one of them."""
    left = "no multiple of `patch_size`"
    for name, both in (("vit_classifier", True), ("deit_odd", True), ("dinov2_odd", True), ("clip_vision_odd", False)):
        Folder(name).config(image_size=[14, 15] if both else 15).accepted(
            name + "_uncovered", "patches image 12 " + ("width 12 " if both else "") + "patch 4", left)
    Folder("vit_odd").config(image_size=[8, 15]).accepted("width_uncovered", "image 8 width 12 patch 4", left)
    Folder("vit_odd").config(image_size=[11, 12]).accepted("height_uncovered", "image 8 width 12 patch 4", left)
    Folder("vit_odd").accepted("covered", "image 8 width 12 patch 4", unsaid="no multiple")
    for i, value in enumerate((3, [3, 12], [12, 3])):
        Folder("vit_odd").config(image_size=value).refused("less_than_a_patch_%d" % i, "`image_size` is less than")


def refusals():
    """What the language cannot say."""
    Folder("clip_part_text").refused("no_part", "`model_type` is \"clip\", a model of several parts",
                                     "`--part text` or `--part vision`")
    Folder("clip_part_text").refused("unknown_part", "a model of several parts", options=("--part", "audio"))
    Folder("bert_odd").refused("part_of_one", "`--part text` is for a model of several parts, and `bert` has one",
                               options=("--part", "text"))
    Folder("clip_part_text").accepted("part", "model clip_text", "pool last classifier 6 no_bias",
                                      options=("--part", "text"))
    Folder("bert_odd").config(model_type="siglip2_vision_model").refused(
        "siglip", "\"siglip2_vision_model\"", "any number of patches", "--list", unsaid="nearest")
    Folder("siglip2_part_text").refused("siglip2_vision", "`--part text` selects one", options=("--part", "vision"))
    Folder("bert_odd").config(model_type="xlnet").refused("xlnet", "\"xlnet\"", "two streams", "--list",
                                                          unsaid="nearest")
    distances()
    images()
    heads()
    for key, value, why in (("second_expert_policy", "sampling", "chosen at random"),
                            ("second_expert_policy", "random", "left out at random"), ("num_experts", 1, "two experts"),
                            ("moe_eval_capacity_token_fraction", 0.75, "leaves out the rows"),
                            ("moe_eval_capacity_token_fraction", "all", "a number is understood"),
                            ("router_dtype", "bfloat16", "only float32"), ("encoder_sparse_step", -1, "from 0")):
        Folder("nllb_moe_odd").config(**{key: value}).refused("nllb_" + key, "`%s`" % key, why)
    Folder("nllb_moe_dense").config(second_expert_policy="random", moe_eval_capacity_token_fraction=0.5).accepted(
        "nllb_dense", unsaid="experts")
    Folder("nllb_moe_wide_odd").accepted("nllb_bound", "seq <= 24", "router softmax renormalized\n")
    Folder("nllb_moe_wide_odd").refused("nllb_beyond", "--seq 25", "24 rows", options=("--seq", "25"))
    Folder("nllb_moe_odd").config(moe_eval_capacity_token_fraction=2).accepted("nllb_whole", "top 2",
        "scale 1-0.3 bias")
    Folder("bert_odd").config(model_type="phimoe").refused("phimoe", "cannot be imported", "gates of its router")
    for kind, why in (("llama4_text", "chunks"), ("qwen3_next", "linear attention"), ("gemma3n_text", "streams"),
                      ("swin", "shifted windows"), ("jamba", "not attention alone")):
        Folder("bert_odd").config(model_type=kind).refused("type_" + kind, "cannot be imported", why, unsaid="nearest")
    two = json.load(open(os.path.join(FIXTURES, "t5gemma_odd", "config.json"), encoding="utf-8"))
    Folder("t5gemma_odd").config(decoder=dict(two["decoder"], cross_attention_hidden_size=16)).refused("width_of_cross",
        "`decoder.cross_attention_hidden_size` is not `encoder.hidden_size`")
    Folder("t5gemma_odd").config(decoder=dict(two["decoder"], hidden_size=16)).refused("width_of_tensors",
        "decoder.embed_tokens.weight")
    Folder("t5gemma_odd").config(decoder=dict(two["decoder"], layer_types=["full_attention"])).refused(
        "layers_of_decoder", "`layer_types` has 1 entries for 2 layers")
    Folder("t5gemma_odd").config(is_encoder_decoder=False).refused("one_stack", "`is_encoder_decoder` is false")
    Folder("t5gemma_odd").accepted("window_of_encoder", "window 5", "window 3", "start 3")
    Folder("roformer_odd").config(rotary_value=True).refused("rotary_value", "`rotary_value`")
    folder = Folder("roformer_odd")
    path = os.path.join(folder.path, "model.safetensors")
    with open(path, "rb") as file:
        data = bytearray(file.read())
    size = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(bytes(data[8:8 + size]))["encoder.embed_positions.weight"]
    data[8 + size + entry["data_offsets"][1] - 2] ^= 1  # the last number, by 2^-7 of it
    with open(path, "wb") as file:
        file.write(data)
    folder.refused("roformer_angles", "`encoder.embed_positions.weight`", "sinusoids")
    Folder("roformer_odd").accepted("roformer_sinusoids", "position rope", options=("--name", "sinusoids"))
    Folder("roformer_odd").config(rotary_value=None).accepted("rotary_value_null", "interleaved")
    Folder("roformer_odd").config(is_decoder=True).refused("roformer_decoder", "`is_decoder` is true")
    Folder("olmo_odd").config(clip_qkv=8.0).accepted("clip_qkv", "clip 8")
    Folder("olmo_odd").config(clip_qkv=0.0).refused("clip_qkv_zero", "`clip_qkv` is 0")
    Folder("mpt_odd").config(attn_config={"clip_qkv": 0}).accepted("clip_qkv_of_mpt", unsaid="clip")
    dbrx = {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 500000}
    Folder("dbrx_odd").config(attn_config=dbrx, rope_parameters=Folder).accepted("dbrx_theta", "theta 500000",
        "# The theta is `attn_config.rope_theta`")
    Folder("dbrx_odd").config(attn_config=dbrx).accepted("dbrx_outer_theta", "theta 10000",
                                                         "# `attn_config.rope_theta` is not obeyed")
    Folder("dbrx_odd").config(attn_config=dict(dbrx, clip_qkv=None)).accepted("dbrx_unclipped", unsaid="clip")
    ffn = {"ffn_hidden_size": 9, "moe_num_experts": 5, "moe_top_k": 3}
    Folder("dbrx_odd").config(ffn_config=dict(ffn, moe_normalize_expert_weights=2)).refused("dbrx_power",
        "`ffn_config.moe_normalize_expert_weights`")
    Folder("olmo3_odd").config(sliding_window=None).refused("olmo3_window", "`sliding_window`")
    Folder("olmo3_odd").config(rope_parameters={"rope_type": "default", "rope_theta": 77.0}).refused(
        "olmo3_flat", "`rope_parameters`", "`full_attention`")
    Folder("olmo3_odd").config(rope_parameters=None, rope_theta=77.0,
                               rope_scaling={"rope_type": "linear", "factor": 2.0}).accepted(
        "olmo3_older", "theta 77 scaling linear factor 2", "theta 500000",
        "# `rope_theta` is that of the full_attention layers")
    Folder("glm4_odd").config(partial_rotary_factor=0.25, rope_parameters=None).accepted("glm4_odd_rotation",
        "theta 215443.469", " partial 4/12", "# The rotated share of a head is 3 columns, an odd number")
    Folder("granite_odd").config(logits_scaling=0).refused("logits_scaling", "`logits_scaling` is 0")
    Folder("granite_odd").config(attention_multiplier=Folder).accepted("attention_multiplier", "scale 1\n")
    Folder("gptj_odd").config(rotary_dim=None).refused("rotary_dim", "`rotary_dim` is null")
    Folder("gptj_odd").config(rotary_dim=3).refused("rotary_dim_odd", "the rotated width is odd")
    Folder("gptj_odd").config(rotary_dim=8).refused("rotary_dim_wide", "partial 8/6")
    Folder("gptj_odd").config(scale_attn_weights=False).accepted("gptj_scale", "# `scale_attn_weights` is false")
    Folder("codegen_odd").config(n_head=10).refused("codegen_heads", "not a multiple of 4")
    Folder("gpt_bigcode_odd").config(n_embd=Folder, hidden_size=15, n_layer=Folder,
                                     num_hidden_layers=2).accepted("attribute_map", "d_model 15", "layers 2 {")
    Folder("gpt_bigcode_odd").config(hidden_size=30).refused("attribute_map_both", "both `n_embd` and `hidden_size`")
    Folder("exaone4_odd").config(layer_types=Folder).refused("exaone4_types", "`layer_types` is missing")
    Folder("exaone4_odd").config(sliding_window_pattern="LLG").accepted("exaone4_pattern", "window 4")
    Folder("cohere2_odd").config(layer_switch=3).refused("cohere2_switch", "`layer_switch` is 3")
    Folder("xglm_odd").config(pad_token_id=2).refused("xglm_pad", "`pad_token_id` is 2")
    Folder("biogpt_odd").config(layer_norm_eps=1e-12).accepted("biogpt_eps", "eps 1e-5",
                                                               "# `layer_norm_eps` is not read")
    Folder("umt5_odd").config(tie_word_embeddings=False).accepted(
        "umt5_tie", "embedding tied", unsaid="scale 1/sqrt(d_model)")


def chat_templates():
    """A chat template in each of its places is noted once, in the spec too; null is none."""
    for name, files, origin in (
            ("jinja", {"chat_template.jinja": "{{ x }}", "tokenizer_config.json": '{"chat_template": "x"}'},
             "chat_template.jinja"),
            ("config", {"tokenizer_config.json": '{"chat_template": "x"}'}, "tokenizer_config.json"),
            ("list", {"tokenizer_config.json": '{"chat_template": [{"name": "default", "template": "x"}]}'},
             "tokenizer_config.json"),
            ("json", {"chat_template.json": '{"chat_template": "x"}'}, "chat_template.json"),
            ("null", {"tokenizer_config.json": '{"chat_template": null}'}, None)):
        folder = Folder("llama_odd")
        for path, text in files.items():
            with open(os.path.join(folder.path, path), "w", encoding="utf-8") as file:
                file.write(text)
        said = "The chat template of %s is not applied yet" % origin
        folder.accepted("chat_template_" + name, *([said] if origin else []),
                        unsaid=None if origin else "chat template")


def makers_config():
    """Nomic Embed's makers name the keys of their config in the way of GPT-2."""
    with open(os.path.join(FIXTURES, "nomic_bert_odd", "config.json"), encoding="utf-8") as file:
        own = json.load(file)
    config = {"model_type": "nomic_bert", "architectures": ["NomicBertModel"], "activation_function": "swiglu",
              "n_embd": own["hidden_size"], "n_head": own["num_attention_heads"], "n_layer": own["num_hidden_layers"],
              "n_inner": own["intermediate_size"], "n_positions": own["max_position_embeddings"],
              "layer_norm_epsilon": own["layer_norm_eps"], "vocab_size": own["vocab_size"], "rotary_emb_base": 1000,
              "type_vocab_size": own["type_vocab_size"], "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
              "rotary_emb_scale_base": None, "rotary_scaling_factor": None, "prenorm": False, "causal": False,
              "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "use_rms_norm": False,
              "parallel_block": False, "use_flash_attn": True, "pad_vocab_size_multiple": 64, "fused_bias_fc": True}
    folder, specs = Folder("nomic_bert_odd"), []
    for keys in (own, config):
        folder.text(json.dumps(keys))
        to = os.path.join(folder.path, "spec.attn")
        done = run("import", folder.path, "-o", to)
        specs.append(open(to, encoding="utf-8").read() if done.returncode == 0 else done.stderr)
    report(specs[0] == specs[1] and "rope theta 1000" in specs[0], "makers_config", "\n".join(specs))
    folder.text(json.dumps({**config, "rotary_emb_fraction": 0.5}))
    folder.refused("makers_fraction", "`rotary_emb_fraction`")


def nested():
    """A config with another one inside."""
    def text(**changes):
        with open(os.path.join(FIXTURES, "gemma3_whole_odd", "config.json"), encoding="utf-8") as file:
            config = json.load(file)["text_config"]
        config.update(changes)
        return {key: value for key, value in config.items() if value is not Folder}
    Folder("gemma3_whole_odd").accepted("text_config", "model gemma3 {", "window 4", "head logits tied",
                                        "# This is the text part alone")
    Folder("gemma3_whole_odd").config(text_config=Folder).refused("no_text_config", "wants [262208, 2304]")
    Folder("gemma3_whole_odd").config(text_config=[1]).refused("text_config_list", "`text_config` is [1]")
    Folder("gemma3_whole_odd").config(text_config=text(model_type="llama")).refused("text_config_type",
        "in `text_config`", "\"llama\"", "only gemma3_text")
    Folder("gemma3_whole_odd").config(text_config=text(use_magic=3)).refused("text_config_key", "in `text_config`",
        "`use_magic` (3)")
    Folder("gemma3_whole_odd").config(text_config=text(use_magic=3)).accepted("text_config_ignored",
        "`use_magic` (3) is left out", options=("--ignore-key", "text_config.use_magic"))
    Folder("gemma3_whole_odd").refused("text_config_obeyed", "it obeys `text_config.sliding_window`",
                                       options=("--ignore-key", "text_config.sliding_window"))
    Folder("gemma3_whole_odd").config(use_magic=3).refused("outer_key", "`use_magic` (3)", unsaid="in `text_config`")
    Folder("gemma3_whole_odd").config(text_config=text(hidden_size=Folder)).refused("text_config_default", "[37, 2304]",
        "[37, 12]")
    Folder("gemma3_whole_odd").config(eos_token_id=[1, 7]).accepted("outer_end", "end 1 7")
    Folder("gemma3_whole_odd").config(text_config=text(tie_word_embeddings=False)).accepted("outer_tie",
        "head logits tied")
    Folder("gemma3_whole_odd").config(tie_word_embeddings=False).refused("outer_untied", "lm_head.weight")
    Folder("gemma3_whole_odd").config(quantization_config={"bits": 4}).refused("outer_quantized",
        "`quantization_config`")
    Folder("gemma3_whole_odd").config(architectures=["Gemma3TextModel"]).refused("text_class", "\"Gemma3TextModel\"")
    folder = Folder("gemma3_whole_odd")
    rename_tensors(os.path.join(folder.path, "model.safetensors"),
                   lambda name: name.replace("language_model.model.", "model.language_model."))
    folder.accepted("newer_prefix", "prefix \"model.language_model.\"")


def main():
    listed = run("import", "--list")
    report(listed.returncode == 0 and "xlm-roberta" in listed.stdout and "m2m_100" in listed.stdout, "list",
           listed.stderr)
    report(run("import", FIXTURES).returncode == 2, "no_output")
    for group in (configs, inner_norms, unknown, texts, files, bounds, older, per_layer, refusals, chat_templates,
                  makers_config, nested):
        group()
    sentences.check(Folder, run, report)
    folders.check(run, report)
    defaults.check(run, report)
    return REPORT.finish()


if __name__ == "__main__":
    sys.exit(main())
