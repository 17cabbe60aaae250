"""Decoding from a GGUF file: ours from what `attnc import` makes of it, with the numbers of the file as they are, and
llama.cpp on the same file. Tokens one by one, one thread."""
import os

import numpy as np

import machine
from programs import build
from rows import NotRun, Row, against
from rows_decode import SHAPES
from rows_decode_narrow import TOKENS, judge, llamacpp_entry

SPEC = "llama_110m"
# What is asked of tokens a second for one of llama.cpp's.
BARS = {"Q8_0": 1.2, "Q4_0": 1.2}


def imported(context, model, kind):
    spec = context.path("models", "gguf_%s.attn" % kind.lower())
    build.run([build.ATTNC, "import", model, "-o", spec, "--name", "gguf_" + kind.lower()])
    return spec


def row(context, name, kind):
    shape, given = SHAPES[SPEC], context.spec(SPEC)
    weights = context.weights(given)
    model = context.made("%s-%s.gguf" % (SPEC, kind), "llama-gguf", weights, *shape[2:4], *shape[6:8], kind)
    paths = context.inputs(name, tokens=np.random.default_rng(TOKENS).integers(3, shape[5], TOKENS))
    params = {"kind": "decode", "inputs": paths, "outputs": {"logits": [shape[5]]}, "count": TOKENS, "threads": 1,
              "vocab": shape[5]}
    spec, target = imported(context, model, kind), machine.narrow_targets()
    # The spec states the weights, so that the option's rows alone take effect.
    entries = [context.ours("attnc", spec, model, params, target=target),
               context.ours("attnc rows", spec, model, params, target=target,
                            precision="weights=int8,activations=int8"),
               context.ours("attnc f32", given, weights, dict(params, batch=1), reference=True, timed=False)]
    missing = {}
    try:
        entries.append(llamacpp_entry(context, "llama.cpp", model, paths, shape[5]))
    except NotRun as error:
        missing["llama.cpp"] = str(error)
    return Row(name, "%s from a GGUF file of %s (%.1f MB), %d tokens one by one, 1 thread" % (
        SPEC, kind, os.path.getsize(model) / 1e6, TOKENS), entries, unit="tokens/s", work=TOKENS,
        bars=[against(BARS[kind], "x llama.cpp", "llama.cpp")], missing=missing, judge=judge(context, shape[5]),
        rounds=5, note="`rows`: activations in int8, as llama.cpp has them")


ROWS = {"gguf-110m-%s" % kind.lower().replace("_", ""): lambda context, name, kind=kind: row(context, name, kind)
        for kind in BARS}
