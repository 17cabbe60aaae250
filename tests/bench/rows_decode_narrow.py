"""Decoders in int8 and int4, one thread, beside llama.cpp's Q8_0 and Q4_0 with their f16 keys and values: tokens one by
one, a prompt in one call, and eight texts beside each other. Each has the error of the logits beside its time."""
import statistics

import numpy as np

import accuracy
import machine
from rows import Bar, Entry, NotRun, Row, against
from rows_decode import PROMPT, SHAPES, SHORT, llamacpp_library, matrix_numbers, prompt_flops

TOKENS, TOGETHER, JUDGED = 64, 8, 48
# Largest mean of |a - b| / |b| of the logits that is still an approximation of the f32 model.
GARBAGE = 0.7
NOTE = "random weights, which make the next token nearly certain: the error of the logits tells more than KL"
# Name, --precision, and the bytes of a weight with its scales.
INT8 = ("int8", "weights=int8", 1)
INT8_ROWS = ("int8 rows", "weights=int8,activations=int8", 1)
INT4 = ("int4", "weights=int4:32", 0.5625)
INT4_ROWS = ("int4 rows", "weights=int4:32,activations=int8", 0.5625)
INT4_WIDE = ("int4:128 rows", "weights=int4:128,activations=int8", 0.515625)
# With the peer's type of keys and values.
INT8_HALF = ("int8 rows, f16 cache", "weights=int8,activations=int8,cache=f16", 1)
INT4_HALF = ("int4 rows, f16 cache", "weights=int4:32,activations=int8,cache=f16", 0.5625)
# Tokens a second that ours must have for one of llama.cpp's, without AMX and with it.
PROMPT_BARS = {False: 3.0, True: 10.0}


def decode_bytes(shape, precision, weight, count):
    """Read for `count` tokens: the matrices, and keys and values in f16 or f32."""
    layers, width, heads, kv_heads = shape[:4]
    rows, kept = count * (count + 1) // 2, 2 if "cache=f16" in precision else 4
    return count * matrix_numbers(shape) * weight + kept * rows * 2 * layers * width * kv_heads // heads


def judge(context, vocab):
    tokens = np.random.default_rng(JUDGED).integers(3, vocab, JUDGED)
    return accuracy.Judge(context.inputs("decode-judge-%d" % vocab, tokens=tokens)["tokens"], accuracy.divergence,
                          GARBAGE)


def ours(context, spec, weights, params, kinds, count=None):
    """Entries of ours and the reference, which is not timed."""
    shape, target, entries = params.pop("shape"), machine.narrow_targets(), []
    for label, precision, weight in kinds:
        read = {"bytes": decode_bytes(shape, precision, weight, count),
                "read_size": int(matrix_numbers(shape) * weight)} if count else {}
        entries.append(context.ours("attnc " + label, spec, weights, params, target=target, precision=precision,
                                    **read))
    reference = dict(params, kind="decode", batch=1, outputs={"logits": [params["vocab"]]})
    entries.append(context.ours("attnc f32", spec, weights, reference, reference=True, timed=False))
    return entries


def llamacpp_entry(context, name, model, paths, vocab, prompt=False, tiles=False):
    """llama.cpp on a GGUF file, with fused attention and keys and values in f16."""
    library, version = llamacpp_library(context, tiles)
    return Entry(name, "llamas", {"inputs": [paths["tokens"]], "threads": 1, "vocab": vocab, "together": prompt,
                                  "library": library, "model": model, "version": version, "flash": 1, "half": 1})


def peers(context, spec_name, weights, paths, prompt):
    entries, missing, shape = [], {}, SHAPES[spec_name]
    for kind in ("Q8_0", "Q4_0"):
        for tiles in (False, True):
            name = "llama.cpp %s%s" % (kind, " amx" * tiles)
            try:
                model = context.made("%s-%s.gguf" % (spec_name, kind), "llama-gguf", weights, *shape[2:4], *shape[6:8],
                                     kind)
                entries.append(llamacpp_entry(context, name, model, paths, shape[5], prompt, tiles))
            except NotRun as error:
                missing[name] = str(error)
    return entries, missing


def of_bandwidth(label, needed):
    """The better of ours that are called so and have groups of 32, or none."""
    def measure(r):
        own = r.best([n for n in r.ours if label in n and "128" not in n])
        return own and r.share(own, "bytes")
    return Bar("%s, of the read bandwidth" % label, needed, measure, percent=True)


def own_ratio(needed, label, groups):
    """How many times faster int4 with such groups is than our best int8."""
    def measure(r):
        int8 = r.best([n for n in r.ours if "int8" in n])
        return r.ratio(r.best([n for n in r.ours if "int4" in n and groups(n)]), int8)
    return Bar(label, needed, measure)


