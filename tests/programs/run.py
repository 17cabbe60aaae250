#!/usr/bin/env python3
"""The programs around emitted C in examples/bahdanau_layer, two_models and by_hand: built by gcc and clang with every
warning an error, their results recomputed here, and fed with bad input under sanitizers. Speaks TAP."""
import concurrent.futures
import os
import random
import re
import shutil
import struct
import sys
import zlib
from fractions import Fraction
from math import exp, sqrt

import plain

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy  # noqa: E402
from lib.attnc import ATTNC, ROOT  # noqa: E402
from lib.attnc import run as run_command  # noqa: E402
from lib.tap import Skip, run_tests  # noqa: E402
sys.path.insert(0, os.path.join(ROOT, "examples", "bahdanau_layer"))
import words  # noqa: E402

SPELL, TWO, HAND = (os.path.join(ROOT, "examples", name) for name in ("bahdanau_layer", "two_models", "by_hand"))
SENTENCES = os.path.join(ROOT, "examples", "similarity", "sentences.txt")
PAIRS = [pair for pair in (("gcc", "g++"), ("clang", "clang++")) if all(map(shutil.which, pair))]
STRICT = ["-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror"]
STRICT_C = ["-std=c11", "-Wconversion", *STRICT]
CHECKED = ["-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
LANGUAGES = {"--english": words.ENGLISH, "--german": words.GERMAN}


def run(*command, status=0, stdin=b"", cwd=ROOT, path=os.environ["PATH"]):
    done = run_command(*command, input=stdin, cwd=cwd, status=status, text=False,
                       env={"PATH": path, "ASAN_OPTIONS": "detect_leaks=0"})
    done.out, done.err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    return done


def at_once(jobs):
    """Runs commands, two at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(run, *job) for job in jobs]:
            future.result()


def readme(folder):
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as file:
        return file.read()


def close(got, expected, tolerance, what):
    assert len(got) == len(expected), "%s: %d numbers, expected %d" % (what, len(got), len(expected))
    worst = max(abs(a - b) for a, b in zip(got, expected))
    assert worst <= tolerance, "%s: largest difference %.3g" % (what, worst)


class Programs:
    def __init__(self, scratch):
        self.scratch = scratch
        self.printed, self.spellers, self.pairs, self.hands = {}, [], [], []  # of the READMEs, checked, strict

    def path(self, *names):
        return os.path.join(self.scratch, *names)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def follow(self, folder):
        """Runs the commands of a README, with the first pair as cc and c++ and build/ empty but for attnc; what they
        print. Later tests use what they leave."""
        commands = re.search(r"^(    build/attnc .*\n(?:    .*\n)+)", readme(folder), re.M)[1]
        path = self.path("bin") + os.pathsep + os.environ["PATH"]
        return run("bash", "-euc", commands, cwd=self.path("root"), path=path).out

    # ---------------------------------------------------------------- building

    def test_readme_commands(self):
        for link, to in (("build/attnc", ATTNC), ("examples", os.path.join(ROOT, "examples")),
                         ("specs", os.path.join(ROOT, "specs"))):
            os.makedirs(os.path.dirname(self.path("root", link)), exist_ok=True)
            os.symlink(to, self.path("root", link))
        os.mkdir(self.path("bin"))
        for name, program in zip(("cc", "c++"), PAIRS[0]):
            os.symlink(shutil.which(program), self.path("bin", name))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.printed = dict(zip((TWO, SPELL, HAND), pool.map(self.follow, (TWO, SPELL, HAND))))
        assert re.search(r"^20 texts, .*: the same bits in 1 to 4 threads$", self.printed[TWO], re.M), self.printed[TWO]
        self.spellers.append(self.path("root", "build", "spell", "spell"))
        self.pairs.append(self.path("root", "build", "two_models", "two_models"))
        self.hands.append(self.path("root", "build", "by_hand", "by_hand"))

    def test_builds_strictly(self):
        """With the first compiler under sanitizers, then with the other; the C of the models for one target, to be
        quick."""
        hand, attention = os.path.join(HAND, "by_hand.safetensors"), os.path.join(SPELL, "attention.safetensors")
        for folder, name, how, weights in ((SPELL, "align", "--embed-weights", attention),
                                           (TWO, "embedder", "--runtime", "random:1"),
                                           (TWO, "classifier", "--embed-weights", "random:2"),
                                           (os.path.join(ROOT, "specs"), "by_hand", "--embed-weights", hand)):
            run(ATTNC, "compile", os.path.join(folder, name + ".attn"), "-o", self.path("plain"), how,
                "--weights", weights, "--target", "scalar", "--unroll", "loops")
        jobs, links = [], []
        self.build(*PAIRS[0], "checked", CHECKED, jobs, links)
        self.build(*PAIRS[-1], "strict", [], jobs, links)
        at_once(jobs)
        at_once(links)
        if not PAIRS[1:]:
            raise Skip("not with a second compiler: there is only " + PAIRS[0][0])

    def build(self, c, cpp, kind, flags, jobs, links):
        """Adds the commands that build the programs."""
        os.mkdir(self.path(kind))
        names = ("align", "by_hand", "embedder", "classifier", "attn_runtime")
        objects = [self.path(kind, name + ".o") for name in names]
        for name, output in zip(names, objects):
            jobs.append([c, "-std=c11", "-O0", "-Wall", "-Wextra", "-Werror", *flags, "-c",
                         self.path("plain", name + ".c"), "-o", output])
        include = "-I" + self.path("plain")
        for programs, compiler, sources, used in (
                (self.spellers, [c, *STRICT_C], ["spell.c", "gru.c"], objects[:1]),
                (self.hands, [c, *STRICT_C], ["main.c"], objects[1:2]),
                (self.pairs, [cpp, "-std=c++17", *STRICT], ["two_models.cpp"], objects[2:])):
            folder = {"spell.c": SPELL, "main.c": HAND, "two_models.cpp": TWO}[sources[0]]
            programs.append(self.path(kind, os.path.basename(folder)))
            links.append([*compiler, *flags, include, *[os.path.join(folder, name) for name in sources], *used,
                          "-o", programs[-1], "-lm", "-lpthread"])

    # ---------------------------------------------------------------- examples/bahdanau_layer

    def spell(self, *arguments, program=None, weights=None, **more):
        program = program or self.spellers[0]
        arguments = [word for word in arguments if word != "--english"]
        return run(program, weights or os.path.join(SPELL, "gru.bin"), *arguments, **more)

    def trace(self, language, numbers, **more):
        """For each number its steps: the id of the word, the attention to the symbols, the logits."""
        lines = iter(self.spell("--trace", language, *map(str, numbers), **more).out.splitlines())
        found = []
        for number in numbers:
            steps, symbols = [], len(str(number)) + 1
            while not steps or steps[-1][0] != words.END:
                row = [float(word) for word in next(lines, "").split()]
                assert len(row) == 1 + symbols + len(words.WORDS), "%d numbers in a row" % len(row)
                steps.append((int(row[0]), row[1:1 + symbols], row[1 + symbols:]))
            found.append(steps)
        assert next(lines, None) is None, "more lines"
        return found

    def test_bahdanau_readme(self):
        shown = [line.rstrip() for line in self.printed[SPELL].splitlines()]
        told = re.search(r"^    407012: .*?^    <end>.*?^    <end>[^\n]*$", readme(SPELL), re.M | re.S)[0]
        told = [line[4:] for line in told.splitlines()]
        assert [line for line in shown if line] == [line for line in told if line], "\n".join(shown)

    def test_bahdanau_files(self):
        shown = run(sys.executable, os.path.join(SPELL, "words.py")).out
        with open(os.path.join(SPELL, "words.h"), encoding="utf-8") as file:
            assert file.read() == shown, "words.h is not what words.py prints"
        sizes = [os.path.getsize(os.path.join(SPELL, name)) for name in ("gru.bin", "attention.safetensors")]
        assert sum(sizes) < 300000, "%d bytes of weights" % sum(sizes)
        listed = run(ATTNC, "weights", os.path.join(SPELL, "align.attn")).out
        tensors = plain.safetensors(os.path.join(SPELL, "attention.safetensors"))
        assert set(re.findall(r"^(attention\S+)", listed, re.M)) == set(tensors), listed

    def test_bahdanau_known_numbers(self):
        known = {"--english": {0: "zero", 13: "thirteen", 407: "four hundred seven", 90000: "ninety thousand",
                               5000012: "five million twelve"},
                 "--german": {21: "ein und zwanzig", 407: "vier hundert sieben", 1000000: "eine million",
                              83000: "drei und achtzig tausend"}}
        for language, texts in known.items():
            for program in self.spellers:
                got = self.spell("--words", language, *map(str, texts), program=program).out.splitlines()
                assert got == list(texts.values()), got

    def test_bahdanau_held_out(self):
        """Numbers that training never saw: 99 of 100 come out with every word right, in each language."""
        rng = random.Random(2015)
        numbers = [words.draw(rng, True) for _ in range(2000)]
        given = "".join("%d\n" % number for number in numbers).encode()
        for language, code in LANGUAGES.items():
            got = self.spell("--words", language, stdin=given).out.splitlines()
            assert len(got) == len(numbers), "%d answers" % len(got)
            right = sum(text == " ".join(words.SPELL[code](number)) for number, text in zip(numbers, got))
            print("# %s: %d of %d held-out numbers" % (language[2:], right, len(numbers)))
            assert right >= 0.99 * len(numbers), "%d of %d are right" % (right, len(numbers))

    def test_bahdanau_is_plain_python(self):
        """Words, attention and logits of whole runs, against formulas written anew."""
        reference = plain.Speller(os.path.join(SPELL, "gru.bin"), os.path.join(SPELL, "attention.safetensors"))
        numbers = [0, 13, 60300, 407012, 987654321]
        for program in self.spellers:
            for language, code in LANGUAGES.items():
                for number, got in zip(numbers, self.trace(language, numbers, program=program)):
                    expected = reference.spell([code] + [int(digit) for digit in str(number)])
                    assert [step[0] for step in got] == [step[0] for step in expected], "other words of %d" % number
                    for ours, theirs in zip(got, expected):
                        close(ours[1], theirs[1], 1e-4, "attention of %d" % number)
                        close(ours[2], theirs[2], 1e-4, "logits of %d" % number)

    def test_bahdanau_looks_where_it_should(self):
        """A word made of one digit has most of its attention there, so in German tens and ones cross."""
        rng = random.Random(409)
        numbers = [int("".join(rng.choice("3456789") for _ in range(9))) for _ in range(100)]
        # the column of each word's digit; 0 where it is not one digit's: hundred, und, ...
        columns = {"--english": [1, 0, 2, 3, 0, 4, 0, 5, 6, 0, 7, 0, 8, 9, 0],
                   "--german": [1, 0, 3, 0, 2, 0, 4, 0, 6, 0, 5, 0, 7, 0, 9, 0, 8, 0]}
        for language, wanted in columns.items():
            looked, there = 0, 0
            for steps in self.trace(language, numbers):
                for _, weights, _ in steps:
                    assert abs(sum(weights) - 1) < 1e-5 and min(weights) >= 0, str(weights)
                if len(steps) == len(wanted):
                    pairs = [(weights, column) for (_, weights, _), column in zip(steps, wanted) if column]
                    looked += len(pairs)
                    there += sum(max(weights) == weights[column] for weights, column in pairs)
            assert looked >= 850 and there >= 0.97 * looked, "%s: %d of %d" % (language, there, looked)

    def test_bahdanau_map_is_the_attention(self):
        rows = self.spell("--german", "987654321").out.splitlines()[2:-1]
        assert rows[0].split() == list("G987654321"), rows[0]
        steps = self.trace("--german", [987654321])[0]
        assert len(rows) == len(steps) + 1, "%d rows" % len(rows)
        for row, (word, weights, _) in zip(rows[1:], steps):
            shades = "".join(" .:-=+*#%@"[min(9, int(10 * weight))] for weight in weights)
            assert row[:12].rstrip() == words.WORDS[word] and row.ljust(32)[13::2] == shades, row

    def test_bahdanau_bad_input(self):
        program = self.spellers[1]  # with sanitizers
        lines = b"\n12a\n" + b"9" * 10000 + b"\n\xff\xfe\xc0\n7\0\n\xc3\xa4\n007\n \n-1\n42\r\n" + b"8" * 100000
        done = self.spell("--words", program=program, stdin=lines, status=1)
        told = ["nothing there", "'a'", "10000 characters", "byte 0xFF", "byte 0x00", "byte 0xC3", "begin with 0",
                "byte 0x20", "'-'", "100000 characters"]
        assert len(done.err.splitlines()) == len(told), done.err
        for line, part in zip(done.err.splitlines(), told):
            assert re.match(r"spell: line \d+: ", line) and part in line, "%s: not %s" % (line, part)
        assert done.out == "forty two\n", done.out
        assert self.spell(program=program).out == "", "something of nothing"
        assert "number 2" in self.spell("1", "", program=program, status=1).err, "an empty argument"
        assert "what is '--wrong'" in self.spell("--wrong", program=program, status=2).err, "an unknown option"
        assert "usage" in run(program, status=2).err and "usage" in run(program, "--help").out, "no usage"

    def test_bahdanau_bad_weights(self):
        program = self.spellers[1]
        with open(os.path.join(SPELL, "gru.bin"), "rb") as file:
            good = file.read()
        bad = {"too short": [b"", good[:7], good[:39], good[:40], good[:-1]], "too long": [good + b"\0"],
               "no file of gru weights": [b"X" + good[1:], b"\xff" * len(good)],
               "another model": [good[:8] + b"\2" + good[9:], good[:16] + b"\x43" + good[17:],
                                 good[:36].ljust(len(good), b"\0")[:8] + good[8:12][::-1] + good[12:]],
               "damaged": [good[:36] + b"\0\0\0\0" + good[40:], good[:9999] + bytes([good[9999] ^ 1]) + good[10000:]]}
        for why, files in bad.items():
            for content in files:
                done = self.spell("7", program=program, weights=self.write("bad.bin", content), status=1)
                assert why in done.err and done.out == "", "%s, not %s" % (done.err, why)
        assert "No such file" in self.spell("7", program=program, weights=self.path("none"), status=1).err, "none"
        assert "directory" in self.spell("7", program=program, weights=self.scratch, status=1).err, "a folder"
        for number in (float("nan"), float("inf"), 3e38, 0.0):  # a valid file: nothing to be said, but no crash
            floats = struct.pack("<f", number) * ((len(good) - 40) // 4)
            wrong = self.write("bad.bin", good[:36] + struct.pack("<I", zlib.adler32(floats)) + floats)
            assert "407: " in self.spell("407", program=program, weights=wrong).out, "no answer with all %g" % number

    # ---------------------------------------------------------------- examples/two_models

    def two(self, *arguments, program=None, weights=None, **more):
        weights = weights or self.path("root", "build", "two_models", "embedder.attnw")
        return run(program or self.pairs[0], weights, *arguments, **more)

    def test_two_models_same_bits(self):
        lines = self.write("lines.txt", b"".join(b"%d \xff\x80 %s\n" % (i, b"ab" * (i % 60)) for i in range(150)))
        for program, file, texts, threads in ((self.pairs[0], lines, 150, 9), (self.pairs[1], SENTENCES, 20, 2),
                                              (self.pairs[2], SENTENCES, 20, 3)):
            done = self.two("--threads", str(threads), file, program=program)
            told = r"%d texts, embedder on \w+, classifier on \w+: the same bits in 1 to %d threads$" % (texts, threads)
            assert re.search(told, done.out), done.out
            assert len(re.findall(r"^line \d+: class [0-3], nearest line \d+ \(0\.\d{4}\)$", done.out, re.M)) == texts

    def test_two_models_sees_other_bits(self):
        """With a model that errs by one bit once, where two threads run, the program says so."""
        wrong = b'''#include <stdatomic.h>
        #include "MODEL.h"
        int __real_MODEL_forward(const MODEL_ctx *, const MODEL_input *, MODEL_output *, void *, size_t);
        int __wrap_MODEL_forward(const MODEL_ctx *, const MODEL_input *, MODEL_output *, void *, size_t);
        int __wrap_MODEL_forward(const MODEL_ctx *ctx, const MODEL_input *in, MODEL_output *out, void *at, size_t n) {
            static _Atomic(int) calls;
            int status = __real_MODEL_forward(ctx, in, out, at, n);
            if (atomic_fetch_add(&calls, 1) == 30) *(unsigned char *)out->FIELD ^= 1;
            return status;
        }
        '''
        c, cpp = PAIRS[0]
        built = self.path("root", "build", "two_models")
        objects = [os.path.join(built, name + ".o") for name in ("embedder", "classifier", "attn_runtime")]
        include = "-I" + built
        for model, field in ((b"embedder", b"pooled"), (b"classifier", b"logits")):
            source = self.write("wrong.c", wrong.replace(b"MODEL", model).replace(b"FIELD", field))
            run(c, *STRICT_C, include, "-c", source, "-o", self.path("wrong.o"))
            run(cpp, "-std=c++17", "-O0", include, os.path.join(TWO, "two_models.cpp"), self.path("wrong.o"), *objects,
                "-Wl,--wrap=%s_forward" % model.decode(), "-o", self.path("wrong"), "-lpthread")
            done = self.two(SENTENCES, program=self.path("wrong"), status=1)  # 20 lines: call 30 is in two threads
            assert re.search(r"line \d+ has other bits in 2 threads", done.err), done.err

    def test_two_models_are_the_interpreter(self):
        """Classes and nearest lines, by the interpreter's numbers."""
        texts = ["the cat sat on a mat", "a mat", "numbers: 1 2 3 4 5", "\u00e9t\u00e9"]
        vectors, classes = [], []
        for text in texts:
            ids = text.encode()
            tokens = npy.write(self.path("tokens.npy"), ids)
            for spec, seed, name, found in (("embedder", 1, "pooled", vectors), ("classifier", 2, "logits", classes)):
                run(ATTNC, "run", os.path.join(TWO, spec + ".attn"), "--weights", "random:%d" % seed,
                    "--engine", "interp", "--in", "tokens=" + tokens, "--out", name + "=" + self.path("out.npy"))
                found.append(list(npy.read(self.path("out.npy")).numbers))
        told = "".join(text + "\n" for text in texts).encode()
        for program in self.pairs:
            shown = self.two(program=program, stdin=told).out
            shown = re.findall(r"class (\d), nearest line (\d) \((.*)\)", shown)
            assert len(shown) == len(texts), str(shown)
            for i, (which, line, product) in enumerate(shown):
                products = [plain.dot(vectors[i], vector) if j != i else -2 for j, vector in enumerate(vectors)]
                assert int(which) == classes[i].index(max(classes[i])), "class of line %d" % (i + 1)
                assert abs(products[int(line) - 1] - max(products)) < 1e-4, "nearest of line %d" % (i + 1)
                assert abs(float(product) - max(products)) < 1e-4, "%s is not %.4f" % (product, max(products))

    def test_two_models_has_no_races(self):
        c, cpp = PAIRS[0]
        flags = ["-g1", "-O0", "-fsanitize=thread"]
        probe = self.write("probe.c", b"int main(void) { return 0; }\n")
        try:
            run(c, *flags, probe, "-o", self.path("probe"))
            run(self.path("probe"))
        except AssertionError as why:
            raise Skip("%s has no thread sanitizer here: %s" % (c, str(why).splitlines()[-1])) from why
        names, include = ("embedder", "classifier", "attn_runtime"), "-I" + self.path("plain")
        objects = [self.path("race-%s.o" % name) for name in names]
        at_once([c, "-std=c11", *flags, "-c", self.path("plain", name + ".c"), "-o", out]
                for name, out in zip(names, objects))
        run(cpp, "-std=c++17", *flags, include, os.path.join(TWO, "two_models.cpp"), *objects, "-o", self.path("race"))
        done = self.two("--threads", "4", SENTENCES, program=self.path("race"))
        assert "the same bits" in done.out and "WARNING" not in done.err, done.err

    def test_two_models_bad_input(self):
        program = self.pairs[1]  # with sanitizers
        lines = b"\n" + b"x" * 129 + b"\n" + b"y" * 10000 + b"\r\n\xff\xfe\xc0\n\0\n\n" + b"z" * 128
        done = self.two(program=program, stdin=lines, status=1)
        told = re.findall(r"^two_models: line (\d): (\d+) bytes: a text has 1 to 128$", done.err, re.M)
        assert told == [("1", "0"), ("2", "129"), ("3", "10000"), ("6", "0")], done.err
        assert re.findall(r"^line (\d)", done.out, re.M) == ["4", "5", "7"] and "3 texts" in done.out, done.out
        for nothing in (b"", b"\n\n"):
            assert "no text" in self.two(program=program, stdin=nothing, status=1).err, "something of nothing"
        assert "nearest" not in self.two(program=program, stdin=b"alone").out, "near to itself"
        assert "none" in self.two(self.path("none"), program=program, status=1).err, "a file that there is not"
        assert "cannot be read" in self.two(self.scratch, program=program, status=1).err, "a folder"
        for wrong in ("--threads 0", "--threads 65", "--threads " + "9" * 30, "--threads 2x", "--threads", "a b"):
            wrong = wrong.split()
            assert "usage" in self.two(*wrong, program=program, status=2).err, str(wrong)
        assert "usage" in run(program, status=2).err, "no usage"

    def test_two_models_bad_weights(self):
        with open(self.path("root", "build", "two_models", "embedder.attnw"), "rb") as file:
            good = file.read()
        spec = os.path.join(TWO, "classifier.attn")
        run(ATTNC, "pack", spec, "--weights", "random:1", "-o", self.path("other.attnw"))
        with open(self.path("other.attnw"), "rb") as file:
            other = file.read()
        for content in (b"", good[:1], good[:64], good[:-1], other, other.ljust(len(good), b"\0"), b"\xff" * len(good)):
            done = self.two(program=self.pairs[1], weights=self.write("bad.attnw", content), stdin=b"a\n", status=1)
            assert "bad.attnw: " in done.err and done.out == "", done.err
        for wrong in (self.path("none"), self.scratch):
            assert wrong in self.two(program=self.pairs[1], weights=wrong, stdin=b"a\n", status=1).err, wrong

    # ---------------------------------------------------------------- examples/by_hand

    def by_hand_tables(self, text):
        """Title to rows of what by_hand prints."""
        found, rows = {}, []
        for line in text.splitlines():
            if re.match(r" *-?\d", line):
                rows.append([float(word) for word in line.split()])
            else:
                rows = found.setdefault(line.split(" [")[0], [])
        return found

    def test_by_hand_every_matrix(self):
        """Each printed table of what stands above it: exactly as far as it is whole numbers, then as printed."""
        tensors = plain.safetensors(os.path.join(HAND, "by_hand.safetensors"))
        for program in self.hands:
            shown = self.by_hand_tables(run(program).out)
            whole = {name: [[Fraction(number) for number in row] for row in rows] for name, rows in shown.items()}
            for name, table in (("query", "queries"), ("key", "keys"), ("value", "values")):
                weight = whole[name + " weight"]
                assert weight == [list(row) for row in tensors["encoder.layers.0.attention.%s.weight" % name]], name
                assert whole[table] == [plain.times(weight, row) for row in whole["features"]], table
            assert whole["scores"] == [plain.times(whole["keys"], row) for row in whole["queries"]], "scores"
            scaled = [[score / sqrt(3) for score in row] for row in shown["scores"]]
            powers = [[exp(number - max(row)) for number in row] for row in scaled]
            attention = [[power / sum(row) for power in row] for row in powers]
            mixed = [plain.times(list(zip(*shown["values"])), row) for row in attention]
            for name, rows in (("scaled", scaled), ("powers", powers), ("sums", [[sum(row)] for row in powers]),
                               ("attention", attention), ("by hand: attention times values", mixed),
                               ("generated C", mixed)):
                assert len(shown[name]) == 4, name
                for got, row in zip(shown[name], rows):
                    close(got, row, 1e-5, name)

    def test_by_hand_is_the_exported_attention(self):
        rows = self.by_hand_tables(run(self.hands[0]).out)
        features = npy.write(self.path("features.npy"), sum(rows["features"], []), (4, 6), "<f4")
        run(ATTNC, "run", "specs/by_hand.attn", "--weights", os.path.join(HAND, "by_hand.safetensors"), "--in",
            "features=" + features, "--out", "attention=" + self.path("attention.npy"), "--target", "scalar")
        close(npy.read(self.path("attention.npy")).numbers, sum(rows["attention"], []), 1e-5, "attention")

    def test_by_hand_readme(self):
        """The commands, and that the worked row is the one that the program prints."""
        shown, text = self.by_hand_tables(self.printed[HAND]), readme(HAND)

        def told(name):
            line = re.search(r"^    %s +(.*?)(?:   +[a-z].*)?$" % name, text, re.M)[1]
            return [float(word) for word in re.findall(r"(?:= )?(-?\d+\.?\d*)(?= |$)", re.sub(r"\S+ = ", "", line))]

        for name, table, digits in (("scores", "scores", 0), ("scaled", "scaled", 4), ("powers", "powers", 4),
                                    ("weights", "attention", 4)):
            close(told(name)[:4], shown[table][1], 0.6 * 10 ** -digits, name)
        for name in ("keys", "values"):
            groups = re.search(r"^    %s +(\(.*\))$" % name, text, re.M)[1]
            assert [[float(w) for w in g.split()] for g in re.findall(r"\((.*?)\)", groups)] == shown[name], name
        results = re.findall(r"^    (?:first|second|third) .*= +(-?[\d.]+)$", text, re.M)
        close([float(word) for word in results], shown["generated C"][1], 6e-5, "result")

    def test_by_hand_sees_wrong_numbers(self):
        """With other numbers beside it than those in the generated C, the program says that they differ."""
        with open(os.path.join(HAND, "numbers.h"), "rb") as file:
            numbers = file.read()
        shutil.copy(os.path.join(HAND, "main.c"), self.path("main.c"))
        self.write("numbers.h", numbers.replace(b"{2, 0, 0, 1, 0, 0}", b"{2, 0, 0, 2, 0, 0}"))
        built = self.path("root", "build", "by_hand")
        run(PAIRS[0][0], "-I" + built, self.path("main.c"), os.path.join(built, "by_hand.c"),
            "-o", self.path("wrong_hand"), "-lm")
        assert "largest difference 0." in run(self.path("wrong_hand"), status=1).out, "no difference"
        assert "usage" in run(self.hands[0], "scalar", "avx2", status=2).err, "no usage"
        assert "by_hand: " in run(self.hands[0], "wrong", status=1).err, "no such target"


if not PAIRS:
    print("ok programs # SKIP neither gcc with g++ nor clang with clang++\n1..1")
    sys.exit(0)
sys.exit(run_tests("programs", Programs))
