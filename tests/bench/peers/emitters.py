"""What other programs write as C of an ONNX file: emx-onnx-cgen and onnx2c, compiled by gcc -O3 -march=native."""
import ctypes as c
import os
import shutil
import subprocess
import sys

import numpy as np

from worker import Peer

FLAGS = ["-std=gnu11", "-O3", "-march=native", "-fPIC", "-shared", "-fvisibility=hidden", "-w"]


def failed(done):
    text = (done.stderr or done.stdout or "").strip().split("\n")
    return next((line for line in text if "error" in line.lower()), text[-1])[-160:]


def emit_emx(model, folder):
    """Temporaries on the stack and sums in f32, its fastest settings."""
    program = os.path.join(os.path.dirname(sys.executable), "emx-onnx-cgen")
    path = os.path.join(folder, "emx.c")
    done = subprocess.run([program, "compile", "--color", "never", "--large-temp-threshold", "0",
                           "--large-weight-threshold", "0", "--fp32-accumulation-strategy", "simple", model, path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(failed(done))
    return path, "model"


def emit_onnx2c(program, model, folder):
    if not program or not shutil.which(program):
        raise RuntimeError("ONNX2C=PATH names no program onnx2c")
    path = os.path.join(folder, "onnx2c.c")
    done = subprocess.run([program, model], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(failed(done))
    with open(path, "w", encoding="utf-8") as file:
        file.write(done.stdout)
    return path, "entry"


def compile_emitted(source, entry, here):
    library = source[:-2] + ".so"
    done = subprocess.run(["gcc", *FLAGS, "-I" + os.path.join(here, "lib"), '-DEMITTED_SOURCE="%s"' % source,
                           "-DEMITTED_ENTRY=" + entry, os.path.join(here, "lib", "emitted.c"),
                           os.path.join(here, "lib", "timer.c"), "-o", library, "-lm"],
                          stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError("its C does not compile: " + failed(done))
    return library


class Emitted(Peer):
    def __init__(self, params):
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        library, reasons = None, []
        # As one operator LayerNormalization is what they know best; where that fails, in pieces.
        for model in params["models"]:
            folder = os.path.splitext(model)[0] + "-" + params["peer"]
            os.makedirs(folder, exist_ok=True)
            try:
                source, entry = emit_emx(model, folder) if params["peer"] == "emx" else \
                    emit_onnx2c(params["program"], model, folder)
                library = compile_emitted(source, entry, here)
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
