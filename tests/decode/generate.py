"""attnc generate: texts that are known, both engines with the same tokens, what the options mean, what is refused."""
import collections
import json
import math
import os
import re
import resource
import struct
import tempfile

from common import HERE, TARGETS, read_ids, report, spec_path, spec_text, write_ids, write_text
from lib import npy
from lib.attnc import FIXTURES, LONG, QUICK, ROOT, attnc, lacks_target
from lib.searches import without_search
from lib.tap import Skip
from lib.turns import rotated, turn

PROMPT = 9  # tokens that the greedy text of a decoder begins with
ENGINES = ("interp", *TARGETS)


def engine_options(engine):
    return ["--engine", "interp"] if engine == "interp" else ["--engine", "compiled", "--target", engine]


class Scratch:
    """Files of one test."""

    def __init__(self, folder):
        self.folder, self.count = folder, 0

    def path(self, end):
        self.count += 1
        return os.path.join(self.folder, "%d.%s" % (self.count, end))

    def ids(self, rows, descr="<i4"):
        return write_ids(self.path("npy"), rows, descr)

    def generate(self, spec, inputs, *options, weights="random:4"):
        """What attnc did, and the tokens that it wrote, or None."""
        out = self.path("out.npy")
        given = [word for name, path in inputs.items() for word in ("--in", "%s=%s" % (name, path))]
        done = attnc("generate", spec, "--weights", weights, *given, "--out", "tokens=" + out, *options)
        return done, read_ids(out) if done.returncode == 0 else None

    def tokens(self, spec, inputs, *options, weights="random:4"):
        done, tokens = self.generate(spec, inputs, *options, weights=weights)
        if tokens is None:
            raise AssertionError("status %d: %s" % (done.returncode, done.stderr.strip()))
        return tokens


def expect(condition, why):
    assert condition, why


def test(name, function, *args):
    with tempfile.TemporaryDirectory() as folder:
        report.attempt("generate/" + name, function, Scratch(folder), *args)


# ---------------------------------------------------------------- texts of others


def greedy_folders():
    """Folders with a greedy text; tests/parity tries its own fixtures itself."""
    place = os.path.join(FIXTURES, "parity") if FIXTURES else ""
    for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
        if os.path.exists(os.path.join(place, name, "out.greedy.npy")):
            yield os.path.join(place, name)


def greedy_text(scratch, folder, engine):
    name = os.path.basename(folder)
    spec, expected = scratch.path("attn"), read_ids(os.path.join(folder, "out.greedy.npy"))
    done = attnc("import", folder, "-o", spec)
    expect(done.returncode == 0, done.stderr)
    source = os.path.join(folder, "in.source.npy")
    given = 1 if os.path.exists(source) else PROMPT
    inputs = {"tokens": scratch.ids(expected[:given])}
    if given == 1:
        inputs["source"] = source
    done, tokens = scratch.generate(spec, inputs, "--ignore-eos", "--max-new", str(len(expected) - given),
                                    *engine_options(engine), weights=os.path.join(folder, "model.safetensors"))
    if tokens is None and lacks_target(done):
        raise Skip(lacks_target(done))
    expect(tokens is not None, "status %d: %s" % (done.returncode, done.stderr))
    expect(tokens == expected, "%s, expected %s" % (tokens, expected))


def read_pieces(path):
    """The vocabulary of a llama2.c tokenizer: the longest piece's length, then score, length and bytes of each."""
    with open(path, "rb") as file:
        data = file.read()
    at, pieces = 4, []
    while at < len(data):
        length = struct.unpack_from("<fi", data, at)[1]
        pieces.append(data[at + 8:at + 8 + length])
        at += 8 + length
    return pieces


def text_of(tokens, pieces):
    text = b""
    for before, token in zip(tokens, tokens[1:]):
        piece = pieces[token]
        if before == 1 and piece.startswith(b" "):
            piece = piece[1:]
        if len(piece) == 6 and piece.startswith(b"<0x") and piece.endswith(b">"):
            piece = bytes([int(piece[3:5], 16)])
        text += piece
    return text


