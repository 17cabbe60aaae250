"""The commands that tests/faults tries, with small inputs."""
import os
import shutil

from lib import npy, safetensors
from lib.attnc import ATTNC, QUICK, UNOPTIMIZED, run

KINDS = ("out_of_memory", "failing_calls", "interrupted_calls", "short_calls", "killed", "stopped")
FIXTURE = "tests/parity/fixtures/gpt2_odd"
ENCODER, DECODER = "specs/small_encoder.attn", "tests/differential/decoder_only.attn"

# The same C gives the same library, and a run takes milliseconds.
CC = """#!/bin/sh
ATTNC_KEPT=%s exec %s "$@"
"""


# In place of the clang that makes WebAssembly: writes to what follows -o.
TO_WASM = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo module >"$2"
"""
PAGE = ["index.html", "page.css", "page.js", "show.js", "worker.js", "model.js", "tokenizer.js", "models.js",
        "steps.js", "unicode.js", "small_encoder_simd.wasm", "small_encoder_scalar.wasm", "small_encoder.attnw",
        "tokenizer.json"]
RUNTIME = [stem + end for stem in ("attn_runtime", "attn_generate", "attn_rules", "attn_sample")
           for end in (".c", ".h")]
MODEL = ["small_encoder.c", "small_encoder.h", "small_encoder.attnw"]
PYTHON = ["setup.py", "pyproject.toml", *(f"small_encoder/{name}" for name in [
    *MODEL, *RUNTIME, "__init__.py", "__init__.pyi", "py.typed", "_core.c", "attn_py.h", "attn_py_model.c",
    "attn_py_object.c", "attn_py_given.c", "attn_py_result.c", "attn_py_buffer.c", "attn_py_buffer.h"])]
RUST = ["Cargo.toml", "build.rs", "rustfmt.toml", "tests/model.rs", *(f"c/{name}" for name in MODEL + RUNTIME),
        *(f"src/{name}" for name in ["lib.rs", "model.rs", "ffi.rs", "memory.rs", "error.rs", "arrays.rs", "shim.c"])]


class Command:
    """`@` in an argument is the folder of the outputs. Of each kind of fault at most `most` are tried, without
    ATTNC_LONG. steady: the output is the same each time. also: what an error may say in place of the system's
    reason."""
    def __init__(self, name, arguments, outputs=(), most=40, steady=True, kinds=KINDS, also=()):
        self.name, self.arguments, self.outputs = name, arguments.split(), outputs
        self.most, self.steady, self.kinds, self.also = most, steady, kinds, also


def write_shards(folder):
    """The fixture's tensors in two files with an index."""
    os.mkdir(folder)
    for name in ("model.safetensors", "config.json"):
        shutil.copy(os.path.join(FIXTURE, name), folder)
    safetensors.split(folder, lambda names: (names[:len(names) // 2], names[len(names) // 2:]))


def commands(folder):
    ids, sharded, cc, to_wasm, kept, saved = (os.path.join(folder, name) for name in (
        "ids.npy", "sharded", "cc", "to_wasm", "libraries", "saved"))
    weights, packed = folder + "/w.safetensors", folder + "/w.attnw"
    npy.write(ids, [1, 2, 3, 4])
    write_shards(sharded)
    os.mkdir(kept)
    os.mkdir(saved)
    with open(cc, "w", encoding="utf-8") as file:
        file.write(CC % (kept, UNOPTIMIZED))
    with open(to_wasm, "w", encoding="utf-8") as file:
        file.write(TO_WASM)
    os.chmod(cc, 0o755)
    os.chmod(to_wasm, 0o755)
    for make in (["weights", ENCODER, "--weights", "random:3", "-o", weights],
                 ["pack", ENCODER, "--weights", weights, "-o", packed]):
        run(ATTNC, *make, status=0)
    os.link(weights, saved + "/model.safetensors")
    compiled = "--engine compiled --target scalar --cc " + cc
    prompt = f"--in tokens={ids} --max-new 3 --ignore-eos"
    few = [
        Command("fmt", f"fmt {ENCODER}"),
        Command("fmt -o", f"fmt {ENCODER} -o @/a.attn", ["a.attn"]),
        Command("compile", f"compile {ENCODER} -o @ --target scalar,avx2 --runtime --weights {weights}",
                [*MODEL, *RUNTIME]),
        Command("run compiled", f"run {ENCODER} --weights {packed} --in tokens={ids} --out hidden=@/h.npy --out "
                f"pooled=@/p.npy --threads 2 {compiled}", ["h.npy", "p.npy"]),
    ]
    return few if QUICK else few + [
        Command("help", "help"),
        Command("help compile", "help compile"),
        Command("version", "--version"),
        Command("targets", "--targets"),
        Command("dump", f"--dump=ast,model,graph,plan {ENCODER}"),
        Command("weights", f"weights {ENCODER}"),
        Command("weights -o", f"weights {ENCODER} --weights {packed} -o @/w.safetensors", ["w.safetensors"]),
        Command("pack", f"pack {ENCODER} --weights {weights} -o @/w.attnw", ["w.attnw"]),
        Command("pack of a folder", f"pack {ENCODER} --weights {saved} -o @/w.attnw", ["w.attnw"]),
        Command("run interp", f"run {ENCODER} --weights {weights} --in tokens={ids} --engine interp "
                "--out hidden=@/h.npy", ["h.npy"]),
        Command("generate interp", f"generate {DECODER} --weights random:1 {prompt} --engine interp "
                "--out tokens=@/t.npy", ["t.npy"]),
        Command("generate compiled", f"generate {DECODER} --weights random:1 {prompt} --beam 2 --stream {compiled}"),
        Command("page", f"page {ENCODER} --weights {weights} --tokenizer examples/dates/tokenizer.json -o @ "
                f"--cc {to_wasm}", PAGE, most=40),
        Command("python", f"python {ENCODER} --weights {weights} --target scalar -o @", PYTHON, most=16),
        Command("rust", f"rust {ENCODER} --weights {weights} --target scalar -o @", RUST, most=16),
        Command("import", f"import {FIXTURE} -o @/g.attn", ["g.attn"]),
        Command("import sharded", f"import {sharded} -o @/g.attn", ["g.attn"]),
        Command("map", f"map {ENCODER} --weights random:1 --in tokens={ids} -o @/m.html --engine interp", ["m.html"]),
        Command("explain", f"explain {ENCODER} --html @/e.html", ["e.html"], most=6, steady=False),
        Command("compare", f"compare {ENCODER} --weights {weights} --in tokens={ids} --engine interp --precision int4 "
                "--html @/c.html", ["c.html"], steady=False),
        Command("bench", f"bench {ENCODER} --seq 4 --target scalar --cc {cc}", most=4, steady=False),
        Command("check", f"check {ENCODER} --target scalar --lengths 1,3 --cc {cc}", most=40),
    ]
