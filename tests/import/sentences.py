"""attnc import on folders of sentence-transformers: what a head can say, and what is refused with its file and key."""
import json
import os
import shutil
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PARITY = os.path.join(os.path.dirname(HERE), "parity")
OLD, NEW = "sentence_transformers.models.%s", "sentence_transformers.sentence_transformer.modules.pooling.%s"
POOLING, BERT, DENSE = "1_Pooling/config.json", "sentence_bert_config.json", "2_Dense/config.json"
WHOLE = "config_sentence_transformers.json"


def class_of(folder):
    """A copy of a folder of tests/parity, with all that is in it."""

    class Sentence(folder):
        def __init__(self, name, group="sentences"):
            self.path = tempfile.mkdtemp()
            shutil.copytree(os.path.join(PARITY, group, name), self.path, dirs_exist_ok=True)
            self.spec = os.path.join(self.path, "out.attn")

        def file(self, name, value):
            path = os.path.join(self.path, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(value, file)
            return self

        def edit(self, name, **changes):
            with open(os.path.join(self.path, name), encoding="utf-8") as file:
                value = json.load(file)
            return self.file(name, dict(value, **changes))

        def modules(self, *listed):
            return self.file("modules.json",
                             [dict(idx=i, name=str(i), path=path, type=kind) for i, (path, kind) in enumerate(listed)])

        def then(self, *more):
            """Modules behind those that there are."""
            with open(os.path.join(self.path, "modules.json"), encoding="utf-8") as file:
                listed = json.load(file)
            return self.modules(*((m["path"], m["type"]) for m in listed), *((path, OLD % path[2:]) for path in more))

    return Sentence


def poolings(Sentence):
    Sentence("mean_odd").accepted("sentence/old", "head pool mean l2", "seq <= 12")
    Sentence("cls_odd").accepted("sentence/new", "head pool cls l2", "seq <= 12")
    Sentence("last_odd").accepted("sentence/last", "head pool last l2", "seq <= 19", "Qwen3Model")
    Sentence("mean_odd").edit(POOLING, pooling_mode_mean_tokens=False).accepted("sentence/no_mode", "head pool mean l2")
    Sentence("cls_odd").edit(POOLING, pooling_mode=["max"]).accepted("sentence/list_of_one", "head pool max l2")
    Sentence("mean_odd").edit(POOLING, pooling_mode_mean_tokens=False, pooling_mode_mean_sqrt_len_tokens=True).accepted(
        "sentence/mean_sqrt", "head pool mean_sqrt l2")
    Sentence("cls_odd").edit(POOLING, pooling_mode="weightedmean").accepted(
        "sentence/weightedmean", "head pool weighted_mean l2")
    Sentence("cls_odd").edit(POOLING, pooling_mode="median").refused("sentence/median", POOLING,
        "the pooling mode `median` is unknown")
    Sentence("mean_odd").edit(POOLING, pooling_mode_max_tokens=True).refused(
        "sentence/two_modes", POOLING, "both `pooling_mode_max_tokens` and `pooling_mode_mean_tokens`")
    Sentence("cls_odd").edit(POOLING, pooling_mode=["mean", "cls"]).refused("sentence/list_of_two", POOLING,
        "`pooling_mode` is [\"mean\", …]")
    Sentence("cls_odd").edit(POOLING, embedding_dimension=22).refused("sentence/width", POOLING, "width 22", "21 wide")
    Sentence("cls_odd").edit(POOLING, twist=1).refused("sentence/pooling_key", POOLING, "`twist` (1) is unknown")
    prompts = dict(query="query: ", document="")
    Sentence("cls_odd").edit(POOLING, include_prompt=False).edit(WHOLE, prompts=prompts).refused(
        "sentence/include_prompt", POOLING, "`include_prompt` is false", "prompt `query`")
    Sentence("cls_odd").edit(POOLING, include_prompt=False).accepted("sentence/no_prompt", "head pool cls l2")


def denses(Sentence):
    Sentence("tanh_odd").accepted("sentence/tanh", "head pool mean", "dense 15 { bias all, activation tanh }",
                                  "\"dense.0.*\" from \"dense.0.linear.*\"", "dense.0=",
                                  "2_Dense/model.safetensors")
    # the class has a pooler of its own, which is not the dense module
    weights = os.path.join(PARITY, "sentences", "tanh_odd", "model.safetensors")
    folder = Sentence("tanh_odd")
    folder.run("import", folder.path, "-o", folder.spec)
    result = folder.run("weights", folder.spec, "--weights", weights, "-o", folder.spec + ".safetensors")
    folder.report(result.returncode == 1 and "dense.0.linear.weight" in result.stderr, "sentence/own_pooler",
                  result.stderr)
    shutil.rmtree(folder.path)
    Sentence("linear_odd").accepted("sentence/linear", "head pool cls", "dense 9 { bias all }")
    Sentence("plain_odd").accepted("sentence/plain", "head pool max", "dense 17 { bias none }")
    Sentence("chain_odd").accepted("sentence/chain", "head pool mean l2", "dense 33 { bias none }",
                                   "dense 12 { bias none }", "dense.1=", "3_Dense/model.safetensors")
    Sentence("functions_odd").accepted("sentence/functions", "activation gelu }", "bias none, activation softplus }",
                                       "activation tanh }")
    for function, word in (("LeakyReLU", "leaky_relu"), ("ELU", "elu"), ("Hardswish", "hard_swish"),
                           ("Hardsigmoid", "hard_sigmoid")):
        Sentence("tanh_odd").edit(DENSE, activation_function="torch.nn.modules.activation." + function).accepted(
            "sentence/" + word, "activation %s }" % word)
    for name, key, changes in (("residual", "`use_residual` is true", dict(use_residual=True)),
                               ("activation", "torch.nn.modules.activation.CELU",
                                dict(activation_function="torch.nn.modules.activation.CELU")),
                               ("own_activation", "custom.GELU", dict(activation_function="custom.GELU")),
                               ("in_features", "`in_features` is 14, but the pool gives 15",
                                dict(in_features=14, out_features=14)),
                               ("of_tokens", "`module_input_name` is \"token_embeddings\"",
                                dict(module_input_name="token_embeddings")),
                               ("key", "`twist` (2) is unknown", dict(twist=2))):
        Sentence("tanh_odd").edit(DENSE, **changes).refused("sentence/dense_" + name, DENSE, key)
    Sentence("chain_odd").edit("3_Dense/config.json", in_features=32).refused("sentence/dense_chain",
        "3_Dense/config.json", "`in_features` is 32, but the dense module before it gives 33")
    Sentence("tanh_odd").edit(DENSE, out_features=7).refused("sentence/dense_shape", "dense.0.linear.weight",
                                                             "[15, 15]", "[7, 15]")
    Sentence("tanh_odd").then("3_Normalize").accepted("sentence/norm_behind_dense", "head pool mean l2",
                                                      "dense 15 { bias all, activation tanh }")
    Sentence("mean_odd").then("2_Dense").file(DENSE, dict(in_features=35, out_features=35)).refused(
        "sentence/dense_behind_norm", DENSE, "a norm precedes it")
    folder = Sentence("tanh_odd")
    os.remove(os.path.join(folder.path, "2_Dense/model.safetensors"))
    folder.refused("sentence/no_dense_weights", "2_Dense: no model.safetensors and no pytorch_model.bin")


def lists(Sentence):
    first = ("", OLD % "Transformer")
    for kind in (OLD % "WordEmbeddings", OLD % "LayerNorm", NEW % "StaticEmbedding",
                 "sentence_transformers.models.BERT", "custom_st.Pooling", "Pooling"):
        Sentence("mean_odd").modules(first, ("1_Pooling", kind)).refused("sentence/type_" + kind,
            "modules.json: module 1", "\"%s\"" % kind)
    Sentence("mean_odd").modules(("0_WordEmbeddings", OLD % "WordEmbeddings")).refused("sentence/first_type",
        "module 0", "WordEmbeddings")
    Sentence("mean_odd").modules(("1_Pooling", OLD % "Pooling")).refused("sentence/first", "module 0",
        "it is a Pooling")
    Sentence("mean_odd").modules(first, first).refused("sentence/second_model", "module 1", "it is a Transformer")
    Sentence("mean_odd").then("1_Pooling").refused("sentence/second_pooling", "module 3", "second Pooling")
    Sentence("mean_odd").modules(first, ("2_Normalize", OLD % "Normalize")).refused("sentence/no_pooling", "module 1",
        "without a Pooling")
    Sentence("mean_odd").then("2_Normalize").refused("sentence/second_norm", "modules.json", "two modules normalize")
    for path in ("../1_Pooling", "/tmp", "a/../../b", "a,b", "a\nb", "x" * 300):
        Sentence("mean_odd").modules(first, (path, OLD % "Pooling")).refused("sentence/path_%d" % len(path), "module 1",
            "`path` is")
    Sentence("mean_odd").modules(first, ("9_Pooling", OLD % "Pooling")).refused("sentence/no_folder",
        "9_Pooling/config.json")
    Sentence("mean_odd").modules(("0_Transformer", OLD % "Transformer")).refused("sentence/no_model", "0_Transformer")
    for name, value, said in (("object", {}, "not a list"), ("empty", [], "lists no module"),
                              ("number", [1], "module 0 is not an object"),
                              ("no_type", [{"path": ""}], "`type` is missing"),
                              ("key", [{"type": OLD % "Transformer", "x": 1}], "`x` (1) is unknown"),
                              ("kwargs", [{"type": OLD % "Transformer", "path": "", "kwargs": ["task"]}],
                               "`kwargs` is [\"task\"]")):
        Sentence("mean_odd").file("modules.json", value).refused("sentence/list_" + name, "modules.json", said)
    Sentence("mean_odd").modules(first).accepted("sentence/model_alone", "seq <= 12", unsaid="head ")
    folder = Sentence("mean_odd")
    os.remove(os.path.join(folder.path, "modules.json"))
    folder.accepted("sentence/no_modules", "seq <= 19", "head pooler", unsaid="head pool ")
    Sentence("bart_odd", "fixtures").modules(first, ("1_Pooling", OLD % "Pooling")).file(POOLING,
        dict(pooling_mode="mean")).refused(
        "sentence/two_stacks", POOLING, "one stack")


def lengths(Sentence):
    Sentence("mean_odd").edit(BERT, max_seq_length=100).accepted("sentence/table", "seq <= 19")
    folder = Sentence("mean_odd").edit(BERT, max_seq_length=5)
    os.rename(os.path.join(folder.path, BERT), os.path.join(folder.path, "sentence_roberta_config.json"))
    folder.accepted("sentence/older_name", "seq <= 5")
    Sentence("mean_odd").edit(BERT, max_seq_length=None).accepted("sentence/null_length", "seq <= 19")
    Sentence("mean_odd").accepted("sentence/seq", "seq <= 15", options=("--seq", "15"))
    Sentence("mean_odd").refused("sentence/seq_beyond", "--seq 20", "19 rows", options=("--seq", "20"))
    Sentence("mean_odd").edit(BERT, tokenizer_args=dict(model_max_length=9)).accepted("sentence/tokenizer_args",
        "seq <= 9")
    Sentence("cls_odd").file("tokenizer_config.json", dict(model_max_length=10**30)).accepted("sentence/no_length",
        "seq <= 14")
    Sentence("encoder_mean").accepted("sentence/no_table", "seq <= 12", "T5EncoderModel", unsaid="decoder {")
    Sentence("last_odd").config(max_position_embeddings=131072).file("tokenizer_config.json",
        dict(model_max_length=32768)).accepted(
        "sentence/long", "seq <= 2048", "allow 32768 rows")
    for value in (0, -1, 1.5, "12", [12]):
        Sentence("mean_odd").edit(BERT, max_seq_length=value).refused("sentence/max_seq_length_%s" % value, BERT,
            "`max_seq_length` is")
    for changes, said in ((dict(do_lower_case=1), "`do_lower_case` is 1"),
                          (dict(query_length=32), "`query_length` (32) is unknown"),
                          (dict(transformer_task="fill-mask"), "`transformer_task` is \"fill-mask\""),
                          (dict(module_output_name="scores2"), "scores2"),
                          (dict(model_args=dict(is_causal=False)), "`model_args` has `is_causal`"),
                          (dict(config_args=[1]), "`config_args` has"),
                          (dict(modality_config=dict(image=dict(method="forward"))), "`modality_config` is"),
                          (dict(modality_config=dict(text=dict(method="get_text_features"))), "`text` is")):
        Sentence("mean_odd").edit(BERT, **changes).refused("sentence/" + "_".join(changes), BERT, said)
    Sentence("cls_odd").edit(WHOLE, model_type="SparseEncoder").refused("sentence/sparse", WHOLE,
        "`model_type` is \"SparseEncoder\"")
    Sentence("cls_odd").edit(WHOLE, truncate_dim=4).refused("sentence/truncate_dim", WHOLE,
                                                            "`truncate_dim` (4) is unknown")
    task = dict(transformer_task="sequence-classification", max_seq_length=16)
    Sentence("bert_classifier", "fixtures").modules(("", OLD % "Transformer")).file(BERT, task).accepted(
        "sentence/cross_encoder", "head pooler classifier 3", "seq <= 16")
    Sentence("mean_odd").modules(("", OLD % "Transformer")).file(BERT, task).refused("sentence/cross_encoder_class",
        "sequence-classification", "BertModel")


def texts(Sentence):
    """The block `text`."""
    BERT, SIDE = "sentence_bert_config.json", "tokenizer_config.json"
    lower = {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}}
    left = {"truncation": {"direction": "Left", "max_length": 9, "strategy": "LongestFirst", "stride": 0}}
    prompts = {"query": "query: ", "STS-B": "a \"\u00e9\"\n", "let": None}
    Sentence("cls_odd").edit(WHOLE, prompts=prompts, default_prompt_name="query").accepted(
        "sentence/prompts", 'prompt query "query: "\n', 'prompt "STS-B" "a \\"\u00e9\\"\\n"\n', 'prompt "let" ""\n',
        "default query\n")
    Sentence("cls_odd").edit(WHOLE, prompts=prompts, default_prompt_name="STS-B").accepted(
        "sentence/odd_default", 'default "STS-B"\n')
    Sentence("cls_odd").edit(WHOLE, prompts=prompts, default_prompt_name="quer").refused(
        "sentence/no_default", WHOLE, "`default_prompt_name` is \"quer\", which is none")
    Sentence("cls_odd").edit(WHOLE, prompts={"a": 1}).refused("sentence/prompt_number", WHOLE, "the prompt `a` is 1")
    Sentence("cls_odd").edit(WHOLE, prompts={"a": "b" * 70000}).refused("sentence/long_prompt", WHOLE, "longer than")
    Sentence("mean_odd").accepted("sentence/lower_case", "lower_case\n")
    Sentence("mean_odd").file("tokenizer.json", lower).accepted("sentence/lower_itself", unsaid="lower_case")
    Sentence("mean_odd").file(SIDE, {"truncation_side": "left"}).accepted("sentence/left", "truncate left\n")
    Sentence("mean_odd").file("tokenizer.json", left).accepted("sentence/left_json", "truncate left\n")
    Sentence("mean_odd").file("tokenizer.json", left).file(SIDE, {"truncation_side": "right"}).accepted(
        "sentence/right_of_two", unsaid="truncate")
    Sentence("mean_odd").edit(BERT, tokenizer_args={"truncation_side": "left"}).file(
        SIDE, {"truncation_side": "right"}).accepted("sentence/left_argument", "truncate left\n")
    Sentence("mean_odd").file(SIDE, {"truncation_side": "middle"}).refused(
        "sentence/no_side", SIDE, "`truncation_side` is \"middle\"; left and right are understood")
    Sentence("mean_odd").edit(BERT, tokenizer_args={"stride": 2}).accepted(
        "sentence/argument", "# `tokenizer_args` has `stride`, which is not obeyed.")


