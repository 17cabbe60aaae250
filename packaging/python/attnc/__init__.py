"""Calls of attnc, a compiler of transformers into C.

    import attnc
    attnc.import_model("folder", "model.attn")
    attnc.package("model.attn", "package", weights="folder", tokenizer="folder")

Each function runs the program that this package contains, or that of the environment variable ATTNC, and raises Error
with its message where it fails. An option of the program is a keyword: `embed_weights=True` is `--embed-weights`,
`target=["avx2", "scalar"]` is `--target avx2,scalar`, and None or False leaves the option out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, Union

__all__ = ["Error", "call", "check", "compile", "generate", "import_model", "map", "package", "program", "run"]

Path = Union[str, "os.PathLike[str]"]


class Error(RuntimeError):
    """What attnc said. `status` is its exit status: 1 where the spec or an input is wrong, 2 for wrong usage, 3 where
    something is not possible, 4 for a bug of attnc, 5 where memory ran out."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def program() -> str:
    """The path of the program."""
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "attnc")
    found = os.environ.get("ATTNC") or (inside if os.path.exists(inside) else shutil.which("attnc"))
    if not found:
        raise Error("there is no program attnc: neither in this package, nor in ATTNC, nor on the path", 2)
    return found


def _words(options: Mapping[str, Any]) -> list[str]:
    """An option of a list of pairs, as those of dicts, is given once for each; other lists are joined by commas."""
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, Mapping):
            for key, one in value.items():
                words += [flag, "%s=%s" % (key, os.fspath(one))]
        elif isinstance(value, (str, os.PathLike)) or not isinstance(value, Iterable):
            words += [flag, str(value if not isinstance(value, os.PathLike) else os.fspath(value))]
        else:
            words += [flag, ",".join(str(one) for one in value)]
    return words


def call(*words: Any, **options: Any) -> str:
    """Runs `attnc WORDS OPTIONS` and returns what it printed."""
    texts = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in words]
    done = subprocess.run([program(), *texts, *_words(options)], stdin=subprocess.DEVNULL, capture_output=True,
                          encoding="utf-8", errors="replace", check=False)
    if done.returncode:
        message = done.stderr.strip() or done.stdout.strip() or "attnc ended with the status %d" % done.returncode
        raise Error(message[len("attnc: error: "):] if message.startswith("attnc: error: ") else message,
                    done.returncode)
    return done.stdout


def compile(spec: Path, folder: Path, **options: Any) -> str:  # pylint: disable=redefined-builtin
    """Writes NAME.c and NAME.h of a spec into a folder, and NAME.attnw with `weights`. Options are those of
    `attnc help compile`: weights, target, unroll, embed_weights, precision, reproducible, runtime."""
    return call("compile", spec, "-o", folder, **options)


def import_model(folder: Path, spec: Path, **options: Any) -> str:
    """Writes the spec of a model that Hugging Face transformers has saved, or of a GGUF file, whose path is `folder`.
    Options are those of `attnc help import`: name, seq and others."""
    return call("import", folder, "-o", spec, **options)


def package(spec: Path, folder: Path, **options: Any) -> str:
    """Writes a model as a Python package, which `pip install FOLDER` builds. Options: weights, tokenizer, target,
    precision, reproducible."""
    return call("python", spec, "-o", folder, **options)


def check(spec: Path, **options: Any) -> str:
    """Compares the compiled C of a spec with the interpreter; the table of the comparison."""
    return call("check", spec, **options)


def _saved(folder: str, inputs: Mapping[str, Any]) -> dict[str, str]:
    import numpy

    paths = {}
    for name, value in inputs.items():
        paths[name] = os.path.join(folder, "in_%s.npy" % name)
        numpy.save(paths[name], numpy.asarray(value))
    return paths


def run(spec: Path, weights: Any, inputs: Mapping[str, Any], outputs: Iterable[str], **options: Any) -> dict[str, Any]:
    """Runs a spec on arrays of numpy, or on lists of numbers, and returns {output: array}. Options are those of
    `attnc help run`: engine, target, threads, precision and others."""
    import numpy

    with tempfile.TemporaryDirectory() as folder:
        paths = {name: os.path.join(folder, "out_%s.npy" % name) for name in outputs}
        call("run", spec, **{"weights": weights, "in": _saved(folder, inputs), "out": paths, **options})
        return {name: numpy.load(path) for name, path in paths.items()}


def generate(spec: Path, weights: Any, inputs: Mapping[str, Any], max_new: int, **options: Any) -> Any:
    """Continues prompts, and returns the prompts and their new tokens as an array. Options are those of
    `attnc help generate`: beam, temperature, top_p, seed and others."""
    import numpy

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokens.npy")
        call("generate", spec, **{"weights": weights, "in": _saved(folder, inputs), "max_new": max_new,
                                  "out": {"tokens": path}, **options})
        return numpy.load(path)


def map(spec: Path, page: Path, weights: Any, inputs: Mapping[str, Any],  # pylint: disable=redefined-builtin
        **options: Any) -> str:
    """Writes a page that shows the attention of a sequence for every layer and head."""
    with tempfile.TemporaryDirectory() as folder:
        return call("map", spec, "-o", page, **{"weights": weights, "in": _saved(folder, inputs), **options})
