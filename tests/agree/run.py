#!/usr/bin/env python3
"""tests/agree/run.py [FOLDER…]: programs, the command line, packages, crates and pages give the same tokens and
vectors for the same folder, which are the answers of transformers and sentence-transformers (answers.json, by make.py).
The folders take turns, two with a commit, unless the command line names some. TAP on stdout."""
import functools
import glob
import json
import math
import os
import re
import shutil
import sys
import tempfile
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy  # noqa: E402
from lib.attnc import ROOT, TESTS, attnc, run  # noqa: E402
from lib.tap import Report, Skip  # noqa: E402
from lib.tokenizer import encoder  # noqa: E402
from lib.turns import in_turn  # noqa: E402
from page import served  # noqa: E402
from python.support import Packages, suitable  # noqa: E402

HERE = os.path.join(TESTS, "agree")
NAMES = sorted(os.path.basename(path)[:-4] for path in glob.glob(os.path.join(HERE, "*.zip")))
IN_TURN = 6  # of the folders, one part a commit
WAYS = ["program", "command", "python", "rust", "page"]
LOWER_CASE, TRUNCATE_LEFT = 1, 2  # of attn_tokenizer.h

# A program in Rust prints, for each text, its ids and the new tokens or the vector; after new tokens, one more line has
# the bytes of the text that they decode to.
SHOW = """fn show<T: std::fmt::Display>(name: &str, ids: &[i32], numbers: &[T]) {
    let ids: Vec<String> = ids.iter().map(i32::to_string).collect();
    let numbers: Vec<String> = numbers.iter().map(T::to_string).collect();
    println!("{name}\\t{}\\t{}", ids.join(" "), numbers.join(" "));
}
"""
BEGIN = """
fn %(name)s() {
    use %(name)s::*;
    let (model, tokenizer) = (Model::bundled().unwrap(), Tokenizer::bundled().unwrap());
    for text in [%(texts)s] {
"""
SEARCH = """        let search = Search { max_new: %(new)d, ..Search::default() };
"""
KINDS = {
    "generate": SEARCH + """        let ids = tokenizer.encode(text, true).unwrap();
        let new: Vec<i32> = model.generate(&ids, &search).unwrap().map(Result::unwrap).collect();
        show("%(name)s", &ids, &new);
        show("%(name)s", &[], tokenizer.decode(&[ids, new].concat()).unwrap().as_bytes());
""",
    "translate": SEARCH + """        let ids = tokenizer.encode(text, true).unwrap();
        let sources = model.encode(&SourceInputs { source: &ids, ..SourceInputs::default() }).unwrap();
        let begin = [START_TOKEN];
        let new: Vec<i32> = model.generate(&sources[0], &begin, &search).unwrap().map(Result::unwrap).collect();
        show("%(name)s", &ids, &new);
        show("%(name)s", &[], tokenizer.decode(&new).unwrap().as_bytes());
""",
    "embed": """        show("%(name)s", &[], &model.embed(&tokenizer, &[text]).unwrap()[0]);
""",
    "classify": """        let ids = tokenizer.encode_most(text, true, SEQ).unwrap();
        let inputs = Inputs { tokens: &ids, ..Inputs::default() };
        show("%(name)s", &ids, &model.forward(&inputs).unwrap().logits);
""",
    "rerank": """        let (first, second) = text.split_once('\\t').unwrap();
        let (ids, segments) = tokenizer.encode_pair(first, second, SEQ).unwrap();
        let inputs = Inputs { tokens: &ids, segments: Some(&segments), ..Inputs::default() };
        show("%(name)s", &ids, &model.forward(&inputs).unwrap().logits);
"""}


def near(got, wanted, by=2e-5):
    got, wanted = [float(x) for x in got], list(wanted)
    assert len(got) == len(wanted), "%d numbers, not %d" % (len(got), len(wanted))
    worst = max(abs(a - b) for a, b in zip(got, wanted))
    assert worst <= by * (1 + max(map(abs, wanted))), "off by %g: %s, not %s" % (worst, got[:4], wanted[:4])


def same(got, wanted):
    assert got == wanted, "%r, not %r" % (got, wanted)


def shares(logits):
    powers = [math.exp(x - max(logits)) for x in logits]
    return [power / sum(powers) for power in powers]


