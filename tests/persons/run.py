#!/usr/bin/env python3
"""What README.md lets five people type, with small models under the names of the folders and files that it names: the
commands end well, and what they print is what attnc computes of the same ids. Speaks TAP.

Models, tokenizers and sounds come from tests/parity and tests/lib/words.py."""
import ast
import json
import math
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import gguf, npy  # noqa: E402
from lib.attnc import ATTNC, COMPILERS, ROOT, TESTS, attnc, run  # noqa: E402
from lib.tap import Skip, run_tests  # noqa: E402
from lib.words import END, START, TOKENIZER  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HIDDEN = 256, 256  # a block of Q4_K has 256 numbers
CUE = r"\d+\n\d\d:\d\d:\d\d,\d\d\d --> \d\d:\d\d:\d\d,\d\d\d\n.*\n\n"
PROBE = """import importlib.util, numpy, os, setuptools, sysconfig
assert importlib.util.find_spec("pip") and os.path.exists(sysconfig.get_paths()["include"] + "/Python.h")"""


def ways():
    """The commands of each of the five ways, and the project of the last one."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = file.read()
    section = text.split("\n## Five ways in\n")[1].split("\n## ")[0]
    commands = re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)
    (project,) = re.findall(r"^```cmake\n(.*?)^```$", section, re.M | re.S)
    example = dict(re.findall(r"^```(attn|c)\n(.*?)^```$", text.split("\n## An example\n")[1], re.M | re.S))
    assert len(commands) == 5, "%d ways" % len(commands)
    return commands, project, example


def ids_of(text):
    return [int(word[1:]) for word in text.split()]


def python_with_numpy():
    """A Python that can build a package: the environment's, this one or the system's."""
    for python in (os.environ.get("ATTNC_PYTHON"), sys.executable, "/usr/bin/python3"):
        if python and shutil.which(python) and not subprocess.run([python, "-c", PROBE], capture_output=True,
                                                                  check=False).returncode:
            return python
    raise Skip("no Python with numpy, setuptools, pip and its headers")


class Persons:
    def __init__(self, scratch):
        self.scratch = scratch
        self.commands, self.project, self.example = ways()

    def path(self, *names):
        return os.path.join(self.scratch, *names)

    def write(self, path, content):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))

    def folder(self, name, model, **files):
        shutil.copytree(os.path.join(TESTS, "parity", model), self.path(name), ignore=shutil.ignore_patterns("*.npy"))
        for file, content in files.items():
            self.write(os.path.join(name, file.replace("__", "/") + ".json"), content)

    def type(self, commands, path=(), **env):
        """What the commands print, typed in the folder of the models, with this attnc on the path."""
        path = os.pathsep.join([os.path.dirname(ATTNC), *path, os.environ["PATH"]])
        return run("bash", "-euc", commands, cwd=self.scratch, env={"PATH": path, "PYTHONPATH": None, **env}, status=0)

    def generated(self, spec, weights, name, ids, *words):
        """The new ids of attnc generate in the interpreter."""
        npy.write(self.path("ids.npy"), ids, descr="<i8")
        return [int(word) for word in attnc(
            "generate", spec, "--weights", weights, "--in", "%s=%s" % (name, self.path("ids.npy")), *words, "--engine",
            "interp", status=0).stdout.split()]

    def test_vectors_in_python(self):
        python = python_with_numpy()
        self.folder("all-MiniLM-L6-v2", "fixtures/distilbert_odd", tokenizer=TOKENIZER, modules=[
            {"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
            for i, (path, kind) in enumerate((("", "Transformer"), ("1_Pooling", "Pooling"), ("2_N", "Normalize")))])
        with open(self.path("all-MiniLM-L6-v2", "config.json"), encoding="utf-8") as file:
            width = json.load(file)["dim"]
        self.write("all-MiniLM-L6-v2/1_Pooling/config.json", {"word_embedding_dimension": width,
                                                             "pooling_mode_mean_tokens": True})
        run(python, "-m", "venv", "--system-site-packages", "--without-pip", self.path("venv"), status=0)
        self.write("venv/bin/pip", '#!/bin/sh\nexec "$(dirname "$0")/python3" -m pip "$@"\n')
        os.chmod(self.path("venv", "bin", "pip"), 0o755)
        offline = {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "CFLAGS": "-O1"}
        said = self.type(self.commands[0], [self.path("venv", "bin")], **offline).stdout
        shown = ast.literal_eval(re.sub(r"(?<=\d|\.)\s+(?=[-\d\]])", ",", said[said.index("[["):]).replace(
            "]\n [", "],[").replace(",]", "]"))
        attnc("import", self.path("all-MiniLM-L6-v2"), "-o", self.path("m.attn"), status=0)
        npy.write(self.path("ids.npy"), [START, 1, 1, END], descr="<i8")  # of words that the tokenizer lacks
        attnc("run", self.path("m.attn"), "--weights", self.path("all-MiniLM-L6-v2"), "--in",
              "tokens=" + self.path("ids.npy"), "--out", "pooled=" + self.path("out.npy"), "--engine", "interp",
              status=0)
        wanted = list(npy.read(self.path("out.npy")).numbers)
        assert [len(row) for row in shown] == [width, width], said
        assert math.dist(shown[0], wanted) < 1e-5 and math.dist(shown[1], wanted) < 1e-5, (shown, wanted)

    def quantized(self, path):
        """A llama in Q4_K with random numbers, whose tokenizer has a letter for each token."""
        draw = random.Random(5)
        pieces = gguf.LETTERS + ["O", "."]

        def numbers(shape):
            count = math.prod(shape)
            if len(shape) == 1:
                return struct.pack("<%df" % count, *[1.0] * count)
            return b"".join(struct.pack("<ee", 0.0015, 0.011) + bytes(12 * [0x55]) + draw.randbytes(128)
                            for _ in range(count // 256))
        keys, tensors = gguf.llama(pieces, WIDTH, HIDDEN, 160, "Q4_K", numbers)
        with open(path, "wb") as file:
            file.write(gguf.pack(keys.items(), tensors))
        return pieces

    def test_sampled_text_of_k_quants(self):
        pieces = self.quantized(self.path("Llama-3.2-1B-Q4_K_M.gguf"))
        *_, program = self.commands[1].splitlines()
        first = self.type(self.commands[1]).stdout
        again, other = (self.type(words).stdout for words in (program, program.replace("--seed 1", "--seed 2")))
        assert first.endswith(again) and again.startswith("Once upon a time"), (first, again)
        assert again != other and other.startswith("Once upon a time"), "all seeds write the same"
        spec = self.path("llama", "Llama_3_2_1B_Q4_K_M")
        ids = [1] + [pieces.index(c if c != " " else "\u2581") for c in " Once upon a time"]
        new = self.generated(spec + ".attn", spec + ".attnw", "tokens", ids, "--temperature", "0.8", "--top-p", "0.95",
                             "--seed", "1", "--max-new", "100")
        text = "".join(pieces[i] for i in new if i > 2).replace("\u2581", " ")
        assert again.rstrip("\n") == "Once upon a time" + text.rstrip("\n"), (again, text)

    def test_streams(self):
        """The text comes in parts, each as soon as it is known."""
        spec = self.path("llama", "Llama_3_2_1B_Q4_K_M")
        if not os.path.exists(spec):
            raise Skip("the program was not built")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # a packet for each write
        with ours, subprocess.Popen([spec, "--temperature", "0.8", "--seed", "1", "--max-new", "100", "Once"],
                                    stdout=theirs, stderr=subprocess.DEVNULL) as program:
            theirs.close()
            parts = list(iter(lambda: ours.recv(1 << 16), b""))
        text = b"".join(parts).decode().rstrip("\n")
        assert program.returncode == 0 and text.startswith("Once") and len(parts) > len(text) // 2 > 5, parts

    def test_translation_with_beams(self):
        self.folder("opus-mt-en-de", "fixtures/marian_odd", tokenizer=TOKENIZER)
        said = self.type(self.commands[2]).stdout.splitlines()[-1]
        spec = self.path("translate", "opus_mt_en_de")
        with open(spec + ".attn", encoding="utf-8") as file:
            bound = int(re.search(r"decoder \{\s*seq <= (\d+)", file.read())[1])
        words = ["--beam", "6"]
        with open(spec + ".attn", encoding="utf-8") as file:
            stated = re.search(r"max_(new|length) ", file.read())
        new = self.generated(spec + ".attn", spec + ".attnw", "source", [START, 1, 1, 1, 1, END], *words,
                             *([] if stated else ["--max-new", str(bound)]))
        assert ids_of(said) == [i for i in new if i not in (START, END)], (said, new)
        (one,) = self.type('echo "w4 w6" | translate/opus_mt_en_de --beams 6').stdout.splitlines()
        (same,) = self.type('translate/opus_mt_en_de --beams 6 "w4 w6"').stdout.splitlines()
        assert one == same and one, (one, same)

    def test_subtitles_of_an_mp3(self):
        self.folder("whisper-tiny", "sounds/several")
        tool = self.path("mp3")
        built = run("cc", os.path.join(HERE, "mp3.c"), "-o", tool, "-lsndfile")
        if built.returncode:
            raise Skip("no libsndfile1-dev of version 1.1")
        if run(tool, self.path("whisper-tiny", "2.wav"), self.path("talk.mp3")).returncode == 3:
            raise Skip("libsndfile was built without MP3")
        with open(self.path("talk.mp3"), "rb") as file:
            assert file.read(4)[:2] != b"RI", "a WAVE file"
        self.type(self.commands[3])
        with open(self.path("talk.srt"), encoding="utf-8") as file:
            text = file.read()
        assert re.fullmatch("(%s)+" % CUE, text), text
        run(tool, self.path("talk.mp3"), self.path("talk.wav"), status=0)
        assert self.type("whisper/whisper_tiny --srt talk.wav").stdout == text, "the same samples, other words"

    def test_spec_in_a_c_project(self):
        if not shutil.which("cmake"):
            raise Skip("no cmake")
        cpp = self.project.replace("LANGUAGES C)", "LANGUAGES C CXX)\nset(CMAKE_CXX_STANDARD 20)").replace(
            "add_executable(tiny main.c", "set_source_files_properties(main.cpp PROPERTIES COMPILE_OPTIONS "
            "\"-Wold-style-cast\")\nadd_executable(tiny main.cpp")
        assert "main.cpp" in cpp and "CXX" in cpp, cpp
        own = {"attn": "tiny.attn", "c": "main.c"}
        main = self.example["c"].replace("static _Alignas(TINY_ALIGNMENT)", "alignas(TINY_ALIGNMENT) static")
        main = re.sub(r"(\w+) (\w+) = \{\.(.*?)\};", lambda m: "%s %s = {};\n" % (m[1], m[2]) + "".join(
            "%s.%s;\n" % (m[2], part) for part in m[3].split(", .")), main)  # since g++ warns of absent members
        main, casts = re.subn(r"\(double\)(\w+\[0\]\[0\]|\w+\[1\]\[0\])", r"static_cast<double>(\1)", main)
        assert main.count("= {};") == 2 and casts == 2, main
        printed = set()
        for compiler in COMPILERS:
            for name, project, files in (("c", self.project, {}), ("cpp", cpp, {"main.cpp": main})):
                folder = "project_%s_%s" % (compiler, name)
                for kind, file in own.items():
                    self.write(os.path.join(folder, file), self.example[kind])
                for file, content in {"CMakeLists.txt": project, **files}.items():
                    self.write(os.path.join(folder, file), content)
                both = {"CC": compiler, "CXX": {"gcc": "g++", "clang": "clang++"}[compiler]}
                said = self.type("cd %s\n%s" % (folder, self.commands[4]), **both).stdout
                assert "warning" not in said, said
                printed.add(said.splitlines()[-1])
        assert len(printed) == 1 and re.match(r"\w+: -?[\d.e-]+ -?[\d.e-]+ \.\.\.$", printed.pop()), printed


if __name__ == "__main__":
    sys.exit(run_tests("persons", Persons))
