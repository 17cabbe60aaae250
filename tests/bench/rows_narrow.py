"""MiniLM in int8 and bf16, one thread: hidden rows of one sequence, and the error of the embeddings of many texts
beside each time."""
import os

import numpy as np

import accuracy
import machine
import rows_minilm
from rows import Entry, NotRun, Row, against, error_of, gcc_near_clang

WIDTH, VOCAB = rows_minilm.WIDTH, rows_minilm.VOCAB
QUANTIZE_TEXTS, QUANTIZE_BOUND = 40, 0.0015
# What ours must be over a peer: without AMX, and with it.
BARS = {(128, "int8"): ([("ctranslate2", 1.6)], [("ctranslate2", 4.0), ("openvino", 2.5)]),
        (16, "int8"): ([("ctranslate2", 2.0)], [("openvino", 1.7)]),
        (128, "bf16"): ([("openvino", 1.15)], [("openvino", 2.0)]),
        (16, "bf16"): ([], [])}
# Largest mean and largest value of 1 - cos: by the preset alone, and by `attnc quantize`.
ERRORS = {"preset": (0.0011, 0.0022), "quantize": (0.0006, 0.0015)}
GARBAGE = 0.1


def ids_of(model, texts):
    """Tokens of each text; without a vocabulary as many random ones as the text has words."""
    if not model:
        rng = np.random.default_rng(9)
        return [rng.integers(1000, VOCAB, len(text.split()) + 2).tolist() for text in texts]
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(model)
    return [tokenizer(text)["input_ids"] for text in texts]


def judge(context, model):
    """(the judge, what its texts are, paths of the tokens for calibration by NNCF and by quantize)."""
    texts, calibration, what = accuracy.texts()
    paths = context.inputs("narrow", texts=accuracy.padded(ids_of(model, texts)),
                           calibration=accuracy.padded(ids_of(model, calibration)))
    few = np.load(paths["calibration"])[:QUANTIZE_TEXTS]
    given = context.inputs("quantize", tokens=np.maximum(few, 0).astype(np.int32),
                           attention_mask=(few >= 0).astype(np.int32))
    return accuracy.Judge(paths["texts"], accuracy.cosines, GARBAGE), what, paths["calibration"], given


class Peers:
    """Entries of a row's peers, and the reasons of those that cannot be had."""
    def __init__(self, context, model, calibration, common):
        self.context, self.model, self.calibration, self.common = context, model, calibration, common
        self.entries, self.missing = [], {}

    def attempt(self, name, family, make, **params):
        try:
            self.entries.append(Entry(name, family, dict(self.common, **params, model=make())))
        except NotRun as error:
            self.missing[name] = str(error)

    def any_shape(self):
        return self.context.made("minilm-any.onnx", "bert-any", self.model, 0)

    def nncf(self):
        return os.path.join(self.context.made("minilm-nncf", "bert-nncf", self.any_shape(), self.calibration),
                            "model.xml")

    def fused(self):
        return self.context.made("minilm-any-fused.onnx", "bert-fused", self.any_shape(), rows_minilm.HEADS, WIDTH)

    def dynamic(self):
        return self.context.made("minilm-dynamic.onnx", "bert-dynamic", self.fused())

    def ct2(self):
        return self.context.made("minilm-ct2", "bert-ct2", self.model)

    def int8(self):
        self.attempt("openvino int8", "onnx_runtimes", self.nncf, peer="openvino", precision="")
        self.attempt("openvino int8 thr", "onnx_runtimes", self.nncf, peer="openvino", precision="", hint="THROUGHPUT")
        self.attempt("ctranslate2 int8", "ctranslate2_peer", self.ct2, kind="encoder", compute_type="int8")
        self.attempt("onnxruntime int8", "onnx_runtimes", self.dynamic, peer="ort")

    def bf16(self):
        self.attempt("openvino bf16", "onnx_runtimes", self.any_shape, peer="openvino", precision="bf16")
        self.attempt("openvino bf16 thr", "onnx_runtimes", self.any_shape, peer="openvino", precision="bf16",
                     hint="THROUGHPUT")
        self.attempt("ctranslate2 bf16", "ctranslate2_peer", self.ct2, kind="encoder", compute_type="bfloat16")
        self.attempt("torch bf16", "torch_peer", lambda: self.model, precision="bf16")
        self.attempt("torch autocast", "torch_peer", lambda: self.model, precision="autocast")


def own(context, spec, weights, params, rows, precision, given):
    """Entries of ours and what is missing of them; the f32 model is the reference."""
    target, missing = machine.narrow_targets(precision), {}
    make = context.both if rows == 128 else lambda *args, **more: [context.ours("attnc", *args, **more)]
    entries = make(spec, weights, params, precision=precision, target=target)
    if precision == "int8":
        try:
            chosen = context.quantized("minilm-quantized", spec, weights, QUANTIZE_BOUND,
                                       [word for pair in given.items() for word in ("--in", "%s=%s" % pair)])
            entries.append(context.ours("attnc quantize", *chosen, params, target=target, folder="quantized"))
        except (NotRun, RuntimeError) as error:
            missing["attnc quantize"] = str(error)
    entries.append(context.ours("attnc f32", spec, weights, params, reference=True))
    return entries, missing


def error_bars(precision):
    if precision != "int8":
        return []
    kinds = {"preset": lambda name: "quantize" not in name, "quantize": lambda name: "quantize" in name}
    return [error_of(kinds[kind], figure, needed, "%s, %s" % (figure, "by int8 alone" if kind == "preset" else kind))
            for kind, bounds in ERRORS.items() for figure, needed in zip(("1-cos", "largest"), bounds)]


def row(context, name, rows, precision):
    model = rows_minilm.folder() if context.peers else None
    spec = context.spec("minilm")
    weights = os.path.join(model, "model.safetensors") if model else context.weights(spec)
    tokens = np.random.default_rng(rows).integers(1000, VOCAB, (1, rows))
    tokens[0, 0], tokens[0, -1] = 101, 102
    paths = context.inputs(name, tokens=tokens, lengths=np.array([rows]))
    judged, what, calibration, given = judge(context, model)
    params = {"kind": "forward", "inputs": paths, "outputs": {"hidden": [1, rows, WIDTH]}, "threads": 1}
    entries, missing = own(context, spec, weights, params, rows, precision, given)
    if model:
        peers = Peers(context, model, calibration, {"threads": 1, "inputs": [paths["tokens"]],
                                                    "shape": [1, rows, WIDTH]})
        getattr(peers, precision)()
        entries += peers.entries
        missing.update(peers.missing)
    bars = [against(needed, "x %s" % peer, peer) for peer, needed in BARS[rows, precision][machine.has_tiles()]]
    return Row(name, "MiniLM, %d tokens, %s, 1 thread" % (rows, precision), entries, missing=missing, judge=judged,
               flops=rows_minilm.flops(rows), unit_of=precision, rounds=5,
               bars=bars + error_bars(precision) + [gcc_near_clang()] * any("gcc" in e.name for e in entries),
               note="%s weights; 1-cos over the embeddings of %s" % ("real" if model else "random", what))


ROWS = {"minilm-%d-%s" % (rows, precision): lambda context, name, rows=rows, precision=precision:
        row(context, name, rows, precision) for precision in ("int8", "bf16") for rows in (128, 16)}