class Folder:
    """A folder and its answers, with the spec that attnc import writes of it."""

    def __init__(self, scratch, name):
        self.name, self.scratch, self.path = name, scratch, os.path.join(scratch, name)
        with zipfile.ZipFile(os.path.join(HERE, name + ".zip")) as archive:
            archive.extractall(self.path)
        with open(os.path.join(self.path, "answers.json"), encoding="utf-8") as file:
            self.answers = json.load(file)
        self.kind, self.texts = self.answers["kind"], self.answers["texts"]
        self.most = self.answers.get("max_new", 0)
        if "out" in self.answers:
            self.new = [out[len(ids) if self.kind == "generate" else 1:]  # after the prompt, or the start
                        for ids, out in zip(self.answers["ids"], self.answers["out"])]
        self.spec = os.path.join(scratch, name + ".attn")
        said = attnc("import", self.path, "-o", self.spec, "--name", name, status=0).stderr
        several = re.search(r"--weights (\S+)", said)
        self.weights = several[1] if several else self.path

    def file(self, *names):
        return os.path.join(self.scratch, *names)

    def each(self):
        """The ids of each text and its answer, new tokens or a vector."""
        return zip(self.texts, self.ids(), self.new if self.most else self.answers["vectors"], strict=True)

    def ids(self):
        return self.answers.get("ids") or self.encoded()

    def read(self, name):
        path = os.path.join(self.path, name)
        if not os.path.exists(path):
            return {}
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def encoded(self):
        """What the tokenizer of the runtime makes of the texts, by the folder's rules for them."""
        prompts = self.read("config_sentence_transformers.json")
        sizes = self.read("sentence_bert_config.json")
        rules = LOWER_CASE * sizes["do_lower_case"]
        rules += TRUNCATE_LEFT * (self.read("tokenizer_config.json").get("truncation_side") == "left")
        prompt = prompts["prompts"][prompts["default_prompt_name"]] if prompts else ""
        texts = [(prompt + text).encode() for text in self.texts]
        done = run(encoder_in(self.scratch), os.path.join(self.path, "tokenizer.json"), str(sizes["max_seq_length"]),
                   str(rules), "alone", status=0, text=False,
                   input=b"".join(len(text).to_bytes(4, "little") + text for text in texts))
        return [[int(word) for word in line.split(b"\t")[0].split()] for line in done.stdout.splitlines()]

    def segments(self, ids):
        """Of a pair, whose first text ends with the first [SEP]."""
        first = ids.index(3) + 1
        return [0] * first + [1] * (len(ids) - first)


@functools.cache
def encoder_in(scratch):
    return encoder(os.path.join(scratch, "encode"))


# ------------------------------------------------------------ ways

def program(folder):
    """The program of attnc get."""
    to = folder.file(folder.name + ".get")
    attnc("get", folder.path, "-o", to, "--no-build", "--name", folder.name, status=0)
    run("make", "-s", "-C", to, "CFLAGS=-O0", status=0)
    most = ["--max-new", str(folder.most)] if folder.most else []
    texts = folder.texts
    lines = [run(os.path.join(to, folder.name), *most, text, status=0, text=False).stdout.decode(errors="replace")
             .removesuffix("\n") for text in texts]
    if folder.most:
        return same(lines, folder.answers["shown"])
    for line, wanted in zip(lines, folder.answers["vectors"], strict=True):
        if folder.kind == "classify":
            label, share = line.split("\t")
            near([share], [max(shares(wanted))], 1e-4)
            same(label, "LABEL_%d" % wanted.index(max(wanted)))
        else:
            near(json.loads(line) if folder.kind == "embed" else [line], wanted)
    return None


def command(folder):
    """attnc generate and attnc run of the ids."""
    given, to = folder.file("given.npy"), folder.file("out.npy")
    for _, ids, wanted in folder.each():
        npy.write(given, ids)
        words = [folder.spec, "--weights", folder.weights, "--in"]
        if folder.most:
            words.append("%s=%s" % ("tokens" if folder.kind == "generate" else "source", given))
            attnc("generate", *words, "--max-new", str(folder.most), "--out", "tokens=" + to, status=0)
            same(list(npy.read(to).numbers)[-len(wanted):], wanted)
            continue
        words.append("tokens=" + given)
        if folder.kind == "rerank":
            words += ["--in", "segments=" + npy.write(folder.file("segments.npy"), folder.segments(ids))]
        name = "pooled" if folder.kind == "embed" else "logits"
        attnc("run", *words, "--out", "%s=%s" % (name, to), status=0)
        near(npy.read(to).numbers, wanted)


def python(folder):
    """The package of attnc python."""
    why = suitable()[1]
    if why:
        raise Skip("missing: " + ", ".join(why))
    module = Packages(folder.scratch).get(folder.spec, "--tokenizer", folder.path, weights=folder.weights,
                                          cflags="-O0")
    model = module.load()
    for i, (text, ids, wanted) in enumerate(folder.each()):
        if folder.kind == "embed":
            near(model.embed(text), wanted)
            continue
        pair = model.tokenize_pair(*text.split("\t")) if "\t" in text else {"tokens": model.tokenize(text)}
        tokens = pair.pop("tokens")
        if len(tokens) > len(ids):  # a package leaves the cutting to its caller
            tokens = ids
        same([int(x) for x in tokens], ids)
        if not folder.most:
            near(model.forward(tokens=tokens, **pair)["logits"], wanted)
            continue
        inputs = {"tokens" if folder.kind == "generate" else "source": tokens}
        new = [int(x) for x in model.generate(**inputs, max_new=folder.most)]
        same(new, wanted)
        whole = ids + new if folder.kind == "generate" else new
        same(model.decode(whole), folder.answers["shown"][i])