def story(scratch, engine):
    folder = os.path.join(FIXTURES, "models", "stories260K")
    spec = scratch.path("attn")
    done = attnc("import", folder, "-o", spec)
    expect(done.returncode == 0, done.stderr)
    done, tokens = scratch.generate(spec, {"tokens": scratch.ids([1])}, "--max-new", "199", *engine_options(engine),
                                    weights=os.path.join(folder, "model.safetensors"))
    if tokens is None and lacks_target(done):
        raise Skip(lacks_target(done))
    expect(tokens is not None, "status %d: %s" % (done.returncode, done.stderr))
    with open(os.path.join(folder, "expected.greedy.200.txt"), "rb") as file:
        expected = file.read()
    text = text_of(tokens, read_pieces(os.path.join(folder, "tokenizer.bin"))) + b"\n"  # the file ends its line
    expect(text == expected, "%r\nexpected %r" % (text, expected))


def beam_texts():
    """The answers of transformers' own beam search, as make_beams.py wrote them."""
    with open(os.path.join(HERE, "beams.json"), encoding="utf-8") as file:
        return json.load(file)


def beam_text(scratch, name, cases, max_new):
    """--length-form power divides by as much as transformers does: the answer changes at the same penalty."""
    folder, spec = os.path.join(ROOT, "tests", "parity", "fixtures", name), scratch.path("attn")
    done = attnc("import", folder, "-o", spec)
    expect(done.returncode == 0, done.stderr)
    with open(spec, encoding="utf-8") as file:
        text = without_search(re.sub(r"\n +end .*", "", file.read()))  # make_beams.py has rules of its own
    expect(len(cases) >= 3, "%d cases" % len(cases))
    for case in cases:
        ends = r"\1\n    end " + " ".join(map(str, case["end"]))
        own = write_text(scratch.path("attn"), re.sub(r"(\n +vocab \d+)", ends, text))
        ids_path = scratch.ids(case["ids"])
        given = {"tokens": ids_path} if "\n    encoder" not in text else {"source": ids_path}
        begin = case["ids"] if "tokens" in given else [int(re.search(r"\n +start (\d+)", text).group(1))]
        expect(case["answers"][0] != case["answers"][1], "the penalty changes nothing")
        for penalty, answer in zip(case["penalties"], case["answers"]):
            tokens = scratch.tokens(own, given, "--max-new", str(max_new), "--beam", str(case["beams"]),
                                    "--length-form", "power", "--length-penalty", str(penalty), "--engine", "interp",
                                    weights=os.path.join(folder, "model.safetensors"))
            expect(tokens == begin + answer, "penalty %g of %s: %s, transformers %s" % (penalty, case, tokens, answer))


# ---------------------------------------------------------------- both engines, the same tokens


def ids(count, vocab, seed=1):
    """Some ids, the same on every machine."""
    numbers = []
    for _ in range(count):
        seed = (seed * 1664525 + 1013904223) % 2**32
        numbers.append((seed >> 8) % vocab)
    return numbers


