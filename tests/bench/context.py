"""What rows are made from: libraries, weights, inputs and models of the peers, kept in build/bench."""
import hashlib
import os
import re
import shutil
import subprocess
import sys

import numpy as np

import env
from programs import build
from rows import Entry, NotRun

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = env.ROOT


class Context:
    def __init__(self, args, meter, cores):
        self.args, self.meter, self.cores = args, meter, cores
        self.quick, self.peers, self.root = args.quick, args.peers, ROOT
        for name in ("lib", "models", "inputs", "outputs", "logs"):
            os.makedirs(self.path(name), exist_ok=True)

    def path(self, *parts):
        return os.path.join(env.OUT, *parts)

    def spec(self, name):
        own = os.path.join(HERE, "specs", name + ".attn")
        return own if os.path.exists(own) else os.path.join(ROOT, "specs", name + ".attn")

    def row_cores(self, threads):
        if threads > len(self.cores):
            raise NotRun("needs %d cores, there are %d" % (threads, len(self.cores)))
        return self.cores[-threads:]

    def weights(self, spec, seed=1):
        """Random weights as safetensors, the same for everyone."""
        with open(spec, "rb") as file:
            tag = hashlib.sha256(file.read() + b"%d" % seed).hexdigest()[:12]
        path = self.path("models", "%s-%s.safetensors" % (build.model_name(spec), tag))
        if not os.path.exists(path):
            build.run([build.ATTNC, "weights", spec, "--weights", "random:%d" % seed, "-o", path])
        return path

    def inputs(self, row, **arrays):
        paths = {}
        for name, array in arrays.items():
            paths[name] = self.path("inputs", "%s.%s.npy" % (row, name))
            np.save(paths[name], array)
        return paths

    def made(self, name, *arguments):
        """A model for the peers, by models.py; kept, as it follows from its arguments and their files."""
        h = hashlib.sha256(repr(arguments).encode())
        for argument in list(arguments) + [os.path.join(HERE, "models.py")]:
            if os.path.isfile(argument):
                h.update(b"%d %d" % (os.path.getsize(argument), os.stat(argument).st_mtime_ns))
        stem, end = os.path.splitext(name)
        path = self.path("models", "%s-%s%s" % (stem, h.hexdigest()[:12], end))
        if not os.path.exists(path):
            partial = self.path("models", "partial-" + os.path.basename(path))
            done = subprocess.run([sys.executable, os.path.join(HERE, "models.py"), arguments[0], partial,
                                   *map(str, arguments[1:])], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False, env=dict(os.environ, HF_HUB_OFFLINE="1"))
            if done.returncode:
                raise NotRun((done.stdout.strip().split("\n") or ["?"])[-1][:200])
            os.rename(partial, path)
        return path

    def ours(self, name, spec, weights, params, **more):
        """An entry of ours: `cc`, `unroll` and `target` choose the build."""
        cc, unroll, target = more.pop("cc", "clang"), more.pop("unroll", None), more.pop("target", None)
        precision, folder = more.pop("precision", None), more.pop("folder", None)
        told = re.sub("[^a-z0-9]+", "_", precision) if precision else None
        out = self.path("lib", "-".join(filter(None, (cc, unroll, target, told, folder))))
        library, packed, _ = build.build(spec, weights, target, unroll, cc, out, precision)
        return Entry(name, "ours", dict(params, library=library, weights=packed), ours=True, **more)

    def quantized(self, name, spec, weights, bound, given):
        """(spec, weights) of what `attnc quantize` chooses within a bound of 1 - cos, from inputs for calibration."""
        if subprocess.run([build.ATTNC, "help", "quantize"], capture_output=True, check=False).returncode:
            raise NotRun("this attnc has no command quantize")
        os.makedirs(self.path("models", name), exist_ok=True)
        chosen = self.path("models", name, os.path.basename(spec))
        build.run([build.ATTNC, "quantize", spec, "--weights", weights, *given, "--bound", str(bound), "--measure",
                   "cos", "-o", chosen])
        vectors = chosen + ".vectors.safetensors"
        return chosen, ",".join([weights] + [vectors] * os.path.exists(vectors))

    def native(self, name, driver, extra, cc, flags):
        """A driver of lib/ in C, around a peer's source or libraries; `extra` are the files that it includes."""
        own = [os.path.join(HERE, "programs", f) for f in (driver, "timer.c")]
        return build.native(self.path("lib", name), own + extra, cc, flags)

    def both(self, spec, weights, params, **more):
        """What clang and gcc make of it."""
        entries = [self.ours("attnc", spec, weights, params, cc="clang", **more)]
        if not self.args.no_gcc and shutil.which("gcc"):
            entries.append(self.ours("attnc gcc", spec, weights, params, cc="gcc", **more))
        return entries
