#!/usr/bin/env python3
"""What attnc emits, linked into programs: an encoder, a decoder with its cache, an encoder with a decoder, and code
without a loop, all with their weights inside, by every compiler and in many ways. Whatever the way, the numbers are bit
for bit those of `attnc run`, and the texts those of `attnc generate`. VARIANT/PROGRAM/TARGET; VARIANT/symbols: what
the objects ask of others; VARIANT/threads, pool, steps, contexts, texts: modes of main.c; races: the threads under
ThreadSanitizer; fast_math: refused; warnings/…: none. Speaks TAP.

Environment: ATTNC_LONG=1 takes every way, ATTNC_QUICK=1 one; else a sample, of which a
part takes turns with the commits."""
import concurrent.futures
import os
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from lib import npy  # noqa: E402
from lib.attnc import ATTNC, LONG, NO_TARGET, QUICK, ROOT  # noqa: E402
from lib.attnc import run as run_command  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib.targets import of_processor  # noqa: E402
from lib.turns import in_turn  # noqa: E402

RUNTIME = os.path.join(ROOT, "runtime")
RUNTIME_SOURCES = [os.path.join(RUNTIME, name + ".c")
                   for name in ("attn_runtime", "attn_generate", "attn_rules", "attn_sample")]
MODELS = ["sentence", "speaker", "translator", "straight"]
TARGETS = of_processor()
CXX = {"clang": "clang++", "gcc": "g++"}
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror"]
ALLOWED = {"memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"}
FREE = ["-ffreestanding", "-nostdlib"]
WAYS = [
    ["-O0"], ["-O1"], ["-O2"], ["-O3"], ["-Os"], ["-O2", "-fno-builtin"], ["-O2", *FREE],
    ["-O3", *FREE, "-fno-builtin"], ["-O0", *FREE], ["-O2", "-fPIC", "-shared"], ["-O2", "-flto"],
    ["-O3", "-fno-strict-aliasing"],
    ["-O2", "-funsigned-char"], ["-O2", "-fvisibility=hidden"], ["-O3", "-march=native"],
    ["-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast"],
]
SAMPLE = [("clang", ["-O0"]), ("gcc", ["-O2", *FREE]), ("gcc", WAYS[-1]), ("clang", ["-O1", "-flto"])]
ALL = [(cc, way) for way in WAYS for cc in CXX]
VARIANTS = SAMPLE[:1] if QUICK else ALL if LONG else SAMPLE[:1] + in_turn(SAMPLE[1:])

report = Report("dropin")
result = report.result
pool = concurrent.futures.ThreadPoolExecutor(2)


class Wrong(Exception):
    """What a command said that should have succeeded."""


def run(command, **more):
    return run_command(*command, text=False, **more)


def must(command, **more):
    ran = run(command, **more)
    if ran.returncode:
        text = (ran.stderr or ran.stdout).decode(errors="replace")
        raise Wrong(" ".join(command)[:300] + f": exit {ran.returncode}\n" + text)
    return ran.stdout


def title(cc, way):
    return "_".join([cc] + [flag.lstrip("-") for flag in way])


# ---------------------------------------------------------------- what the numbers should be


def ids(count, step, below):
    """As calls.c has them."""
    return [(i * step + 3) % below for i in range(count)]


def attnc_run(model, target, inputs, outputs):
    with tempfile.TemporaryDirectory() as folder:
        words = []
        for name, numbers in inputs.items():
            npy.write(os.path.join(folder, name), numbers)
            words += ["--in", f"{name}={folder}/{name}"]
        for name in outputs:
            words += ["--out", f"{name}={folder}/{name}"]
        must([ATTNC, "run", os.path.join(HERE, model + ".attn"), "--weights", "random:5", "--engine", "compiled",
              "--target", target, *words])
        return [npy.read(os.path.join(folder, name)).numbers.tobytes() for name in outputs]


def expected(target):
    """What a program writes: calls_run, model by model. A text gives the same in one call and row by row."""
    spoken, target_ids = ids(11, 5, 29), ids(6, 9, 23)
    text = ids(17, 7, 31)
    jobs = [("sentence", {"tokens": text[:5]}, ["hidden", "pooled"]),
            ("sentence", {"tokens": text[5:]}, ["hidden", "pooled"]),
            ("speaker", {"tokens": spoken}, ["hidden", "logits"]),
            ("translator", {"source": ids(7, 5, 23), "target": target_ids}, ["hidden", "logits"]),
            ("straight", {"tokens": ids(4, 7, 19)}, ["hidden"])]
    short, long, speaker, translator, straight = pool.map(lambda job: attnc_run(job[0], target, *job[1:]), jobs)
    last = speaker[1][-29 * 4:]
    return b"".join([short[0], long[0], short[1], long[1], speaker[0], speaker[0], speaker[1], last, *translator,
                     translator[0], straight[0]])


