#!/usr/bin/env python3
"""Real numbers of a spec at the edges of f32 and beyond them: attnc refuses a number with its place, or writes C that
compiles. NAME/WORD/NUMBER: a spec whose number after WORD is another one. words: every option of settings.def that
takes a real number is met. edge/NAME/WORD/NUMBER: `attnc check` with the least and the largest number that is legal.
config/FOLDER/KEY/NUMBER and gguf/KEY/NUMBER: an import takes the number, or names file and key.

Environment: ATTNC_QUICK=1 tries few numbers, ATTNC_LONG=1 all of them; else a part in turn with the commits."""
import concurrent.futures
import glob
import os
import json
import re
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import QUICK, ROOT, UNOPTIMIZED, attnc, run, said  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib import turns  # noqa: E402
from parity import gguf  # noqa: E402

REPORT = Report("reals")
NUMBERS = ("1e300", "1e39", "1e-40", "1e-46", "-0.0", "(-0.0)", "nan", "inf", "3.4e38", "3.5e38", "3.4028235e38",
           "1.17549436e-38", "0.0", "1.0")
NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
LAYER = "model m { d_model 16, vocab 20%s\n encoder { seq <= 8, %s\n layers 1 { attention self { %s }\n" \
        " ffn { %s } } }\n head none }\n"
OWN = {  # of words that no spec of tests/differential has a number for
    "norm": LAYER % (", norm rmsnorm pre eps 1e-5", "position learned", "heads 2", "d_ff 8"),
    "residual": LAYER % (", residual scale 0.5", "position learned", "heads 2", "d_ff 8"),
    "llama3": LAYER % ("", "position rope theta 500.0 llama3 factor 2.0 low 1.5 high 4.5 original 4", "heads 2",
                       "d_ff 8"),
    "yarn": LAYER % ("", "position rope theta 10.0 yarn factor 2.0 beta_fast 8.0 beta_slow 1.0 original 4",
                     "heads 2", "d_ff 8"),
    "yarn_own": LAYER % ("", "position rope theta 500.0 yarn factor 3.0 attention_factor 1.25 original 4", "heads 2",
                         "d_ff 8"),
    "linear": LAYER % ("", "position rope partial 0.5 linear factor 2.0", "heads 2", "d_ff 8"),
    "longrope": LAYER % ("", "position rope longrope factor 2.0 original 4 short 1.5 1.5 1.5 1.5 long 2.5 2.5 2.5 2.5",
                         "heads 2", "d_ff 8"),
    "alibi": LAYER % ("", "position alibi max 6.0 scaled", "heads 2, scale 0.5", "d_ff 8"),
    "capped": LAYER % ("", "position learned", "heads 2, softcap 5.0, clip 2.5, scale 0.5", "d_ff 8"),
    "router": LAYER % ("", "position learned", "heads 2", "d_ff 8, experts 4, top 2, router sigmoid scale 2.5"),
    "qk_norm": LAYER % ("", "position learned", "heads 2, qk_norm rmsnorm eps 1e-5", "d_ff 8"),
    "gated": LAYER % ("", "position learned", "heads 2", "d_ff 8, activation silu gated limit 2.5"),
    "latent": LAYER % ("", "position rope", "heads 2, head_dim 4, latent 8 rope 4 eps 1e-5, bias none", "d_ff 8"),
    "embedding": LAYER % (", embedding scale 4.5", "position learned", "heads 2", "d_ff 8"),
    "head": "model m { d_model 16, vocab 20\n decoder { seq <= 8, position rope\n"
            " layers 1 { attention self { heads 2 }\n ffn { d_ff 8 } } }\n head logits scale 0.5 softcap 30.0 }\n",
}


def words_of_reals():
    """{(setting, word)} of the options that take real numbers; the word of a bare value is empty."""
    with open(os.path.join(ROOT, "compiler", "model", "settings.def"), encoding="utf-8") as file:
        return set(re.findall(r'^OPTION\((\w+), "(\w*)", reals?,', file.read(), re.M))


def places(text, options):
    """(word, begin, end) of each real number that may stand after an option's word."""
    words = sorted({word or setting for setting, word in options})
    for found in re.finditer(r"\b(%s) (%s)" % ("|".join(words), NUMBER), text):
        yield found[1], found.start(2), found.end(2)


def specs():
    """(name, text)"""
    yield from OWN.items()
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "differential", "*.attn"))):
        with open(path, encoding="utf-8") as file:
            yield os.path.splitext(os.path.basename(path))[0], file.read()


def perturbed(_, text):
    """What is wrong with the compilation of such a spec, or None."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.attn")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = attnc("compile", path, "-o", folder, "--target", "scalar")
        written = sorted(file for file in os.listdir(folder) if file != "m.attn")
        if done.returncode == 1:
            if not re.search(r"m\.attn:\d+:\d+: ", done.stderr):
                return "no place in the error:\n" + said(done)
            return "an error, and files: %s" % written if written else None
        if done.returncode:
            return "exit status %d\n%s" % (done.returncode, said(done))
        sources = [os.path.join(folder, file) for file in written if file.endswith(".c")]
        done = run("clang", "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *sources)
        return said(done) if done.returncode else None


# The largest number of a range that ends before f32 does, and of factors whose products with rows would pass its end.
LARGEST = {"partial": "1.0", "low": "4.4", "softcap": "8.5070591e37", ("residual", "scale"): "1e18",
           ("router", "scale"): "1e18", "attention_factor": "1e18"}
LEAST = {"partial": "0.3", "high": "1.6"}


def edge(_, text):
    """What is wrong with the C of a spec at an edge, or None."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.attn")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = attnc("check", path, "--small", "--threads", "1", "--target", "scalar", "--cc", UNOPTIMIZED)
    return said(done) if done.returncode else None


