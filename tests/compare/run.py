#!/usr/bin/env python3
"""`attnc compare`: its numbers are those that follow from the outputs of `attnc run` of both models, its JSON has the
promised keys, its page stands alone, and what cannot be compared is refused in words. Speaks TAP.

Engines, kinds of models and pages take turns with the commits. Environment: ATTNC_QUICK=1 takes fewer specs,
ATTNC_LONG=1 all of them."""
import array
import json
import math
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy, safetensors  # noqa: E402
from lib import attnc as lib  # noqa: E402
from lib.attnc import FIXTURES, LONG, QUICK, TESTS  # noqa: E402
from lib.browser import WIDTHS, see  # noqa: E402
from lib.tap import Skip, run_tests  # noqa: E402
from lib.turns import has_turn, in_turn, rotated  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
DECODER, TABLE = os.path.join(HERE, "decoder.attn"), os.path.join(HERE, "table.attn")
ENCODER = "specs/small_encoder.attn"
DIFFERENTIAL = os.path.join(TESTS, "differential")
KEYS = ["precision", "weights_bytes", "workspace_bytes", "median_s", "outputs", "logits", "steps"]
OUTPUT_KEYS = ["rel_mean", "rel_max", "cos_mean", "cos_max"]
ENGINES = ("compiled", "interp") if LONG else ("compiled",) if QUICK else (rotated(("compiled", "interp")),)
# models of every kind: several inputs, states of rows elsewhere, images, maps, no loops
KINDS = ["seq2seq", "prefix", "patches", "seq2seq_shared", "alone_cross", "alone_given", "export_some", "longrope",
         "unrolled_pair", "specs/by_hand.attn"]
LOGITS_KEYS = ["perplexity", "perplexity_f32", "kl_mean", "kl_max", "top1"]


def attnc(*words, optimized=False, **more):
    """The C is compiled at -O0, which changes no bits, unless it has much to compute."""
    return lib.attnc(*words, env={"CC": None} if optimized else {}, **more)


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def row_errors(rows):
    """(rel_mean, rel_max, cos_mean, cos_max) of pairs (measured, f32)."""
    rel = [math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(a, b)) / dot(b, b)) for a, b in rows]
    cos = [1 - dot(a, b) / math.sqrt(dot(a, a) * dot(b, b)) for a, b in rows]
    return [math.fsum(rel) / len(rel), max(rel), math.fsum(cos) / len(cos), max(cos)]


def log_softmax(row):
    most = max(row)
    total = math.log(math.fsum(math.exp(x - most) for x in row)) + most
    return [x - total for x in row]


def logits_errors(sequences, ids):
    """(perplexity, perplexity_f32, kl_mean, kl_max, top1) of lists of pairs, one for each list of ids."""
    kl, same, loss, loss_f32 = [], 0, [], []
    for rows, own in zip(sequences, ids):
        for i, (a, b) in enumerate(rows):
            q, p = log_softmax(a), log_softmax(b)
            kl.append(math.fsum(math.exp(x) * (x - y) for x, y in zip(p, q)))
            same += list(a).index(max(a)) == list(b).index(max(b))
            if i + 1 < len(own):
                loss.append(-q[own[i + 1]])
                loss_f32.append(-p[own[i + 1]])
    mean = math.exp(math.fsum(loss) / len(loss)), math.exp(math.fsum(loss_f32) / len(loss_f32))
    return [*mean, math.fsum(kl) / len(kl), max(kl), same / len(kl)]


def near(found, wanted, what):
    """Sums in another order move the last digits."""
    for a, b in zip(found, wanted):
        assert abs(a - b) <= 1e-6 * abs(b) + 1e-12, "%s: %s, not %s" % (what, list(found), list(wanted))


