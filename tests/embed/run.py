#!/usr/bin/env python3
"""attnc embed: vectors as those of attnc run, also in other company, from compressed files and lines of text; the same
bytes after ends at any time; and what is wrong with lines, files, disks and commands. Speaks TAP."""
import ctypes
import gzip
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy  # noqa: E402
from lib.attnc import ATTNC, LONG, QUICK, ROOT, TESTS, UNOPTIMIZED, attnc, compile_once, run  # noqa: E402
from lib.tap import Skip, run_tests  # noqa: E402
from lib.words import TOKENIZER, VOCAB  # noqa: E402

SPEC = """model reads { d_model %d, vocab %d, encoder { seq <= 12, position learned
    layers %d { attention self { heads 2 }, ffn { d_ff 20, activation gelu } } }
    %s
    head pool mean l2 }
"""
WIDTH = 64
SLOT = 512  # bytes of the journal
HEADER = 640  # bytes of the output before its rows


def embed(*words, **more):
    return attnc("embed", *words, **more)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def rows(path):
    """The rows of an output as bytes."""
    array = npy.read(path)
    assert len(array.shape) == 2 and array.shape[1] == WIDTH, array.shape
    data = array.numbers.tobytes()
    return [data[i:i + 4 * WIDTH] for i in range(0, len(data), 4 * WIDTH)]


def is_nan(row):
    return row == struct.pack("<f", float("nan")) * WIDTH