SOURCES = [ids(9, 45, 2), ids(9, 45, 3), ids(9, 45, 4)]
SOURCE_MASK = [[1] * 9, [1] * 4 + [0] * 5, [1] * 7 + [0] * 2]
PROMPTS = [ids(30, 61, 5), ids(30, 61, 6)]
PROMPT_MASK = [[1] * 30, [1] * 3 + [0] * 27]
BEAMS = ("--beam", "4", "--length-penalty", "0.6")
SAMPLED = ("--temperature", "0.8", "--top-k", "20", "--top-p", "0.9")
# name, spec, inputs, options
SAME = (
    ("greedy", "ring", {"tokens": ids(3, 61)}, ("--max-new", "60")),
    ("greedy around the ring", "ring", {"tokens": ids(290, 61)}, ("--max-new", "111")),
    ("a prompt of the bound's length", "ring", {"tokens": ids(400, 61)}, ("--max-new", "1")),
    ("beams from a prompt of the bound's length", "ring", {"tokens": ids(400, 61)}, (*BEAMS, "--max-new", "1")),
    ("beams up to the bound", "ring", {"tokens": ids(390, 61)}, (*BEAMS, "--max-new", "11")),
    ("sampled up to the bound", "ring", {"tokens": [ids(390, 61)] * 2}, (*SAMPLED, "--max-new", "11")),
    ("the start token alone", "ring", {}, ("--max-new", "12")),
    ("sampled", "ring", {"tokens": ids(3, 61)}, (*SAMPLED, "--seed", "7", "--max-new", "60")),
    ("a sampled batch", "ring", {"tokens": [ids(3, 61)] * 4}, (*SAMPLED, "--sequence", "9", "--max-new", "30")),
    ("sampled, top-p alone", "longrope", {"tokens": ids(3, 50)},
     ("--temperature", "0.8", "--top-p", "0.5", "--max-new", "20")),
    ("beams around the ring", "ring", {"tokens": ids(160, 61)}, (*BEAMS, "--max-new", "30")),
    ("prompts of several lengths", "ring", {"tokens": PROMPTS, "attention_mask": PROMPT_MASK}, ("--max-new", "25")),
    ("beams across other angles", "longrope", {"tokens": ids(22, 50)}, (*BEAMS, "--max-new", "20")),
    ("greedy across other angles", "longrope", {"tokens": ids(29, 50)}, ("--max-new", "9")),
    ("prefixes", "prefixed", {"tokens": [ids(20, 37, 8), ids(20, 37, 9)], "prefix_length": [7, 20]},
     ("--max-new", "20")),
    ("beams behind a prefix", "prefixed", {"tokens": ids(20, 37, 8), "prefix_length": [12]},
     (*BEAMS, "--max-new", "20")),
    ("sources", "pair", {"source": SOURCES, "attention_mask": SOURCE_MASK}, ("--max-new", "30")),
    ("sources and prompts, ends ignored", "pair", {"source": SOURCES, "tokens": [ids(4, 45, i) for i in (1, 2, 3)]},
     ("--max-new", "44", "--ignore-eos")),
    ("beams over sources", "pair", {"source": SOURCES, "attention_mask": SOURCE_MASK},
     (*BEAMS, "--max-new", "30", "--min-new", "8")),
    ("beams, none shorter", "pair", {"source": SOURCES}, (*BEAMS, "--max-new", "30", "--min-new", "25")),
    ("sampled over sources", "pair", {"source": SOURCES},
     (*SAMPLED, "--seed", "3", "--max-new", "30", "--min-new", "8")),
)


def same_tokens(scratch, case, engine):
    _, spec, given, options = case
    inputs = {name: scratch.ids(rows) for name, rows in given.items()}
    expected = scratch.tokens(spec_path(spec), inputs, *options, "--engine", "interp")
    rows = expected if isinstance(expected[0], list) else [expected]
    expect(any(len(set(row)) > 5 for row in rows) or "bound" in case[0], "the text says too little: %s" % rows)
    if engine == "interp":
        again = scratch.tokens(spec_path(spec), inputs, *options, "--engine", "interp")
        expect(again == expected, "not the same tokens twice")
        return
    done, tokens = scratch.generate(spec_path(spec), inputs, *options, *engine_options(engine))
    if tokens is None and lacks_target(done):
        raise Skip(lacks_target(done))
    expect(tokens is not None, "status %d: %s" % (done.returncode, done.stderr))
    expect(tokens == expected, "%s, by the interpreter %s" % (tokens, expected))


# ---------------------------------------------------------------- what options mean


