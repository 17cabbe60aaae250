#!/usr/bin/env python3
"""What attnc does on a terminal and nowhere else: colour, progress, and no control character of a file's; and what help
and its slips say. Speaks TAP."""
import json
import math
import os
import re
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from screen import Session, environment  # noqa: E402
from lib import npy  # noqa: E402
from lib.attnc import ATTNC, ROOT  # noqa: E402
from lib.tap import run_tests  # noqa: E402

RED, MAGENTA, GREEN, BOLD, END = (b"\x1b[%sm" % code for code in (b"1;31", b"1;35", b"32", b"1", b"0"))
BAD = "model t {\n    d_model 16, heads 2\n    d_modle 3\n    norm post\x7f\n}\n"
SLOW = """model slow { d_model 64, vocab 50, %s { seq <= 512, position none, layers 4 { attention self { heads 4%s }
    ffn { d_ff 256, activation relu } } }%s }
"""


def pipe(*arguments, **changes):
    """Both outputs are pipes."""
    return subprocess.run([ATTNC, *arguments], capture_output=True, check=False, timeout=120,
                          env=environment(**changes))


def on_terminal(*arguments, **how):
    return Session([ATTNC, *arguments], **how)


def together(*calls):
    with ThreadPoolExecutor(len(calls)) as pool:
        return [running.result() for running in [pool.submit(call) for call in calls]]


def plain(text):
    return re.sub(rb"\x1b\[[0-9;]*m", b"", text).replace(b"\r\n", b"\n")


def write_ids(path, shape):
    npy.write(path, [i % 50 for i in range(math.prod(shape))], shape, "<i8")


