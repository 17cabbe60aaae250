"""The cases of texts.json: a folder's tokenizer_config.json, against the ids of AutoTokenizer. Either the ids are
these, or a note of the import names a key that the case changes."""
import atexit
import functools
import json
import os
import shutil
import tempfile
import threading

from lib.attnc import ROOT, attnc, run
from lib.tokenizer import encoder, framed

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = ("hello ab", "a", "b hell", "<s>ab</s> abab", "Hello  AB h\u00e9", "a\u6f22b", "ab hell hello ab b a hell")
CUT = 5  # ids of the last text
LOCK = threading.Lock()


def write_folder(base, changes, folder):
    """A model of a fixture with this tokenizer."""
    source = os.path.join(ROOT, "tests", "parity", "fixtures", base["fixture"])
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(os.path.join(source, name), os.path.join(folder, name))
    config = {k: v for k, v in {**base["config"], **changes}.items() if v != "absent"}
    for name, content in (("tokenizer.json", base["tokenizer"]), ("tokenizer_config.json", config)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)


@functools.cache
def built():
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    return encoder(os.path.join(folder, "encode"))


class Text:
    def __init__(self, base, case):
        self.base, self.case, self.name = base, case, case["name"]

    def check(self):
        """What is wrong, or None."""
        folder = tempfile.mkdtemp()
        try:
            write_folder(self.base, self.case["changes"], folder)
            return self.compare(folder)
        finally:
            shutil.rmtree(folder)

    def compare(self, folder):
        done = attnc("import", folder, "-o", os.path.join(folder, "spec.attn"))
        if done.returncode:
            return "import: status %d\n%s" % (done.returncode, done.stderr)
        if not self.case["changes"] and "tokenizer_config.json" in done.stderr:
            return "a note of what is as it was saved:\n" + done.stderr
        with open(os.path.join(folder, "spec.attn"), encoding="utf-8") as file:
            spec = file.read()
        rules = ("    lower_case\n" in spec) + 2 * ("    truncate left\n" in spec)
        tokenizer = os.path.join(folder, "tokenizer.json")
        got, cut = encoded(tokenizer, 64, rules, TEXTS), encoded(tokenizer, CUT, rules, TEXTS[-1:])
        if got == self.case["ids"] and cut == [self.case["cut"]] or self.noted(done.stderr):
            return None
        return "%s %s\ntransformers: %s %s\n%s\n%s" % (got, cut, self.case["ids"], self.case["cut"],
                                                       self.case["changes"], done.stderr)

    def noted(self, notes):
        return any("`%s`" % key in line for line in notes.splitlines() for key in self.case["changes"]
                   if "tokenizer_config.json" in line)


def encoded(tokenizer, capacity, rules, texts):
    with LOCK:
        program = built()
    done = run(program, tokenizer, str(capacity), str(rules), "alone", input=framed(text.encode() for text in texts),
               text=False)
    return [[int(word) for word in line.split()] for line in done.stdout.decode().splitlines()]


def texts():
    with open(os.path.join(HERE, "texts.json"), encoding="utf-8") as file:
        content = json.load(file)
    return [Text(content["bases"][case["base"]], case) for case in content["cases"]]