class Compare:
    def __init__(self, folder):
        self.folder = folder
        lib.compile_once(folder)  # many tests compare the same models
        chosen = random.Random(5)
        self.lengths = [9, 1, 4]
        self.ids = [[chosen.randrange(40) for _ in range(n)] for n in self.lengths]
        padded = [row + [0] * (9 - len(row)) for row in self.ids]
        npy.write(self.path("ids.npy"), sum(padded, []), (3, 9))
        npy.write(self.path("mask.npy"), [int(k < n) for n in self.lengths for k in range(9)], (3, 9))
        self.inputs = ["--weights", "random:3", "--in", "tokens=" + self.path("ids.npy"), "--in",
                       "attention_mask=" + self.path("mask.npy")]
        with open(DECODER, encoding="utf-8") as file:
            text = file.read()
        assert text.count(", precision weights int8 activations int8") == 1
        self.plain = self.write("plain.attn", text.replace(", precision weights int8 activations int8", ""))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def json(self, *words, optimized=False):
        """The objects of the precisions."""
        done = attnc("compare", *words, "--json", status=0, optimized=optimized)
        whole = json.loads(done.stdout)
        assert list(whole) == ["precisions"], list(whole)
        for one in whole["precisions"]:
            assert list(one) == KEYS, list(one)
            assert all(list(errors) == OUTPUT_KEYS for errors in one["outputs"].values()), one["outputs"]
            assert one["logits"] is None or list(one["logits"]) == LOGITS_KEYS, one["logits"]
            assert one["steps"] and all(list(step) == ["name", "rel"] for step in one["steps"]), one["steps"]
            assert one["weights_bytes"] > 0 and one["workspace_bytes"] > 0 and one["median_s"] > 0, one
        return whole["precisions"]

    def rows(self, outputs, *words):
        """The rows of each output of `attnc run`, sequence by sequence, without padding."""
        paths = [self.path("run.%s.npy" % output) for output in outputs]
        out = [word for output, path in zip(outputs, paths) for word in ("--out", "%s=%s" % (output, path))]
        attnc("run", *words, *self.inputs, *out, status=0)
        return [[[row] if len(found.shape) == 2 else row[:n]
                 for row, n in zip(found.rows(), self.lengths)] for found in map(npy.read, paths)]

    def check_against_run(self, spec, plain, outputs, precisions, engine):
        words = [word for precision in precisions for word in ("--precision", precision)]
        found = self.json(spec, *self.inputs, *words, "--engine", engine)
        f32 = self.rows(outputs, plain, "--engine", engine)
        assert [one["precision"] for one in found] == precisions
        for one in found:
            assert list(one["outputs"]) == outputs, list(one["outputs"])
            own = self.rows(outputs, spec, "--precision", one["precision"], "--engine", engine)
            for output, measured, reference in zip(outputs, own, f32):
                pairs = [list(zip(a, b)) for a, b in zip(measured, reference)]
                what = "%s, %s, %s" % (one["precision"], output, engine)
                wanted = row_errors(sum(pairs, []))
                assert wanted[0] > 1e-4, "%s: no error to find: %s" % (what, wanted)
                near(one["outputs"][output].values(), wanted, what)
                if output == "logits" and spec == DECODER:
                    near(one["logits"].values(), logits_errors(pairs, self.ids), what)
        return found

    def test_decoder(self):
        """Errors, perplexity, KL and first choices; the reference is f32 also where the spec states int8."""
        for engine in ENGINES:
            self.check_against_run(DECODER, self.plain, ["hidden", "logits"],
                                   ["f32", "weights=bf16", "weights=int4:32:offset,activations=int8"], engine)

    def test_encoder(self):
        """Pooled rows and classes; a model without a decoder has no perplexity."""
        found = self.check_against_run(ENCODER, ENCODER, ["hidden", "pooled", "logits"],
                                       ["weights=int8,activations=int8"], "compiled")
        logits = found[0]["logits"]
        assert logits["perplexity"] is None and logits["perplexity_f32"] is None and logits["kl_mean"] > 0, logits

    def test_sizes(self):
        """Bytes are those of the packed file, and of the workspace that attnc explain counts."""
        for one in self.json(self.plain, *self.inputs, "--precision", "f32", "--precision", "int4"):
            packed = self.path("packed.attnw")
            words = [self.plain, "--precision", one["precision"]]
            attnc("pack", *words, "--weights", "random:3", "-o", packed, status=0)
            assert one["weights_bytes"] == os.path.getsize(packed), one["weights_bytes"]
            told = attnc("explain", *words, "--target", "native", status=0).stdout
            whole = int(re.search(r"^workspace +(\d+)", told, re.M)[1])
            scratch = int(re.search(r"^scratch +(\d+)", told, re.M)[1])
            assert one["workspace_bytes"] == whole + scratch, (one["workspace_bytes"], whole, scratch)

    def test_packed_weights(self):
        """A file packed in f32 is the same as the weights that it was made of; one of another precision is refused."""
        packed = self.path("plain.attnw")
        attnc("pack", self.plain, "--weights", "random:3", "-o", packed, status=0)
        words = ["--in", "tokens=" + self.path("ids.npy"), "--precision", "int4"]
        one, = self.json(DECODER, "--weights", packed, *words)
        two, = self.json(DECODER, "--weights", "random:3", *words)
        assert {**one, "median_s": 0} == {**two, "median_s": 0}
        attnc("pack", DECODER, "--weights", "random:3", "-o", packed, status=0)
        done = attnc("compare", DECODER, "--weights", packed, *words)
        assert done.returncode == 1 and packed in done.stderr, done.stderr

    # ---- steps

    def test_steps_of_weights(self):
        """The first step is a row of the table of tokens, whose error is that of the rounded weights."""
        tensors = {}
        for precision in ("f32", "int4"):
            path = self.path(precision + ".safetensors")
            attnc("weights", TABLE, "--precision", precision, "--weights", "random:3", "-o", path, status=0)
            header, data = safetensors.read(path)
            begin, end = header["encoder.embedding.tokens.weight"]["data_offsets"]
            numbers = array.array("f", data[begin:end])
            tensors[precision] = [numbers[16 * row:16 * row + 16] for row in range(12)]
        ids = [3, 1, 4, 1, 5, 9]
        npy.write(self.path("few.npy"), ids)
        pairs = [(tensors["int4"][i], tensors["f32"][i]) for i in ids]
        for engine in ("compiled", "interp"):
            one, = self.json(TABLE, "--weights", "random:3", "--in", "tokens=" + self.path("few.npy"), "--precision",
                             "int4", "--engine", engine)
            assert one["steps"][0]["name"] == "embedding", one["steps"]
            near([one["steps"][0]["rel"]], [row_errors(pairs)[0]], engine)
            near([one["steps"][-1]["rel"]], [one["outputs"]["hidden"]["rel_mean"]], engine)

    def test_steps_of_engines(self):
        """Both engines see the same errors, step by step, in batches with padding."""
        words = [self.plain, *self.inputs, "--precision", "weights=int8", "--precision", "weights=int4:32:offset"]
        for a, b in zip(self.json(*words), self.json(*words, "--engine", "interp")):
            assert [step["name"] for step in a["steps"]] == [step["name"] for step in b["steps"]]
            for one, two in zip(a["steps"], b["steps"]):
                assert abs(one["rel"] - two["rel"]) <= 1e-3 * two["rel"] > 0, (a["precision"], one, two)

    def test_steps_of_many_rows(self):
        """More rows than a chunk, and more than are compared at once, have the errors of each sequence alone."""
        chosen, n = random.Random(6), 24
        ids = [chosen.randrange(40) for _ in range(130 * n)]
        npy.write(self.path("many.npy"), ids, (130, n))
        words = ["--weights", "random:3", "--precision", "weights=int8,activations=int8"]
        whole, = self.json(DECODER, *words, "--in", "tokens=" + self.path("many.npy"))
        parts = []
        for part in range(2):
            npy.write(self.path("part.npy"), ids[part * 65 * n:(part + 1) * 65 * n], (65, n))
            parts += self.json(DECODER, *words, "--in", "tokens=" + self.path("part.npy"))
        for step, one, two in zip(whole["steps"], *(part["steps"] for part in parts)):
            near([step["rel"]], [(one["rel"] + two["rel"]) / 2], step["name"])

    def drawn(self, spec):
        """--in of inputs for a sequence, by the names and shapes that the graph lists."""
        chosen, words, lengths = random.Random(7), [], {}
        graph = attnc("--dump=graph", spec, status=0).stdout.split("\ngraph ")[0]
        for name, dtype, dims in re.findall(r"^  input (\w+) (\w+) \[(.*?)\]", graph, re.M):
            shape = []
            for dim in dims.split(", "):
                symbol, _, bound = dim.partition("<=")
                shape.append(lengths.setdefault(symbol, min(int(bound), 7 + len(lengths))) if bound else int(dim))
            count = math.prod(shape)
            if dtype == "F32":
                numbers, descr = [chosen.gauss(0, 1) for _ in range(count)], "<f4"
            else:
                numbers, descr = [chosen.randrange(2 if dtype == "U8" else 5) for _ in range(count)], "<i4"
            words += ["--in", "%s=%s" % (name, npy.write(self.path("drawn_%s.npy" % name), numbers, shape, descr))]
        return words

    def test_steps_of_every_kind(self):
        """Every step that makes rows in f32 has an error, in the order of the plan, whatever the model is."""
        kinds = KINDS[:3] if QUICK else in_turn(KINDS, 5)
        for name in kinds:
            spec = name if "/" in name else os.path.join(DIFFERENTIAL, name + ".attn")
            precisions = ["weights=bf16"]
            if "unroll" not in name and "by_hand" not in name:
                precisions.append("weights=int8,activations=int8")
            words = [word for precision in precisions for word in ("--precision", precision)]
            for one in self.json(spec, "--weights", "random:3", *self.drawn(spec), *words):
                dumped = attnc("--dump=plan", spec, status=0).stdout
                found = re.findall(r"^  (\w+) (\w+)", re.split(r"^plan ", dumped, flags=re.M)[1], re.M)
                wanted = [step for kind, step in found if kind not in ("copy", "buffer", "packed", "cache")]
                assert [step["name"] for step in one["steps"]] == wanted, "%s, %s" % (name, one["precision"])
                assert any(step["rel"] > 0 for step in one["steps"]), name
                assert all(0 <= step["rel"] < 1 for step in one["steps"]), "%s: %s" % (name, one["steps"])

    def test_prefix(self):
        """Rows in front of the last one of a prefix see the next token, and do not count for the perplexity."""
        spec, ids, prefix = os.path.join(DIFFERENTIAL, "prefix.attn"), [3, 1, 4, 1, 5, 9, 2], 4
        words = ["--weights", "random:3", "--in", "tokens=" + npy.write(self.path("few.npy"), ids), "--in",
                 "prefix_length=" + npy.write(self.path("prefix.npy"), [prefix])]
        one, = self.json(spec, *words, "--precision", "weights=bf16")
        if one["logits"] is None:
            raise Skip("the spec has no logits")
        out = self.path("logits.npy")
        attnc("run", spec, *words, "--out", "logits=" + out, status=0)
        rows = npy.read(out).rows()
        loss = [-log_softmax(rows[i])[ids[i + 1]] for i in range(prefix - 1, len(ids) - 1)]
        near([one["logits"]["perplexity_f32"]], [math.exp(math.fsum(loss) / len(loss))], "prefix")

    def test_f32_is_exact(self):
        """f32 against f32 has no error in any output or step."""
        one, = self.json(self.plain, *self.inputs, "--precision", "f32")
        assert all(not any(errors.values()) for errors in one["outputs"].values()), one["outputs"]
        assert not any(step["rel"] for step in one["steps"])
        logits = one["logits"]
        assert logits["kl_max"] == 0 and logits["top1"] == 1 and logits["perplexity"] == logits["perplexity_f32"]

    # ---- what is said

    def test_table(self):
        """A row for each precision with what the JSON has, the logits, and steps by the growth of their error."""
        words = [DECODER, *self.inputs, "--precision", "weights=bf16", "--precision", "int4"]
        text = attnc("compare", *words, status=0).stdout
        both = self.json(*words)
        assert text.startswith("compared, 3 sequences of 1 to 9 rows, 14 in all, 1 thread, "), text
        lines = text.splitlines()
        assert re.match(r"precision +weights +workspace +median +speed +worst output", lines[2]), lines[2]
        assert re.match(r"f32 .* 1\.00 x$", lines[3]), lines[3]
        for line, one in zip(lines[4:], both):
            worst, errors = max(one["outputs"].items(), key=lambda item: item[1]["rel_mean"])
            told = "^%s .* x  %s +%s$" % (re.escape(one["precision"]), worst,
                                          " +".join("%.2e" % errors[key] for key in OUTPUT_KEYS))
            assert re.search(told, line), "%s\n%s" % (told, line)
            told = " +".join(re.escape("%.6g" % one["logits"][key]) for key in LOGITS_KEYS[:2])
            assert re.search(r"^%s +%s +" % (re.escape(one["precision"]), told), text, re.M), "%s\n%s" % (told, text)
        assert re.search(r"^where the error of int4 grows most, of %d steps:$" % len(both[1]["steps"]), text, re.M)
        grown = re.findall(r"^(\w+) +(\d\S+) +(\d\S+)$", text, re.M)
        by = [float(made) - float(read) for _, read, made in grown]
        made = {step["name"]: "%.2e" % step["rel"] for step in both[1]["steps"]}
        assert 2 <= len(grown) <= 8 and all(made[name] == told for name, _, told in grown), grown
        assert all(a >= b - 0.01 * a for a, b in zip(by, by[1:])) and by[-1] > 0, grown

    def test_threads(self):
        """More threads change no error."""
        words = [DECODER, *self.inputs, "--precision", "weights=int8"]
        one, = self.json(*words)
        two, = self.json(*words, "--threads", "2")
        for key in ("outputs", "logits", "steps", "weights_bytes"):
            assert one[key] == two[key], key
        assert one["workspace_bytes"] < two["workspace_bytes"]

    def refuse(self, status, parts, *words):
        done = attnc("compare", *words)
        assert done.returncode == status, "%s: %d\n%s" % (words, done.returncode, done.stderr)
        assert all(part in done.stderr for part in parts), "%s\n%s" % (parts, done.stderr)
        assert not done.stdout, done.stdout

    def test_usage(self):
        self.refuse(2, ["`--precision P` is missing", "usage: attnc compare"], DECODER, *self.inputs)
        self.refuse(2, ["`--weights` is missing"], DECODER, "--precision", "int4")
        self.refuse(2, ["`--precision int4` stands twice"], DECODER, *self.inputs, *["--precision", "int4"] * 2)
        self.refuse(2, ["is no type of weights"], DECODER, *self.inputs, "--precision", "weights=int9")
        self.refuse(2, ["`--engine` is interp or compiled"], DECODER, *self.inputs, "--precision", "int4", "--engine=c")
        done = attnc("run", DECODER, *self.inputs, "--precision", "int4", "--precision", "f32")
        assert done.returncode == 2 and "`--precision` stands twice" in done.stderr, done.stderr

    def test_cannot(self):
        self.refuse(3, ["`--precision attention=f16`"], DECODER, *self.inputs, "--precision", "int4", "--precision",
                    "attention=f16")
        self.refuse(3, ["`sparc`"], DECODER, *self.inputs, "--precision", "int4", "--target", "sparc")

    def test_inputs(self):
        """Inputs of another model, and tokens out of range."""
        words = ["--weights", "random:3", "--precision", "int4", "--in"]
        path = npy.write(self.path("high.npy"), [3, 40])
        self.refuse(1, ["has no input `source`", "tokens"], DECODER, *words, "source=" + path)
        self.refuse(1, ["id 40 at 1 is outside 0 to 39"], DECODER, *words, "tokens=" + path)
        self.refuse(1, ["input tokens is missing"], DECODER, "--weights", "random:3", "--precision", "int4")
        long = npy.write(self.path("long.npy"), [1] * 25)
        self.refuse(1, ["has the length 25; the spec allows 1 to 24"], DECODER, *words, "tokens=" + long)
        self.refuse(1, ["no.safetensors"], DECODER, "--weights", self.path("no.safetensors"), "--precision", "int4",
                    "--in", "tokens=" + npy.write(self.path("one.npy"), [1]))

    def weights(self, change):
        """The weights of TABLE as a file, which `change`(name, numbers) has altered."""
        path = self.path("changed.safetensors")
        attnc("weights", TABLE, "--weights", "random:3", "-o", path, status=0)
        header, data = safetensors.read(path)
        tensors = {}
        for name, tensor in header.items():
            if name != "__metadata__":
                numbers = array.array("f", data[slice(*tensor["data_offsets"])])
                tensors[name] = (tensor["shape"], change(name, numbers) or numbers)
        safetensors.write(path, tensors)
        return ["--weights", path, "--in", "tokens=" + npy.write(self.path("few.npy"), [3, 1, 4, 1, 5, 9])]

    def test_not_finite(self):
        """A number that is not finite is located: in f32, or in the precision that overflows, and its first step."""
        def far(name, numbers):
            return [1e5 * x for x in numbers] if name.endswith("layers.0.ffn.up.weight") else None

        def odd(name, numbers):
            return [math.nan, *numbers[1:]] if name.endswith("layers.0.ffn.up.weight") else None

        for engine in ENGINES:
            words = [TABLE, *self.weights(far), "--engine", engine]
            self.json(*words, "--precision", "weights=bf16")
            self.refuse(1, ["precision weights=f16: the output `hidden` holds NaN or infinity", "`layer0_ffn_up`"],
                        *words, "--precision", "weights=f16")
            self.refuse(1, ["precision f32: the output `hidden` holds NaN or infinity", "`layer0_ffn_up`"],
                        TABLE, *self.weights(odd), "--precision", "weights=bf16", "--engine", engine)

    def test_constant(self):
        """Rows of a table that a precision makes equal are a failure; rows that are equal in f32, too, a note."""
        def close(name, numbers):
            if name == "encoder.embedding.tokens.weight":
                return [1 + i % 16 * 0.25 + 2.0 ** -14 * (i // 16) * (i % 3) for i in range(len(numbers))]
            return None

        def equal(name, numbers):
            return list(numbers[:16]) * 12 if name == "encoder.embedding.tokens.weight" else None

        words = [TABLE, *self.weights(close), "--precision"]
        self.refuse(1, ["precision weights=bf16: all rows of the output `hidden` are equal, and those of f32 differ"],
                    *words, "weights=bf16")
        done = attnc("compare", *words, "weights=f16", status=0)
        assert "equal" not in done.stderr, done.stderr
        done = attnc("compare", TABLE, *self.weights(equal), "--precision", "weights=bf16", status=0)
        assert "note: all rows of the output `hidden` are equal in f32, and the inputs differ" in done.stderr
        one = self.weights(equal)[:2] + ["--in", "tokens=" + npy.write(self.path("same.npy"), [2, 2, 2])]
        done = attnc("compare", TABLE, *one, "--precision", "weights=bf16", status=0)
        assert "note" not in done.stderr, done.stderr

    # ---- the page

    def page(self, spec, *words):
        path = self.path("page.html")
        attnc("compare", spec, *words, "--html", path, status=0)
        with open(path, encoding="utf-8") as file:
            return file.read()

    def test_page(self):
        """One file that needs no other, whose numbers are those of the JSON."""
        words = [DECODER, *self.inputs, "--precision", "weights=bf16", "--precision", "int4"]
        text = self.page(*words)
        assert text.startswith("<!DOCTYPE html>\n") and "<h1>compared</h1>" in text
        assert "http" not in text.replace("http://www.w3.org/2000/svg", ""), "something from elsewhere"
        assert not re.search(r"<[^>]*\b(src|href|srcset|action)=", text), "a link"
        data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)[1])
        assert data["model"] == "compared" and data["f32"]["precision"] == "f32", data["model"]
        for shown, one in zip(data["precisions"], self.json(*words)):
            assert [{"name": step["name"], "rel": step["rel"]} for step in shown["steps"]] == one["steps"]
            assert {**shown, "steps": 0, "median_s": 0} == {**one, "steps": 0, "median_s": 0}
        broken = attnc("compare", *words, "--html", self.path("no/page.html"))
        assert broken.returncode == 1 and "no/page.html" in broken.stderr, broken.stderr

    def test_page_in_a_browser(self):
        with open(os.path.join(HERE, "look.js"), encoding="utf-8") as file:
            script = file.read()
        precisions = [word for p in ("weights=bf16", "weights=int8,activations=int8", "weights=int4:128:offset")
                      for word in ("--precision", p)]
        for spec, widths in in_turn([(DECODER, WIDTHS), (ENCODER, WIDTHS[:1])]):
            text = self.page(spec, *self.inputs, *precisions)
            for width in widths:
                dark = width == WIDTHS[1]
                seen = see(text, self.folder, script, width=width, dark=dark)
                assert not seen["wrong"], "%d wide, dark %s:\n%s" % (width, dark, "\n".join(seen["wrong"][:20]))
                assert seen["lines"] == 3 and seen["marks"] == seen["steps"] and seen["bars"] == 8, seen
                assert all(p in seen["text"] for p in precisions[1::2]), seen["text"]

    # ---- models of some size

    def test_stories(self):
        """The story that stories260K tells is likely to it, and a little less under int8 and int4."""
        folder = os.path.join(FIXTURES, "models", "stories260K")
        if not FIXTURES or not os.path.exists(folder):
            raise Skip("no fixtures")
        spec = self.path("stories.attn")
        attnc("import", folder, "-o", spec, status=0)
        words = [spec, "--weights", os.path.join(folder, "model.safetensors"), "--in",
                 "tokens=" + os.path.join(folder, "expected.greedy.npy")]
        found = self.json(*words, "--precision", "weights=int8,activations=int8", "--precision", "int4")
        for one in found:
            assert 1 < one["logits"]["perplexity_f32"] < 2 < 2 * one["logits"]["perplexity"], one["logits"]
        int8, int4 = (one["logits"] for one in found)
        assert 0 < int8["kl_mean"] < 0.01 < int4["kl_mean"] < 1 and int8["top1"] > 0.95, (int8, int4)

    def test_minilm(self):
        """200 texts of many lengths through the shape of MiniLM."""
        if QUICK or not has_turn("minilm", 4):
            raise Skip("every fourth commit; ATTNC_LONG=1 runs it")
        chosen, longest = random.Random(8), 64
        lengths = [chosen.randint(3, longest) for _ in range(200)]
        ids = [chosen.randrange(30522) if k < n else 0 for n in lengths for k in range(longest)]
        npy.write(self.path("texts.npy"), ids, (200, longest))
        npy.write(self.path("texts_mask.npy"), [int(k < n) for n in lengths for k in range(longest)], (200, longest))
        one, = self.json("specs/minilm.attn", "--weights", "random:1", "--in", "tokens=" + self.path("texts.npy"),
                         "--in", "attention_mask=" + self.path("texts_mask.npy"), "--precision",
                         "weights=int8,activations=int8", optimized=True)
        pooled = one["outputs"]["pooled"]
        assert len(one["steps"]) == 45 and 0 < pooled["cos_mean"] < pooled["cos_max"] < 0.01, pooled
        assert 22e6 < one["weights_bytes"] < 25e6, one["weights_bytes"]


if __name__ == "__main__":
    run_tests("compare", Compare)