def single(scratch, *options, source=0, spec=None, weights="random:5"):
    """The text of one source alone."""
    length = sum(SOURCE_MASK[source])
    return scratch.tokens(spec or spec_path("pair"), {"source": scratch.ids(SOURCES[source][:length])}, *options,
                          "--engine", "interp", weights=weights)


def ends_and_pads(scratch):
    """Rows are prompt, text and end token, then pad; each is what its source alone gives."""
    inputs = {"source": scratch.ids(SOURCES), "attention_mask": scratch.ids(SOURCE_MASK)}
    text = spec_text("pair")
    seeds = range(50, 400)  # the first ones give texts that are equally long, or do not end
    for seed in seeds:
        alone = [single(scratch, "--max-new", "40", source=i, weights="random:%d" % seed) for i in range(3)]
        if len(set(map(len, alone))) == 3 and max(map(len, alone)) < 41:
            break
    else:
        raise AssertionError("no weights give three texts that end")
    for row in alone:
        expect(row[0] == 0 and row[-1] in (7, 11) and not set(row[1:-1]) & {7, 11}, "an end within a text: %s" % row)
    weights, longest = "random:%d" % seed, max(map(len, alone))
    for pad, spec in ((3, text), (7, text.replace("    pad 3\n", ""))):
        path = write_text(scratch.path("attn"), spec)
        batch = scratch.tokens(path, inputs, "--max-new", "40", "--engine", "interp", weights=weights)
        wanted = [row + [pad] * (longest - len(row)) for row in alone]
        expect(batch == wanted, "%s, expected %s" % (batch, wanted))
    ignored = scratch.tokens(spec_path("pair"), inputs, "--max-new", "40", "--ignore-eos", "--engine", "interp",
                             weights=weights)
    for row, short in zip(ignored, alone):
        expect(len(row) == 41 and row[:len(short)] == short, "--ignore-eos: %s, and without %s" % (row, short))
    least = longest + 2
    later = scratch.tokens(spec_path("pair"), inputs, "--max-new", "40", "--min-new", str(least), "--engine", "interp",
                           weights=weights)
    for row in later:
        expect(not set(row[1:least]) & {7, 11}, "--min-new %d: an end before it: %s" % (least, row))


def streams(scratch):
    """Each new token on standard output, a line for each prompt, as in the file."""
    inputs = {"source": scratch.ids(SOURCES)}
    for options in ((), BEAMS, SAMPLED):
        done, rows = scratch.generate(spec_path("pair"), inputs, "--max-new", "12", "--ignore-eos", "--stream",
                                      "--engine", "interp", *options)
        expect(rows is not None, done.stderr)
        lines = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
        expect(lines == [row[1:] for row in rows], "%s, in the file %s" % (lines, rows))
    done, rows = scratch.generate(spec_path("pair"), inputs, "--max-new", "2", "--engine", "interp")
    expect(done.stdout == "", "without --stream: %r" % done.stdout)


def shapes(scratch):
    """A dimension for a batch where the prompt has one; prompts of 64-bit ids; no prompt is the start token."""
    prompt, options = ids(5, 61), ("--max-new", "4", "--engine", "interp")
    plain = scratch.tokens(spec_path("ring"), {"tokens": scratch.ids(prompt)}, *options)
    expect(len(plain) == 9 and plain[:5] == prompt, str(plain))
    expect(scratch.tokens(spec_path("ring"), {"tokens": scratch.ids([prompt])}, *options) == [plain], "[1][n]")
    expect(scratch.tokens(spec_path("ring"), {"tokens": scratch.ids(prompt, "<i8")}, *options) == plain, "64-bit ids")
    started = scratch.tokens(spec_path("ring"), {"tokens": scratch.ids([1])}, *options)
    expect(scratch.tokens(spec_path("ring"), {}, *options) == started, "no prompt is not the start token")


