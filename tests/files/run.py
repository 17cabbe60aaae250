#!/usr/bin/env python3
"""Bad files and bad places to write to: a clear error with file and reason, exit 1, and nothing half-written.
TAP on stdout."""
import json
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy as npy_file  # noqa: E402
from lib.attnc import ATTNC, ROOT, attnc  # noqa: E402
from lib.attnc import run as run_command  # noqa: E402
from lib.tap import Report  # noqa: E402

SPEC = os.path.join(ROOT, "specs/small_encoder.attn")
REPORT = Report("files")


def run(*args, limit=None, given=None, **environment):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    more = {} if given is None else {"input": given}
    return attnc(*args, timeout=60, preexec_fn=small_files if limit else None, env=environment, **more)


def expect(name, done, *parts, status=1, folder=None, left=()):
    problem = None
    if done.returncode != status:
        problem = f"status {done.returncode}, not {status}: {done.stderr}"
    for part in parts:
        if part not in done.stderr:
            problem = f"`{part}` is not in: {done.stderr}"
    if folder and sorted(os.listdir(folder)) != sorted(left):
        problem = f"left behind: {sorted(os.listdir(folder))}, expected {sorted(left)}"
    REPORT.result(name, problem)


def tensors():
    """Name and shape of every tensor of the spec."""
    lines = run("weights", SPEC).stdout.splitlines()[:-1]
    return [(line.split()[0], json.loads(line[line.index("["):line.index("]") + 1])) for line in lines]