def edges(options):
    """(name, text)"""
    for name, text in OWN.items():
        for at, (word, begin, end) in enumerate(places(text, options)):
            most = LARGEST.get((name, word), LARGEST.get(word, "3.4028235e38"))
            for number in (LEAST.get(word, "1.1754944e-38"), most):
                yield "edge/%s/%s.%d/%s" % (name, word, at, number), text[:begin] + number + text[end:]


FIXTURES = os.path.join(ROOT, "tests", "parity", "fixtures")
JSON_NUMBERS = ("1e300", "1e400", "1e39", "1e-40", "1e-46", "0.0")


def reals_of(value, path=()):
    """The paths to the numbers with a fraction in a config, and to its whole numbers that are a base of rotations."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(item, float) or (isinstance(item, int) and "theta" in str(key)):
            yield (*path, key)
        else:
            yield from reals_of(item, (*path, key))


def imported(source, folder, key, number):
    """What is wrong with an import of a file that holds the number under the key, or None."""
    spec = os.path.join(folder, "out.attn")
    done = attnc("import", source, "-o", spec)
    if done.returncode not in (0, 1):
        return "exit status %d\n%s" % (done.returncode, said(done))
    if done.returncode == 1:
        named = str(key) in done.stderr and ("config.json" in done.stderr or ".gguf" in done.stderr)
        return None if named and not os.path.exists(spec) else "no key, no file, or a spec is left\n" + said(done)
    done = attnc("compile", spec, "-o", folder, "--target", "scalar")
    return None if done.returncode in (0, 3) else "%s is accepted\n%s" % (number, said(done))


def config(_, fixture, path, number):
    """An import of a fixture, in whose config the number stands at the path."""
    with open(os.path.join(FIXTURES, fixture, "config.json"), encoding="utf-8") as file:
        whole = json.load(file)
    inner = whole
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = "@"
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(FIXTURES, fixture, "model.safetensors"), os.path.join(folder, "model.safetensors"))
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            file.write(json.dumps(whole).replace('"@"', number))
        return imported(folder, folder, [key for key in path if isinstance(key, str)][-1], number)


def configs():
    """(name, fixture, path, number)"""
    for fixture in sorted(os.listdir(FIXTURES)):
        path = os.path.join(FIXTURES, fixture, "config.json")
        weights = os.path.join(FIXTURES, fixture, "model.safetensors")
        if os.path.exists(path) and os.path.exists(weights) and "_part_" not in fixture:
            with open(path, encoding="utf-8") as file:
                for keys in reals_of(json.load(file)):
                    for number in JSON_NUMBERS:
                        name = "config/%s/%s/%s" % (fixture, ".".join(map(str, keys)), number)
                        yield name, fixture, keys, number


def in_gguf(_, data, key, bits):
    """An import of a GGUF file whose number of the key has these bits of f32."""
    at = data.index(key.encode()) + len(key) + 4
    assert struct.unpack("<I", data[at - 4:at])[0] == 6, key
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.gguf")
        with open(path, "wb") as file:
            file.write(data[:at] + struct.pack("<I", bits) + data[at + 4:])
        return imported(path, folder, key.split(".", 1)[1], "%x" % bits)


def ggufs():
    """(name, data, key, bits)"""
    for fixture in ("granitemoe_odd", "gemma2_odd"):
        data = gguf.convert(os.path.join(FIXTURES, fixture))
        keys = sorted(set(re.findall(rb"\w+\.[\w.]*(?:eps\w*|scale|softcapping|freq_base|epsilon)", data)))
        for key in map(bytes.decode, keys):
            for word, bits in (("denormal", 1), ("infinite", 0x7f800000), ("nan", 0x7fc00000)):
                yield "gguf/%s/%s" % (key, word), data, key, bits


def shared(items, quick, parts):
    items = list(items)
    return items[::quick] if QUICK else turns.in_turn(items, parts)


def jobs():
    """(test, name, what it takes) of every test whose turn it is."""
    options, every, met = words_of_reals(), [], set()
    for name, text in specs():
        for at, (word, begin, end) in enumerate(places(text, options)):
            met.add(word)
            for number in NUMBERS:
                changed = text[:begin] + number + text[end:]
                every.append((perturbed, "%s/%s.%d/%s" % (name, word, at, number), changed))
    absent = sorted({word or setting for setting, word in options} - met)
    REPORT.result("words", "no spec has a number after %s" % ", ".join(absent) if absent else None)
    return [*shared(every, 61, 12), *shared(((edge, *job) for job in edges(options)), 20, 6),
            *shared(((config, *job) for job in configs()), 211, 24),
            *shared(((in_gguf, *job) for job in ggufs()), 9, 4)]


def main():
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        given = jobs()
        for job, problem in zip(given, pool.map(lambda job: job[0](*job[1:]), given)):
            REPORT.result(job[1], problem)
    return REPORT.finish()


if __name__ == "__main__":
    sys.exit(main())