def searches(scratch):
    """What must give the same text, and what another one."""
    inputs, common = {"tokens": scratch.ids(ids(5, 61))}, ("--max-new", "40", "--engine", "interp")

    def text(*options):
        return tuple(scratch.tokens(spec_path("ring"), inputs, *common, *options))

    greedy = text()
    expect(text("--beam", "1") == greedy, "one beam is greedy")
    expect(text("--temperature", "0", "--seed", "9") == greedy, "temperature 0 is greedy")
    expect(text("--temperature", "2", "--top-k", "1", "--seed", "9") == greedy, "top-k 1 is greedy")
    expect(text("--temperature", "2", "--top-p", "1e-9", "--seed", "9") == greedy, "the smallest nucleus is greedy")
    expect(text("--temperature", "1") == text("--temperature", "1", "--seed", "0", "--top-p", "1"), "the defaults")
    sampled = {text("--temperature", "1", "--seed", str(seed)) for seed in range(1, 6)}
    expect(len(sampled) == 5 and greedy not in sampled, "seeds give texts of their own")
    expect(text("--beam", "3") == text("--beam", "3", "--length-penalty", "0.6"), "the default length penalty")
    expect(text("--beam", "3") == text("--beam", "3", "--length-form", "gnmt"), "the default length form")


# ---------------------------------------------------------------- batches that are sampled


def sampled_batch(scratch):
    """Row i of a batch is what its prompt alone gives with --sequence i; row 0 what it gives without."""
    prompt, options = ids(3, 61), (*SAMPLED, "--seed", "7", "--max-new", "12", "--engine", "interp")
    rows = scratch.tokens(spec_path("ring"), {"tokens": scratch.ids([prompt] * 6)}, *options)
    expect(len({tuple(row) for row in rows}) == 6, "equal prompts have equal texts: %s" % rows)
    alone = {"tokens": scratch.ids(prompt)}
    expect(scratch.tokens(spec_path("ring"), alone, *options) == rows[0], "row 0 is not what the prompt alone gives")
    for i in (0, 1, 5):
        one = scratch.tokens(spec_path("ring"), alone, *options, "--sequence", str(i))
        expect(one == rows[i], "row %d is %s, alone %s" % (i, rows[i], one))
    later = scratch.tokens(spec_path("ring"), {"tokens": scratch.ids([prompt] * 3)}, *options, "--sequence", "2")
    expect(later == rows[2:5], "from sequence 2 on: %s, not %s" % (later, rows[2:5]))
    last = scratch.tokens(spec_path("ring"), {"tokens": scratch.ids([prompt] * 2)}, *options, "--sequence",
                          str(2**64 - 1))
    expect(last[1] == rows[0], "sequence 0 does not follow the last one")


def batch_frequencies(scratch):
    """Over many rows of equal prompts the first tokens come as often as the model's probabilities say."""
    prompt, count, temperature, weights = ids(3, 61), 3000, 2.0, "random:4"
    logits = scratch.path("npy")
    done = attnc("run", spec_path("ring"), "--weights", weights, "--engine", "interp", "--in",
                 "tokens=" + scratch.ids(prompt), "--out", "logits=" + logits)
    expect(done.returncode == 0, done.stderr)
    powers = [math.exp(logit / temperature) for logit in npy.read(logits).rows()[-1]]
    expected = [count * power / sum(powers) for power in powers]
    rows = scratch.tokens(spec_path("ring"), {"tokens": scratch.ids([prompt] * count)}, "--max-new", "1",
                          "--temperature", str(temperature), "--seed", "3", "--engine", "interp", weights=weights)
    counts = collections.Counter(row[-1] for row in rows)
    often = [token for token in range(61) if expected[token] >= 5]
    rest = [token for token in range(61) if expected[token] < 5]
    cells = [(counts[token], expected[token]) for token in often]
    if sum(expected[token] for token in rest) >= 5:
        cells.append((sum(counts[token] for token in rest), sum(expected[token] for token in rest)))
    chi, freedom = sum((got - wanted)**2 / wanted for got, wanted in cells), len(cells) - 1
    # Wilson and Hilferty's approximation of what chance passes once in 10000; with a fixed seed there is no chance
    limit = freedom * (1 - 2 / (9 * freedom) + 3.719 * (2 / (9 * freedom))**0.5)**3
    expect(freedom >= 10, "nothing to tell: %d tokens" % len(cells))
    expect(chi < limit, "chi-square %.1f over %.1f, of %d degrees of freedom" % (chi, limit, freedom))


