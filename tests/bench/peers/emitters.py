"""What other programs write as C of an ONNX file: emx-onnx-cgen and onnx2c, compiled by gcc -O3 -march=native."""
import ctypes as c
import os
import shutil
import subprocess
import sys

import numpy as np

from programs import build
from worker import Peer

FLAGS = ["-std=gnu11", "-O3", "-march=native", "-lm"]
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def emitted(program, arguments, model, path, printed):
    """Runs `program`; `printed`: the C is what it prints. C that is newer than the model and the program is kept."""
    found = shutil.which(program) if program else None
    if not found:
        raise RuntimeError("there is no program %s" % program)
    if os.path.exists(path) and os.path.getmtime(path) > max(os.path.getmtime(model), os.path.getmtime(found)):
        return path
    done = subprocess.run([found, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip().split("\n")[-1][-160:])
    if printed:
        with open(path, "w", encoding="utf-8") as file:
            file.write(done.stdout)
    return path


def emit(params, model):
    """A file of C and the name of its function."""
    stem = os.path.splitext(model)[0]
    if params["peer"] == "onnx2c":
        return emitted(params["program"], [model], model, stem + ".onnx2c.c", True), "entry"
    # Temporaries on the stack, weights in the C, and sums in f32: its fastest settings.
    path = stem + ".emx.c"
    program = os.path.join(os.path.dirname(sys.executable), "emx-onnx-cgen")
    return emitted(program, ["compile", "--color", "never", "--large-temp-threshold", "0", "--large-weight-threshold",
                             "0", "--fp32-accumulation-strategy", "simple", model, path], model, path, False), "model"


def compile_emitted(source, entry):
    own = [os.path.join(HERE, "programs", f) for f in ("emitted.c", "timer.c")]
    try:
        return build.native(source[:-2] + ".so", own + [source], "gcc",
                            FLAGS + ['-DEMITTED_SOURCE="%s"' % source, "-DEMITTED_ENTRY=" + entry])
    except RuntimeError as error:
        line = next((line for line in str(error).split("\n") if "error" in line), str(error))
        raise RuntimeError("its C does not compile: " + line[-160:]) from error


class Emitted(Peer):
    def __init__(self, params):
        library, reasons = None, []
        # As one operator LayerNormalization is what they know best; where that fails, in pieces.
        for model in params["models"]:
            try:
                library = compile_emitted(*emit(params, model))
                break
            except RuntimeError as error:
                reasons.append(str(error))
        if not library:
            raise RuntimeError(reasons[0])
        self.note = "LayerNormalization in pieces" if reasons else ""
        self.lib = c.CDLL(library)
        self.lib.emitted_run.argtypes = [c.c_void_p, c.c_void_p]
        self.lib.emitted_time.argtypes = [c.c_void_p, c.c_void_p, c.c_double, c.c_double, c.POINTER(c.c_double),
                                          c.POINTER(c.c_long)]
        self.features = np.ascontiguousarray(np.load(params["inputs"][0]))
        self.result = np.zeros_like(self.features)
        self.arrays = (self.features.ctypes.data, self.result.ctypes.data)

    def run(self):
        self.lib.emitted_run(*self.arrays)

    def output(self):
        return self.result

    def time(self, seconds, sample):
        median, calls = c.c_double(), c.c_long()
        self.lib.emitted_time(*self.arrays, seconds, sample, median, calls)
        return median.value, calls.value


def prepare(params):
    return Emitted(params)
