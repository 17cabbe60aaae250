"""The command lines of the programs that attnc get writes, and what it does with a folder that has one already."""
import os
import shutil

from lib.attnc import TESTS, attnc, run
from lib.words import TOKENIZER

PLAIN = {**TOKENIZER, "post_processor": None}


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Options:
    """Tests of the class that has `path`, `folder`, `get` and `lines`."""

    def wrong(self, *words, why):
        done = run(self.program, *words, status=2)
        assert done.stdout == "" and why in done.stderr and "\nusage: " in done.stderr, done
        return done.stderr

    def test_help(self):
        """Of a program of each kind; --help needs no file."""
        sound = self.path("helps_ear")
        shutil.copytree(os.path.join(TESTS, "parity", "sounds", "several"), sound)
        for folder, words in ((self.folder("helps_writer", "llama_odd", PLAIN, bos_token_id=None), ["--max-new N"]),
                              (self.folder("helps_reader", "bert_one_head"), ["a JSON array"]),
                              (self.folder("helps_judge", "bert_classifier"), ["LABEL, a tab"]),
                              (self.folder("helps_other", "marian_odd"), ["what the decoder makes of it"]),
                              (sound, ["--times", "--language C", "--translate"])):
            self.get(folder)
            name = os.path.basename(folder)
            os.remove(self.weights)
            done = run(self.program, "w3", "--help", "-p", status=0)
            assert done.stderr == "" and done.stdout.startswith("usage: %s " % name), done
            assert done.stdout.endswith("are read from the folder of the program:\n%s\n" % self.to), done.stdout
            assert all(word in done.stdout for word in ["--threads N", "--help", *words]), done.stdout
            assert all(len(line) <= 120 for line in done.stdout.splitlines()), done.stdout
            assert self.program + ".attnw: " in run(self.program, "w3", status=1).stderr
            self.wrong("-p", "Hello", why="`-p`: there is no such option")

    def test_options_and_texts(self):
        self.get(self.folder("orders", "bert_one_head"))
        plain = self.lines("w3", "w5")
        assert self.lines("--threads", "1", "w3", "w5") == self.lines("w3", "--threads=1", "w5") == plain
        assert self.lines("--", "-p", "--help") == self.lines("-", "w1 w1")[:1] * 2, "texts that are no words"
        for words, why in ((["--threads"], "its value is missing"), (["--threads", "x"], "it takes a number of"),
                           (["--threads=0"], "it takes a number"), (["--threads", "1x"], "it takes a number"),
                           (["--help=1"], "there is no such option"), (["-v"], "there is no such option"),
                           (["w3", "--max-new", "3"], "`--max-new`: there is no such option")):
            self.wrong(*words, why=why)

    def test_wrong_texts_are_passed_over(self):
        """What is wrong with a text is reported with its place, and the next one follows."""
        self.get(self.folder("passes", "llama_odd", PLAIN, bos_token_id=None))
        good = self.lines("--max-new", "3", "w3", "w5")
        long = " ".join(["w3"] * 100)
        done = run(self.program, "--max-new", "3", input="w3\n%s\n\nw5" % long, status=1)
        assert done.stdout.splitlines() == good, done.stdout
        assert "passes: line 2: it has more than 19 tokens\n" in done.stderr, done.stderr
        assert "passes: line 3: it has no tokens\n" in done.stderr, done.stderr
        done = run(self.program, "--max-new", "3", "w3", long, "w5", status=1)
        assert done.stdout.splitlines() == good and "passes: text 2: it has more than 19" in done.stderr, done

    def test_changed_files_stay(self):
        folder = self.folder("stays", "bert_one_head")
        self.get(folder)
        self.get(folder, "--precision", "int8")  # another program, whose files nobody has changed
        for name in ("main.c", "Makefile"):
            path = os.path.join(self.to, name)
            own = read(path)
            for text in (own + "\n", own.replace("Checksum ", "checksum "), "int main(void) { return 7; }\n", ""):
                write(path, text)
                done = attnc("get", folder, "-o", self.to, "--no-build", status=1)
                assert path + ": it is not as attnc get wrote it" in done.stderr and "--force" in done.stderr, done
                assert read(path) == text, "it was overwritten"
            attnc("get", folder, "-o", self.to, "--no-build", "--force", status=0)
            self.get(folder)

    def test_names(self):
        """A program is named after the folder or file, if that can be the name of a model."""
        plain = self.folder("plain", "bert_one_head")
        os.mkdir(self.path("named.out"))
        for folder, name in (("all-MiniLM-L6.v2", "all_MiniLM_L6_v2"), ("model", "bert"), ("7B", "bert"),
                             ("main", "bert"), ("double", "bert"), ("math", "bert"), ("tokenizer", "bert"),
                             ("x" * 64, "bert"), ("encoder", "encoder"), ("\u00e9t\u00e9", "bert")):
            shutil.copytree(plain, self.path("named", folder))
            to = self.path("named.out", folder)
            attnc("get", self.path("named", folder) + "/" * (folder == "7B"), "-o", to, "--no-build", status=0)
            assert os.path.exists(os.path.join(to, name + ".attn")), (folder, os.listdir(to))
        attnc("get", ".", "-o", self.path("here"), "--no-build", cwd=self.path("named", "encoder"), status=0)
        assert os.path.exists(self.path("here", "encoder.attn")), os.listdir(self.path("here"))
        attnc("get", plain, "-o", self.path("given"), "--no-build", "--name", "other", status=0)
        assert os.path.exists(self.path("given", "other.c"))