def expected_texts(folder, target):
    npy.write(folder + "/prompt.npy", [1, 5, 9])
    lines = []
    for beams in ("1", "3"):
        said = must([ATTNC, "generate", os.path.join(HERE, "speaker.attn"), "--weights", "random:5", "--in",
                     f"tokens={folder}/prompt.npy", "--max-new", "12", "--beam", beams, "--target", target])
        lines.append(said.split()[-12:])
    return lines


# ---------------------------------------------------------------- programs


class Ways:
    def __init__(self, folder):
        self.folder = folder
        self.wanted = {}  # target: what the first program wrote, or attnc run
        self.includes = ["-I", folder, "-I", RUNTIME, "-I", HERE]
        target = ",".join(TARGETS)
        for model in MODELS:
            must([ATTNC, "compile", os.path.join(HERE, model + ".attn"), "-o", folder, "--weights", "random:5",
                  "--embed-weights", "--target", target])

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def compile(self, compiler, flags, sources, where):
        """Objects of sources, two at a time."""
        os.makedirs(self.path(where), exist_ok=True)
        objects = [self.path(where, os.path.basename(source) + "." + compiler + ".o") for source in sources]
        commands = [[compiler, *flags, *self.includes, "-c", source, "-o", output]
                    for source, output in zip(sources, objects)]
        list(pool.map(must, commands))
        return objects

    def models(self, cc, flags, where):
        standard = [] if any(flag.startswith("-std") for flag in flags) else ["-std=c11"]
        return self.compile(cc, standard + flags, [self.path(model + ".c") for model in MODELS], where)

    def programs(self, cc, way):
        """(name, path) of each program of a variant."""
        where = title(cc, way)
        shared, free = "-shared" in way, FREE[0] in way
        flags = [flag for flag in way if flag not in ("-shared", "-nostdlib")]
        objects = self.models(cc, flags, where)
        self.check_symbols(where, objects)
        if free:
            program = self.path(where, "start")
            must([cc, "-std=c11", *way, "-static", *STRICT, *self.includes, os.path.join(HERE, "start.c"),
                  os.path.join(HERE, "calls.c"), *objects, "-o", program])
            return [("start", program)]
        if shared:
            must([cc, "-shared", *objects, "-o", self.path(where, "libmodels.so")])
            objects = [self.path(where, "libmodels.so"), "-Wl,-rpath," + self.path(where)]
        runtime = self.compile(cc, ["-std=c11", *flags, "-D_GNU_SOURCE"], RUNTIME_SOURCES, where)
        found = []
        own = [os.path.join(HERE, name + ".c") for name in ("main", "calls")]
        cpp = [flag for flag in flags if not flag.startswith("-std")]
        cpp += ["-std=c++17" if LONG else "-std=c++20", "-x", "c++"]
        for compiler, options in ((cc, ["-std=c11", *flags, "-D_GNU_SOURCE"]), (CXX[cc], cpp)):
            program = self.path(where, compiler)
            drivers = self.compile(compiler, [*options, *STRICT], own, where)
            must([compiler, *flags, *drivers, *objects, *runtime, "-o", program, "-lpthread"])
            found.append((compiler, program))
        return found

    def check_symbols(self, where, objects):
        """Of the objects alone, which are the linker's own format but with -flto; and they go together."""
        if "flto" in where:
            return
        listed = must(["nm", "-u", "-P", *objects]).decode().splitlines()
        asked = {line.split()[0] for line in listed if len(line.split()) > 1} - ALLOWED
        result(where + "/symbols", "undefined: " + " ".join(sorted(asked)) if asked else None)

    def check_numbers(self, name, program, target):
        ran = run([program, target])
        if ran.returncode == NO_TARGET:
            result(f"{name}/{target}", skip="this machine lacks it")
            return
        problem = None if ran.returncode == 0 else f"exit {ran.returncode}: {ran.stderr.decode()}"
        wanted = self.wanted.setdefault(target, ran.stdout)
        if not problem and (ran.stdout != wanted or len(wanted) < 4000):
            apart = sum(ran.stdout[i:i + 4] != wanted[i:i + 4] for i in range(0, len(wanted), 4))
            problem = f"{len(ran.stdout)} bytes; {len(wanted)} are wanted; {apart} numbers differ"
        result(f"{name}/{target}", problem)

    def check_modes(self, name, program, best, texts):
        for mode in ("threads", "pool", "steps", "scalar"):
            ran = run([program, best, mode])
            fine = ran.returncode == 0 and not ran.stderr
            shown = "contexts" if mode == "scalar" else mode
            result(f"{name}/{shown}", None if fine else f"exit {ran.returncode}: {ran.stderr.decode()[-2000:]}")
        said = run([program, best, "texts"])
        got = [line.split() for line in said.stdout.splitlines()]
        result(f"{name}/texts", None if got == texts and said.returncode == 0 else f"{got}, expected {texts}")


