#!/usr/bin/env python3
"""Hostile and odd files and names: what is no file in place of each file, files that are cut while they are read, names
that meet, files that contradict each other, control characters and cut characters in what is said, signals, outputs
that are no files, and odd C compilers. TAP on stdout."""
import array
import json
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy, safetensors  # noqa: E402
from lib.attnc import ATTNC, ROOT, TESTS, TIMED_OUT, UNOPTIMIZED, attnc, run, said  # noqa: E402
from lib.tap import Skip, run_tests  # noqa: E402
from lib.words import TOKENIZER  # noqa: E402

PARITY = os.path.join(TESTS, "parity")
SPEC = os.path.join(ROOT, "specs", "small_encoder.attn")
MODEL = """model %s { d_model 16, vocab 20
    decoder { seq <= 6
        position learned
        layers 1 { attention self { heads 2 }, ffn { d_ff 8 } } }
    head logits }
"""
LARGE = 4000000  # rows of a table whose reading takes a while
BUILT = ("SOURCES = main.c", "-lonig -lcjson -lutf8proc")


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


# Leaves files where compilers do, as does a process that outlives it.
LEAVES = """#!/bin/sh
mkdir "$TMPDIR/half"; echo > "$TMPDIR/half/cc1.s"; echo > "$TMPDIR/cc2.s"
(for i in 1 2 3 4 5 6 7 8 9; do echo > "$TMPDIR/late$i.o"; sleep 0.1; done) >/dev/null 2>&1 &
echo > %s
exec sleep 60
"""