# ---------------------------------------------------------------- what is refused

SMALL = "model u { d_model 16, vocab 64, %s\n decoder { %s, layers 1 { attention self { heads 2, mask causal } } } }\n"
UNROLLED = SMALL % ("unroll full, head logits", "seq = 8")
NO_LOGITS = SMALL % ("unroll auto", "seq <= 8")
FEATURES = SMALL % ("unroll auto", "seq <= 8, input features")
# name, status, parts of the message, spec (a name, a path, a text), inputs, options; None drops a usual option
REFUSED = (
    ("beam 0", 2, ["--beam", "1"], "ring", {}, ["--beam", "0"]),
    ("top-p 0", 2, ["--top-p", "greater than 0"], "ring", {}, ["--top-p", "0"]),
    ("top-p 1.5", 2, ["--top-p", "at most 1"], "ring", {}, ["--top-p", "1.5"]),
    ("top-p nan", 2, ["--top-p"], "ring", {}, ["--top-p", "nan"]),
    ("top-k -1", 2, ["--top-k"], "ring", {}, ["--top-k", "-1"]),
    ("temperature -1", 2, ["--temperature", "0 or more"], "ring", {}, ["--temperature", "-1"]),
    ("temperature inf", 2, ["--temperature"], "ring", {}, ["--temperature", "inf"]),
    ("temperature nan", 2, ["--temperature"], "ring", {}, ["--temperature", "nan"]),
    ("temperature hot", 2, ["--temperature", "`hot`"], "ring", {}, ["--temperature", "hot"]),
    ("beams with temperature", 2, ["exclude each other"], "ring", {}, ["--beam", "4", "--temperature", "0.8"]),
    ("length penalty 99", 2, ["--length-penalty", "-16 to 16"], "ring", {}, ["--length-penalty", "99"]),
    ("seed -1", 2, ["--seed"], "ring", {}, ["--seed", "-1"]),
    ("seed 2^64", 2, ["--seed", "2^64 - 1"], "ring", {}, ["--seed", "18446744073709551616"]),
    ("sequence -1", 2, ["--sequence", "from 0"], "ring", {}, ["--temperature", "1", "--sequence", "-1"]),
    ("sequence 1.5", 2, ["--sequence", "`1.5`"], "ring", {}, ["--temperature", "1", "--sequence", "1.5"]),
    ("min-new above max-new", 2, ["--min-new", "--max-new"], "ring", {}, ["--min-new", "5"]),
    ("max-new 0", 2, ["--max-new"], "ring", {}, ["--max-new", "0"]),
    ("top-p of no sampling", 2, ["`--top-p`", "add `--temperature T`"], "ring", {}, ["--top-p", "0.9"]),
    ("top-k of no sampling", 2, ["`--top-k`", "add `--temperature T`"], "ring", {}, ["--top-k", "5"]),
    ("seed of no sampling", 2, ["`--seed`", "add `--temperature T`"], "ring", {}, ["--seed", "5"]),
    ("sequence of no sampling", 2, ["`--sequence`", "add `--temperature T`"], "ring", {}, ["--sequence", "5"]),
    ("top-k of beams", 2, ["`--top-k`", "no effect on beam search"], "ring", {}, ["--top-k", "5", "--beam", "2"]),
    ("length penalty of no beams", 2, ["`--length-penalty`", "add `--beam B`"], "ring", {}, ["--length-penalty", "1"]),
    ("length form of no beams", 2, ["`--length-form`", "add `--beam B`"], "ring", {}, ["--length-form", "power"]),
    ("an unknown length form", 2, ["gnmt or power", "`hf`"], "ring", {}, ["--length-form", "hf", "--beam", "2"]),
    ("an unknown engine", 2, ["--engine", "`magic`"], "ring", {}, ["--engine", "magic"]),
    ("no max-new", 2, ["`--max-new` is missing"], "ring", {}, ["--max-new", None]),
    ("no weights", 2, ["`--weights` is missing"], "ring", {}, ["--weights", None]),
    ("out without its name", 2, ["`--out` wants NAME=FILE"], "ring", {}, ["--out", "OUT"]),
    ("out of another name", 2, ["`logits`"], "ring", {}, ["--out", "logits=OUT"]),
    ("weights that are not there", 1, ["nowhere.safetensors"], "ring", {}, ["--weights", "nowhere.safetensors"]),
    ("a prompt past the bound", 1, ["401", "1 to 400"], "ring", {"tokens": [1] * 401}, []),
    ("prompt and max-new past the bound", 1, ["390", "12", "400", "1 to 11"], "ring", {"tokens": [1] * 390},
     ["--max-new", "12"]),
    ("a prompt of the bound's length and two tokens", 1, ["400", "`--max-new` may be 1"], "ring", {"tokens": [1] * 400},
     ["--max-new", "2"]),
    ("one token past the bound with beams", 1, ["390", "12", "1 to 11"], "ring", {"tokens": [1] * 390},
     ["--max-new", "12", "--beam", "3"]),
    ("far past the bound", 1, ["1000000000"], "ring", {}, ["--max-new", "1000000000"]),
    ("a token outside the vocabulary", 1, ["tokens", "61", "0 to 60"], "ring", {"tokens": [1, 2, 61]}, []),
    ("a token below 0", 1, ["tokens", "-1", "0 to 60"], "ring", {"tokens": [1, -1, 6]}, []),
    ("a token beyond 32 bits", 1, ["tokens", "4294967297"], "ring", {"tokens": [1, 2**32 + 1]}, []),
    ("a source outside the vocabulary", 1, ["source", "45", "0 to 44"], "pair", {"source": [1, 45]},
     ["--engine", "interp"]),
    ("a prefix longer than the prompt", 1, ["prefix_length"], "prefixed", {"tokens": [1, 2], "prefix_length": [3]}, []),
    ("an unknown input", 1, ["`toks`", "tokens"], "ring", {"toks": [1]}, []),
    ("no prompt and no start", 1, ["start", "tokens"], "longrope", {}, []),
    ("no source", 1, ["source is missing"], "pair", {"tokens": [1]}, []),
    ("sources and prompts", 1, ["2 sources", "3 prompts"], "pair", {"source": [[1], [2]], "tokens": [[1], [2], [3]]},
     []),
    ("sources and a plain prompt", 1, ["2 sources", "1 prompt"], "pair", {"source": [[1], [2]], "tokens": [1]}, []),
    ("a batch of one and a plain prompt", 1, ["1 source", "1 prompt"], "pair", {"source": [[1]], "tokens": [1]}, []),
    ("an encoder", 1, ["no decoder"], "specs/minilm.attn", {"tokens": [1]}, []),
    ("attention alone", 1, ["no decoder"], "specs/bahdanau.attn", {"tokens": [1]}, []),
    ("unroll full", 1, ["unroll full"], UNROLLED, {"tokens": [1]}, []),
    ("no logits", 1, ["no logits"], NO_LOGITS, {"tokens": [1]}, ["--engine", "interp"]),
    ("no tokens", 1, ["takes no tokens", "input features"], FEATURES, {}, []),
    ("no tokens behind rows", 1, ["takes no tokens", "input features"],
     "tests/differential/features_to_features.attn", {}, []),
)


