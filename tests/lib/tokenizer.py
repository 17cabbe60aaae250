"""The tokenizer of the runtime in programs of the tests, and tests/tokenizers/encode.c, which prints what it gives."""
import glob
import os
import struct

from .attnc import ROOT, TESTS, run

SOURCES = sorted(glob.glob(os.path.join(ROOT, "runtime", "tokenizer", "*.c")))
LIBRARIES = ["-lonig", "-lcjson", "-lutf8proc", "-lpthread", "-lm"]


def encoder(path, compiler="cc", flags=("-std=c11", "-O1")):
    """Builds encode.c as the program `path`, and returns the path."""
    run(compiler, *flags, os.path.join(TESTS, "tokenizers", "encode.c"), *SOURCES, "-o", path, *LIBRARIES, status=0)
    return path


def framed(texts):
    """The bytes of texts as encode.c reads them, each after its length."""
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)