def decode_row(context, name, spec_name):
    shape, spec = SHAPES[spec_name], context.spec(spec_name)
    weights = context.weights(spec)
    paths = context.inputs(name, tokens=np.random.default_rng(TOKENS).integers(3, shape[5], TOKENS))
    entries = ours(context, spec, weights, {
        "kind": "decode", "inputs": paths, "outputs": {"logits": [shape[5]]}, "count": TOKENS, "threads": 1,
        "vocab": shape[5], "shape": shape}, (INT8, INT8_ROWS, INT4, INT4_ROWS, INT4_WIDE), TOKENS)
    found, missing = peers(context, spec_name, weights, paths, False) if context.peers else ([], {})
    bars = [against(1.25, "int8 x llama.cpp Q8_0", "Q8_0", of="int8"),
            against(1.4, "int4 x llama.cpp Q4_0", "Q4_0", of="int4")]
    if spec_name == "llama_110m":
        bars += [of_bandwidth("int8", 0.95), of_bandwidth("int4", 0.90)]
    bars += [own_ratio(1.6, "int4, groups of 32, x int8", lambda n: "128" not in n),
             own_ratio(1.75, "int4, groups of 128, x int8", lambda n: "128" in n)]
    return Row(name, "%s in int8 and int4, %d tokens one by one, 1 thread" % (spec_name, TOKENS), entries + found,
               unit="tokens/s", work=TOKENS, bytes=1, bars=bars, missing=missing, judge=judge(context, shape[5]),
               rounds=5, note=NOTE + "; `rows`: activations in int8")


def prompt_row(context, name, spec_name):
    shape, spec = SHAPES[spec_name], context.spec(spec_name)
    weights = context.weights(spec)
    paths = context.inputs(name, tokens=np.random.default_rng(PROMPT).integers(3, shape[5], PROMPT))
    entries = ours(context, spec, weights, {
        "kind": "prefill", "inputs": paths, "outputs": {"logits": [shape[5]]}, "count": PROMPT, "threads": 1,
        "vocab": shape[5], "shape": shape}, (("int8", "int8", 1), INT8_ROWS, INT4_ROWS))
    found, missing = peers(context, spec_name, weights, paths, True) if context.peers else ([], {})
    bars = [against(PROMPT_BARS[machine.has_tiles()], "int8 x llama.cpp Q8_0", "Q8_0", of="int8")]
    return Row(name, "%s in int8 and int4, prompt of %d tokens, 1 thread" % (spec_name, PROMPT), entries + found,
               unit="tokens/s", work=PROMPT, flops=prompt_flops(shape), unit_of="int8", bars=bars, missing=missing,
               judge=judge(context, shape[5]), rounds=5, note=NOTE + "; `int8` has attention in bf16")


def together_row(context, name, spec_name):
    """Eight texts of the same decoder beside each other, and one alone; both take as many steps."""
    shape, spec, count = SHAPES[spec_name], context.spec(spec_name), TOKENS // 4
    weights, vocab = context.weights(spec), shape[5]
    tokens = np.random.default_rng(TOGETHER).integers(3, vocab, (count, TOGETHER))
    paths, alone = context.inputs(name, tokens=tokens), context.inputs(name + "-alone", tokens=tokens[:, :1])
    params = {"kind": "decode", "count": count, "threads": 1, "vocab": vocab, "shape": shape}
    kinds, entries = (INT8_HALF, INT4_HALF, INT8_ROWS, INT4_ROWS), []
    for texts, inputs in ((TOGETHER, paths), (1, alone)):
        labelled = [("%s, %d text%s" % (label, texts, "s" * (texts > 1)), *rest) for label, *rest in kinds]
        made = ours(context, spec, weights, dict(params, inputs=inputs, batch=texts,
                                                 outputs={"logits": [texts, vocab]}), labelled, count)
        entries += made if texts == 1 else made[:-1]

    def times(label):
        def measure(r):
            eight, one = ("attnc %s, %s" % (label, n) for n in ("%d texts" % TOGETHER, "1 text"))
            return statistics.median(a / b for a, b in zip(r.times[eight], r.times[one])) \
                if eight in r.times and one in r.times else None
        return measure
    int4 = 1.2 if machine.has_tiles() else 1.7
    bars = [Bar("%s, time of %d texts by that of 1" % (label, TOGETHER), needed, times(label), most=True)
            for label, needed in ((INT8_HALF[0], 1.2), (INT4_HALF[0], int4))]
    return Row(name, "%s, %d steps of %d texts beside each other, and of 1, 1 thread" % (spec_name, count, TOGETHER),
               entries, unit="ms", bytes=1, bars=bars, judge=judge(context, vocab), rounds=5,
               note=NOTE + "; ms for all steps; activations in int8")


ROWS = {"decode-%s-narrow" % SHORT[spec]: lambda context, name, spec=spec: decode_row(context, name, spec)
        for spec in ("llama2c_15m", "llama_110m")}
ROWS["prompt-15m-narrow"] = lambda context, name: prompt_row(context, name, "llama2c_15m")
ROWS["together-110m-narrow"] = lambda context, name: together_row(context, name, "llama_110m")