def refused(scratch, status, parts, spec, given, changed):
    out = scratch.path("out")
    os.mkdir(out)
    if spec.startswith("model"):
        spec = write_text(scratch.path("attn"), spec)
    else:
        spec = spec if "/" in spec else spec_path(spec)
    options = {"--weights": "random:1", "--max-new": "4", "--out": "tokens=" + out + "/x.npy"}
    for name, value in zip(changed[::2], changed[1::2]):
        options[name] = value and value.replace("OUT", out + "/x.npy")
    command = ["generate", spec]
    for name, value in options.items():
        command += [name, value] if value else []
    for name, rows in given.items():
        flat = rows if isinstance(rows[0], int) else rows[0]
        command += ["--in", "%s=%s" % (name, scratch.ids(rows, "<i8" if max(flat) > 2**31 else "<i4"))]
    done = attnc(*command)
    expect(done.returncode == status, "status %d, not %d: %s" % (done.returncode, status, done.stderr))
    for part in parts:
        expect(part in done.stderr, "`%s` is not in: %s" % (part, done.stderr))
    expect(not os.listdir(out), "left behind: %s" % os.listdir(out))
    expect(not done.stdout, "on standard output: %s" % done.stdout)


def full_disk(scratch):
    """A file that cannot be finished is not there, and one that was there before is as it was."""
    out = scratch.path("out")
    os.mkdir(out)
    prompt = scratch.ids(ids(40, 61))

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    for before in (None, b"of before"):
        path = os.path.join(out, "x.npy")
        if before:
            with open(path, "wb") as file:
                file.write(before)
        done = attnc("generate", spec_path("ring"), "--weights", "random:1", "--in", "tokens=" + prompt, "--out",
                     "tokens=" + path, "--max-new", "60", "--engine", "interp", preexec_fn=small_files)
        expect(done.returncode == 1 and "x.npy" in done.stderr, "status %d: %s" % (done.returncode, done.stderr))
        expect(os.listdir(out) == (["x.npy"] if before else []), "left behind: %s" % os.listdir(out))
        if before:
            with open(path, "rb") as file:
                expect(file.read() == before, "the file of before is gone")
    done = attnc("generate", spec_path("ring"), "--weights", "random:1", "--in", "tokens=" + prompt, "--out",
                 "tokens=/dev/full", "--max-new", "4", "--engine", "interp")
    expect(done.returncode == 1 and "No space left" in done.stderr, "status %d: %s" % (done.returncode, done.stderr))