def safetensors(path, specs, dtypes=None, every=1):
    """All numbers are 0.5; `dtypes`: {name: (dtype, the bytes of `every` numbers)} where they are others."""
    header, at, data = {}, 0, b""
    for name, shape in specs:
        count = 1
        for n in shape:
            count *= n
        dtype, number = (dtypes or {}).get(name, ("F32", struct.pack("<f", 0.5) * every))
        part = (number * count)[:len(number) * count // every]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(part)]}
        at += len(part)
        data += part
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def npy(path, descr, shape, data):
    """A file of these bytes, of any dtype and any number of them."""
    with open(path, "wb") as file:
        file.write(npy_file.header(descr, shape) + data)


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def check(name, fine):
    REPORT.result(name, None if fine else "it is not so")


def expect_equal(name, a, b):
    REPORT.result(name, None if a == b else "%r\n%r" % (a, b))


def bad_calls(folder):
    """What is wrong with an input or an output is said at once, with the file, the place and what there is."""
    out, ids, mask = folder + "/calls", folder + "/calls.npy", folder + "/calls_mask.npy"
    os.mkdir(out)

    def call(*more, weights="random:1", given="tokens=" + ids, to=f"hidden={out}/h.npy", **environment):
        return run("run", SPEC, "--weights", weights, "--in", given, *(["--out", to] if to else []), *more,
                   **environment)

    npy(ids, "<i4", (4,), struct.pack("<4i", 1, 2, 3, 300))
    for engine in ("compiled", "interp"):
        expect("an id outside, " + engine, call("--engine", engine),
               ids + ": input tokens: id 300 at 3 is outside 0 to 63", folder=out)
    npy(ids, "<i8", (2, 3), struct.pack("<6q", 1, 2, 3, 4, -1, 1 << 40))
    expect("an id outside, in a batch", call(), ids + ": input tokens: id -1 at 1, 1 is outside 0 to 63", folder=out)
    npy(ids, "<i8", (2, 3), struct.pack("<6q", 1, 2, 3, 4, 5, 1 << 40))
    npy(mask, "<i4", (2, 3), struct.pack("<6i", 1, 1, 1, 1, 1, 0))
    expect("an id outside, as padding", call("--in", "attention_mask=" + mask), status=0, folder=out, left=["h.npy"])
    os.remove(out + "/h.npy")

    npy(ids, "<i4", (4,), struct.pack("<4i", 1, 2, 3, 4))
    names = "it has: hidden, pooled, logits, attention[.LAYER]\n"
    expect("an unknown output", call(to=f"logit={out}/l.npy"), "no output `logit`; " + names, folder=out)
    expect("an unknown output beside a good one", call("--out", f"attention.2={out}/l.npy"),
           "no output `attention.2`; " + names, folder=out)
    expect("no output named", call(to=None), names[3:], status=2, folder=out)
    lone = call(given=ids)
    expect("an input without its name", lone, "`--in` wants NAME=FILE", status=2, folder=out)
    usage = lone.stderr[lone.stderr.find("usage: "):]
    help_text = run("help", "run").stdout
    expect_equal("a usage error and help show the same", help_text[:help_text.find("  --weights F")], usage)
    for command in (call(weights=folder), run("check", SPEC, "--weights", folder)):
        expect("weights in a folder", command,
               folder + ": it is a folder without model.safetensors, pytorch_model.bin or an index of one; give its")

    bare = {"PATH": folder, "CC": ""}
    expect("no compiler", call(**bare), "name one with --cc; --engine interp needs none", folder=out)
    expect("no compiler, no interpreter", run("bench", SPEC, **bare), "name one with --cc\n")
    expect("no such compiler", call("--cc", folder + "/cc"), folder + "/cc` is not there", folder=out)
    expect("a compiler by its name", call("--cc", "cc", CC="absent"), status=0, folder=out, left=["h.npy"])
    os.remove(out + "/h.npy")


def prefix_of_an_image(folder):
    """prefix_length counts the rows of an image's patches, 16 of them here; an image has 3 channels."""
    spec, pixels, prefix, out = (folder + "/image" + end for end in (".attn", ".npy", "_prefix.npy", "_out"))
    os.mkdir(out)
    with open(spec, "w", encoding="utf-8") as file:
        file.write("model image { d_model 4\n encoder { input patches image 8 patch 2\n"
                   "layers 1 { attention self { heads 1\n mask prefix } } } }\n")
    npy(pixels, "<f4", (3, 8, 8), struct.pack("<192f", *range(192)))
    for rows, engine, status, words in ((16, "compiled", 0, []), (16, "interp", 0, []),
                                        (17, "compiled", 1, ["prefix_length holds 17; it may be 0 to 16"])):
        npy(prefix, "<i4", (1,), struct.pack("<i", rows))
        done = run("run", spec, "--weights", "random:1", "--engine", engine, "--in", "pixels=" + pixels,
                   "--in", "prefix_length=" + prefix, "--out", f"hidden={out}/{engine}.npy")
        expect("%d rows of an image as a prefix, %s" % (rows, engine), done, *words, status=status)
    made = [f"{out}/{engine}.npy" for engine in ("compiled", "interp")]
    rows = [struct.unpack("<64f", contents(path)[-256:]) for path in made if os.path.exists(path)]
    close = len(rows) == 2 and all(abs(a - b) < 1e-4 for a, b in zip(*rows))
    expect_equal("the same rows with a prefix of an image", close, True)


def packed_counts(folder):
    """attnc pack counts the tensors that attnc weights lists, and apart from them what the spec makes."""
    for spec, made in (("specs/small_encoder", " and 1 table made from the spec"), ("specs/minilm", ""),
                       ("tests/differential/relative_shared", ""),
                       ("tests/differential/seq2seq_shared", " and 1 table made from the spec")):
        listed = run("weights", spec + ".attn").stdout.splitlines()[-1].split(",")[0]
        path = folder + "/counts.attnw"
        counted = run("pack", spec + ".attn", "--weights", "random:1", "-o", path).stdout
        expect_equal("tensors of " + spec, counted, "%s: %s%s, %d bytes\n" % (path, listed, made,
                                                                            os.path.getsize(path) - 128))


def packed_one_by_one(folder):
    """attnc pack holds a few tensors at a time: 240 MB of numbers, and as many rounded ones, are packed in far less."""
    spec, packed = folder + "/deep.attn", folder + "/deep.attnw"
    with open(spec, "w", encoding="utf-8") as file:
        file.write("model deep {\nd_model 512\nvocab 1000\nencoder {\nseq <= 8\nlayers 20 {\n"
                   "attention self { heads 8 }\nffn { d_ff 2048 }\n}\n}\n}\n")
    words = [ATTNC, "pack", spec, "--weights", "random:1", "--precision", "weights=bf16", "-o", packed]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    check("memory of pack: %d MB" % (used.ru_maxrss >> 10), child.returncode == 0 and used.ru_maxrss < 120 << 10)
    check("bytes of the packed file", os.path.getsize(packed) > 120e6)
    os.remove(packed)


def verbose(folder, weights, specs):
    """-v names what is not used, wherever weights are read; without -v, it is told in one line."""
    safetensors(weights, [*specs, ("spare", [2]), *((f"layers.{i}.spare", [1]) for i in range(12))])
    note, to = "tensor `spare` [2] is not used", folder + "/verbose"
    line = f"attnc: note: {weights}: 13 tensors are not used: `layers.{{layer}}.spare` (12), `spare`\n"
    ids = folder + "/verbose.npy"
    npy(ids, "<i4", (1,), struct.pack("<i", 1))
    for command in (["compile", SPEC, "-o", to], ["pack", SPEC, "-o", to + ".attnw"],
                    ["run", SPEC, "--engine", "interp", "--in", "tokens=" + ids, "--out", f"hidden={to}_out.npy"]):
        expect(command[0] + " -v", run(*command, "--weights", weights, "-v"), note, status=0)
        expect_equal(command[0] + " without -v", run(*command, "--weights", weights).stderr, line)


def generated(folder):
    """attnc generate without --out prints the new ids, those that --out holds behind the prompt."""
    spec, ids, out = "tests/differential/decoder_only.attn", folder + "/prompt.npy", folder + "/generated.npy"
    npy(ids, "<i4", (2, 3), struct.pack("<6i", 1, 2, 3, 4, 5, 6))
    call = ["generate", spec, "--weights", "random:2", "--engine", "interp", "--in", "tokens=" + ids, "--max-new", "4",
            "--ignore-eos"]
    expect("generate to a file", run(*call, "--out", "tokens=" + out), status=0)
    tokens = struct.unpack("<14i", contents(out)[-56:])
    lines = "".join(" ".join(str(t) for t in tokens[at + 3:at + 7]) + "\n" for at in (0, 7))
    expect_equal("generate without --out prints the ids", run(*call).stdout, lines)
    expect_equal("generate --stream without --out prints them once", run(*call, "--stream").stdout,
                 lines.replace("\n", " \n"))
    npy(ids, "<i4", (3,), struct.pack("<3i", 1, 2, 999))
    expect("generate: an id outside", run(*call), ids + ": input tokens: id 999 at 2 is outside 0 to ")


def written_weights(folder, bad):
    """attnc weights -o: what it writes is what it lists, and as good as where it was read; `bad` lacks a tensor."""
    out, ids, spec = folder + "/written", folder + "/written.npy", folder + "/gpt2.attn"
    file, h1, h2 = out + "/w.safetensors", folder + "/h1.npy", folder + "/h2.npy"
    os.mkdir(out)
    npy(ids, "<i4", (5,), struct.pack("<5i", 1, 0, 7, 3, 2))

    def write(source, to=file, of=SPEC, limit=None):
        return run("weights", of, "--weights", source, "-o", to, limit=limit)

    def same_run(name, of, source, output):
        for weights, path in ((source, h1), (file, h2)):
            expect(f"{name}: run", run("run", of, "--weights", weights, "--engine", "interp", "--in", "tokens=" + ids,
                                       "--out", f"{output}={path}"), status=0)
        same = contents(h1) == contents(h2)
        check(f"{name}: the same {output}", same)

    there = {"folder": out, "left": ["w.safetensors"]}
    expect("written weights: random", write("random:7"), status=0, **there)
    same_run("written weights: random", SPEC, "random:7", "hidden")
    first = contents(file)
    header = json.loads(first[8:8 + struct.unpack_from("<Q", first)[0]])
    listed = {name: (shape, "F32") for name, shape in tensors()}
    same = {name: (entry["shape"], entry["dtype"]) for name, entry in header.items()} == listed
    check("written weights: the tensors that are listed", same)
    run("pack", SPEC, "--weights", "random:7", "-o", folder + "/w.attnw")
    for source in (folder + "/w.attnw", file):
        expect("written weights: over the old file", write(source), status=0, **there)
        name = "written weights: the same bytes from " + source[len(folder):]
        check(name, contents(file) == first)

    expect("written weights: a missing tensor", write(bad), bad, "encoder.layers.1.ffn.up.weight", **there)
    expect("written weights: a full disk", write("random:8", limit=4096), file, **there)
    check("written weights: a failure leaves the old file", contents(file) == first)
    os.remove(file)
    expect("written weights: a full disk, no old file", write("random:8", limit=4096), file, folder=out)
    expect("written weights: a full device", write("random:7", "/dev/full"), "/dev/full", "No space left")
    nowhere = out + "/a/w.safetensors"
    expect("written weights: no such folder", write("random:7", nowhere), nowhere, "No such file", folder=out)
    expect("written weights: to a folder", write("random:7", out), out, folder=out)
    expect("written weights: no seed", write("random:x"), "random:x", folder=out)
    expect("written weights: -o alone", run("weights", SPEC, "-o", file), "--weights", status=2, folder=out)
    alone = run("weights", SPEC, "--weights", "random:7")
    expect("written weights: --weights alone", alone, "-o", status=2, folder=out)

    fixture = os.path.abspath("tests/parity/fixtures/gpt2_odd")  # its tensors have other names, and are transposed
    source = fixture + "/model.safetensors"
    run("import", fixture, "-o", spec)
    expect("written weights: source names", write(source, of=spec), status=0, **there)
    same_run("written weights: source names", spec, source, "logits")


def not_finite(folder, specs):
    """Such numbers are packed, and said."""
    weights, packed = folder + "/odd.safetensors", folder + "/odd.attnw"
    safetensors(weights, specs)
    expect_equal("finite numbers: no note", run("pack", SPEC, "--weights", weights, "-o", packed).stderr, "")
    with open(weights, "r+b") as file:
        file.seek(-8, os.SEEK_END)
        file.write(struct.pack("<2f", float("nan"), float("-inf")))
    done = run("pack", SPEC, "--weights", weights, "-o", packed)
    expect("infinite and NaN", done, weights, "2 of ", "`%s`" % specs[-1][0], "infinite or NaN", status=0)
    out, spec = folder + "/not_finite", folder + "/not_finite.attn"
    os.mkdir(out)
    with open(SPEC, encoding="utf-8") as source, open(spec, "w", encoding="utf-8") as file:
        file.write(re.sub(r"^(model \w+ \{)", r"\1\n    precision weights int8", source.read(), flags=re.M))
    name = next(name for name, shape in specs if len(shape) == 2 and "query" in name)
    for number, word in ((float("nan"), "NaN"), (float("inf"), "infinite")):
        safetensors(weights, specs, {name: ("F32", struct.pack("<f", number))})
        done = run("pack", spec, "--weights", weights, "-o", out + "/w.attnw")
        expect("%s has no int8" % word, done, weights, "number 0 of `%s` is %s" % (name, word), "integers",
               folder=out)


def kinds_of_numbers(folder, specs):
    """Weights are floating-point numbers and ids are integers that hold each id; what is not used may be anything."""
    out, weights, ids, mask = folder + "/kinds", folder + "/kinds.safetensors", folder + "/kinds.npy", folder + "/m.npy"
    name = specs[-1][0]
    os.mkdir(out)

    def pack():
        return run("pack", SPEC, "--weights", weights, "-o", out + "/w.attnw")

    for dtype, size in (("I8", 1), ("U8", 1), ("BOOL", 1), ("I16", 2), ("I32", 4), ("I64", 8)):
        safetensors(weights, specs, {name: (dtype, bytes([1]) + bytes(size - 1))})
        expect("weights of " + dtype, pack(), weights + ": tensor `%s`" % name, "holds %s, which is no type" % dtype,
               "save it as float32, float16 or bfloat16", folder=out)
        safetensors(weights, [*specs, ("position_ids", [4])], {"position_ids": (dtype, bytes([1]) + bytes(size - 1))})
        expect("a tensor of %s that nothing reads" % dtype, pack(), status=0, folder=out, left=["w.attnw"])
        os.remove(out + "/w.attnw")
    safetensors(weights, specs, {name: ("F8_E4M3", b"\x30")})
    expect("weights of F8_E4M3", pack(), "holds F8_E4M3, which is no type", "save it as float32, float16", folder=out)
    whole = next(name for name, shape in specs if shape[-1] % 4 == 0)
    for dtype, size in (("F8_E8M0", 1), ("F4", .5), ("F6_E2M3", .75), ("C64", 8), ("U16", 2), ("U32", 4), ("U64", 8),
                        ("F128", 16)):
        safetensors(weights, specs, {whole: (dtype, bytes(int(4 * size)))}, every=4)
        words = ["save it as float32, float16"] if dtype[:2] in ("F8", "F4", "F6") else []
        expect("weights of " + dtype, pack(), weights + ": tensor `%s`" % whole, "its type `%s` is not read" % dtype,
               *words, folder=out)
        safetensors(weights, [*specs, ("freqs_cis", [4])], {"freqs_cis": (dtype, bytes(int(4 * size)))}, every=4)
        expect("a tensor of %s that nothing reads" % dtype, pack(), status=0, folder=out, left=["w.attnw"])
        os.remove(out + "/w.attnw")
    safetensors(weights, [*specs, ("deep", [1] * 9)])
    expect("a tensor of nine dims that nothing reads", pack(), status=0, folder=out, left=["w.attnw"])
    os.remove(out + "/w.attnw")
    for dtype, number in (("F16", b"\0\x38"), ("BF16", b"\0\x3f"), ("F64", struct.pack("<d", 0.5))):
        safetensors(weights, specs, {tensor: (dtype, number) for tensor, _ in specs})
        expect("weights of " + dtype, pack(), status=0, folder=out, left=["w.attnw"])
        expect_equal("the same weights from " + dtype, contents(out + "/w.attnw")[128:],
                     packed_floats(folder, specs))
        os.remove(out + "/w.attnw")

    def call(spec, *more, given="tokens"):
        return run("run", spec, "--weights", "random:1", "--engine", "interp", "--in", given + "=" + ids, "--out",
                   f"hidden={out}/h.npy", *more)

    large, rows = folder + "/kinds.attn", folder + "/rows.attn"
    text = ("model m { d_model 2, position learned, encoder { seq <= 4, %s\n"
            "layers 1 { attention self { heads 1 }, ffn { d_ff 2 } } } }\n")
    for path, words in ((large, "vocab 257, segments 2"), (rows, "input features")):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text % words)
    for descr, letter, name, spec, why in (
            ("|b1", "?", "BOOL", SPEC, "wants integers, found BOOL; save array.astype('int64')"),
            ("<f4", "f", "F32", SPEC, "wants integers, found F32; save array.astype('int64')"),
            ("<f8", "d", "F64", SPEC, "wants integers, found F64"),
            ("|u1", "B", "U8", large, "has numbers up to 256, which U8 does not hold; save them as int32 or int64"),
            ("|i1", "b", "I8", large, "has numbers up to 256, which I8 does not hold"),
            ("|u1", "B", "U8", SPEC, None), ("|i1", "b", "I8", SPEC, None), ("<i2", "h", "I16", large, None),
            ("<i4", "i", "I32", large, None), ("<i8", "q", "I64", large, None)):
        npy(ids, descr, (3,), struct.pack("<3" + letter, 1, 0, 1))
        label = "ids of %s, %s" % (name, "refused" if why else "taken")
        if why:
            expect(label, call(spec), ids + ": input tokens " + why, folder=out)
        else:
            expect(label, call(spec), status=0, folder=out, left=["h.npy"])
            os.remove(out + "/h.npy")
    npy(ids, "<i4", (3,), struct.pack("<3i", 1, 0, 1))
    npy(mask, "|b1", (3,), bytes([1, 1, 0]))
    expect("an attention_mask of truth values", call(SPEC, "--in", "attention_mask=" + mask), status=0)
    expect("segments of truth values", call(large, "--in", "segments=" + mask), "input segments wants integers")
    npy(mask, "<f4", (3,), struct.pack("<3f", 1, 1, 0))
    expect("an attention_mask of floats", call(SPEC, "--in", "attention_mask=" + mask), mask + ": holds F32")
    for number, status, words in ((0.1, 0, ()), (1e300, 1, ("input features holds 1e+300, which is beyond float32",)),
                                  (float("inf"), 0, ())):
        npy(ids, "<f8", (1, 2), struct.pack("<2d", 1, number))
        expect("features of F64, %g" % number, call(rows, given="features"), *words, status=status)
    npy(ids, "<i4", (1, 2), struct.pack("<2i", 1, 2))
    expect("features of integers", call(rows, given="features"), "found I32; save array.astype('float32')")


