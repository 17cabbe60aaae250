"""Decoders of llama's kind: 256 tokens one by one from an empty state, and a prompt in one call. Everyone is fed the
same tokens and computes the logits of each."""
import functools
import glob
import os
import shutil

import numpy as np

import env
from programs import build
from rows import Entry, NotRun, Row, against, gcc_near_clang, of_read

TOKENS, PROMPT = 256, 128
# spec: layers, width, heads, kv_heads, d_ff, vocab, seq, how rope pairs columns
SHAPES = {"stories260k": (5, 64, 8, 4, 172, 512, 512, "half"),
          "llama2c_15m": (6, 288, 6, 6, 768, 32000, 256, "interleaved"),
          "llama_110m": (12, 768, 12, 12, 2048, 32000, 1024, "interleaved")}
SHORT = {"stories260k": "260k", "llama2c_15m": "15m", "llama_110m": "110m"}


def matrix_numbers(shape):
    """Of all matrices that a token is multiplied by; the table is the head's as well."""
    layers, width, heads, kv_heads, d_ff, vocab = shape[:6]
    return layers * (2 * width * width + 2 * width * width * kv_heads // heads + 3 * width * d_ff) + vocab * width


def decode_bytes(shape):
    """Read for all TOKENS tokens: weights once a token, and the keys and values before it and its own."""
    layers, width, heads, kv_heads = shape[:4]
    rows = TOKENS * (TOKENS + 1) // 2
    return 4 * (TOKENS * matrix_numbers(shape) + rows * 2 * layers * width * kv_heads // heads)


def prompt_flops(shape):
    """The logits are of the last row alone."""
    layers, width, vocab = shape[0], shape[1], shape[5]
    scores = 4 * PROMPT * (PROMPT + 1) // 2 * width * layers
    return 2 * PROMPT * (matrix_numbers(shape) - vocab * width) + 2 * vocab * width + scores


@functools.lru_cache(None)
def llama_cpp(tiles=False):
    return env.llama_cpp(tiles)


def llama_version(source):
    found = os.path.basename(os.path.dirname(os.path.dirname(source)))
    return "of " + found.replace("_", "-")


def llama2c_entries(context, model, params, threads):
    entries, missing = [], {}
    source = context.args.llama2c
    for cc in ("clang", "gcc"):
        name = "llama2.c " + cc
        if not source or not os.path.isfile(source):
            missing["llama2.c"] = "LLAMA2C=PATH names its run.c"
            break
        try:
            flags = ["-Ofast", "-march=native", '-DLLAMA2C_SOURCE="%s"' % os.path.abspath(source), "-lm"] + \
                (["-fopenmp"] if threads > 1 else [])
            library = context.native("libllama2c-%s-%d.so" % (cc, threads), "llama2c.c", [os.path.abspath(source)], cc,
                                     flags)
            entries.append(Entry(name, "llamas", dict(params, library=library, model=model)))
        except RuntimeError as error:
            missing[name] = "does not compile: " + str(error).split("\n")[0][-120:]
    return entries, missing


def llamacpp_library(context, tiles=False):
    """(the library of our loop around it, the version)."""
    found = llama_cpp(tiles)
    if isinstance(found, str):
        raise NotRun(found)
    source, libraries = found
    flags = ["-O2", "-I" + os.path.join(source, "include"), "-I" + os.path.join(source, "ggml", "include"),
             "-L" + libraries, "-Wl,-rpath," + libraries, "-lllama", "-lggml", "-lggml-base", "-lm"]
    try:
        return context.native("libllamacpp%s.so" % ("-amx" * tiles), "llamacpp.c",
                              [os.path.join(source, "include", "llama.h")], "clang", flags), llama_version(source)
    except RuntimeError as error:
        raise NotRun(str(error)[-160:]) from error


def llamacpp_entries(context, model, params):
    library, version = llamacpp_library(context)
    common = dict(params, library=library, model=model, version=version)
    # Its fused attention, which is its default, sums in 16 bits.
    flash = Entry("llama.cpp flash", "llamas", dict(common, flash=1), bound=5e-3)
    return [Entry("llama.cpp", "llamas", common)] + ([] if context.quick else [flash])


def peers(context, spec_name, weights, params, threads):
    shape = SHAPES[spec_name]
    entries, missing = [], {}
    for label, form in (("llama2.c", "llama-bin"), ("llama.cpp", "llama-gguf")):
        if label == "llama2.c" and params["together"]:
            continue  # it has no way to take a prompt but token by token
        try:
            model = context.made("%s.%s" % (spec_name, form[6:]), form, weights, shape[2], shape[3], shape[6], shape[7])
            found, reasons = llama2c_entries(context, model, params, threads) if label == "llama2.c" else \
                (llamacpp_entries(context, model, params), {})
            entries += found
            missing.update(reasons)
        except NotRun as error:
            missing[label] = str(error)
    return entries, missing


def real_stories(context):
    """The trained weights of stories260K under canonical names, where $ATTNC_FIXTURES has them; None without."""
    base = os.environ.get("ATTNC_FIXTURES", "")
    found = glob.glob(os.path.join(base, "**", "stories260K", "model.safetensors"), recursive=True) if base else []
    if not found:
        return None
    path = context.path("models", "stories260k-real.safetensors")
    build.run([build.ATTNC, "weights", context.spec("stories260k"), "--weights", found[0], "-o", path + ".new"])
    if os.path.exists(path) and open(path, "rb").read() == open(path + ".new", "rb").read():
        os.remove(path + ".new")
    else:
        shutil.move(path + ".new", path)
    return found[0], path


def row(context, name, spec_name, threads, prompt=False):
    shape, spec = SHAPES[spec_name], context.spec(spec_name)
    real = real_stories(context) if spec_name == "stories260k" else None
    given, weights = real or (context.weights(spec),) * 2
    count = PROMPT if prompt else TOKENS
    tokens = np.random.default_rng(count).integers(3, shape[5], count)
    paths = context.inputs(name, tokens=tokens)
    entries = context.both(spec, given, {
        "kind": "prefill" if prompt else "decode", "inputs": paths, "outputs": {"logits": [shape[5]]},
        "count": count, "threads": threads})
    missing = {}
    if context.peers:
        params = {"inputs": [paths["tokens"]], "threads": threads, "vocab": shape[5], "together": prompt}
        found, missing = peers(context, spec_name, weights, params, threads)
        entries += found
    bars = []
    if prompt:
        bars = [against(1.6, "x llama.cpp", "llama.cpp")]
    elif threads == 1 and spec_name == "stories260k":
        bars = [against(4.0, "x llama2.c", "llama2.c")]
    elif threads == 1:
        bars = [of_read(0.93), against(1.05, "x llama2.c", "llama2.c"), against(1.05, "x llama.cpp", "llama.cpp")]
    what = "prompt of %d tokens" % PROMPT if prompt else "%d tokens one by one" % TOKENS
    return Row(name, "%s, %s, %d thread%s" % (spec_name, what, threads, "s" * (threads > 1)), entries, threads=threads,
               unit="tokens/s", work=count, flops=prompt_flops(shape) if prompt else None,
               bytes=None if prompt or spec_name == "stories260k" else decode_bytes(shape),
               bars=bars + [gcc_near_clang()], missing=missing, bound=1e-4,
               note="real weights" if real else "random weights")


ROWS = {"decode-%s-%dt" % (SHORT[spec], threads): lambda context, name, spec=spec, threads=threads:
        row(context, name, spec, threads) for spec in SHAPES for threads in (1, 2)}
ROWS["prompt-15m-1t"] = lambda context, name: row(context, name, "llama2c_15m", 1, True)