class Terminal:
    def __init__(self, folder):
        self.folder = folder
        self.bad = self.path("bad.attn", BAD)
        self.slow = self.path("slow.attn", SLOW % ("encoder", "", "\n    head pool mean"))
        self.decoder = self.path("decoder.attn", SLOW % ("decoder", ", mask causal", "\n    head logits"))
        self.sequences = 0  # so many that the interpreter takes more than two seconds for them

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
        return path

    # ------------------------------------------------------------ colour

    def test_color(self):
        wanted, session = pipe("fmt", self.bad), on_terminal("fmt", self.bad)
        assert b"\x1b" not in wanted.stderr and wanted.returncode == session.status == 1, wanted.stderr
        assert plain(session.written) == wanted.stderr, session.written
        place = BOLD + self.bad.encode() + b":4:14: " + END + RED + b"error:" + END + b" a control character"
        assert place in session.written, session.written
        assert RED + b"                 ^" + END + b"\r\n" in session.written, session.written
        assert BOLD + b"attnc:" + END + b" " + RED + b"error:" + END + b" " in session.written, session.written

    def test_color_where(self):
        for how, colored in (({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False),
                             ({"TERM": "dumb"}, False), ({"TERM": ""}, False), ({"TERM": None}, False)):
            written = on_terminal("fmt", self.bad, **how).written
            assert (b"\x1b" in written) == colored, "%s: %r" % (how, written)
        never = on_terminal("fmt", self.bad, "--color=never").written
        assert b"\x1b" not in never and b"error" in never, never
        for option in (["--color=always"], ["--color", "always"]):
            for how in ({}, {"NO_COLOR": "1", "TERM": "dumb"}):
                done = pipe("fmt", self.bad, *option, **how)
                assert RED in done.stderr and plain(done.stderr) == pipe("fmt", self.bad).stderr, done.stderr
        assert b"\x1b" not in pipe("fmt", self.bad, "--color=auto").stderr, "colour in a pipe"
        on_terminal("fmt", self.bad, stderr=self.path("err"))  # the other output is a terminal, this one is none
        with open(self.path("err"), "rb") as file:
            assert file.read() == pipe("fmt", self.bad).stderr, "other bytes in a file"

    def test_color_of_check(self):
        """Of good rows and bad ones: the emitted C with one offset changed."""
        small = self.path("small.attn",
                          "model small { d_model 8, vocab 9, encoder { seq <= 4, position learned, layers 1 { "
                          "attention self { heads 2 }\n ffn { d_ff 8, activation relu } } }\n head pool mean }")
        done = pipe("compile", small, "-o", self.folder, "--target", "scalar", "--unroll", "loops")
        assert done.returncode == 0, done.stderr
        with open(self.path("small.c"), encoding="utf-8") as file:
            text = file.read()
        begin = text.index("_scalar_step_layer0_ffn_up(const ")
        changed = text[:begin] + re.sub(r"run->weights \+ \w+", r"\g<0> + 16", text[begin:], count=1)
        command = ["check", small, "--target", "scalar", "--lengths", "1,2"]
        wrong = command + ["--emitted", self.path("small.c", changed)]
        good, bad, quiet, colored = together(lambda: on_terminal(*command), lambda: on_terminal(*wrong),
                                             lambda: pipe(*wrong), lambda: pipe(*command, "--color=always"))
        rows = re.findall(rb"scalar  .*?(\S+)\r\n", good.written)
        assert good.status == 0 and rows and set(rows) == {GREEN + b"ok" + END}, good.written
        assert GREEN + b"ok" + END in colored.stdout and colored.returncode == 0, colored.stdout
        assert bad.status == quiet.returncode == 1, quiet.stderr
        assert RED + b"FAIL" + END in bad.written and RED + b"error:" + END in bad.written, bad.written
        wanted = (quiet.stdout + quiet.stderr).decode().splitlines()
        assert sorted(bad.screen().split("\n")) == sorted(wanted), bad.screen()
        assert b"\x1b" not in quiet.stdout + quiet.stderr, quiet.stdout

    def test_every_command_takes_color(self):
        commands = re.findall(rb"^  (\w+) ", pipe("help").stdout, re.M)
        assert len(commands) >= 11, commands
        for command in [name.decode() for name in commands] + ["--dump=ast", "--version", "--targets", "help"]:
            done = pipe(command, "--color=blue")
            assert done.returncode == 2 or command == "import", "%s: %d" % (command, done.returncode)
            done = pipe(command, "--color=blue", *["x"] * (command not in ("help", "--version", "--targets")))
            assert done.returncode == 2 and b"auto, always or never, not `blue`" in done.stderr, done.stderr
            assert not done.stdout, done.stdout
            done = pipe(command, "--color=never", "--help")
            assert done.returncode == 0 and b"--color=auto|always|never" in done.stdout, done.stdout
        assert b"--color=auto|always|never" in pipe("help").stdout, "help does not name --color"
        assert pipe("import", "--list", "--color=always").returncode == 0, "import --list refuses it"
        done = pipe("fmt", self.bad, "--color=never", "--color=never")
        assert done.returncode == 2 and b"stands twice" in done.stderr, done.stderr
        assert pipe("fmt", self.bad, "--color").returncode == 2, "no value, and no error"

    def test_completion(self):
        script = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _attnc; printf "%s\\n" "${COMPREPLY[@]}"'
        path = os.path.dirname(ATTNC) + os.pathsep + os.environ["PATH"]
        for words, wanted in ((["fmt", "--col"], ["--color"]), (["fmt", "--color", "a"], ["auto", "always"]),
                              (["fmt", "--color", "="], ["auto", "always", "never"]),
                              (["fmt", "--color", "=", "n"], ["never"]),
                              (["check", "--target", "=", "sc"], ["scalar"])):
            command = ["bash", "-c", script, os.path.join(ROOT, "packaging", "attnc.bash"), "attnc", *words]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(PATH=path))
            assert done.stdout.split() == wanted, "%s: %s" % (words, done.stdout)

    # ------------------------------------------------------------ control characters

    def test_spec_with_controls(self):
        """In the line and in the path: C0, DEL, C1 in either form."""
        text = (b'model t { d_model "\x1b[31mred\x07" # \x7f\xc2\x9b31m \x9b31m '
                b"caf\xc3\xa9 \xe2\x80\x94 \xf0\x9f\x99\x82\n")
        name = self.path("a\x1b[31m\u009bb.attn", text)
        for done in (pipe("fmt", name).stderr, on_terminal("fmt", name, "--color=never").written):
            shown = done.replace(b"\r\n", b"\n").decode("utf-8", "backslashreplace")
            assert 'd_model "?[31mred?" # ???31m ?31m caf\u00e9 \u2014 \U0001f642\n' in shown, repr(shown)
            assert "a?[31m??b.attn:1:20: error: a string holds a control character" in shown, repr(shown)
            odd = [c for c in shown if c != "\n" and (ord(c) < 0x20 or 0x7f <= ord(c) < 0xa0)]
            assert not odd, "%r in %r" % (odd, shown)

    def test_names_with_controls(self):
        absent = self.path("none\x1b]0;title\x07.attn")
        for arguments in (["fmt", absent], ["explain", self.bad, "--seq", "\x1b[2J"], ["\x1b[2J"],
                          ["fmt", self.bad, "\x1b[2J"], ["fmt", "--\x1b[2J", self.bad],
                          ["pack", self.slow, "--weights", absent, "-o", self.path("x.attnw")]):
            done = pipe(*arguments)
            assert done.returncode in (1, 2) and b"?" in done.stderr, "%s: %r" % (arguments, done.stderr)
            assert b"\x1b" not in done.stderr and b"\x07" not in done.stderr, "%s: %r" % (arguments, done.stderr)
        header = json.dumps({"\x1b[31mred": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        tensors = self.path("t.safetensors", struct.pack("<Q", len(header)) + header + b"\0\0\0\0")
        done = pipe("pack", self.slow, "--weights", tensors, "-o", self.path("x.attnw"), "-v")
        assert done.returncode == 1 and b"\x1b" not in done.stderr, done.stderr

    def test_stdout_is_as_it_was_but_on_a_terminal(self):
        """A comment may hold anything; a file and a pipe get it as it is."""
        spec = self.path("comment.attn", "model c { d_model 8 # \x1b[31mred\n}\n")
        assert b"# \x1b[31mred\n" in pipe("fmt", spec).stdout, "a pipe gets other bytes"
        assert "# ?[31mred" in on_terminal("fmt", spec).screen(), "a terminal is commanded"
        text = self.path("string.attn", 'model c { d_model "\\x1b[31m" }\n')
        assert rb'"\x1b[31m"' in pipe("--dump=ast", text).stdout, "another escape"
        assert r'"\x1b[31m"' in on_terminal("--dump=ast", text, stderr=self.path("err")).screen(), "it is commanded"
        packed = self.path("\x1b[31m.attnw")
        assert b"\x1b" not in on_terminal("pack", self.slow, "--weights", "random:1", "-o", packed).written, "ESC"

    # ------------------------------------------------------------ progress

    def run_slow(self, count):
        path = self.path("in%d.npy" % count)
        if not os.path.exists(path):  # calls stand beside each other: none may meet a file that is being written
            write_ids(path + ".part%d" % threading.get_ident(), [count, 60])
            os.replace(path + ".part%d" % threading.get_ident(), path)
        return ["run", self.slow, "--weights", "random:1", "--engine", "interp", "--in",
                "tokens=" + self.path("in%d.npy" % count)]

    def enough(self):
        """So many sequences that the interpreter takes about 3 s for them."""
        if self.sequences:
            return
        begin = time.monotonic()
        done = pipe(*self.run_slow(8), "--out", "pooled=" + self.path("calibrate.npy"))
        assert done.returncode == 0 and not done.stderr, done.stderr
        self.sequences = max(8, int(8 * 3 / (time.monotonic() - begin)))

    def slowly(self, *calls):
        """The calls beside each other, the first of which takes more than 2.3 s: with more sequences if it did not."""
        for _ in range(9):
            results = together(*calls)
            if results[0].seconds > 2.3:
                return results
            self.sequences += self.sequences // 2
        raise AssertionError("this machine is too fast")

    def check_pace(self, session):
        """Nothing in the first two seconds, and no more than five lines a second."""
        assert session.chunks, "no progress in %.1f s" % session.seconds
        assert session.chunks[0][0] >= 2, "progress after %.2f s" % session.chunks[0][0]
        assert len(session.chunks) <= 5 * (session.seconds - 2) + 3, "%d updates" % len(session.chunks)
        assert b"\x1b" not in session.written and b"\n" not in session.written, session.written

    def test_progress(self):
        self.enough()
        session, quiet = self.slowly(
            lambda: on_terminal(*self.run_slow(self.sequences), "--out", "pooled=" + self.path("a.npy")),
            lambda: pipe(*self.run_slow(self.sequences), "--out", "pooled=" + self.path("b.npy")))
        assert session.status == quiet.returncode == 0, quiet.stderr
        assert not quiet.stdout and not quiet.stderr, "in a pipe: %r" % quiet.stderr
        self.check_pace(session)
        shown = [text for text in session.screens() if text]
        before = (0, 0)
        for text in shown:
            found = re.fullmatch(r"interpreting slow: (\d+) of %d sequences, step (\d+) of \d+(, (\d+) s)?"
                                 % self.sequences, text)
            assert found, "the screen shows %r" % text
            now = (int(found[1]), int(found[2]))
            assert before <= now and int(found[1]) < self.sequences, "%s after %s" % (now, before)
            assert int(found[4] or 0) <= session.seconds, text
            before = now
        assert before[0] >= self.sequences // 2, "at the end: %r" % shown[-1]
        assert session.screen() == "", "left on the screen: %r" % session.screen()
        with open(self.path("a.npy"), "rb") as a, open(self.path("b.npy"), "rb") as b:
            assert a.read() == b.read(), "other numbers"

    def test_no_progress_of_what_is_short(self):
        for _ in range(5):
            session = on_terminal(*self.run_slow(1), "--out", "pooled=" + self.path("c.npy"))
            assert session.status == 0, session.written
            if session.seconds < 2:
                break
        assert session.seconds < 2 and not session.written, "%.1f s: %r" % (session.seconds, session.written)

    def test_progress_and_an_error(self):
        """In a narrow window, with an error at the end; on a terminal that can do nothing; and in the background, where
        the line is another program's."""
        self.enough()
        bad = ["--out", "pooled=" + self.path("absent/c.npy")]
        behind = ["/bin/bash", "-c", 'set -m; "$0" "$@" & wait $!', ATTNC]
        narrow, dumb, background = self.slowly(
            lambda: on_terminal(*self.run_slow(self.sequences), *bad, columns=30),
            lambda: on_terminal(*self.run_slow(self.sequences), *bad, TERM="dumb"),
            lambda: Session([*behind, *self.run_slow(self.sequences), *bad]))
        assert narrow.status == dumb.status == background.status == 1, background.written
        drawn = [text for text in narrow.screens() if text.startswith("interpreting slow: ")]
        assert drawn and max(len(text) for text in drawn) == 29, drawn
        wanted = "attnc: error: %s/absent/c.npy: cannot be written: No such file or directory" % self.folder
        assert narrow.screen() == wanted, "the screen shows %r" % narrow.screen()
        assert dumb.written.decode() == wanted + "\r\n", dumb.written
        assert b"interpreting" not in background.written, background.written
        assert background.screen().startswith(wanted), background.written

    def test_progress_of_check(self):
        """Rows come between: at the end the screen shows what a pipe gets."""
        def check():
            lengths = [str(400 + i) for i in range(max(2, min(39, self.sequences // 80)))]  # rows make them slow
            return ["check", self.slow, "--target", "scalar", "--lengths", ",".join(lengths)]

        self.enough()
        session, quiet = self.slowly(lambda: on_terminal(*check()), lambda: pipe(*check()))
        assert session.status == quiet.returncode == 0 and not quiet.stderr, quiet.stderr
        wanted = quiet.stdout.decode().rstrip("\n").split("\n")
        assert session.screen().split("\n") == wanted, "the screen shows:\n%s" % session.screen()
        kinds = set()
        for text in session.screens():
            *rows, last = text.split("\n")
            assert rows == wanted[:len(rows)], "above: %r" % rows
            if last and last != wanted[len(rows)]:
                found = re.fullmatch(r"(interpreting|compiling|checking|packing|writing)( \w+)*(: (\d+) of (\d+)"
                                     r" (cases|MB))?(, step \d+ of \d+)?(, \d+ s)?", last)
                assert found and (not found[4] or int(found[4]) < int(found[5])), "the last line is %r" % last
                kinds.add(found[1])
        assert kinds, "no progress in %.1f s" % session.seconds

    def test_progress_of_generate(self):
        """Tokens that are printed one by one are left alone; beside a file they are counted."""
        def generate(name, prompts):
            write_ids(self.path("prompts%d.npy" % prompts), [prompts, 4])
            return ["generate", self.decoder, "--weights", "random:1", "--engine", "interp", "--in", "tokens="
                    + self.path("prompts%d.npy" % prompts), "--out", "tokens=" + self.path(name), "--max-new", "20",
                    "--stream"]

        begin = time.monotonic()
        assert pipe(*generate("t.npy", 4)).returncode == 0
        self.sequences = max(4, int(4 * 3 / (time.monotonic() - begin)))
        counted, streamed = self.slowly(
            lambda: on_terminal(*generate("d.npy", self.sequences), stdout=self.path("ids")),
            lambda: on_terminal(*generate("e.npy", self.sequences)))
        assert counted.status == streamed.status == 0, counted.written
        with open(self.path("ids"), encoding="utf-8") as file:
            ids = file.read()
        total = 20 * self.sequences
        assert streamed.written.decode().replace("\r\n", "\n") == ids and len(ids.split()) == total, streamed.written
        self.check_pace(counted)
        tokens = []
        for text in filter(None, counted.screens()):
            found = re.fullmatch(r"generating: (\d+) of %d new tokens at most(, step \d+ of \d+)?(, \d+ s)?" % total,
                                 text)
            assert found, "the screen shows %r" % text
            tokens.append(int(found[1]))
        assert tokens == sorted(tokens) and total // 2 < tokens[-1] < total, tokens
        assert counted.screen() == "", counted.screen()

    # ------------------------------------------------------------ help

    def test_help(self):
        assert pipe().returncode == 2 and pipe().stderr == pipe("help").stdout, "attnc alone"
        for arguments in (["help"], ["--help"], ["-h"]):
            assert pipe(*arguments).stdout == pipe("help").stdout and pipe(*arguments).returncode == 0, arguments
        for arguments in (["--version"], ["-V"], ["version"]):
            done = pipe(*arguments)
            assert re.fullmatch(rb"attnc \d+\.\d+\.\d+\n", done.stdout) and done.returncode == 0, done.stdout
        for arguments in (["help", "check"], ["check", "--help"], ["check", "-h"], ["--help", "check"]):
            done = pipe(*arguments)
            assert done.returncode == 0 and done.stdout.startswith(b"usage: attnc check SPEC "), done.stdout
        for arguments in (["help", "help"], ["help", "--help"], ["help", "-h"]):
            done = pipe(*arguments)
            assert done.returncode == 0 and done.stdout.startswith(b"usage: attnc help [COMMAND]\n"), done.stdout
        assert b"[--cc CC]" in pipe("help", "generate").stdout, "an option of generate is not in its help"

    def test_slips(self):
        for arguments, why in ((["chekc", "x"], "did you mean `check`?"), (["hlep"], "did you mean `help`?"),
                               (["--verison"], "did you mean `--version`?"),
                               (["--target"], "did you mean `--targets`?"), (["help", "chekc"], "`check`?"),
                               (["help", "check", "run"], "`run` is one argument too many"),
                               (["--version", "now"], "`now` is one argument too many"),
                               (["--targets", "now"], "`now` is one argument too many"),
                               (["fmt", "--hlep"], "did you mean `--help`?"), (["fmt"], "is missing"),
                               (["fmt", "--colour=never", "x"], "did you mean `--color`?"),
                               (["--dump=ast"], "usage: attnc --dump=STAGE"), (["--dump=tree", "x"], "not `tree`"),
                               (["a.attn"], "the command comes before the spec"), ([""], "unknown command ``")):
            done = pipe(*arguments)
            assert done.returncode == 2 and not done.stdout, "%s: %d" % (arguments, done.returncode)
            assert why.encode() in done.stderr, "%s: %r" % (arguments, done.stderr)

    def test_full_disk(self):
        spec = os.path.join(ROOT, "specs", "small_encoder.attn")
        for arguments in (["--version"], ["--targets"], ["help"], ["help", "fmt"], ["fmt", "--help"],
                          ["--dump=model", spec]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([ATTNC, *arguments], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
            assert done.returncode == 1 and b"cannot be written" in done.stderr, "%s: %r" % (arguments, done.stderr)


if __name__ == "__main__":
    sys.exit(run_tests("terminal", Terminal))