def packed_floats(folder, specs):
    """What .attnw holds behind its header when all numbers are 0.5."""
    source, packed = folder + "/half.safetensors", folder + "/half.attnw"
    safetensors(source, specs)
    run("pack", SPEC, "--weights", source, "-o", packed)
    return contents(packed)[128:]


def foreign_weights(folder, specs):
    """A file of another kind is named, with what to do; a folder stands for the weights in it."""
    home, path = folder + "/home", folder + "/other"
    os.mkdir(home)

    def pack(source):
        return run("pack", SPEC, "--weights", source, "-o", folder + "/other.attnw")

    for data, words in ((b"\x08\x0a\x12\x07pytorch\x1a\x052.0.0", "looks like an ONNX model; save the model"),
                        (b"version https://git-lfs.github.com/spec/v1\n", "a git-lfs pointer; fetch the file itself"),
                        (b"<!DOCTYPE html>", "an HTML or XML page; the download may have failed"),
                        (b"\x1f\x8b\x08\0" + bytes(8), "a gzip archive; unpack it first")):
        with open(path, "wb") as file:
            file.write(data)
        expect("weights: " + words, pack(path), path + ": is not a safetensors file", words)
        expect("an input: " + words, run("run", SPEC, "--weights", "random:1", "--in", "tokens=" + path, "--out",
                                         "hidden=" + folder + "/no.npy"), path + ": is not an .npy file; it looks like")
    safetensors(home + "/model.safetensors", specs)
    expect("a folder of weights", pack(home), status=0)
    os.rename(home + "/model.safetensors", home + "/part.safetensors")
    expect("a folder without weights", pack(home), home + ": it is a folder without model.safetensors")
    with open(home + "/model.safetensors.index.json", "w", encoding="utf-8") as file:
        json.dump({"weight_map": {name: "part.safetensors" for name, _ in specs}}, file)
    expect("a folder of shards", pack(home), status=0)


