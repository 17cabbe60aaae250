"""Published encoders at their full length beside OpenVINO, one thread: Whisper tiny's 30 seconds, ViT base, and
ModernBERT base with 512 tokens, ours in f32 beside its f32, and ours in int8 beside its bf16. Ours of Whisper also
makes the keys and values of the cross attentions and computes a row of text, and in int8, queries and keys are in int8,
too, which pays for its 1,500 keys. Weights are random."""
import os

import numpy as np

import machine
from rows import Entry, NotRun, Row, against, gcc_near_clang

ROWS_OF_TEXT, TOKENS = 1, 512
# Of each model: its spec, the inputs that we and OpenVINO get, our outputs, of which the first is compared, and how
# many times as fast as OpenVINO ours must be, int8 to bf16 where products of bf16 are faster than those of f32, and f32
# to f32; and our precision in int8.
MODELS = {
    "whisper-30s": ("whisper_tiny", {"mel": (80, 3000)},
                    {"encoder_hidden": [1500, 384], "logits": [ROWS_OF_TEXT, 51865]}, 1.4, 1.1,
                    "weights=int8,activations=int8,attention=int8"),
    "vit": ("vit_base", {"pixels": (3, 224, 224)}, {"logits": [1, 1000]}, 2.0, 1.1, "int8"),
    "modernbert-512": ("modernbert_base", {"tokens": TOKENS}, {"hidden": [TOKENS, 768]}, None, None, "int8")}
TITLES = {"whisper-30s": "Whisper tiny, 30 s", "vit": "ViT base",
          "modernbert-512": "ModernBERT base, %d tokens" % TOKENS}


def drawn(shape):
    draw = np.random.default_rng(7)
    return draw.integers(0, 50000, shape) if isinstance(shape, int) else draw.standard_normal(shape).astype(np.float32)


def row(context, name, model, precision):
    spec_name, given, outputs, narrow_bar, plain_bar, in_int8 = MODELS[model]
    spec, missing = context.spec(spec_name), {}
    folder = context.made("hf-" + model, "published", model) if context.peers else None
    weights = os.path.join(folder, "model.safetensors") if folder else context.weights(spec)
    arrays = {key: drawn(size) for key, size in given.items()}
    theirs = context.inputs(name + "-peer", **{key: array[None] for key, array in arrays.items()})
    if model == "whisper-30s":
        arrays.update(target=np.full(ROWS_OF_TEXT, 50258), lengths=np.array([ROWS_OF_TEXT]))
    elif model == "modernbert-512":
        arrays["lengths"] = np.array([TOKENS])
    params = {"kind": "forward", "inputs": context.inputs(name, **arrays), "outputs": outputs, "threads": 1}
    narrow = precision == "int8"
    entries = context.both(spec, weights, params, precision=in_int8 if narrow else None,
                           target=machine.narrow_targets() if narrow else None)
    bars = []
    if folder:
        peer = "openvino %s" % ("bf16" if narrow else "f32")
        try:
            graph = os.path.join(context.made("ov-" + model, "encoder-openvino", folder, model), "model.xml")
            entries.append(Entry(peer, "onnx_runtimes", {
                "peer": "openvino", "model": graph, "precision": peer.split()[1], "threads": 1,
                "inputs": list(theirs.values())}, checked=not narrow))
        except NotRun as error:
            missing[peer] = str(error)
        needed = narrow_bar if narrow else plain_bar
        if needed and (not narrow or machine.has_pairs() or machine.has_tiles()):
            bars.append(against(needed, "x OpenVINO", "openvino"))
    return Row(name, "%s, %s, 1 thread" % (TITLES[model], precision), entries, missing=missing, rounds=5, bound=1e-3,
               bars=bars + [gcc_near_clang()], note="random weights")


ROWS = {"%s-%s" % (model, precision): lambda context, name, model=model, precision=precision:
        row(context, name, model, precision) for model in MODELS for precision in ("int8", "f32")}
