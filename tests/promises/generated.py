"""Part of run.py: the files that attnc writes have the same bytes wherever they are written, and by whichever attnc: by
one that another compiler built, on another processor, under other addresses, in another language or folder. So have the
sines and powers of attnc's own, of which few tables show the last bit: unit/test_elementary runs there as well."""
import hashlib
import os
import platform
import re
import shutil

from common import must, read, result
from lib.attnc import ATTNC, LONG, QUICK, ROOT, make, run
from lib.targets import of_processor
from lib.turns import in_turn

SPECS = [  # and how they are compiled
    ("tests/codegen/single.attn", ["--embed-weights", "--runtime"]),
    ("tests/decode/longrope.attn", []),
    ("tests/decode/pair.attn", ["--target", "neon,scalar"]),
    ("tests/differential/rope_scaled.attn", ["--target", ",".join(of_processor())]),
    ("tests/differential/sinusoid_fairseq.attn", ["--unroll", "loops"]),
    ("tests/differential/relative_per_layer.attn", ["--embed-weights"]),
    ("tests/differential/alibi_scaled_causal.attn", ["--target", "scalar"]),
    ("tests/codegen/odd_full.attn", ["--embed-weights"]),
]
IMPORTED = "tests/parity/fixtures/gpt2_odd"
BUILDS = [("gcc", "-O2 -march=native"), ("clang", "-O0")]
MORE_BUILDS = [("gcc", "-O0"), ("clang", "-O3 -march=native"), ("gcc", "-O3")]
GCC_AARCH64 = "aarch64-linux-gnu-gcc"


def written(attnc, folder, where=ROOT, env=None, specs=None):
    """Name and hash of all that attnc writes for the specs, from files below `where`, run in the folder above it."""
    files = {}
    os.makedirs(folder)

    def call(*words):
        must(*attnc, *words, cwd=os.path.dirname(where), env=env)

    for number, (spec, options) in enumerate(specs or SPECS):
        to, path = os.path.join(folder, str(number)), os.path.join(where, spec)
        call("compile", path, "-o", to, "--weights", "random:3", *options)
        call("pack", path, "--weights", "random:3", "-o", to + "/packed.attnw")
        call("weights", path, "--weights", "random:4", "-o", to + "/drawn.safetensors")
        for name in sorted(os.listdir(to)):
            files[spec + " " + name] = hashlib.sha256(read(os.path.join(to, name))).hexdigest()
    to = os.path.join(folder, "imported.attn")
    call("import", os.path.join(where, IMPORTED), "-o", to)
    files["import"] = hashlib.sha256(read(to)).hexdigest()
    return files


def compare(name, wanted, files):
    other = sorted(key for key in wanted if files.get(key) != wanted[key])
    result("bytes/" + name, "other bytes: " + ", ".join(other) if other or len(files) != len(wanted) else None)


class Wanted:
    """What build/attnc writes, once."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.specs = SPECS[:: 4] if QUICK else SPECS
        self.files = written([ATTNC], self.folder("wanted"), specs=self.specs)
        if len(self.files) < 4 * len(self.specs):
            raise AssertionError("attnc writes only %s" % sorted(self.files))

    def folder(self, name):
        return os.path.join(self.scratch, "bytes-" + re.sub(r"\W", "_", name))  # make takes `=` for a variable

    def same(self, name, attnc, **more):
        compare(name, self.files, written(attnc, self.folder(name), specs=self.specs, **more))


def places(wanted):
    """In another folder with other paths, and in another environment."""
    copy = os.path.join(wanted.scratch, "a place of its own", "deep", "down")
    for spec, _ in wanted.specs:
        os.makedirs(os.path.dirname(os.path.join(copy, spec)), exist_ok=True)
        shutil.copy(os.path.join(ROOT, spec), os.path.join(copy, spec))
    shutil.copytree(os.path.join(ROOT, IMPORTED), os.path.join(copy, IMPORTED))
    wanted.same("another folder", [ATTNC], where=copy)
    listed = run("locale", "-a").stdout.split()
    foreign = [name for name in listed if name[:2] not in ("C", "C.", "PO", "en")] or listed or ["C"]
    env = {"PATH": os.environ["PATH"], "LANG": foreign[0], "LC_ALL": foreign[0], "TZ": "Asia/Kathmandu",
           "TMPDIR": wanted.folder("temporary"), "COLUMNS": "20", "TERM": "xterm", "MALLOC_PERTURB_": "165",
           "SOURCE_DATE_EPOCH": "1"}
    alone = {**dict.fromkeys(os.environ), **env}
    os.mkdir(env["TMPDIR"])
    wanted.same("another environment", [ATTNC], env=alone)
    if shutil.which("setarch"):
        wanted.same("fixed addresses", ["setarch", platform.machine(), "-R", ATTNC])
    else:
        result("bytes/fixed addresses", skip="setarch is not there")


def old_processor(wanted):
    """Without fused multiply-adds, where libm takes other ways."""
    if platform.machine() != "x86_64" or not shutil.which("qemu-x86_64"):
        result("bytes/an old processor", skip="qemu-x86_64 is not there, or this machine is no x86-64")
        return
    old = ["qemu-x86_64", "-cpu", "Nehalem"]
    make("build/unit/test_elementary", status=0)
    must(*old, "build/unit/test_elementary")
    wanted.same("an old processor", [*old, ATTNC])


def built_by(wanted, cc, flags):
    if not shutil.which(cc):
        result("bytes/attnc by %s %s" % (cc, flags), skip=cc + " is not there")
        return
    folder = wanted.folder("build" + cc + flags)
    numbers = folder + "/unit/test_elementary"
    make("B=" + folder, "CC=" + cc, "CFLAGS=-std=c11 -D_GNU_SOURCE -w " + flags, folder + "/attnc", numbers, status=0)
    must(numbers)
    wanted.same("attnc by %s %s" % (cc, flags), [folder + "/attnc"])


def aarch64(wanted):
    """attnc for aarch64, which tests/portability builds as well."""
    name, library = "bytes/attnc for aarch64", "build/aarch64/root/usr/lib/aarch64-linux-gnu/libzstd.so"
    if platform.machine() == "aarch64" or not shutil.which(GCC_AARCH64) or not shutil.which("qemu-aarch64"):
        result(name, skip="this machine is one, or there is no " + GCC_AARCH64 + " or qemu-aarch64")
        return
    if not os.path.exists(os.path.join(ROOT, library)):
        result(name, skip="make aarch64 has not been run: there are no libraries for it")
        return
    make("CC=" + ("clang" if shutil.which("clang") else "gcc"), "aarch64", status=0)
    emulated = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", os.path.join(ROOT, "build/aarch64/attnc")]
    wanted.same("attnc for aarch64", emulated)


def jobs(scratch):
    """Names and calls."""
    wanted = Wanted(scratch)
    calls = [("bytes/places", places, wanted)]
    if not QUICK:
        builds = BUILDS + MORE_BUILDS if LONG else BUILDS
        others = [("bytes/built by %s %s" % build, built_by, wanted, *build) for build in builds]
        others += [("bytes/an old processor", old_processor, wanted), ("bytes/attnc for aarch64", aarch64, wanted)]
        calls += in_turn(others, 4)
    return calls
