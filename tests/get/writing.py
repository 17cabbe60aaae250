"""The options by which the programs of decoders search for a text, stream it, and end it."""
import json
import os
import shutil
import subprocess

from lib import npy
from lib.attnc import TESTS, attnc, run
from lib.tap import Skip
from options import PLAIN, Options, write


class Writing(Options):
    """Tests of the class that has `path`, `folder`, `get` and `lines`."""

    def writer(self, name, **config):
        folder = self.folder(name, "llama_odd", PLAIN, bos_token_id=None, **config)
        self.get(folder)
        return folder

    def continued(self, ids, *words):
        """The new ids of attnc generate."""
        npy.write(self.path("ids.npy"), ids)
        attnc("generate", self.spec, "--weights", self.weights, "--in", "tokens=" + self.path("ids.npy"), "--out",
              "tokens=" + self.path("new.npy"), "--engine", "interp", *words, status=0)
        return list(npy.read(self.path("new.npy"))[-1])[len(ids):]

    @staticmethod
    def text(ids):
        return " ".join("w%d" % i for i in ids)

    def said_of(self, *words, status=0, given=""):
        """What the program prints, and what it says of it."""
        done = run(self.program, *words, input=given, status=status)
        return done.stdout, done.stderr

    def test_search_options(self):
        """Each option does what it does in attnc generate, and beams what transformers does without other settings."""
        self.writer("chooses_how")
        for words in (["--temperature", "1.5"], ["--temperature", "1.5", "--seed", "7"],
                      ["--temperature", "2", "--top-k", "4", "--seed", "3"],
                      ["--temperature", "2", "--top-p", "0.5", "--seed", "18446744073709551615"],
                      ["--temperature", "3", "--min-p", "0.4", "--seed", "5"], ["--repeat-penalty", "1.9"],
                      ["--temperature", "0", "--seed", "1"]):
            wanted = self.text([3, 5] + self.continued([3, 5], "--max-new", "8", *words))
            assert self.lines("--max-new", "8", *words, "w3 w5") == [wanted], words
        for given, also in (([], []), (["--length-penalty", "-2"], ["--length-penalty", "-2"])):
            wanted = self.continued([3, 5], "--max-new", "8", "--beam", "3", "--length-form", "power",
                                    "--early-stopping", "heuristic", *(also or ["--length-penalty", "1"]))
            assert self.lines("--max-new", "8", "--beams=3", *given, "--no-prompt", "w3 w5") == \
                [" " + self.text(wanted)], given
        drawn = {self.lines("--temperature", "2", "--seed", str(seed), "w3")[0] for seed in range(5)}
        assert len(drawn) > 2, drawn

    def test_options_that_replace_the_search(self):
        """Options take the place of what generation_config.json says, and are refused where they have no effect."""
        for name, rules, words, as_if in (
                ("replaces_draws", {"do_sample": True, "temperature": 1.5, "top_k": 9}, ["--temperature", "0"], []),
                ("replaces_beams", {"num_beams": 3, "early_stopping": True}, ["--temperature", "2", "--seed", "9"], []),
                ("replaces_greedy", {"do_sample": True}, ["--beams", "2"],
                 ["--length-form", "power", "--early-stopping", "heuristic", "--length-penalty", "1"])):
            folder = self.folder(name, "llama_odd", PLAIN, bos_token_id=None)
            write(os.path.join(folder, "generation_config.json"), json.dumps({"eos_token_id": 2, **rules}))
            self.get(folder)
            same = [word.replace("--beams", "--beam") for word in words]
            wanted = self.text([3, 5] + self.continued([3, 5], "--max-new", "8", *same, *as_if))
            assert self.lines("--max-new", "8", *words, "w3 w5") == [wanted], name
        self.writer("refuses_how")
        for words, why in (
                (["--top-k", "3"], "`--top-k`: it has no effect without sampling"),
                (["--seed", "3"], "`--seed`: it has no effect without sampling"),
                (["--length-penalty", "1"], "`--length-penalty`: it has no effect without beam search"),
                (["--beams", "2", "--temperature", "1"], "`--beams`: it excludes a temperature"),
                (["--beams", "0"], "1 to 1024"), (["--temperature", "-1"], "0 to 1e6"), (["--top-p", "0"], "at most 1"),
                (["--temperature", "nan"], "0 to 1e6"), (["--top-p", "1.1"], "at most 1"), (["--min-p", "x"], "0 to 1"),
                (["--seed", "-1"], "a whole number"), (["--seed", "18446744073709551616"], "a whole number"),
                (["--repeat-penalty", "0"], "0.001 to 1000"), (["--max-new", "0"], "at least 1"),
                (["--stop", ""], "it takes a text"), (["--stop"], "its value is missing"),
                (["--no-prompt=1"], "it takes no value"), (["--prompt-file", "a", "b"], "it excludes other texts"),
                (["--prompt-file", "a", "--prompt-file", "b"], "it stands twice")):
            self.wrong(*words, why=why)

    def test_languages(self):
        """The texts of generate of transformers, by make_languages.py: codes around the source, and before the text."""
        with open(os.path.join(TESTS, "get", "languages.json"), encoding="utf-8") as file:
            cases = json.load(file)
        changed = 0
        for case in cases:
            folder = self.folder("speaks_" + case["name"], case["model"], case["tokenizer"])
            write(os.path.join(folder, "generation_config.json"), json.dumps(case["rules"]))
            self.get(folder)
            for told in case["told"]:
                words = ["--max-new", str(case["most"]), "--beams", str(told["beams"]), "--to", told["to"]]
                source = ["--from", told["from"]] if told["from"] else []
                assert self.lines(*words, *source, told["text"]) == [told["written"]], (case, told)
                changed += self.lines(*words[:-2] if case["name"] == "marian" else words, told["text"]) != [
                    told["written"]]
            if case["name"] == "marian":
                self.wrong("--from", "fra", told["text"], why="there is no such option")
                odd = json.loads(json.dumps(case["tokenizer"]).replace(">>fra<<", ">>*/int/**/odd=1;/*<<"))
                attnc("get", self.folder("speaks_oddly", case["model"], odd), "-o", self.path("oddly"), "--no-build")
                with open(self.path("oddly/main.c"), encoding="utf-8") as file:
                    assert "odd=1" not in file.read(), "a token stands in the C of the program"
                long = " ".join(["a"] * 100)
                assert "tokens\n" in self.said_of("--to", "fra", long, status=1)[1]
            for option in ("--to",) if case["name"] == "marian" else ("--from", "--to"):
                out, err = self.said_of(option, "xx", told["text"], status=1)
                assert out == "" and err.count("\n") == 1 and "has no language `xx`; it has " in err, err
                assert ", " + case["told"][-1]["to"] in err or case["name"] != "nllb", err
        assert changed > 4, "--from and a leading code change nothing"
        self.get(self.folder("speaks_not", "marian_odd"))
        self.wrong("--to", "en", "w3", why="there is no such option")

    def test_beams_of_translations(self):
        self.get(self.folder("translates_by_beams", "marian_odd", bos_token_id=None))
        npy.write(self.path("source.npy"), [35, 4, 6, 8, 36])
        for penalty in ("0", "1", "2.5"):
            attnc("generate", self.spec, "--weights", self.weights, "--in", "source=" + self.path("source.npy"),
                  "--beam", "4", "--length-form", "power", "--early-stopping", "heuristic", "--length-penalty", penalty,
                  "--max-new", "9", "--out", "tokens=" + self.path("new.npy"), "--engine", "interp", status=0)
            wanted = [i for i in list(npy.read(self.path("new.npy"))[-1])[1:]]
            words = ["--beams", "4", "--length-penalty", penalty, "--max-new", "9", "w4 w6 w8"]
            assert self.lines(*words) == [self.text(wanted)], penalty

    def test_ends(self):
        """The reason why a text ends."""
        folder = self.writer("ends")
        ids = self.continued([3, 5], "--max-new", "8")
        out, err = self.said_of("--max-new", "8", "w3 w5")
        assert err == "ends: text: stopped at the limit after 8 new tokens\n", err
        out, err = self.said_of("w3 w5")
        assert err == "ends: text: stopped at the end of the room after 18 new tokens: the model holds 19 with the " \
            "prompt\n" and len(out.split()) == 20, (out, err)
        out, err = self.said_of("--max-new", "1", given="w3\nw5\n")
        assert err.splitlines() == ["ends: line %d: stopped at the limit after 1 new token" % i for i in (1, 2)], err
        write(os.path.join(folder, "generation_config.json"), json.dumps({"eos_token_id": ids[2]}))
        self.get(folder)
        count = ids.index(ids[2]) + 1
        out, err = self.said_of("w3 w5")
        assert err == "ends: text: stopped at the end token after %d new token%s\n" % (count, "s" * (count > 1)), err
        assert out == self.text([3, 5] + ids[:count]) + "\n", out

    def test_stop_texts(self):
        """A text ends before the first stop text that is complete, also one that several tokens make."""
        self.writer("stops")
        ids = self.continued([3, 5], "--max-new", "8")
        whole, new = "w3 w5 " + self.text(ids), " " + self.text(ids)
        for stops in ([self.text(ids[2:4])], ["w3"], ["w"], ["nothing"], ["w%d w" % ids[1], self.text(ids[1:4])],
                      [whole], [new + " and more"], [" "], [new[-1]]):
            ends = [new.find(stop) + len(stop) for stop in stops if stop in new]
            begin = max((min(ends) - len(s) for s in stops if new[:min(ends)].endswith(s)), default=0) if ends else 0
            wanted = "w3 w5" + (new[:begin] if ends else new)
            words = [word for stop in stops for word in ("--stop", stop)]
            out, err = self.said_of("--max-new", "8", *words, "w3 w5")
            assert out == wanted + "\n", (stops, out, wanted)
            assert ("stopped at the stop text \"" if ends else "stopped at the limit") in err, (stops, err)
            out, _ = self.said_of("--max-new", "8", "--beams", "2", *words, "--no-prompt", "w3 w5")
            assert not any(stop in out for stop in stops), (stops, out)

    def test_prompt_files(self):
        self.writer("files_of_prompts")
        path = self.path("prompt.txt")
        plain = self.lines("--max-new", "4", "w3 w5")
        for text in ("w3 w5", "w3\nw5\n", "w3 w5\r\n", "\n w3\t\n\nw5"):
            with open(path, "wb") as file:
                file.write(text.encode())
            assert self.lines("--max-new", "4", "--prompt-file", path) == plain, text
        done = run("sh", "-c", 'printf "w3\\nw5" | "$0" --max-new 4 --prompt-file /dev/stdin', self.program, status=0)
        assert done.stdout.splitlines() == plain, done.stdout
        for content, why in ((b"w3 \xff w5", "it is no UTF-8: byte 4 is 0xff"), (b"w3\xc3", "it is no UTF-8: byte 3"),
                             (b"", "it has no tokens"), (b"w3 " * 100, "it has more than 19 tokens")):
            with open(path, "wb") as file:
                file.write(content)
            out, err = self.said_of("--prompt-file", path, status=1)
            assert out == "" and err.startswith("files_of_prompts: %s: %s" % (path, why)), err
        for name, why in (("none.txt", "No such file"), ("", "Is a directory")):
            out, err = self.said_of("--prompt-file", self.path(name), status=1)
            assert out == "" and self.path(name) + ": " + why in err and err.count("\n") == 1, err

    def test_sanitized(self):
        """Command lines, fine and wrong, of a program under the sanitizers of addresses and undefined behaviour."""
        if not shutil.which("clang"):
            raise Skip("clang is not there")
        self.writer("checked")
        run("make", "-s", "-B", "-C", self.to, "CC=clang", "CFLAGS=-O1 -g1 -fsanitize=address,undefined "
            "-fno-sanitize-recover=all", status=0)
        path = self.path("checked.txt")
        write(path, "w3\nw5\n")
        new = self.text(self.continued([3, 5], "--max-new", "8")).split()
        for words, status in ((["--help"], 0), (["-p"], 2), (["--stop"], 2), (["--beams=2", "--temperature=1"], 2),
                              (["--stop", new[2], "--stop", " ".join(new[1:4]), "w3 w5", "w7"], 0),
                              (["--stop", " ".join(new) + " and more", "--beams", "3", "w3 w5"], 0),
                              (["--prompt-file", path, "--no-prompt"], 0), (["--prompt-file", path + "x"], 1),
                              (["--temperature", "2", "--top-k", "5", "--", "-", "w3 " * 100, ""], 1)):
            done = run(self.program, *words, status=status)
            assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
        os.remove(self.weights)
        assert "Sanitizer" not in run(self.program, "w3", status=1).stderr

    def test_streams(self):
        """Each word is printed before the next one is known, whole characters alone, and no prompt twice."""
        self.writer("streams")
        with subprocess.Popen([self.program, "--max-new", "4"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as child:
            child.stdin.write(b"w3\n")
            child.stdin.flush()
            first = child.stdout.readline()
            assert len(first.split()) == 5, first  # while the program waits for the next line
            child.stdin.close()
        assert self.lines("--max-new", "2", "--no-prompt", "w3") == [" " + self.text(self.continued([3], "--max-new",
                                                                                                 "2"))]
        trace = self.path("trace")
        done = run("sh", "-c", 'strace -f -e trace=write -o "$1" "$0" --max-new 4 w3', self.program, trace)
        if done.returncode == 0:
            with open(trace, encoding="utf-8") as file:
                assert sum("write(1, " in line for line in file) >= 5, "one write for all tokens"