def rust(folder):
    """The crate of attnc rust, which a small program calls."""
    if not (shutil.which("cargo") and shutil.which("rustc")):
        raise Skip("cargo and rustc are missing")
    name = folder.name
    attnc("rust", folder.spec, "--weights", folder.weights, "--tokenizer", folder.path, "-o",
          folder.file("crates", name), "--target", "scalar", status=0)
    texts = ", ".join('"%s"' % text.replace("\t", "\\t") for text in folder.texts)
    body = (BEGIN + KINDS[folder.kind] + "    }\n}\n") % {"name": name, "texts": texts, "new": folder.most}
    caller = folder.file("crates", name + "_caller")
    os.makedirs(os.path.join(caller, "src"))
    with open(os.path.join(caller, "Cargo.toml"), "w", encoding="utf-8") as file:
        file.write('[package]\nname = "%s_caller"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n'
                   '%s = { path = "../%s" }\n' % (name, name, name))
    with open(os.path.join(caller, "src/main.rs"), "w", encoding="utf-8") as file:
        file.write(SHOW + body + "\nfn main() {\n    %s();\n}\n" % name)
    env = {"CFLAGS": "-O0", "RUSTFLAGS": "-D warnings", "CARGO_INCREMENTAL": "0",
           "CARGO_TARGET_DIR": folder.file("target")}
    done = run("cargo", "run", "-q", "--offline", cwd=caller, status=0, env=env)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    step = 2 if folder.most else 1
    for i, (_, ids, wanted) in enumerate(folder.each()):
        _, given, numbers = rows[step * i]
        if given:
            same([int(word) for word in given.split()], ids)
        if not folder.most:
            near(numbers.split(), wanted)
            continue
        same([int(word) for word in numbers.split()], wanted)
        text = bytes(int(word) for word in rows[step * i + 1][2].split())
        same(text.decode(), folder.answers["shown"][i])
    same(len(rows), step * len(folder.texts))


def page_spec(folder):
    """The spec; a page that translates has no setting for the number of new tokens, which its block then states."""
    if folder.kind != "translate":
        return folder.spec
    with open(folder.spec, encoding="utf-8") as file:
        text = file.read()
    stated = text.replace("    generation {\n", "    generation {\n        max_new %d\n" % folder.most)
    assert stated != text, text
    with open(folder.file(folder.name + "_page.attn"), "w", encoding="utf-8") as file:
        file.write(stated)
    return file.name


def page(folder):
    """The page of attnc page, in a browser."""
    for tool in ("clang", "wasm-ld"):
        if not shutil.which(tool):
            raise Skip("%s is missing" % tool)
    to = folder.file("pages", folder.name)
    attnc("page", page_spec(folder), "--weights", folder.weights, "--tokenizer", folder.path, "-o", to, status=0)
    with served.site(folder.scratch).open(to) as opened:
        if folder.kind == "embed":
            opened.ask("\n".join(folder.texts))
            got = opened.value("[...document.querySelectorAll('#more tbody tr')].map((row) => "
                               "[...row.querySelectorAll('td')].map((cell) => Number(cell.dataset.value)))")
            for row, a in zip(got, folder.answers["vectors"], strict=True):
                near(row, [sum(x * y for x, y in zip(a, b)) / math.hypot(*a) / math.hypot(*b)
                           for b in folder.answers["vectors"]])
            return
        for i, (text, _, wanted) in enumerate(folder.each()):
            if folder.kind == "generate":
                opened.run("document.getElementById('most').value = %d" % folder.most)
            answer = opened.ask(text)
            assert not opened.message(), opened.message()
            if folder.most:
                same([int(word) for word in opened.value("output.dataset.ids").split()], wanted)
                same(answer, folder.answers["shown"][i])
                continue
            shown = opened.value("[...output.querySelectorAll('li')].map((item) => [Number(item.dataset.index), "
                                 "Number(item.dataset.value)])")
            near([value for _, value in sorted(shown)], shares(wanted) if folder.kind == "classify" else wanted)


def main():
    found = suitable()[0]
    if found and found != sys.executable and "ATTNC_AGAIN" not in os.environ:
        os.execve(found, [found, os.path.abspath(__file__), *sys.argv[1:]], {**os.environ, "ATTNC_AGAIN": "1"})
    report = Report("agree")
    with tempfile.TemporaryDirectory() as scratch:
        for name in sys.argv[1:] or in_turn(NAMES, IN_TURN):
            made = []
            if report.guard(name, lambda name=name, made=made: made.append(Folder(scratch, name))):
                for way in WAYS:
                    report.attempt("%s_%s" % (name, way), globals()[way], made[0])
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