def start(*words, **env):
    """A command on which signals have their default effect. A shell lets what it runs in the background ignore them,
    which processes inherit and attnc respects."""
    def with_defaults():
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
    return subprocess.Popen([ATTNC, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=with_defaults,
                            env={**os.environ, **env})


def names_below(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, folders, files in os.walk(folder)
                  for name in [*folders, *files])


class Hostile:
    def __init__(self, scratch):
        self.scratch = scratch

    def path(self, *names):
        return os.path.join(self.scratch, *names)

    def write(self, name, content):
        with open(self.path(name), "wb" if isinstance(content, bytes) else "w") as file:
            file.write(content)
        return self.path(name)

    def spec(self, name, file=None):
        return self.write((file or name) + ".attn", MODEL % name)

    def folder(self, name, model, group="fixtures", tokenizer=TOKENIZER, **config):
        """A copy of a small model of tests/parity, with a tokenizer and these keys of the config."""
        folder = self.path(name)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(os.path.join(PARITY, group, model), folder, ignore=shutil.ignore_patterns("*.npy"))
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            whole = {**json.load(file), **config}
        for own, content in (("config.json", whole), ("tokenizer.json", tokenizer)):
            with open(os.path.join(folder, own), "w", encoding="utf-8") as file:
                json.dump(content, file)
        return folder

    def large(self):
        """A folder whose table of tokens is large, and holds zeros."""
        folder = self.folder("large", "llama_odd", vocab_size=LARGE)
        path, name = os.path.join(folder, "model.safetensors"), "model.embed_tokens.weight"
        header, data = safetensors.read(path)
        begin, end = header[name]["data_offsets"]
        rest, width = data[:begin] + data[end:], header[name]["shape"][1]
        for own in (header[n] for n in header if n not in (name, "__metadata__")):
            own["data_offsets"] = [at - (end - begin) if at >= end else at for at in own["data_offsets"]]
        header[name] = {"dtype": "F32", "shape": [LARGE, width],
                        "data_offsets": [len(rest), len(rest) + 4 * LARGE * width]}
        with open(path, "wb") as file:
            file.write(safetensors.pack(header, rest))
            file.truncate(file.tell() + 4 * LARGE * width)
        return folder

    # ------------------------------------------------------------ what is no file

    def others(self, path):
        """Puts what is no file in place of a path, each in turn, and the file again at last."""
        kept = path + ".kept"
        os.rename(path, kept)
        os.mkfifo(path)
        yield "a pipe"
        os.remove(path)
        os.mkdir(path)
        yield "a folder"
        os.rmdir(path)
        os.symlink("/dev/zero", path)
        yield "a device"
        os.remove(path)
        with socket.socket(socket.AF_UNIX) as taken:
            here = os.getcwd()
            os.chdir(os.path.dirname(path))  # the path of a socket is short
            taken.bind(os.path.basename(path))
            os.chdir(here)
            yield "a socket"
        os.remove(path)
        os.rename(kept, path)

    def refuses(self, path, *command, needed=True, **more):
        for what in self.others(path):
            done = run(*command, timeout=30, **more)
            words = "%s in place of %s: " % (what, os.path.basename(path))
            assert done.returncode != TIMED_OUT, words + "no end"
            if needed:
                assert done.returncode == 1 and path in done.stderr, words + "%d %s" % (done.returncode, said(done))
            assert done.returncode in (0, 1), words + "%d %s" % (done.returncode, said(done))

    def test_no_file_of_a_call(self):
        spec, ids, out = shutil.copy(SPEC, self.path("s.attn")), self.path("ids.npy"), self.path("h.npy")
        npy.write(ids, [1, 2, 3])
        weights, packed = self.path("w.safetensors"), self.path("w.attnw")
        attnc("weights", spec, "--weights", "random:1", "-o", weights, status=0)
        attnc("pack", spec, "--weights", weights, "-o", packed, status=0)
        call = [ATTNC, "run", spec, "--engine", "interp", "--in", "tokens=" + ids, "--out", "hidden=" + out]
        for path, command in ((spec, [ATTNC, "fmt", spec]), (spec, [*call, "--weights", weights]),
                              (ids, [*call, "--weights", weights]), (weights, [*call, "--weights", weights]),
                              (packed, [*call, "--weights", packed]),
                              (packed, [ATTNC, "pack", spec, "--weights", packed, "--verify"])):
            self.refuses(path, *command)
            assert not os.path.exists(out), "an output is left behind"
        labels = self.write("labels.txt", "a\nb\n")
        for option, path in (("--labels", labels), ("--tokenizer", labels)):
            self.refuses(path, ATTNC, "page", spec, "--weights", weights, option, path, "-o", self.path("page"))
        assert not os.path.exists(self.path("page")), "a folder is left behind"

    def test_no_file_of_a_folder(self):
        """In place of any file of a model's folder: config, tokenizer, weights, a shard, a module."""
        sharded = self.folder("sharded", "llama_odd")
        tensors = [name for name in safetensors.read(os.path.join(sharded, "model.safetensors"))[0]
                   if name != "__metadata__"]
        safetensors.split(sharded, lambda names: [names[::2], names[1::2]])
        assert tensors and not os.path.exists(os.path.join(sharded, "model.safetensors"))
        plain = self.folder("plain", "bert_classifier")
        for name in ("generation_config.json", "tokenizer_config.json", "special_tokens_map.json"):
            self.write("plain/" + name, "{}")
        for folder in (sharded, plain, self.folder("sentence", "tanh_odd", "sentences")):
            for name in names_below(folder):
                path = os.path.join(folder, name)
                if os.path.isdir(path):
                    continue
                needed = not name.startswith(("generation", "tokenizer_", "special", "config_sentence", "sentence_"))
                out = self.path("none")
                self.refuses(path, ATTNC, "get", folder, "-o", out, "--no-build", needed=needed)
                if needed:
                    assert not os.path.exists(out), names_below(out)
                shutil.rmtree(out, ignore_errors=True)

    def test_no_file_of_a_program(self):
        folder, out = self.folder("built", "bert_classifier"), self.path("built.out")
        attnc("get", folder, "-o", out, "--no-build", "--name", "built", status=0)
        run("make", "-s", "-C", out, "CFLAGS=-O0", status=0)
        program = os.path.join(out, "built")
        assert run(program, "w3", status=0).stdout
        for name in ("tokenizer.json", "built.attnw"):
            for what in self.others(os.path.join(out, name)):
                done = run(program, "w3", timeout=30)
                assert done.returncode == 1 and name in done.stderr, (what, name, done.returncode, said(done))

    # ------------------------------------------------------------ a file that is cut

    def cut(self, path, *command):
        """Cuts a file when the command has mapped it; the CompletedProcess."""
        if not os.path.exists("/proc/self/maps"):
            raise Skip("only Linux shows the maps of a process")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
        os.makedirs(self.path("temporary"), exist_ok=True)
        child = subprocess.Popen([ATTNC, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env={**os.environ, "TMPDIR": self.path("temporary")})
        try:
            while child.poll() is None:
                with open("/proc/%d/maps" % child.pid, encoding="utf-8") as maps:
                    if path in maps.read():
                        break
            child.send_signal(signal.SIGSTOP)
            os.truncate(path, 0)
            child.send_signal(signal.SIGCONT)
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()
            os.truncate(path, size)
        return subprocess.CompletedProcess(command, child.returncode, out.decode(), err.decode())

    def test_cut_while_it_is_read(self):
        spec, out, ids = self.path("big.attn"), self.path("cut"), self.path("one.npy")
        self.write("big.attn", "model big { d_model 64, vocab 500000\n encoder { seq <= 2, position none\n"
                               "layers 1 { attention self { heads 1 } } } }\n")
        weights, packed = self.path("big.safetensors"), self.path("big.attnw")
        attnc("weights", spec, "--weights", "random:1", "-o", weights, status=0)
        attnc("pack", spec, "--weights", weights, "-o", packed, status=0)
        npy.write(ids, [1])
        os.mkdir(out)
        call = ("run", spec, "--engine", "interp", "--in", "tokens=" + ids, "--out", "hidden=%s/h.npy" % out)
        for path, command in ((weights, ("pack", spec, "--weights", weights, "-o", out + "/w.attnw")),
                              (weights, ("compile", spec, "--weights", weights, "-o", out + "/new")),
                              (weights, ("weights", spec, "--weights", weights, "-o", out + "/w.safetensors")),
                              (weights, (*call, "--weights", weights)),
                              (packed, ("pack", spec, "--weights", packed, "--verify"))):
            for _ in range(8):  # the command may have read the whole file before
                done = self.cut(path, *command)
                attnc("weights", spec, "--weights", "random:1", "-o", weights, status=0)
                attnc("pack", spec, "--weights", weights, "-o", packed, status=0)
                if done.returncode != 0:
                    break
                for name in os.listdir(out):
                    os.remove(os.path.join(out, name))
            assert done.returncode == 1, (command, done.returncode, said(done))
            assert done.stderr == "attnc: error: %s: it was cut while it was read\n" % path, (command, said(done))
            assert not os.listdir(out), (command, os.listdir(out))
        folder = self.large()
        path = os.path.join(folder, "model.safetensors")
        done = self.cut(path, "import", folder, "-o", out + "/m.attn")
        assert done.returncode == 1 and path + ": it was cut" in done.stderr, said(done)
        assert not os.listdir(out) and not os.listdir(self.path("temporary")), os.listdir(out)

    # ------------------------------------------------------------ names

    def test_names_of_other_files(self):
        for name in ("attn_generate", "attn_runtime", "attn_sample", "attn_mel", "attn_transcribe", "ATTN_Runtime",
                     "attn_tokenizer"):
            spec, out = self.spec(name, "named"), self.path("named")
            for command in (["compile", spec, "--runtime"], ["python", spec], ["rust", spec],
                            ["page", spec, "--weights", "random:1"]):
                said_of = attnc(*command, "-o", out, status=1).stderr
                assert "the model `%s` has the name of other files" % name in said_of, said_of
                assert not os.path.exists(out), names_below(out)
        attnc("compile", self.spec("attn_generate", "named"), "-o", self.path("alone"), status=0)
        folder = self.folder("renamed", "bert_classifier")
        for name in ("MAIN", "makefile", "gnumakefile", "Tokenizer", "clean", "attn_Mel", "attn_tokenizer"):
            out = self.path("renamed.out")
            attnc("get", folder, "-o", out, "--no-build", "--name", name, status=2)
            assert not os.path.exists(out), names_below(out)
        for name in ("stdint", "Math", "time"):
            assert "would hide the header" in attnc("compile", self.spec(name, "named"), "-o", self.path("hidden"),
                                                    status=1).stderr

    def test_names_that_differ_in_capitals(self):
        out = self.path("capitals")
        attnc("compile", self.spec("m", "small"), "-o", out, status=0)
        before = {name: os.stat(os.path.join(out, name)).st_mtime_ns for name in os.listdir(out)}
        done = attnc("compile", self.spec("M", "great"), "-o", out, status=1)
        assert out + "/M.h" in done.stderr and "`m.h`" in done.stderr, done.stderr
        assert before == {name: os.stat(os.path.join(out, name)).st_mtime_ns for name in os.listdir(out)}
        attnc("compile", self.spec("m", "small"), "-o", out, status=0)

    def test_names_of_files_for_a_compiler(self):
        """Names that attnc's own temporary files had."""
        for name in ("all", "driver", "attn_tiles"):
            attnc("check", self.spec(name, "temporary"), "--target", "scalar", "--lengths", "2", "--cc", UNOPTIMIZED,
                  status=0)
        if shutil.which("clang") and shutil.which("wasm-ld"):
            attnc("page", self.spec("page_module", "temporary"), "--weights", "random:1", "-o", self.path("paged"),
                  status=0)

    # ------------------------------------------------------------ contradictions

    def test_indices_that_contradict_their_files(self):
        folder = self.folder("index", "llama_odd")
        safetensors.split(folder, lambda names: [names[::2], names[1::2]])
        path, out = os.path.join(folder, "model.safetensors.index.json"), self.path("index.attn")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        index = json.loads(text)["weight_map"]
        first, *_, last = sorted(index)
        shard = index[first]

        def refused(changed, *words):
            with open(path, "w", encoding="utf-8") as file:
                file.write(changed)
            done = attnc("import", folder, "-o", out, status=1)
            assert all(word in done.stderr for word in words), (words, done.stderr)
            assert not os.path.exists(out), "a spec is left behind"

        def mapped(**more):
            return json.dumps({"weight_map": {**index, **more}})
        refused(mapped(**{first: "none.safetensors"}), os.path.join(folder, "none.safetensors"), "No such file")
        refused(mapped(absent=shard), path, "tensor `absent`", "it is not in its file `%s`" % shard)
        refused(mapped(**{first: next(name for name in index.values() if name != shard)}), path, "`%s`" % first)
        refused(mapped(**{first: 3}), path, "`%s`" % first, "is not a string")
        refused(mapped(**{first: "../" + shard}), path, "not a plain file name")
        twice = json.dumps({"weight_map": index})[:-2] + ', "%s": "%s"}}' % (last, index[last])
        refused(twice, path, "`%s`" % last, "twice")
        refused("{}", path, "`weight_map` is missing")
        refused('{"weight_map": {}}', "no tensor")

    # ------------------------------------------------------------ what is said

    def test_labels_hold_no_control_characters(self):
        names = {"0": "a\x1b[31mred", "1": "b\tc\nd\x07", "2": "\u009b31m\u2028é\x7f"}
        folder = self.folder("labelled", "bert_classifier", id2label=names, problem_type="multi_label_classification")
        out = self.path("labelled.out")
        attnc("get", folder, "-o", out, "--no-build", "--name", "labelled", status=0)
        run("make", "-s", "-C", out, "CFLAGS=-O0", status=0)
        done = run(os.path.join(out, "labelled"), "w3 w4", status=0, text=False)
        line = done.stdout.decode()
        assert line.count("\n") == 1 and line.rstrip("\n").split("\t")[::2] == [
            "a?[31mred", "b?c?d?", "??31m\u2028é?"], line

    def test_messages_hold_no_control_characters(self):
        """Names and values of files, with escapes, ends of lines and characters of two to four bytes where they are
        cut."""
        for wide in ("\u00e9", "\u20ac", "\U0001f600"):
            for shift in range(4):
                text = "x" * shift + wide * 60
                for config in ({"model_type": text}, {"hidden_act": text}, {"architectures": [text]}, {text: 1},
                               {"rope_parameters": {"rope_type": text, "rope_theta": 1e4}},
                               {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2, text: 1}}):
                    done = self.quoted(config)
                    assert wide in done, done
                self.quoted({}, name=text * 3)
        for odd in ("a\x1b[31mb", "a\nattnc: error: b", "a\rb\tc", "a\u009b31m"):
            for config in ({"model_type": odd}, {"hidden_act": odd}, {odd: 1}, {"architectures": [odd]}):
                self.quoted(config)
            self.quoted({}, name=odd)

    def quoted(self, config, name=None):
        """What import says of a folder that has these keys, and a tensor of this name in place of another."""
        folder = self.folder("quoted", "llama_odd", **config)
        if name:
            path = os.path.join(folder, "model.safetensors")
            header, data = safetensors.read(path)
            header[name] = header.pop("model.norm.weight")
            with open(path, "wb") as file:
                file.write(safetensors.pack(header, data))
        done = attnc("import", folder, "-o", self.path("quoted.attn"), text=False, status=1)
        text = done.stderr.decode()  # fails where a character is cut
        assert text.count("\n") == 1 and text.endswith("\n"), repr(text)
        assert all(c == "\n" or " " <= c < "\x7f" or c >= "\u00a0" for c in text), repr(text)
        return text

    # ------------------------------------------------------------ signals

    def test_signals(self):
        """What a command has begun is removed, also the folders that it made."""
        self.write("large.attn", "model large { d_model 16, vocab %d\n encoder { seq <= 2, position none\n layers 1 { "
                                 "attention self { heads 1 } } } }\n" % LARGE)
        spec, folder, out = self.path("large.attn"), self.large(), self.path("new", "inner")
        drawn = ("--weights", "random:1")
        for command in (("get", folder, "--no-build"), ("compile", spec, *drawn), ("python", spec, *drawn),
                        ("rust", spec, *drawn)):
            for number in SIGNALS:
                to = out if command[0] in ("python", "rust") else self.path("new")
                child = start(*command, "-o", to)
                while child.poll() is None and not os.path.exists(to):
                    time.sleep(0.001)
                time.sleep(0.02)
                child.send_signal(number)
                _, err = child.communicate(timeout=60)
                assert child.returncode == -number, (command[0], number, child.returncode, err)
                assert not os.path.exists(self.path("new")), (command[0], names_below(self.path("new")))
        for command, to in ((("pack", spec, *drawn), "new.attnw"), (("import", folder), "new.attn")):
            child = start(*command, "-o", self.path(to))
            time.sleep(0.1)
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=60)
            assert child.returncode == -signal.SIGTERM, (command[0], child.returncode)
            assert not [name for name in os.listdir(self.scratch) if name.startswith(to)], os.listdir(self.scratch)

    def test_signals_reach_children(self):
        """What a compiler or Python leaves among the temporary files is removed, and so is what they still write."""
        spec = self.write("m.attn", MODEL.replace("vocab 20", "vocab 37") % "m")
        tokens = self.write("children.json", json.dumps(TOKENIZER))
        marker, temporary = self.path("begun"), self.path("tmp")
        leaves, drawn = self.write("leaves", LEAVES % marker), ("--weights", "random:1")
        os.chmod(leaves, 0o755)
        os.mkdir(temporary)
        for command in (("check", spec),
                        ("run", spec, *drawn, "--tokenizer", tokens, "--text", "w3", "--out", "logits=" +
                         self.path("logits.npy"), "--engine", "interp"),
                        ("python", spec, *drawn, "--wheel", "-o", self.path("wheel")),
                        ("get", self.folder("children", "llama_odd"), "-o", self.path("project")),
                        ("page", spec, *drawn, "--cc", leaves, "-o", self.path("page"))):
            child = start(*command, TMPDIR=temporary, CC=leaves, PYTHON=leaves)
            while child.poll() is None and not os.path.exists(marker):
                time.sleep(0.001)
            child.send_signal(signal.SIGTERM)
            _, err = child.communicate(timeout=60)
            assert child.returncode == -signal.SIGTERM, (command[0], child.returncode, err)
            time.sleep(1)  # all late files would be there
            assert not os.listdir(temporary), (command[0], names_below(temporary))
            os.remove(marker)

    def test_failures_leave_no_folder(self):
        spec, out = self.spec("m"), self.path("fresh", "a", "b")
        for kind in ("python", "rust"):
            done = run("bash", "-c", 'ulimit -f 1; exec "$@"', "-", ATTNC, kind, spec, "--weights", "random:1", "-o",
                       out, status=1)
            assert "fresh" in done.stderr and not os.path.exists(self.path("fresh")), said(done)
        os.mkdir(self.path("fresh"))
        done = run("bash", "-c", 'ulimit -f 1; exec "$@"', "-", ATTNC, "python", spec, "-o", out, status=1)
        assert os.listdir(self.path("fresh")) == [], "a folder that was there is gone, or one is left"

    # ------------------------------------------------------------ outputs

    def test_outputs_that_are_no_files(self):
        spec, whole, got = self.spec("m"), self.path("whole.attnw"), self.path("got.attnw")
        call = ("pack", spec, "--weights", "random:1", "-o")
        attnc(*call, whole, status=0)
        with open(whole, "rb") as file:
            wanted = file.read()

        def to_shell(words, *command):
            return run("bash", "-c", '"$@" ' + words, "-", ATTNC, *command, text=False)
        done = to_shell("> " + got, *call, "/dev/stdout")
        with open(got, "rb") as file:
            assert done.returncode == 0 and file.read() == wanted, said(done)
        assert os.path.islink("/dev/stdout") and b"21 tensors" in done.stderr
        for words, said_of in (("| cat", b"a pipe"), (">> " + got, b"`>>`")):
            done = to_shell(words, *call, "/dev/stdout")
            assert said_of in done.stderr and not done.stdout, said(done)
        with open(got, "rb") as file:
            assert file.read() == wanted
        done = to_shell("| cat", "weights", spec, "--weights", "random:1", "-o", "/dev/stdout")
        assert done.returncode == 0 and struct.unpack_from("<Q", done.stdout)[0] < len(done.stdout), said(done)
        assert to_shell("| cat", "fmt", spec, "-o", "/dev/stdout").stdout == to_shell("| cat", "fmt", spec).stdout
        pipe = self.path("output.fifo")
        os.mkfifo(pipe)
        done = attnc("fmt", spec, "-o", pipe, status=1, timeout=30)
        assert "no program reads it" in done.stderr, said(done)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            attnc("fmt", spec, "-o", pipe, status=0, timeout=30)
            assert reader.stdout.read() == run(ATTNC, "fmt", spec, text=False).stdout
        attnc(*call, "/dev/null", status=0)
        assert stat.S_ISCHR(os.stat("/dev/null").st_mode) and not [n for n in os.listdir("/dev") if ".part-" in n]
        os.symlink("whole.attnw", self.path("link.attnw"))
        attnc("pack", spec, "--weights", "random:2", "-o", self.path("link.attnw"), status=0)
        with open(whole, "rb") as file:
            assert os.path.islink(self.path("link.attnw")) and file.read() != wanted, "the link was replaced"

    # ------------------------------------------------------------ compilers

    def test_compilers_with_options(self):
        spec, ids = self.spec("m"), self.path("five.npy")
        npy.write(ids, [1, 2, 3])
        check = ("check", spec, "--target", "scalar", "--lengths", "2")
        cc = UNOPTIMIZED + " -w  -DUNUSED=1 "
        attnc(*check, "--cc", cc, status=0)
        attnc(*check, env={"CC": cc}, status=0)
        attnc("run", spec, "--weights", "random:1", "--in", "tokens=" + ids, "--out", "logits=" + self.path("l.npy"),
              "--cc", cc, status=0)
        blank = self.path("my compilers")
        os.mkdir(blank)
        os.symlink(UNOPTIMIZED, os.path.join(blank, "cc"))
        attnc(*check, "--cc", os.path.join(blank, "cc"), status=0)
        folder = self.folder("optioned", "bert_classifier")
        for i, command in enumerate((cc, os.path.join(blank, "cc"), os.path.relpath(UNOPTIMIZED, ROOT) + " -w")):
            out = self.path("optioned.out%d" % i)
            attnc("get", folder, "-o", out, "--cc", command, "--name", "made", status=0)
            with open(os.path.join(out, "Makefile"), encoding="utf-8") as file:
                text = file.read()
            assert all(words in text for words in BUILT) and os.path.exists(os.path.join(out, "made")), text
        if shutil.which("clang") and shutil.which("wasm-ld"):
            attnc("page", spec, "--weights", "random:1", "-o", self.path("paged_o1"), "--cc", "clang -O1", status=0)

    def test_compilers_that_do_not_work(self):
        check = ("check", self.spec("m"), "--target", "scalar", "--lengths", "2")
        for cc, *words in (("/bin/false", "the C compiler `/bin/false` does not work", "status 1"),
                           (UNOPTIMIZED + " --nonsense", "--nonsense` does not work"),
                           ("/bin/true", "the C compiler `/bin/true`", "writes no file"),
                           (UNOPTIMIZED + " -Dstatic=nothing", "but not with the options of"),
                           ("no-such-compiler -O1", "`no-such-compiler -O1` is not there")):
            done = attnc(*check, "--cc", cc, status=1)
            assert all(word in done.stderr for word in words), done.stderr
        done = attnc("get", self.folder("false", "bert_classifier"), "-o", self.path("false.out"), "--cc", "/bin/false",
                     status=1)
        assert "`make -C" in done.stderr, done.stderr

    def test_places_of_a_check(self):
        """A check that finds nothing to compare does not speak of places that differ."""
        spec, weights = self.spec("m"), self.path("zeros.safetensors")
        attnc("weights", spec, "--weights", "random:1", "-o", weights, status=0)
        header = safetensors.read(weights)[0]
        sizes = {name: own["data_offsets"][1] - own["data_offsets"][0] for name, own in header.items()}
        safetensors.write(weights, {name: (header[name]["shape"], array.array("f", bytes(size)))
                                    for name, size in sizes.items()})
        done = attnc("check", spec, "--weights", weights, "--target", "scalar", "--cc", UNOPTIMIZED, status=1)
        assert "0 place" not in said(done) and "the same for all inputs" in done.stderr, said(done)


if __name__ == "__main__":
    sys.exit(run_tests("hostile", Hostile))