def linked_weights(folder):
    """Where the weights are a file of assembly, the command that links all files is printed, and it does."""
    spec, main_c = folder + "/large.attn", folder + "/main.c"
    with open(spec, "w", encoding="utf-8") as file:
        file.write("model large { d_model 64, vocab 5000, position learned\n"
                   "encoder { seq <= 8, layers 1 { attention self { heads 2 }, ffn { d_ff 64 } } } }\n")
    with open(main_c, "w", encoding="utf-8") as file:
        file.write('#include "large.h"\nint main(void) {\n    large_ctx model;\n'
                   "    return large_init(&model, large_embedded(), LARGE_WEIGHTS_BYTES, NULL);\n}\n")
    for name, more in (("linked", []), ("linked, it's here", ["--runtime"]), (".", []), ("slash/", [])):
        call = ["compile", spec, "-o", name, "--target", "scalar", "--weights", "random:1", "--embed-weights"]
        done = attnc(*call, *more, cwd=folder)
        stem = {".": "", "slash/": "slash/"}.get(name, name + "/") + "large"
        lines = done.stdout.splitlines() + ["", ""]
        expect_equal("linked weights in %s: what is said" % name, lines[0],
                     f"{stem}_weights.S takes {stem}.attnw into the program and is linked with the C:")
        line = lines[1].replace("-std=c11 -O2", "-std=c11 -O0")
        built = run_command("sh", "-c", line + " && ./large", cwd=folder)
        expect("linked weights in %s: the command" % name, built, status=0)
    expect_equal("small weights need no command", run("compile", SPEC, "-o", folder + "/small", "--weights", "random:1",
                                                      "--embed-weights").stdout, "")