def jobs():
    """(function, arguments) of every test."""
    for i, folder in enumerate(greedy_folders()):
        compiled = [rotated(TARGETS, i)] if (i + turn()) % 2 else []  # half of the folders
        for engine in ENGINES[:i < 3] if QUICK else ENGINES if LONG else ["interp", *compiled]:
            yield test, ("greedy/%s/%s" % (os.path.basename(folder), engine), greedy_text, folder, engine)
    if FIXTURES and os.path.isdir(os.path.join(FIXTURES, "models", "stories260K")):
        for engine in ENGINES[:2] if QUICK else ENGINES if LONG else ("interp", rotated(TARGETS)):
            yield test, ("200 tokens/" + engine, story, engine)
    beams = beam_texts()
    for name, cases in beams["models"].items():
        yield test, ("beams of transformers/" + name, beam_text, name, cases, beams["max_new"])
    for i, case in enumerate(SAME):
        for engine in ENGINES[:2] if QUICK else ("interp", TARGETS[i % len(TARGETS)]):
            yield test, ("same/%s/%s" % (case[0], engine), same_tokens, case, engine)
    for function in (ends_and_pads, streams, shapes, searches, sampled_batch, batch_frequencies, full_disk):
        yield test, (function.__name__.replace("_", " "), function)
    for name, *rest in REFUSED:
        yield test, ("refused/" + name, refused, *rest)
