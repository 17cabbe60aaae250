#!/usr/bin/env python3
"""What `make install` gives other builds: the examples for pkg-config and CMake are built against an installed tree
that was moved, and say what attnc itself says; CMake's function, its dependencies and its errors; the grammar for
editors.
Speaks TAP."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy  # noqa: E402
from lib.attnc import ROOT, make  # noqa: E402
from lib.attnc import run as run_command  # noqa: E402
from lib.tap import Report, run_tests  # noqa: E402
from grammar import Grammar  # noqa: E402

# Without what a make around this one hands on, and what would name other packages.
ALONE = {name: None for name in os.environ if name.startswith(("MAKE", "MFLAGS", "PKG_CONFIG", "CMAKE_", "attnc_"))}
STRICT = "-std=c11 -O2 -Wall -Wextra -Wconversion -Wshadow -Werror"

# A model whose embedded weights are too large for the text of the C, in a shared library of a project of its own.
PROJECT = """cmake_minimum_required(VERSION 3.13)
project(embedded LANGUAGES C)
find_package(attnc ${ASK} REQUIRED)
if(CASE)
    include("${CASE}")
    return()
endif()
attnc_add_model(words big.attn WEIGHTS w.safetensors EMBED_WEIGHTS TARGETS avx2 scalar OPTIONS --unroll loops)
add_library(plugin SHARED plugin.c)
target_link_libraries(plugin PRIVATE words attnc::runtime)
add_executable(app app.c)
target_link_libraries(app PRIVATE plugin)
"""
BIG = """# model small { the name is not this one }
model big {
    d_model 32, vocab 20000
    encoder { seq = 4, position none, layers 1 { attention self { heads 2 }
                                  ffn { d_ff 32 } } }
    head pool mean
}
"""
PLUGIN = """#include "big.h"
#include <attn_runtime.h>
#include <stdio.h>
int show(void);
int show(void) {
    const int32_t lengths[] = {4}, tokens[] = {1, 19999, 3, 4};
    float pooled[32];
    big_input input = {.size = sizeof input, .batch = 1, .lengths = lengths, .tokens = tokens};
    big_output output = {.size = sizeof output, .pooled = pooled};
    void *workspace = attn_alloc(BIG_WORKSPACE_BYTES(1));
    big_options options = {.size = sizeof options, .target = "scalar"};
    big_ctx model;
    int status = big_init(&model, big_embedded(), BIG_WEIGHTS_BYTES, &options);
    if (!status) status = big_forward(&model, &input, &output, workspace, BIG_WORKSPACE_BYTES(1));
    printf("%s %.4f\\n", big_status_text(status), (double)pooled[0]);
    attn_free(workspace);
    return status;
}
"""

# What a CMakeLists.txt may get wrong, and a part of what it is told.
MISTAKES = [
    ("attnc_add_model(a)", "attnc_add_model"),
    ("attnc_add_model(a none.attn)", "there is no spec"),
    ("attnc_add_model(a big.attn WEIGTHS random:1)", "unknown argument `WEIGTHS;random:1`"),
    ("attnc_add_model(a big.attn EMBED_WEIGHTS)", "EMBED_WEIGHTS needs WEIGHTS"),
    ("attnc_add_model(a big.attn OPTIONS --target=avx2)", "`--target=avx2` cannot stand in OPTIONS"),
    ("attnc_add_model(a app.c)", "has no `model NAME"),
    ("attnc_add_model(plugin big.attn)\nattnc_add_model(plugin big.attn)", "same name already exists"),
]


def run(*command, cwd=ROOT, status=0, **environment):
    done = run_command(*command, cwd=cwd, status=status, env=ALONE | environment)
    return done.stdout if status == 0 else done.stdout + done.stderr


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def files(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


class Packages:
    def __init__(self, folder):
        self.folder = folder
        self.prefix = os.path.join(folder, "moved here")
        self.stage = os.path.join(folder, "stage")
        self.attnc = os.path.join(self.prefix, "bin", "attnc")
        self.make("install")
        os.rename(self.stage + "/opt/attnc", self.prefix)

    def make(self, target, *more):
        make(target, "DESTDIR=" + self.stage, "PREFIX=/opt/attnc", *more, status=0)

    def path(self, name):
        return os.path.join(self.folder, name)

    def copy(self, example):
        """A copy of the example, which knows nothing of this repository."""
        shutil.copytree(os.path.join(ROOT, "examples", example), self.path(example),
                        ignore=shutil.ignore_patterns("build"))
        return self.path(example)

    def pkg_config(self, *words, folder=None, name="attnc"):
        lib = folder or os.path.join(self.prefix, "lib")
        return run("pkg-config", *words, name, PKG_CONFIG_PATH=os.path.join(lib, "pkgconfig")).strip()

    def cmake(self, source, *more, status=0):
        """Configures the project in `source` into its folder build."""
        return run("cmake", "-S", source, "-B", source + "/build", "-DCMAKE_PREFIX_PATH=" + self.prefix, *more,
                   status=status)

    def build(self, source):
        """Builds it; the lines that say that attnc runs."""
        return re.findall(r"attnc compile \S+", run("cmake", "--build", source + "/build"))

    def test_version(self):
        version = run(self.attnc, "--version").split()[1]
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), version
        for name in ("lib/cmake/attnc/attnc-config-version.cmake", "lib/pkgconfig/attnc.pc", "share/man/man1/attnc.1"):
            with open(os.path.join(self.prefix, name), encoding="utf-8") as file:
                text = file.read()
            assert version in text, "%s has no version" % name
            assert self.folder not in text and "@" not in text, "%s is not filled in well" % name

    def test_pkg_config_variables(self):
        assert self.pkg_config("--modversion") == run(self.attnc, "--version").split()[1]
        self.pkg_config("--validate")
        for variable, name in (("attnc", ""), ("runtimedir", "attn_runtime.c"), ("runtimedir", "attn_generate.h"),
                               ("libdir", "libattn_runtime.a"), ("specsdir", "minilm.attn")):
            found = os.path.join(self.pkg_config("--variable=" + variable).replace("\\", ""), name).rstrip("/")
            assert os.path.isfile(found), found
        self.make("install", "LIB=lib/some-machine")
        other = self.stage + "/opt/attnc/lib/some-machine"
        found = self.pkg_config("--variable=attnc", folder=other)
        assert os.path.samefile(found, self.stage + "/opt/attnc/bin/attnc"), found
        assert os.path.isfile(self.pkg_config("--variable=libdir", folder=other) + "/libattn_runtime.a")
        self.make("uninstall", "LIB=lib/some-machine")
        assert files(self.stage) == [], files(self.stage)

    def tokenizer_blocks(self, kind):
        """The program of docs/tokenizers.md, or commands and project that build it with an installed library."""
        with open(os.path.join(self.prefix, "share/doc/attnc/docs/tokenizers.md"), encoding="utf-8") as file:
            return re.findall(r"^```%s\n(.*?)^```$" % kind, file.read(), re.M | re.S)

    def check_words(self, program):
        shown = run(program, os.path.join(ROOT, "examples/story/model/tokenizer.json"), "Once upon a time")
        assert shown == self.tokenizer_blocks("text")[0], shown

    def test_pkg_config_tokenizer(self):
        self.pkg_config("--validate", name="attnc-tokenizer")
        assert self.pkg_config("--modversion", name="attnc-tokenizer") == self.pkg_config("--modversion")
        folder = self.pkg_config("--variable=tokenizerdir", name="attnc-tokenizer").replace("\\", "")
        assert os.path.isfile(folder + "/attn_tokenizer.h"), folder
        at = self.path("tokenizer_pc")
        os.mkdir(at)
        write(at + "/words.c", self.tokenizer_blocks("c")[0])
        command = next(block for block in self.tokenizer_blocks("sh") if "pkg-config" in block)
        os.symlink(self.prefix, at + "/there")  # a shell would cut a path with a space
        run("bash", "-euc", command, cwd=at, PKG_CONFIG_PATH=at + "/there/lib/pkgconfig")
        self.check_words(at + "/words")

    def test_without_tokenizer(self):
        """A machine that lacks the headers of the tokenizer's libraries installs the rest, the sources among it."""
        self.make("install", "WITH_TOKENIZER=no")
        made = files(self.stage + "/opt/attnc")
        assert "share/attnc/runtime/tokenizer/attn_tokenizer.h" in made and "lib/libattn_runtime.a" in made, made
        assert not [name for name in made if name.startswith("lib/") and "tokenizer" in name], made
        self.make("uninstall")
        assert files(self.stage) == [], files(self.stage)

    def test_pkg_config_example(self):
        at, lib = self.copy("with_pkg_config"), os.path.join(self.prefix, "lib/pkgconfig")
        out = run("make", "run", "CFLAGS=" + STRICT, cwd=at, PKG_CONFIG_PATH=lib)
        tokens = [int(word) for word in re.search(r"tokens:((?: \d+)+)$", out, re.M).group(1).split()]
        npy.write(self.path("prompt.npy"), [1, 4, 9])
        run(self.attnc, "generate", at + "/story.attn", "--weights", "random:1", "--in",
            "tokens=" + self.path("prompt.npy"), "--out", "tokens=" + self.path("new.npy"), "--max-new", "12",
            "--temperature", "0.8", "--seed", "1", "--engine", "interp")
        assert tokens == npy.read(self.path("new.npy")).numbers.tolist()[-12:], tokens
        for words, why in ((["build/story.attnw", "1", "100"], "outside the vocabulary"),
                           (["build/story.attnw", "1", "4x"], "`4x` is not a token id"),
                           (["none.attnw", "1"], "none.attnw: No such file"), (["main.c", "1"], "main.c: the weights")):
            assert why in run(at + "/build/story", *words, cwd=at, status=1), why
        run(at + "/build/story", status=2)

    def test_cmake_example(self):
        at = self.copy("with_cmake")
        self.cmake(at, "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror", "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror")
        assert self.build(at) == ["attnc compile reader.attn"]
        self.check_nearest(at)
        assert self.build(at) == [], "attnc runs without need"
        with open(at + "/reader.attn", encoding="utf-8") as file:
            spec = file.read()
        write(at + "/reader.attn", spec.replace("d_ff 64", "d_ff 48"))
        assert self.build(at) == ["attnc compile reader.attn"], "a new spec is not compiled"
        self.check_nearest(at)
        assert "No such file" in run(at + "/build/nearest", at + "/none", status=1)

    def check_nearest(self, at):
        """What it prints are the cosines of the vectors that the interpreter makes of the texts."""
        shown = [float(word) for word in re.findall(r"^text \d: (\S+)$", run(at + "/build/nearest"), re.M)]
        vectors = []
        for text in ([7, 1, 4, 9], [11, 12, 13], [7, 1, 4, 8], [150, 2, 5, 60, 61]):
            npy.write(self.path("text.npy"), text)
            run(self.attnc, "run", at + "/reader.attn", "--weights", "random:1", "--in",
                "tokens=" + self.path("text.npy"), "--out", "pooled=" + self.path("pooled.npy"), "--engine", "interp")
            vectors.append(npy.read(self.path("pooled.npy")).numbers.tolist())
        cosines = [sum(a * b for a, b in zip(vectors[0], one)) for one in vectors[1:]]
        assert len(shown) == 3 and max(abs(a - b) for a, b in zip(shown, cosines)) < 1e-4, "%s %s" % (shown, cosines)

    def test_cmake_tokenizer(self):
        at = self.path("tokenizer_cmake")
        os.mkdir(at)
        write(at + "/words.c", self.tokenizer_blocks("c")[0])
        write(at + "/CMakeLists.txt", self.tokenizer_blocks("cmake")[0])
        self.cmake(at, "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror")
        self.build(at)
        self.check_words(at + "/build/words")
        library = self.prefix + "/lib/libattn_tokenizer.a"
        os.rename(library, self.path("away"))
        out = self.cmake(at, status=1)
        os.rename(self.path("away"), library)
        assert "the component tokenizer of attnc is not installed" in re.sub(r"\s+", " ", out), out

    def test_cmake_embedded(self):
        at = self.path("embedded")
        os.mkdir(at)
        for name, text in (("CMakeLists.txt", PROJECT), ("big.attn", BIG), ("plugin.c", PLUGIN),
                           ("app.c", "int show(void);\nint main(void) { return show(); }\n")):
            write(os.path.join(at, name), text)
        self.random_weights(at, 3)
        self.cmake(at, "-DASK=", "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror")
        assert self.build(at) == ["attnc compile big.attn"]
        made = files(at + "/build/attnc/words")
        assert "big_weights.S" in made, made
        first = run(at + "/build/app")
        assert re.fullmatch(r"fine -?\d\.\d+\n", first), first
        with open(at + "/build/attnc/words/big.c", encoding="utf-8") as file:
            assert "--target avx2,scalar --unroll loops" in file.read(1000), "options are lost"
        assert self.build(at) == [], "attnc runs without need"
        self.random_weights(at, 4)
        assert self.build(at) == ["attnc compile big.attn"], "new weights are not compiled"
        second = run(at + "/build/app")
        assert second != first, "the old weights are in use: " + second
        write(at + "/big.attn", BIG.replace("vocab 20000", "vocab 20\n    seq = 4").replace("19999", "19"))
        write(at + "/plugin.c", PLUGIN.replace("19999", "19"))
        self.random_weights(at, 5)
        assert self.build(at) == ["attnc compile big.attn"]
        assert "big_weights.S" not in files(at + "/build/attnc/words"), "small weights are in the C"
        assert run(at + "/build/app").startswith("fine"), "weights in the C"
        os.utime(self.attnc)
        assert self.build(at) == ["attnc compile big.attn"], "a new attnc is not run"

    def random_weights(self, at, seed):
        run(self.attnc, "weights", at + "/big.attn", "--weights", "random:%d" % seed, "-o", at + "/w.safetensors")

    def test_cmake_mistakes(self):
        at = self.path("embedded")
        for code, why in MISTAKES:
            write(at + "/case.cmake", code)
            out = self.cmake(at, "-DCASE=case.cmake", "-DASK=", status=1)
            assert why in re.sub(r"\s+", " ", out), "%s: %s" % (code, out)
        version = run(self.attnc, "--version").split()[1]
        major, minor, patch = (int(number) for number in version.split("."))
        for asked in ((major, minor + 1), (major + 1,), (major, minor, patch + 1), (major, minor, patch + 1, "EXACT")):
            out = self.cmake(at, "-DCASE=", "-DASK=" + ".".join(map(str, asked)).replace(".EXACT", ";EXACT"), status=1)
            assert re.search(r"version:\s+" + re.escape(version), out), out
        for asked in (str(major), version, version + ";EXACT"):
            self.cmake(at, "-DASK=" + asked)
        os.rename(self.prefix + "/lib/libattn_runtime.a", self.path("away"))
        out = self.cmake(at, status=1)
        os.rename(self.path("away"), self.prefix + "/lib/libattn_runtime.a")
        assert "is missing: attnc is not installed whole" in re.sub(r"\s+", " ", out), out

    def test_uninstalls(self):
        os.makedirs(self.stage + "/opt", exist_ok=True)
        shutil.rmtree(self.stage + "/opt/attnc", ignore_errors=True)
        os.rename(self.prefix, self.stage + "/opt/attnc")
        self.make("uninstall")
        assert files(self.stage) == [], "left: %s" % files(self.stage)


def main():
    absent = Report("packages")
    for word, program in (("pkg_config", "pkg-config"), ("cmake", "cmake")):
        lacking = [name for name in vars(Packages) if name.startswith("test_" + word)]
        for name in lacking if not shutil.which(program) else []:
            delattr(Packages, name)
            absent.result(name[5:], skip=program + " is not there")
    absent.finish()
    return run_tests("packages", Packages) | run_tests("grammar", Grammar)


if __name__ == "__main__":
    sys.exit(main())