def formatted_input():
    """attnc fmt - lays out standard input."""
    text = "model m{d_model 8,vocab 3 # c\n}"
    expect_equal("fmt -", run("fmt", "-", given=text).stdout, "model m {\n    d_model 8\n    vocab 3  # c\n}\n")
    with open(SPEC, encoding="utf-8") as file:
        expect_equal("fmt - as of the file", run("fmt", "-", given=file.read()).stdout, run("fmt", SPEC).stdout)
    expect("fmt - of a mistake", run("fmt", "-", given="model m {\n  d_model ?\n}"), "<stdin>:2:11: error: `?`",
           "attnc: error: <stdin>: 1 error")
    expect("fmt - of nothing", run("fmt", "-", given=""), "<stdin>:1:1: error: the file has no model")
    with open(os.devnull, "wb") as nowhere:
        for name, unreadable, why in (("a folder", os.open(".", os.O_RDONLY), "Is a directory"),
                                      ("what is written alone", nowhere.fileno(), "Bad file descriptor")):
            done = attnc("fmt", "-", stdin=unreadable)
            expect("fmt - of " + name, done, "<stdin>: cannot be read: " + why)
    expect("fmt - of too much", run("fmt", "-", given="#" * (1 << 20) + "#"), "<stdin>: is too large")


