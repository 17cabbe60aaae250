#!/usr/bin/env python3
"""Builds what attnc generates of a spec as a shared library with the ABI of bench.h.

    build.py SPEC [--weights F|random:SEED] [--target T[,T…]] [--unroll auto|full|loops] [--cc CC] [--precision P]
             [--out DIR]

Leaves libNAME.so, NAME.attnw, NAME.c, NAME.h and bench.h in DIR (build/bench/lib). Nothing is compiled again unless the
C or the compiler changed."""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
ATTNC = os.environ.get("ATTNC", os.path.join(ROOT, "build", "attnc"))
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fvisibility=hidden"]


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError("%s: %s" % (" ".join(map(os.path.basename, command[:2])), done.stderr.strip()[:400]))
    return done.stdout


def model_name(spec):
    with open(spec, encoding="utf-8") as file:
        return re.search(r"^\s*model\s+(\w+)", file.read(), re.M).group(1)


# What bench_call holds of the fields that generated structs may have.
INPUTS = ("source_lengths", "tokens", "segments", "source", "target", "features", "pixels", "query",
          "mel", "in_group")
OUTPUTS = ("hidden", "pooled", "logits", "context", "encoder_hidden")


def abilities(header, name):
    """Definitions for bench_lib.c: fields of the generated structs, and which of the optional functions there are."""
    def fields(struct, known, take):
        body = re.search(r"typedef struct %s_%s \{(.*?)\} %s_%s;" % (name, struct, name, struct), header, re.S).group(1)
        there = re.findall(r"\*(\w+);", body)
        return " ".join("%s(%s)" % (take, field) for field in known if field in there)
    shared = ["-DBENCH_INPUTS=" + fields("input", INPUTS, "GIVE"),
              "-DBENCH_OUTPUTS=" + fields("output", OUTPUTS, "WANT")]
    if re.search(r"^    int tiles;", header, re.M):
        shared.append("-DBENCH_HAS_TILES=1")
    there = [f for f in ("step", "encode") if re.search(r"\b%s_%s\(" % (name, f), header)]
    if "encode" in there and not re.search(r"^    const int32_t \*source;", header, re.M):
        there = []  # decoding by hand is of sources of tokens
    return shared + ["-DBENCH_HAS_%s=1" % f.upper() for f in there]


def digest(paths, *texts):
    h = hashlib.sha256(repr(texts).encode())
    for path in paths:
        with open(path, "rb") as file:
            h.update(file.read())
    return h.hexdigest()


def write_and_pack(spec, weights, options, out, name):
    """attnc compile, unless it wrote the same before: to round the weights of a large model to int4 takes a minute."""
    stamp, made = os.path.join(out, name + ".packed"), [os.path.join(out, name + end) for end in (".c", ".h", ".attnw")]
    given = [(path, os.path.getsize(path), os.stat(path).st_mtime_ns) for path in [ATTNC, *weights.split(",")]
             if os.path.exists(path)]
    wanted = digest([spec], given, weights, options)
    if all(map(os.path.exists, [stamp, *made])):
        with open(stamp, encoding="utf-8") as file:
            if file.read() == wanted:
                return
    if os.path.exists(stamp):
        os.remove(stamp)
    run([ATTNC, "compile", spec, "-o", out, "--weights", weights, "--runtime", *options])
    with open(stamp, "w", encoding="utf-8") as file:
        file.write(wanted)


def build(spec, weights="random:1", target=None, unroll=None, cc="clang", out=None, precision=None):
    """Paths of the library and of its weights, and the seconds that `cc` took (None: it was built already)."""
    out = out or os.path.join(ROOT, "build", "bench", "lib")
    os.makedirs(out, exist_ok=True)
    name = model_name(spec)
    options = (["--target", target] if target else []) + (["--unroll", unroll] if unroll else []) + \
        (["--precision", precision] if precision else [])
    write_and_pack(spec, weights, options, out, name)
    with open(os.path.join(out, name + ".h"), encoding="utf-8") as file:
        able = abilities(file.read(), name)
    defines = ["-DBENCH_NAME=" + name, "-DBENCH_CAPS=" + name.upper(), '-DBENCH_HEADER="%s.h"' % name]
    defines += able
    sources = [os.path.join(out, f)
               for f in (name + ".c", "attn_runtime.c", "attn_generate.c", "attn_rules.c", "attn_sample.c")]
    own = [os.path.join(HERE, f) for f in ("bench_lib.c", "timer.c")]
    library, stamp = os.path.join(out, "lib%s.so" % name), os.path.join(out, name + ".stamp")
    shutil.copy(os.path.join(HERE, "bench.h"), out)
    wanted = digest(sources + own + [os.path.join(HERE, "bench.h")], FLAGS, defines, run([cc, "--version"]))
    weights_path = os.path.join(out, name + ".attnw")
    if os.path.exists(library) and os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as file:
            if file.read() == wanted:
                return library, weights_path, None
    begin = time.perf_counter()
    run([cc, *FLAGS, *defines, "-I" + out, "-I" + HERE, *sources, *own, "-shared", "-Wl,-Bsymbolic", "-o", library,
         "-lm", "-lpthread"])
    took = time.perf_counter() - begin
    with open(stamp, "w", encoding="utf-8") as file:
        file.write(wanted)
    return library, weights_path, took


def native(library, sources, cc, flags):
    """A shared library of `sources`, built anew when they, the flags or the compiler change."""
    stamp = library + ".stamp"
    wanted = digest(sources, flags, run([cc, "--version"]))
    if os.path.exists(library) and os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as file:
            known = file.read()
    else:
        known = ""
    if known != wanted:
        run([cc, *flags, "-fPIC", "-shared", "-fvisibility=hidden", "-w", "-I" + HERE,
             *(s for s in sources if s.startswith(HERE)), "-o", library, *(f for f in flags if f.startswith("-l"))])
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(wanted)
    return library


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec")
    for option, default in (("weights", "random:1"), ("target", None), ("unroll", None), ("cc", "clang"),
                            ("out", None), ("precision", None)):
        parser.add_argument("--" + option, default=default)
    args = parser.parse_args()
    try:
        library, weights, _ = build(args.spec, args.weights, args.target, args.unroll, args.cc, args.out,
                                    args.precision)
    except (OSError, RuntimeError) as error:
        sys.exit("build.py: %s" % error)
    print("%s\n%s\n%s" % (library, weights, os.path.join(os.path.dirname(library), "bench.h")))


if __name__ == "__main__":
    main()