def rows_done(journal):
    """The rows that a journal says are on the disk; 0 without a journal."""
    if not os.path.exists(journal):
        return 0
    data = read(journal)
    slots = -(-(32 + struct.unpack("<Q", data[16:24])[0]) // SLOT) * SLOT
    places = [struct.unpack("<QQ", data[slots + i * SLOT:][:16]) for i in range(2)]
    return max(places)[1]


def is_locked(path):
    """Whether a process holds the lock of a file, which it may not do yet when the file is there."""
    if not os.path.exists(path):
        return False
    with open("/proc/locks", encoding="ascii") as file:
        return any(line.split()[5].endswith(":%d" % os.stat(path).st_ino) for line in file if "FLOCK" in line)


class Embed:
    def __init__(self, scratch):
        self.scratch = scratch
        kept, temporary = (os.path.join(scratch, name) for name in ("kept", "tmp"))
        os.mkdir(kept)
        os.mkdir(temporary)
        compile_once(kept)
        os.environ["ATTNC_LEVEL"] = "-O2"  # there are many texts
        os.environ["TMPDIR"] = temporary  # SIGKILL leaves folders there
        self.tokenizer = self.path("tokenizer.json", json.dumps(TOKENIZER))
        self.spec = self.path("reads.attn", SPEC % (WIDTH, VOCAB, 1, ""))
        draw = random.Random(7)
        self.texts = [" ".join("w%d" % draw.randrange(34) for _ in range(draw.randrange(11))) for _ in range(20000)]
        self.many = self.lines("many.jsonl", self.texts)
        self.few = self.lines("few.jsonl", self.texts[:300])
        self.out = os.path.join(scratch, "v.npy")

    def path(self, name, content=None):
        path = os.path.join(self.scratch, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def lines(self, name, texts, field="text"):
        return self.path(name, "".join(json.dumps({"id": i, field: text}) + "\n" for i, text in enumerate(texts)))

    def words(self, *inputs, out=None, spec=None):
        named = [word for path in inputs for word in ("--in", path)]
        return [spec or self.spec, "--weights", "random:3", "--tokenizer", self.tokenizer, *named, "--out",
                out or self.out]

    def clear(self):
        for end in ("", ".part", ".journal", ".journal.new", ".lock"):
            if os.path.exists(self.out + end):
                os.remove(self.out + end)

    def side_files(self):
        return [name for name in os.listdir(self.scratch) if name.startswith("v.npy.")]

    def made(self, *inputs, more=(), status=0, spec=None):
        """The rows of a run from the beginning."""
        self.clear()
        done = embed(*self.words(*inputs, spec=spec), *more, status=status)
        assert not self.side_files(), self.side_files()
        self.said = done.stderr
        return rows(self.out)

    def test_as_run(self):
        """Each vector has the bits that attnc run gives for the text alone."""
        made = self.made(self.few)
        assert len(made) == 300
        for i in range(0, 300, 60):
            attnc("run", *self.words()[:5], "--text", self.texts[i], "--out", "pooled=" + self.path("p.npy"), status=0)
            assert npy.read(self.path("p.npy")).numbers.tobytes() == made[i], i
        header = read(self.out)[:HEADER]
        assert header[:10] == b"\x93NUMPY\x01\0" + struct.pack("<H", HEADER - 10) and header.endswith(b"\n"), header
        assert header[10:].startswith(b"{'descr': '<f4', 'fortran_order': False, 'shape': (300, 64), }"), header

    def test_company(self):
        """The bits do not depend on threads, on the texts around a text, nor on the order of the texts."""
        made = self.made(self.many)
        whole = read(self.out)
        for threads in ("2", "5"):
            self.made(self.many, more=["--threads", threads])
            assert read(self.out) == whole, threads + " threads"
        back = self.made(self.lines("back.jsonl", reversed(self.texts)))
        assert back[::-1] == made
        for i in range(0, 40, 20):
            assert self.made(self.lines("one.jsonl", self.texts[i:i + 1])) == made[i:i + 1], i
        assert self.made(self.many, more=["--target", "scalar"]) != [] and len(made) == 20000

    def test_forms(self):
        """Several files in their order; texts as strings and as lines; compressed files; the field, and the prompt."""
        made = self.made(self.few)
        halves = [self.lines("a.jsonl", self.texts[:100]), self.lines("b.jsonl", self.texts[100:300])]
        assert self.made(*halves) == made and self.made(*halves[::-1]) == made[100:] + made[:100]
        assert self.made(self.lines("a.jsonl", self.texts[:300], "t\u00e9xt"), more=["--field", "t\u00e9xt"]) == made
        strings = "\n".join(json.dumps(text) for text in self.texts[:300])
        assert self.made(self.path("strings.jsonl", strings)) == made, "no end of the last line"
        plain = self.path("plain.txt", b"\xef\xbb\xbf" + "\r\n".join(self.texts[:300]).encode() + b"\r\n")
        assert self.made(plain) == made
        data = read(self.few)
        for name, content in (("few.gz", gzip.compress(data)), ("few", gzip.compress(data)),
                              ("few.jsonl.gz", gzip.compress(data[:999]) + gzip.compress(data[999:]) + bytes(700))):
            assert self.made(self.path(name, content)) == made, name
        assert self.made(self.path("plain.txt.gz", gzip.compress(read(plain)))) == made
        prompted = self.path("prompted.attn", SPEC % (WIDTH, VOCAB, 1, 'text { prompt query "w9 ", default query }'))
        assert self.made(self.few, spec=prompted, status=0, more=["--truncate"]) == self.made(
            self.lines("a.jsonl", ["w9 " + text for text in self.texts[:300]]), more=["--truncate"])
        assert self.made(self.path("empty.jsonl", ""), self.few) == made
        assert self.made(self.path("empty.jsonl", "")) == []

    @staticmethod
    def zstd(data):
        """A frame, by the library that Debian's dpkg needs."""
        try:
            library = ctypes.CDLL("libzstd.so.1")
        except OSError as why:
            raise Skip("no libzstd") from why
        library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
        room = library.ZSTD_compressBound(ctypes.c_size_t(len(data)))
        frame = ctypes.create_string_buffer(room)
        size = library.ZSTD_compress(frame, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)), 3)
        return frame.raw[:size]

    def test_zstd(self):
        data = read(self.few)
        made = self.made(self.few)
        frames = self.zstd(data[:5000]) + b"\x50\x2a\x4d\x18\x03\0\0\0abc" + self.zstd(data[5000:])
        path = self.path("few.jsonl.zst", frames)
        self.clear()
        done = embed(*self.words(path))
        if done.returncode == 3 and "built without libzstd" in done.stderr:
            raise Skip("attnc is built without libzstd")
        assert done.returncode == 0 and rows(self.out) == made, done.stderr
        self.clear()
        for content, told in ((frames[:-3], "is truncated"), (frames[:-2] + b"\0\0", "is damaged"),
                              (b"", "is truncated"), (b"{}", "is no file of zstd"), (frames + b"abcd", "is damaged")):
            done = embed(*self.words(self.path("few.jsonl.zst", content)), status=1)
            assert "few.jsonl.zst: " + told in done.stderr and not self.side_files(), done.stderr

    def test_damaged(self):
        """What is before the damage is kept, and can be gone on from."""
        whole = gzip.compress(read(self.many), mtime=0)
        bad = bytearray(whole)
        bad[-6] ^= 1
        for content, told in ((whole[:-3], "is truncated"), (whole[:len(whole) // 2], "is truncated"),
                              (bytes(bad), "is damaged"), (whole + b"abc", "is damaged"), (b"", "is truncated"),
                              (b"{}", "is no file of gzip")):
            self.clear()
            path = self.path("bad.jsonl.gz", content)
            for _ in range(2):
                done = embed(*self.words(path), status=1)
                assert "bad.jsonl.gz: " + told in done.stderr and not os.path.exists(self.out), done.stderr
                assert len(content) < 9 or rows_done(self.out + ".journal") > 5000, rows_done(self.out + ".journal")
        self.clear()
        for path in (self.path("absent.jsonl"), self.scratch, "/dev/null"):
            done = embed(*self.words(self.few, path), status=1)
            assert path + ": " in done.stderr and not self.side_files(), done.stderr

    def test_repaired(self):
        """A run goes on with the whole file in place of one that was damaged, if it begins with what was read."""
        path, whole = self.path("cut.jsonl.gz"), gzip.compress(read(self.many), mtime=0)
        self.path("cut.jsonl.gz", whole)
        self.made(self.few, path)
        wanted = read(self.out)
        self.clear()
        self.path("cut.jsonl.gz", whole[:-len(whole) // 3])
        embed(*self.words(self.few, path), status=1)
        before = rows_done(self.out + ".journal")
        assert 10000 < before < 14000, before
        other = b"".join(json.dumps({"id": i, "text": "w3"}).encode() + b"\n" for i in range(20000))
        for content, told in ((gzip.compress(other), " bytes are not those that were read of it before"),
                              (gzip.compress(read(self.few)), " bytes are not those that were read of it before")):
            self.path("cut.jsonl.gz", content)
            done = embed(*self.words(self.few, path), status=1)
            assert "cut.jsonl.gz: its first " in done.stderr and told in done.stderr, done.stderr
        self.path("cut.jsonl.gz", whole)
        changed = shutil.copy2(self.few, self.path("changed.jsonl"))
        for inputs in ((changed, path), (self.few,), (path, self.few), (self.few, path, path)):
            done = embed(*self.words(*inputs), status=1)
            assert "differs in the input files" in done.stderr, done.stderr
        assert rows_done(self.out + ".journal") == before
        embed(*self.words(self.few, path), status=0)
        assert read(self.out)[HEADER:] == wanted[HEADER:] and not self.side_files()

    def test_lines(self):
        """A line that is wrong is named, its row is NaN, and the others are as without it."""
        fine, long, name = '{"text": "w3 w4"}', "w1 " * 11, "lines.jsonl"
        cases = [
            (fine, None), ('{"text": "w3 w\\u0034"} ', None),
            ('\t{ "a" : [ { } , -1.5e+3, null ], "text":"w3 w4" }\r', None),
            ('"w3\\tw4"', None), ('{"te\\u0078t": "w3 w4"}', None), ('{"a": "\\ud83d\\ude00", "text": "w3 w4"}', None),
            ("", "the line is empty"), ("{", "it is no JSON"), ('{"text": "w3"', "it is no JSON"),
            ('{"text": "w3"} x', "it is no JSON"), ('{"text": "w3",}', "it is no JSON"), ("w3 w4", "it is no JSON"),
            ('{"text": "w3\tw4"}', "it is no JSON"), ('{"text": "w3\\x"}', "it is no JSON"), ("'w3'", "it is no JSON"),
            ('{"text": "w3", "a": 01}', "it is no JSON"), ('{"text": "w3", "a": .5}', "it is no JSON"),
            ('{"text": "w3\\u00g0"}', "it is no JSON"), ('{"text" "w3"}', "it is no JSON"),
            ("{'text': 'w3'}", "no JSON"),
            ('{"text": "w3", "a": NaN}', "it is no JSON"), ('{"text": "w3", "a": tru}', "it is no JSON"),
            ("[" * 100000, "nested too deeply"), ('{"a": ' + "[" * 499 + "]" * 499 + ', "text": "w3 w4"}', None),
            ("3", "neither a JSON object nor a string"), ('["w3"]', "neither a JSON object nor a string"),
            ("{}", "it has no field `text`"), ('{"a": {"text": "w3"}}', "it has no field `text`"),
            ('{"Text": "w3"}', "it has no field `text`"), ('{"text": 3}', "its field `text` is no string"),
            ('{"text": null}', "its field `text` is no string"), ('{"text": ["w3"]}', "its field `text` is no string"),
            ('{"text": "w3", "text": "w4"}', "it has the field `text` twice"), ('{"text": "w3 \\ud83d"}', "surrogate"),
            ('{"text": "w3 \\udc00 w4"}', "surrogate"), (b'{"text": "w3 \xff"}', "it is not UTF-8"),
            (b'{"text": "w3 \xed\xa0\x80"}', "it is not UTF-8"), ('{"text": "%s"}' % long, "more than 12 tokens"),
            ('{"text": "%s"}' % ("x" * (1 << 24)), "more than 16 MiB"), (fine, None)]
        texts = [text if isinstance(text, bytes) else text.encode() for text, _ in cases]
        alike = self.made(self.path(name, fine))[0]
        for first in range(0, len(cases), 15):  # so few that all are told
            part = cases[first:first + 15]
            made = self.made(self.path(name, b"\n".join(texts[first:first + 15]) + b"\n"), status=1)
            told = self.said.splitlines()
            wrong = [i for i, (_, reason) in enumerate(part) if reason]
            assert [is_nan(row) for row in made] == [reason is not None for _, reason in part], self.said
            assert all(made[i] == alike for i in range(len(part)) if i not in wrong)
            assert len(told) == len(wrong) + 1, self.said
            for i, line in zip(wrong, told):
                assert line.startswith("%s:%d: " % (self.path(name), i + 1)) and part[i][1] in line, line
            bad = "%d of %d" % (len(wrong), len(part))
            assert "lines without a vector: %s; their rows are NaN" % bad in told[-1], told[-1]
        done = embed(*self.words(self.path(name)), status=0)
        wanted = "is finished already, and is not changed; rows that are NaN: " + bad
        assert wanted in done.stderr, done.stderr

    def test_many_bad(self):
        """Twenty lines are told, and all are counted."""
        self.made(self.path("bad.jsonl", "{\n" * 5000 + '"w3"\n'), status=1)
        assert self.said.count("it is no JSON") == 20 and "lines without a vector: 5000 of 5001" in self.said, self.said

    def test_strict(self):
        self.clear()
        bad = self.path("bad.jsonl", read(self.few) + b"{\n")
        done = embed(*self.words(bad), "--strict", status=1)
        assert "bad.jsonl:301: it is no JSON" in done.stderr and not os.path.exists(self.out), done.stderr
        assert not self.side_files(), "nothing is finished, so nothing is left"
        bad = self.path("bad.jsonl", read(self.many) + b"{\n")
        done = embed(*self.words(bad), "--strict", status=1)
        assert "bad.jsonl:20001: it is no JSON" in done.stderr and rows_done(self.out + ".journal") > 0, done.stderr
        done = embed(*self.words(bad), status=1)  # what is finished serves a run that is not strict
        assert "lines without a vector: 1 of 20001" in done.stderr, done.stderr
        assert rows(self.out)[:-1] == self.made(self.many)

    def test_truncate(self):
        """A text that is cut is the text of its first tokens."""
        texts = ["w%d " % i * 40 for i in range(5)] + ["w3 w4 w5", "w1 " * 10]
        cut = [" ".join(text.split()[:10]) for text in texts]
        made = self.made(self.lines("long.jsonl", texts), more=["--truncate"])
        assert made == self.made(self.lines("cut.jsonl", cut))
        assert [is_nan(row) for row in self.made(self.lines("long.jsonl", texts), status=1)] == [True] * 5 + [False] * 2

    def test_finished(self):
        """The same command changes nothing; another one is refused and says why; --force replaces the file."""
        self.made(self.few)
        before, times = read(self.out), os.stat(self.out).st_mtime_ns
        done = embed(*self.words(self.few), "--threads", "2", status=0)
        assert "is finished already" in done.stderr, done.stderr
        assert read(self.out) == before and os.stat(self.out).st_mtime_ns == times and not self.side_files()
        self.refuses_others("is there already: another command made it, which differs in ")
        assert read(self.out) == before
        embed(*self.words(self.few), "--field", "id", "--force", status=1)
        assert all(map(is_nan, rows(self.out)))
        for content in (b"", b"something", before[:-1], before[:HEADER], b"x" * 2000):
            self.path("v.npy", content)
            done = embed(*self.words(self.few), status=1)
            assert "v.npy: " in done.stderr and read(self.out) == content and not self.side_files(), done.stderr

    def refuses_others(self, told):
        """Commands that differ from that of self.few in one thing."""
        words = self.words(self.few)
        other = self.path("other.json", json.dumps({**TOKENIZER, "post_processor": None}))
        spec = self.path("other.attn", SPEC % (WIDTH, VOCAB, 1, "# another\n"))
        copied = shutil.copy2(self.few, self.path("copy.jsonl"))
        for changed, thing in ((["--field", "title"], "`--field`"), (["--truncate"], "`--truncate`"),
                               (["--precision", "int8"], "the precision"), (["--reproducible"], "the precision"),
                               (["--target", "scalar"], "the target"), (["--in", self.few], "the input files"),
                               ({"random:3": "random:4"}, "the weights"), ({self.tokenizer: other}, "the tokenizer"),
                               ({self.spec: spec}, "the spec"), ({self.few: copied}, "the input files")):
            now = [changed.get(word, word) for word in words] if isinstance(changed, dict) else words + changed
            done = embed(*now, status=1)
            assert told + thing in done.stderr, (thing, done.stderr)
        info = os.stat(self.few)
        os.utime(self.few, ns=(info.st_atime_ns, info.st_mtime_ns + 1))
        done = embed(*words, status=1)
        assert told + "the input files" in done.stderr, done.stderr
        os.utime(self.few, ns=(info.st_atime_ns, info.st_mtime_ns))

    def begin(self, *inputs, limit):
        """A run that ends at a limit of the size of files."""
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        done = embed(*self.words(*inputs), status=1, preexec_fn=small_files)
        assert "v.npy.part: cannot be written" in done.stderr and not os.path.exists(self.out), done.stderr

    def test_full(self):
        """A file that is too large, and a full disk. What is finished stays, and the run goes on from there."""
        self.made(self.many)
        whole = read(self.out)
        self.clear()
        for limit in (2000000, 3000000):  # of 5 MB; the compiled tokenizer has less
            self.begin(self.many, limit=limit)
            assert limit - 700000 < rows_done(self.out + ".journal") * WIDTH * 4 < limit
        embed(*self.words(self.many), status=0)
        assert read(self.out) == whole and not self.side_files()
        disk = self.path("disk")
        os.mkdir(disk)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True,
                                 check=False).returncode == 0
        try:
            if mounted:
                out = os.path.join(disk, "v.npy")
                done = embed(*self.words(self.many, out=out), status=1)
                assert "v.npy.part: cannot be written: No space left on device" in done.stderr, done.stderr
                assert rows_done(out + ".journal") > 3000
                subprocess.run(["mount", "-o", "remount,size=9m", disk], check=True)
                embed(*self.words(self.many, out=out), status=0)
                assert read(out) == whole and os.listdir(disk) == ["v.npy"]
        finally:
            if mounted:
                subprocess.run(["umount", disk], check=True)

    def test_unfinished(self):
        """Another command is refused, and a damaged journal or a shorter file, too; --force starts anew."""
        self.clear()
        shutil.copy2(self.few, self.path("small.jsonl"))
        big, self.few = self.few, self.many
        try:
            self.begin(self.many, limit=3000000)
            self.refuses_others("an unfinished run of another command is there, and differs in ")
        finally:
            self.few = big
        done = embed(*self.words(self.many), "--field", "title", status=1)
        assert "`--field`: text then, title now" in done.stderr, done.stderr
        done = embed(*self.words(self.few), status=1)
        assert "many.jsonl\" of " in done.stderr and "few.jsonl\" of " in done.stderr, done.stderr
        part, journal = read(self.out + ".part"), read(self.out + ".journal")
        assert rows_done(self.out + ".journal") > 3000
        for name, content, told in (
                ("v.npy.part", part[:100000], "is shorter than the journal says"),
                ("v.npy.journal", journal[:20], "is damaged"), ("v.npy.journal", b"", "is damaged"),
                ("v.npy.journal", journal.replace(b"text", b"tex1"), "is damaged"),
                ("v.npy.journal", journal[:-2 * SLOT], "is damaged")):
            self.path(name, content)
            done = embed(*self.words(self.many), status=1)
            assert name + ": " + told in done.stderr and not os.path.exists(self.out), done.stderr
            self.path("v.npy.part", part)
            self.path("v.npy.journal", journal)
        os.remove(self.out + ".journal")
        done = embed(*self.words(self.many), status=1)
        assert "v.npy.part: is there already, without the journal" in done.stderr, done.stderr
        embed(*self.words(self.few), "--force", status=0)
        assert len(rows(self.out)) == 300 and not self.side_files()

    def test_torn(self):
        """Of the two slots of a journal the newer one may be half written: then the older one holds."""
        self.made(self.many)
        whole = read(self.out)
        self.clear()
        for slot in range(2):
            self.begin(self.many, limit=2000000 + 1000000 * slot)
            journal = bytearray(read(self.out + ".journal"))
            numbers = [struct.unpack("<Q", journal[-(2 - i) * SLOT:][:8])[0] for i in range(2)]
            newer = numbers.index(max(numbers))
            journal[len(journal) - (2 - newer) * SLOT + 16] ^= 5
            self.path("v.npy.journal", bytes(journal))
        embed(*self.words(self.many), status=0)
        assert read(self.out) == whole and not self.side_files()

    def start(self, *more, out=None):
        words = self.words(self.path("most.jsonl"), out=out)
        return subprocess.Popen([ATTNC, "embed", *words, *more], cwd=ROOT, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def write_most(self):
        """A file that takes some seconds."""
        if not os.path.exists(self.path("most.jsonl")):
            self.lines("most.jsonl", self.texts * 10)

    def wait_for(self, child, condition):
        end = time.monotonic() + 300
        while not condition():
            assert child.poll() is None and time.monotonic() < end, "it has ended"
            time.sleep(0.002)

    def test_kill(self):
        """SIGKILL at any time, and then the same command: the bytes of an undisturbed run."""
        self.write_most()
        self.clear()
        began = time.monotonic()
        assert self.start().wait() == 0
        taken = time.monotonic() - began
        whole = read(self.out)
        draw, kills, resumed, before = random.Random(), 0, 0, 0
        self.clear()
        for trial in range(4 if QUICK else 40 if LONG else 10):
            child = self.start(*["--threads", "2"] * (trial % 2))
            if trial % 3 < 2:  # within the work, where the rows of a chunk, the journal or the names are written
                begun = rows_done(self.out + ".journal")
                self.wait_for_rows(child, begun)
                time.sleep(draw.uniform(0, 0.6))
            else:
                time.sleep(draw.uniform(0, taken / 2))
            child.send_signal(signal.SIGKILL)
            kills += child.wait() == -signal.SIGKILL
            if os.path.exists(self.out):
                assert read(self.out) == whole
                self.clear()
                before = 0
            else:
                done = rows_done(self.out + ".journal")
                assert done >= before or done == 0
                resumed += done > before
                before = done
        assert kills > 2 and resumed > 1, (kills, resumed)
        assert self.start().wait() == 0
        assert read(self.out) == whole and not self.side_files(), self.side_files()

    def wait_for_rows(self, child, begun):
        end = time.monotonic() + 300
        while child.poll() is None and rows_done(self.out + ".journal") <= begun and time.monotonic() < end:
            time.sleep(0.002)

    def test_lock(self):
        """One process an output; the lock ends with the process, though what it has started lives on."""
        self.write_most()
        self.clear()
        compiler = self.path("lingering", "#!/bin/sh\nsleep 60 <&- >&- 2>&- &\nexec %s \"$@\"\n" % UNOPTIMIZED)
        os.chmod(compiler, 0o755)
        child = self.start("--cc", compiler)
        self.wait_for(child, lambda: is_locked(self.out + ".lock"))
        done = embed(*self.words(self.few), status=1)
        assert "v.npy: another process is writing it" in done.stderr, done.stderr
        self.wait_for(child, lambda: rows_done(self.out + ".journal") > 0)
        done = embed(*self.words(self.path("most.jsonl")), status=1)
        assert "v.npy: another process is writing it" in done.stderr, done.stderr
        child.kill()
        child.wait()
        embed(*self.words(self.path("most.jsonl")), status=0)
        assert len(rows(self.out)) == 200000 and not self.side_files()

    def high_water(self, path, *more):
        """The most memory that a run has, in KiB."""
        self.clear()
        most = 0
        with subprocess.Popen([ATTNC, "embed", *self.words(path), *more], cwd=ROOT, stdin=subprocess.DEVNULL) as child:
            while child.poll() is None:
                try:
                    with open("/proc/%d/status" % child.pid, encoding="ascii") as file:
                        for line in file:
                            if line.startswith("VmHWM:"):
                                most = max(most, int(line.split()[1]))
                except (OSError, ValueError):
                    pass
                time.sleep(0.001)
        assert child.returncode == 0
        return most

    def test_memory(self):
        """The same for two thousand, twenty thousand and two hundred thousand texts."""
        self.write_most()
        few = self.high_water(self.lines("two.jsonl", self.texts[:2000]))
        many, most = self.high_water(self.many), self.high_water(self.path("most.jsonl"), "--threads", "2")
        assert few > 1000 and many < few + 3000 and most < few + 6000, (few, many, most)

    def test_progress(self):
        """A bar where it is asked for, and nothing of the kind in a file."""
        self.clear()
        done = embed(*self.words(self.many), "--progress", status=0, text=False)
        assert b"\rreads [" in done.stderr and b" texts, " in done.stderr and b" a second" in done.stderr, done.stderr
        self.made(self.many)
        assert self.said == "", self.said

    def test_page(self):
        """The commands of docs/embed.md, with a small model and texts under the names that it has."""
        with open(os.path.join(ROOT, "docs", "embed.md"), encoding="utf-8") as file:
            page = file.read()
        (commands,) = re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S)
        model = self.path("all-MiniLM-L6-v2")
        shutil.copytree(os.path.join(TESTS, "parity", "fixtures", "distilbert_odd"), model)
        kinds = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_N", "Normalize"))
        self.path("all-MiniLM-L6-v2/modules.json", json.dumps([
            {"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
            for i, (path, kind) in enumerate(kinds)]))
        self.path("all-MiniLM-L6-v2/tokenizer.json", json.dumps(TOKENIZER))
        with open(self.path("all-MiniLM-L6-v2/config.json"), encoding="utf-8") as file:
            width = json.load(file)["dim"]
        os.mkdir(self.path("all-MiniLM-L6-v2/1_Pooling"))
        self.path("all-MiniLM-L6-v2/1_Pooling/config.json", json.dumps({
            "word_embedding_dimension": width, "pooling_mode_mean_tokens": True}))
        self.lines("first.jsonl", self.texts[:7])
        self.path("second.jsonl.gz", gzip.compress(read(self.lines("second.jsonl", self.texts[7:11]))))
        run("bash", "-euc", commands, cwd=self.scratch, status=0,
            env={"PATH": os.path.dirname(ATTNC) + os.pathsep + os.environ["PATH"]})
        assert npy.read(self.path("vectors.npy")).shape == (11, width)
        for name in (".part", ".journal", ".lock"):
            assert "`vectors.npy%s`" % name in page and not os.path.exists(self.path("vectors.npy" + name))

    def test_refuses(self):
        self.clear()
        words = self.words(self.few)
        pooled = SPEC % (WIDTH, VOCAB, 1, "")
        hidden = self.path("hidden.attn", pooled.replace("head pool mean l2", ""))
        exact = self.path("exact.attn", pooled.replace("seq <= 12", "seq = 12"))
        wide = self.path("wide.json", json.dumps({**TOKENIZER, "model": {
            **TOKENIZER["model"], "vocab": {"w%d" % i: i for i in range(50)}}}))
        for now, status, told in (
                ([words[0], *words[3:]], 2, "`--weights` is missing"), (words[:3] + words[5:], 2, "`--tokenizer` is"),
                (words[:5] + words[7:], 2, "`--in` is missing"), (words[:7], 2, "`--out` is missing"),
                (words + ["--threads", "0"], 2, "`--threads` wants an integer from 1 to 256"),
                (words + ["--precision", "int7"], 2, "`--precision int7`"),
                ([hidden, *words[1:]], 1, "`reads` has no vector of a text: its spec needs `head pool`"),
                ([exact, *words[1:]], 3, "`reads` reads texts of exactly 12 tokens"),
                ([wide if word == self.tokenizer else word for word in words], 1, "the tokenizer has 50 ids"),
                (words[:-1] + ["/dev/null"], 1, "/dev/null: cannot be written: it is not a regular file"),
                (words[:-1] + [self.scratch], 1, "cannot be written: it is a folder"),
                (words[:-1] + [self.path("absent/v.npy")], 1, "absent/v.npy")):
            done = embed(*now, status=status)
            assert told in done.stderr and not self.side_files(), (told, done.stderr)

    def test_link(self):
        """An output that is a link stays one."""
        self.made(self.few)
        whole = read(self.out)
        self.clear()
        self.path("real.npy", "")
        os.symlink("real.npy", self.path("link.npy"))
        embed(*self.words(self.few, out=self.path("link.npy")), "--force", status=0)
        assert os.path.islink(self.path("link.npy")) and read(self.path("real.npy")) == whole


if __name__ == "__main__":
    sys.exit(run_tests("embed", Embed))