def main():
    specs = tensors()
    with tempfile.TemporaryDirectory() as folder:
        weights, ids, out = folder + "/w.safetensors", folder + "/ids.npy", folder + "/out"
        os.mkdir(out)
        npy(ids, "<i4", (4,), struct.pack("<4i", 1, 2, 3, 4))

        def engine(w=weights, tokens=ids, *more):
            return run("run", SPEC, "--weights", w, "--in", "tokens=" + tokens, "--out", f"hidden={out}/h.npy",
                       "--engine", "interp", *more)

        safetensors(weights, specs)
        expect("good", engine(), status=0, folder=out, left=["h.npy"])
        os.remove(out + "/h.npy")
        safetensors(weights, [(n.replace("layers.1.ffn.up.weight", "layers.1.ffn.upp.weight"), s) for n, s in specs])
        expect("missing name", engine(), weights, "encoder.layers.1.ffn.up.weight",
               "nearest is `encoder.layers.1.ffn.upp.weight`", folder=out)
        written_weights(folder, weights)
        # the nearest is none that another layer has; what nothing speaks of is named
        query, other = "layers.1.attention.query.weight", "layers.1.attention.q.weight"
        safetensors(weights, [(n.replace(query, other), s) for n, s in specs])
        expect("nearest is not taken", engine(), weights, "nothing speaks of `encoder.layers.1.attention.q.weight`",
               folder=out)
        safetensors(weights, [("elsewhere.%d" % i if n.startswith("encoder.layers") else n, s)
                              for i, (n, s) in enumerate(specs)])
        expect("foreign names", engine(), weights, "others are missing", "nothing speaks of `elsewhere.",
               "`weights` block", folder=out)
        not_finite(folder, specs)
        kinds_of_numbers(folder, specs)
        foreign_weights(folder, specs)
        bad_calls(folder)
        prefix_of_an_image(folder)
        packed_counts(folder)
        packed_one_by_one(folder)
        linked_weights(folder)
        formatted_input()
        generated(folder)
        verbose(folder, weights, specs)
        safetensors(weights,
                    [(n, [s[0] + 1, *s[1:]] if n == "encoder.layers.0.ffn.up.weight" else s) for n, s in specs])
        expect("wrong shape", engine(), weights, "[65, 32]", "[64, 32]", folder=out)
        safetensors(weights, specs)
        whole = open(weights, "rb").read()
        open(weights, "wb").write(whole[:-5])
        expect("truncated", engine(), weights, folder=out)
        open(weights, "wb").write(whole + b"12345")
        expect("oversized", engine(), weights, folder=out)
        open(weights, "wb").write(struct.pack("<Q", 20) + b"this is not a header" + whole)
        expect("header is not JSON", engine(), weights, "JSON", folder=out)
        open(weights, "wb").write(whole.replace(b'"F32"', b'"Q99"', 1))
        expect("a type that is not read", engine(), weights, "Q99", folder=out)
        open(weights, "wb").write(whole)
        expect("missing file", engine(folder + "/none.safetensors"), "none.safetensors", "No such file", folder=out)
        npy(ids, "<f4", (4,), struct.pack("<4f", 1, 2, 3, 4))
        expect("ids of the wrong kind", engine(), ids, "integers", folder=out)
        npy(ids, "<i4", (4,), struct.pack("<4i", 1, 2, 64, 4))
        expect("id outside the vocabulary", engine(), "64", folder=out)
        npy(ids, "<i4", (17,), struct.pack("<17i", *[1] * 17))
        expect("too long", engine(), "17", "16", folder=out)
        npy(ids, "<i4", (2, 4), struct.pack("<8i", *[1] * 8))
        mask = folder + "/mask.npy"
        npy(mask, "<i4", (2, 4), struct.pack("<8i", 1, 1, 0, 0, 1, 0, 1, 0))
        expect("mask with a hole", engine(weights, ids, "--in", "attention_mask=" + mask), "ones, then zeros",
               folder=out)
        npy(mask, "<i4", (2, 4), struct.pack("<8i", 1, 1, 0, 0, 0, 0, 0, 0))
        expect("mask of an empty sequence", engine(weights, ids, "--in", "attention_mask=" + mask), "length 0",
               folder=out)

        expect("a full device", run("pack", SPEC, "--weights", "random:1", "-o", "/dev/full"), "/dev/full",
               "No space left")
        expect("a full disk", run("pack", SPEC, "--weights", "random:1", "-o", out + "/w.attnw", limit=4096), "w.attnw",
               folder=out)
        expect("a full disk while compiling", run("compile", SPEC, "-o", out, limit=4096), "small_encoder", folder=out)
        expect("an output folder that is a file", run("compile", SPEC, "-o", ids), ids)
        expect("an output folder that is nowhere", run("compile", SPEC, "-o", out + "/a/b"), out + "/a/b", folder=out)
        expect("an unknown target", run("compile", SPEC, "-o", out, "--target", "vax"), "vax", status=3, folder=out)
        expect("no output", run("compile", SPEC), "-o", status=2)
        expect("an unknown option", run("compile", SPEC, "--taget", "scalar"), "--target", status=2)
        expect("an unknown command", run("compil", SPEC), "compile", status=2)
        expect("no command", run(), "usage", status=2)
    return REPORT.finish()


if __name__ == "__main__":
    sys.exit(main())