def races(ways, best):
    if not shutil.which("clang"):
        raise Wrong("clang is not here")
    flags = ["-O1", "-g1", "-fsanitize=thread"]
    objects = ways.models("clang", flags, "races")
    objects += ways.compile("clang", ["-std=c11", "-D_GNU_SOURCE", *flags],
                            [os.path.join(HERE, name + ".c") for name in ("main", "calls")] + RUNTIME_SOURCES, "races")
    program = ways.path("races", "main")
    must(["clang", *flags, *objects, "-o", program, "-lpthread"])
    for mode in ("threads", "pool", "scalar"):
        ran = run([program, best, mode])
        fine = ran.returncode == 0 and not ran.stderr
        result("races/" + ("contexts" if mode == "scalar" else mode), None if fine else ran.stderr.decode()[-3000:])


def fast_math(ways, cc):
    problem = None
    search = [source for source in RUNTIME_SOURCES if not source.endswith("attn_runtime.c")]
    for flags in (["-O2", "-ffast-math"], ["-Ofast"]):
        for source in (ways.path("straight.c"), *search):
            ran = run([cc, *flags, "-fsyntax-only", source])
            if ran.returncode == 0 or b"IEEE arithmetic" not in ran.stderr:
                problem = f"{source} {flags}: exit {ran.returncode}: {ran.stderr.decode()[:500]}"
    result(f"fast_math/{cc}", problem)


def warnings(ways, cc):
    """What the other suites do not ask: conversions and shadows, C17, and headers as C++20."""
    # -O1, for without it gcc's intrinsics are macros whose conversions are its own
    jobs = [[cc, "-std=" + standard, "-O1", "-fsyntax-only", *STRICT, ways.path(model + ".c")]
            for standard in ("c11", "c17") for model in MODELS]
    jobs += [[CXX[cc], "-std=" + standard, "-fsyntax-only", *STRICT, "-Wold-style-cast",
              "-Wno-unused-function", "-x", "c++", "-I", RUNTIME,
              macros_of(ways, model)] for standard in ("c++17", "c++20") for model in MODELS]
    said = [ran.stderr.decode() for ran in pool.map(run, jobs) if ran.returncode or ran.stderr]
    result(f"warnings/{cc}", "".join(said)[:3000] if said else None)


def macros_of(ways, model):
    """A source in C++ that includes the headers of a model and expands each of their macros that has a cast."""
    with open(ways.path(model + ".h"), encoding="utf-8") as file:
        header = file.read()
    sizes = re.findall(r"^#define (\w+_BYTES)(?:\((threads)\))? ", header, re.M)
    assert len(sizes) >= 2, header
    lines = ["#include \"attn_transcribe.h\"", "#include \"%s\"" % ways.path(model + ".h")]
    lines += ["size_t size_%d();\nsize_t size_%d() { return %s%s; }" % (i, i, name, "(1)" if threads else "")
              for i, (name, threads) in enumerate(sizes)]
    if "_prefill(" in header:
        lines += ["ATTN_MODEL_OF(%s);" % model]
    if "_SET_SEARCH(" in header:
        lines += ["void search(attn_generate_options *options);",
                  "void search(attn_generate_options *options) { static_cast<void>(options); %s_SET_SEARCH(options); }"
                  % model.upper()]
    path = ways.path(model + "_macros.cpp")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def guarded(name, function, *arguments):
    try:
        return function(*arguments)
    except Wrong as wrong:
        result(name, str(wrong))
    return None


def here(best):
    """The targets of this machine whose numbers are compared with attnc run: all, or the best one."""
    return [target for target in TARGETS if LONG or target == best]


def best_target(ways):
    """As attnc picks it."""
    said = run([ATTNC, "check", os.path.join(HERE, "straight.attn"), "--target", "native", "--small"])
    lines = said.stdout.decode().splitlines()
    return lines[1].split()[0] if len(lines) > 1 else TARGETS[0]


def everything(ways):
    best = best_target(ways)
    texts = expected_texts(ways.folder, best)
    for target in [] if QUICK else here(best):
        try:
            ways.wanted[target] = expected(target)
        except Wrong as wrong:
            if "this machine has no" not in str(wrong):
                raise
    for cc, way in VARIANTS:
        for compiler, program in guarded(title(cc, way), ways.programs, cc, way) or []:
            name = f"{title(cc, way)}/{compiler}"
            for target in TARGETS[:1] if QUICK else TARGETS:
                ways.check_numbers(name, program, target)
            if compiler != "start" and not QUICK:
                ways.check_modes(name, program, best, texts)
    for cc in CXX:
        fast_math(ways, cc)
        if not QUICK:
            guarded(f"warnings/{cc}", warnings, ways, cc)
    if not QUICK:
        guarded("races", races, ways, best)


def main():
    with tempfile.TemporaryDirectory() as folder:
        try:
            everything(Ways(folder))
        except Wrong as wrong:
            result("everything", str(wrong))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
