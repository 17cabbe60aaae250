#!/usr/bin/env python3
"""Variations of saved models (tests/perturbed/BASE.zip, made by make.py): each is imported and interpreted, and its
outputs are those of Hugging Face transformers within 5e-5, or the import refuses it with the reason that refused.json
holds, or, of `foreign_KEY`, because it does not know KEY. Searches are in searches.py, tokenizers in texts.py. An
output that a note of the import names as left out is excused. A tenth of the variations has its turn with each commit;
ATTNC_LONG=1 tries all. Words are beginnings of names to try alone; --refused writes refused.json anew."""
import json
import os
import re
import shutil
import sys
import tempfile
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from lib import npy  # noqa: E402
from lib.attnc import LONG, attnc  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib.turns import turn  # noqa: E402
from searches import Search, searches  # noqa: E402
from texts import Text, texts  # noqa: E402

REFUSED = os.path.join(HERE, "refused.json")
TOLERANCE, TURNS = 5e-5, 10


def error_of(got, expected):
    """The largest |a - b| / (1 + max |b|), or a reason."""
    if got[0] != expected[0]:
        return "the shape is %s instead of %s" % (got[0], expected[0])
    worst = max((abs(a - b) for a, b in zip(got[1], expected[1])), default=0.0)
    error = worst / (1 + max((abs(b) for b in expected[1]), default=0))
    return "off by %.3g of %.3g" % (worst, max(map(abs, expected[1]))) if not error <= TOLERANCE else None


def cut_image(spec, path):
    """Keeps the first lines and columns of an image, as many as the spec reads: a note of the import wants this."""
    with open(spec, encoding="utf-8") as file:
        high, _, wide = re.search(r"patches image (\d+)( width (\d+))?", file.read()).groups()
    lines, columns = int(high), int(wide or high)
    (channels, rows, width), numbers = npy.read(path)
    kept = [numbers[(c * rows + y) * width + x] for c in range(channels) for y in range(lines) for x in range(columns)]
    npy.write(path, kept, (channels, lines, columns), "<f4")


class Variation:
    def __init__(self, base, name, members, plain):
        self.plain = plain
        self.base, self.variation, self.members = base, name, members
        self.name = base + "/" + name

    def unpack(self, folder):
        with zipfile.ZipFile(os.path.join(HERE, self.base + ".zip")) as archive:
            files = {"model.safetensors": self.members["weights"]}
            for kind in ("in", "out"):
                files.update({"%s.%s.npy" % (kind, k): v for k, v in self.members[kind].items()})
            for name, member in files.items():
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(archive.read(member))
        config = {k: v for k, v in self.plain.items() if k not in self.members["without"]}
        config.update(self.members["config"])
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)

    def check(self):
        """(problem or None, reason of a refusal or None)"""
        folder = tempfile.mkdtemp()
        try:
            self.unpack(folder)
            return self.compare(folder)
        finally:
            shutil.rmtree(folder)

    def compare(self, folder):
        def at(name):
            return os.path.join(folder, name)
        done = attnc("import", folder, "-o", at("spec.attn"))
        if done.returncode == 1:
            reason = done.stderr.strip().replace(folder + "/", "").removeprefix("attnc: error: ")
            key = self.variation.removeprefix("foreign_")
            unknown = key != self.variation and re.search(r"the key `%s`.* is unknown" % key, reason)
            return None, None if unknown else reason
        if done.returncode:
            return "import: status %d\n%s" % (done.returncode, done.stderr), None
        wanted = {k for k in self.members["out"] if not re.search(r"note: .*`%s`.* left out" % k, done.stderr)}
        if "no multiple of `patch_size`" in done.stderr:
            cut_image(at("spec.attn"), at("in.pixels.npy"))
        words = ["run", at("spec.attn"), "--weights", at("model.safetensors"), "--engine", "interp"]
        for name in self.members["in"]:
            words += ["--in", "%s=%s" % (name, at("in.%s.npy" % name))]
        for name in wanted:
            words += ["--out", "%s=%s" % (name, at("got.%s.npy" % name))]
        ran = attnc(*words)
        if ran.returncode:
            return "run: status %d\n%s" % (ran.returncode, ran.stderr), None
        for name in sorted(wanted):
            problem = error_of(npy.read(at("got.%s.npy" % name)), npy.read(at("out.%s.npy" % name)))
            if problem:
                return "%s: %s\n%s" % (name, problem, done.stderr), None
        return None, None


def variations():
    for file in sorted(os.listdir(HERE)):
        if not file.endswith(".zip"):
            continue
        with zipfile.ZipFile(os.path.join(HERE, file)) as archive:
            cases = json.loads(archive.read("cases.json"))
        for name in sorted(cases):
            yield Variation(file[:-4], name, cases[name], cases["plain"]["config"])


def judged(variation, refused):
    """What is wrong, or None: a refusal is right if it is a known one, with its reason."""
    if isinstance(variation, (Search, Text)):
        return variation.check()
    problem, reason = variation.check()
    known = refused.get(variation.name)
    if problem is None and reason != known:
        problem = "refused: %s\nknown: %s" % (reason, known)
    return problem


def write_refused(found, refused):
    tried = {v.name for v in found}
    refused = {name: reason for name, reason in refused.items() if name not in tried}
    with ThreadPoolExecutor(2) as pool:
        for variation, (problem, reason) in zip(found, pool.map(Variation.check, found)):
            if reason:
                refused[variation.name] = reason
            if problem:
                print("%s: %s" % (variation.name, problem))
    with open(REFUSED, "w", encoding="utf-8") as file:
        json.dump(refused, file, indent=0, sort_keys=True, ensure_ascii=False)
        file.write("\n")


def main():
    found = list(variations()) + ([] if "--refused" in sys.argv else [*searches(), *texts()])
    words = [w for w in sys.argv[1:] if not w.startswith("-")]
    if words:
        found = [v for v in found if any(v.name.startswith(w) for w in words)]
    elif not LONG and "--refused" not in sys.argv:
        at = turn() % TURNS
        found = [v for v in found if zlib.crc32(v.name.encode()) % TURNS == at]
    with open(REFUSED, encoding="utf-8") as file:
        refused = json.load(file)
    if "--refused" in sys.argv:
        return write_refused(found, refused)
    report = Report("perturbed")
    with ThreadPoolExecutor(2) as pool:
        for variation, problem in zip(found, pool.map(lambda v: judged(v, refused), found)):
            report.result(variation.name, problem)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
