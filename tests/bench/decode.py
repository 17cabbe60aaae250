#!/usr/bin/env python3
"""Decode beside llama2.c, on the same weights: tests/bench/decode.py RUN_C [SPEC WEIGHTS]...

RUN_C is llama2.c's run.c; it is built with -Ofast -march=native by clang and gcc. SPEC is a llama with interleaved or
half-split rope and a tied head, WEIGHTS what --weights takes; without any, specs/llama2c_15m.attn with random:1. Each
program writes the same greedy text, which is compared, and they take turns on one core. Prints the medians."""
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ATTNC = os.environ.get("ATTNC", os.path.join(ROOT, "build", "attnc"))
ROUNDS = 7
PIN = ["taskset", "-c", "1"]
# llama2.c reads the prompt "a" as these: a random model with a tied head would go on with the start token, and stop.
SPACE, PROMPT = 3, [1, 3, 3 + ord("a")]


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + size])
    return {name: np.frombuffer(data, np.float32, (t["data_offsets"][1] - t["data_offsets"][0]) // 4,
                                8 + size + t["data_offsets"][0]).reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def number(text, name, otherwise=None):
    found = re.search(r"\b%s (?:<= |= )?(\d+)" % name, text)
    return int(found.group(1)) if found else otherwise


def interleaved_rows(matrix, heads):
    """Rows of a head's halves side by side, as llama2.c turns them."""
    width = matrix.shape[0] // heads
    return matrix.reshape(heads, 2, width // 2, -1).transpose(0, 2, 1, 3).reshape(matrix.shape)


def write_checkpoint(spec, weights, folder):
    """llama2.c's file: seven integers, then the tensors, of all layers one after another."""
    with open(spec, encoding="utf-8") as file:
        text = file.read()
    run(ATTNC, "weights", spec, "--weights", weights, "-o", os.path.join(folder, "model.safetensors"))
    w = read_safetensors(os.path.join(folder, "model.safetensors"))
    layers, heads, seq = number(text, "layers"), number(text, "heads"), number(text, "seq")
    kv_heads = number(text, "kv_heads", heads)
    table = w["decoder.embedding.tokens.weight"]
    d_ff = w["decoder.layers.0.ffn.up.weight"].shape[0]
    turned = (lambda m, h: m) if "interleaved" in text else interleaved_rows
    path = os.path.join(folder, "model.bin")
    with open(path, "wb") as file:
        file.write(struct.pack("<7i", table.shape[1], d_ff, layers, heads, kv_heads, table.shape[0], seq))
        file.write(table.tobytes())
        for part, count in (("attention.norm_in", 0), ("attention.query", heads), ("attention.key", kv_heads),
                            ("attention.value", 0), ("attention.output", 0), ("ffn.norm_in", 0), ("ffn.gate", 0),
                            ("ffn.down", 0), ("ffn.up", 0)):
            for layer in range(layers):
                matrix = w["decoder.layers.%d.%s.weight" % (layer, part)]
                file.write(np.ascontiguousarray(turned(matrix, count) if count else matrix).tobytes())
        file.write(w["decoder.final_norm.weight"].tobytes())
        file.write(bytes(4 * seq * table.shape[1] // heads))
    with open(os.path.join(folder, "tokenizer.bin"), "wb") as file:
        file.write(struct.pack("<i", 8))
        for i in range(table.shape[0]):
            piece = b" " if i == SPACE else b"[%d]" % i
            file.write(struct.pack("<fi", 0.0, len(piece)) + piece)
    return path, seq


def same_text(spec, weights, folder, program, tokens):
    np.save(os.path.join(folder, "prompt.npy"), np.array(PROMPT, np.int32))
    out = os.path.join(folder, "text.npy")
    run(ATTNC, "generate", spec, "--weights", weights, "--in", "tokens=" + os.path.join(folder, "prompt.npy"), "--max-new",
        str(tokens - len(PROMPT)), "--ignore-eos", "--out", "tokens=" + out)
    ours = np.load(out).tolist()
    theirs = PROMPT[:2] + [int(n) for n in re.findall(rb"\[(\d+)\]", run(*program, "-n", str(tokens - 1), "-i", "a").stdout)]
    same = len(os.path.commonprefix([ours, theirs]))
    return "the same %d tokens" % same if same == len(theirs) else "the first %d of %d tokens" % (same, len(theirs))


def bench(spec, weights, run_c):
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, seq = write_checkpoint(spec, weights, folder)
        tokens = min(seq, 256)
        programs = {}
        for compiler in ("clang", "gcc"):
            path = os.path.join(folder, "run_" + compiler)
            run(compiler, "-Ofast", "-march=native", "-o", path, run_c, "-lm")
            programs["llama2.c " + compiler] = [path, checkpoint, "-z", os.path.join(folder, "tokenizer.bin"), "-t", "0"]
        told = same_text(spec, weights, folder, programs["llama2.c clang"], tokens)
        rates, shares = {name: [] for name in ("attnc", *programs)}, []
        for _ in range(ROUNDS):
            ours = json.loads(run(*PIN, ATTNC, "bench", spec, "--weights", weights, "--decode", "--seq", str(tokens),
                                  "--json").stdout)
            rates["attnc"].append(ours["tokens_s"])
            shares.append(ours["bytes"] * ours["tokens_s"] / 1e9 / ours["read_gb_s"])
            for name, program in programs.items():
                printed = run(*PIN, *program, "-n", str(tokens), "-i", "a").stderr
                rates[name].append(float(re.search(rb"tok/s: ([\d.]+)", printed).group(1)))
        print("%s, %s: %s" % (os.path.basename(spec), weights, told))
        for name, values in rates.items():
            print("  %-16s %9.1f tokens/s (median of %d, %.1f to %.1f)" %
                  (name, statistics.median(values), ROUNDS, min(values), max(values)))
        print("  %.2f x the better of llama2.c; weights and caches at %.0f %% of the read bandwidth of the same runs" %
              (statistics.median(rates["attnc"]) / max(statistics.median(v) for n, v in rates.items() if n != "attnc"),
               100 * statistics.median(shares)))


def main():
    if len(sys.argv) < 2 or len(sys.argv) % 2:
        sys.exit(__doc__)
    pairs = list(zip(sys.argv[2::2], sys.argv[3::2])) or [(os.path.join(ROOT, "specs", "llama2c_15m.attn"), "random:1")]
    for spec, weights in pairs:
        bench(spec, weights, sys.argv[1])


if __name__ == "__main__":
    main()
