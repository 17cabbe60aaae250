"""Small encoders, post-norm and ReLU, over features: one thread, called from C wherever the peer is C."""
import numpy as np

from rows import Bar, Entry, NotRun, Row, against, gcc_near_clang

# d_model: heads, layers, d_ff, rows, and what ours must be over the best C emitter and over ONNX Runtime.
SHAPES = {8: (2, 1, 16, 4, 2.0, None), 32: (4, 2, 64, 8, 1.9, 8.0), 64: (4, 2, 128, 16, 1.5, None),
          128: (4, 4, 512, 32, None, 1.15)}
SAMPLE = 0.05
EMITTERS = ("emx-onnx-cgen", "onnx2c")


def flops(width, heads, layers, d_ff, rows):
    del heads
    return layers * (rows * 2 * (4 * width * width + 2 * width * d_ff) + 4 * rows * rows * width)


def own_entries(context, spec, weights, params, width):
    entries = context.both(spec, weights, params)
    missing = {}
    for cc in ("clang",) if context.quick or context.args.no_gcc else ("clang", "gcc"):
        name = "attnc full" + (" gcc" if cc == "gcc" else "")
        if width > 32:
            missing[name] = "`unroll full` would pass its bound on the size of the C"
            continue
        try:
            # One target: each is as long as the others, and only this machine's runs here.
            entries.append(context.ours(name, spec, weights, params, cc=cc, unroll="full",
                                        target=context.meter.target))
        except RuntimeError as error:
            missing[name] = str(error)
    return entries, missing


def peers(context, name, weights, shape, paths):
    heads, rows = shape[0], shape[3]
    entries, missing = [], {}
    try:
        models = [context.made("%s-%d.onnx" % (name, opset), "encoder-onnx", weights, rows, heads, opset)
                  for opset in (17, 13)]
        whole = context.made(name + "-norms.onnx", "whole-norms", models[0])
    except NotRun as error:
        return [], {peer: str(error) for peer in ("onnxruntime", "openvino", *EMITTERS)}
    common = {"inputs": paths, "threads": 1}
    for peer, label in (("ort", "onnxruntime"), ("openvino", "openvino")):
        entries.append(Entry(label, "onnx_runtimes", dict(common, peer=peer, model=models[0])))
    entries.append(Entry(EMITTERS[0], "emitters", dict(common, peer="emx", models=models)))
    if context.args.onnx2c:
        entries.append(Entry(EMITTERS[1], "emitters", dict(common, peer="onnx2c", models=[whole, models[1]],
                                                           program=context.args.onnx2c)))
    else:
        missing[EMITTERS[1]] = "ONNX2C=PATH names the program"
    return entries, missing


def row(context, name, width):
    shape = SHAPES[width]
    rows, spec = shape[3], context.spec("small_d%d" % width)
    weights = context.weights(spec)
    features = np.random.default_rng(width).standard_normal((1, rows, width)).astype(np.float32)
    paths = context.inputs(name, features=features)
    entries, missing = own_entries(context, spec, weights, {
        "kind": "forward", "inputs": paths, "outputs": {"hidden": [1, rows, width]}, "threads": 1}, width)
    if context.peers:
        found, reasons = peers(context, name, weights, shape, [paths["features"]])
        entries += found
        missing.update(reasons)
    bars = []
    if shape[4]:
        bars.append(Bar("x the best C emitter", shape[4],
                        lambda r: r.ratio(r.own(), r.best([n for n in r.peers if n in EMITTERS]))))
    if shape[5]:
        bars.append(against(shape[5], "x ONNX Runtime", "onnxruntime"))
    return Row(name, "encoder of %d layer%s, d %d, %d heads, d_ff %d, %d rows, 1 thread" %
               (shape[1], "s" * (shape[1] > 1), width, shape[0], shape[2], rows), entries, unit="us",
               flops=flops(width, *shape[:4]), sample=SAMPLE, bars=bars + [gcc_near_clang()], missing=missing,
               note="random weights, features in, hidden rows out; `full` is `--unroll full`")


ROWS = {"small-d%d" % width: lambda context, name, width=width: row(context, name, width) for width in SHAPES}