def scores(Sentence):
    """Decoders whose score is the logit of a token, or of one less that of another."""
    module = "1_LogitScore/config.json"
    line = '"classifier.weight" from "embed_tokens.weight" rows 9 5'
    Sentence("score_odd").accepted("score/module", "head pool last classifier 2 no_bias", line)
    Sentence("score_odd").file(module, dict(true_token_id=3, false_token_id=None)).accepted(
        "score/one", "head pool last classifier 1 no_bias", "rows 3")
    for name, changes, said in (("none", dict(true_token_id=None), "`true_token_id` is missing"),
                                ("text", dict(true_token_id="yes"), "`true_token_id` is \"yes\""),
                                ("half", dict(false_token_id=1.5), "`false_token_id` is 1.5"),
                                ("input", dict(module_input_name="logits"), "`module_input_name` is \"logits\""),
                                ("key", dict(layer=1), "`layer` (1) is unknown")):
        Sentence("score_odd").edit(module, **changes).refused("score/" + name, module, said)
    Sentence("score_odd").edit(module, true_token_id=37).refused("score/beyond", "has 37 rows, and rows 37..38 are")
    Sentence("score_odd").edit(BERT, transformer_task="feature-extraction").refused("score/task", "without logits")
    Sentence("score_odd").modules(("", OLD % "Transformer")).refused("score/alone", "no module LogitScore reads")
    Sentence("score_odd").refused("score/twice", module, "names others", options=("--score", "1"))
    plain = Sentence("score_odd")
    os.remove(os.path.join(plain.path, "modules.json"))
    plain.accepted("score/option", line, "head pool last classifier 2 no_bias", options=("--score", "9,5"))
    for name, said in (("bert_masked", "BertForMaskedLM gives no logits of tokens"),
                       ("t5_odd", "import does not know of `t5`")):
        Sentence(name, "fixtures").refused("score/" + name, "--score: ", said, options=("--score", "3"))
    for name, line in (("cohere_odd", "no_bias scale 0.3"), ("phi_odd", "no_bias bias")):
        Sentence(name, "fixtures").refused("score/" + name, "scale belong to `head logits`", line, "no valid spec",
                                           options=("--score", "3"))
    for words in ("x", "1,2,3", "-1", "1,", ""):
        Sentence("score_odd").refused("score/option_" + words, "`--score` wants", options=("--score", words), status=2)


def check(folder, run, report):
    Sentence = class_of(folder)
    Sentence.run, Sentence.report = staticmethod(run), staticmethod(report)
    for group in (poolings, denses, lists, lengths, texts, scores):
        group(Sentence)
