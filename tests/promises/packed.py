"""Part of run.py: weights that attnc refuses, with a word why. tests/unit/test_packed.c tries every bit of a file in
attnc itself; here are the commands."""
import os
import struct

from common import must, read, result, write
from lib import npy
from lib.attnc import ATTNC, LONG, QUICK, ROOT, run

SPEC = os.path.join(ROOT, "tests/codegen/single.attn")
HEADER, AT_HEADER_HASH = 128, 120
TIED = """model single { d_model 16, vocab 61, norm rmsnorm pre eps 1e-5
    encoder { seq = 6, position learned, embedding normalized
        layers 2 { attention self { heads 4, kv_heads 2, position rope }, ffn { d_ff 36, activation silu gated } } }
    head pool mean l2 }
"""


def fnv(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


def flipped(data, bit):
    return data[:bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1:]


def forged(data, at, form, value):
    """Another number in a header whose checksum is right."""
    header = bytearray(data[:HEADER])
    struct.pack_into(form, header, at, value)
    struct.pack_into("<Q", header, AT_HEADER_HASH, fnv(header[:AT_HEADER_HASH]))
    return bytes(header) + data[HEADER:]


class Refusals:
    def __init__(self, scratch):
        self.folder = os.path.join(scratch, "packed")
        os.mkdir(self.folder)
        self.file = os.path.join(self.folder, "changed.attnw")
        self.ids = os.path.join(self.folder, "ids.npy")
        npy.write(self.ids, [1, 2, 3, 4, 5])
        self.right = self.packed(SPEC, "random:5")
        self.problems = []

    def packed(self, spec, weights):
        must(ATTNC, "pack", spec, "--weights", weights, "-o", self.file)
        return read(self.file)

    def run(self, data, command="run"):
        write(self.file, data)
        words = {"run": ["run", SPEC, "--engine", "interp", "--in", "tokens=" + self.ids,
                         "--out", "hidden=" + os.path.join(self.folder, "hidden.npy")],
                 "compile": ["compile", SPEC, "-o", self.folder], "check": ["check", SPEC],
                 "bench": ["bench", SPEC], "verify": ["pack", SPEC, "--verify"],
                 "weights": ["weights", SPEC, "-o", os.path.join(self.folder, "w.safetensors")]}
        return run(ATTNC, *words[command], "--weights", self.file)

    def refused(self, what, data, reason, command="run"):
        done = self.run(data, command)
        if done.returncode != 1 or self.file not in done.stderr or reason not in done.stderr:
            self.problems.append("%s, %s: exit %d: %s" % (command, what, done.returncode, done.stderr[-300:]))

    def verdict(self, name):
        result("packed/" + name, "\n".join(self.problems[:10]) or None)
        self.problems = []


def headers(r):
    for bit in range(0, 8 * HEADER, 1 if LONG else 149 if QUICK else 11):
        reason = "not an .attnw file" if bit < 64 else "version" if bit < 96 else "header is damaged"
        r.refused("bit %d" % bit, flipped(r.right, bit), reason)
    r.verdict("bits of the header")


def data_bits(r):
    size = len(r.right)
    for bit in range(8 * HEADER, 8 * size, 1009 if LONG else 40009 if QUICK else 8009):
        r.refused("bit %d" % bit, flipped(r.right, bit), "the weights are damaged", "verify")
    done = r.run(r.right, "verify")
    r.problems += [] if done.returncode == 0 else ["the right file: " + done.stderr]
    r.verdict("bits of the data")


def others(r):
    right, size = r.right, len(r.right)
    r.refused("another version", forged(right, 8, "<I", 2), "has version 2 of the format")
    r.refused("another layout", forged(right, 12, "<I", 2), "has version 2 of the layout")
    r.refused("another dtype", forged(right, 24, "<I", 1), "not F32")
    r.refused("another model", forged(right, 16, "<Q", 12345), "weights of another model than `single`")
    r.refused("another size", forged(right, 40, "<Q", size - HEADER - 64), "bytes of weights")
    r.refused("longer", right + b"\0", "oversized")
    for bytes_ in range(8, size, 97 if LONG else 6007):
        r.refused("%d bytes" % bytes_, right[:bytes_], "truncated")
    other = r.packed(os.path.join(ROOT, "tests/codegen/small.attn"), "random:5")
    r.refused("weights of another model", other, "weights of another model than `single`")
    longer = r.packed(write(os.path.join(r.folder, "longer.attn"), TIED), "random:5")
    r.refused("another bound", longer, "of `single`")
    for command in ("compile", "check", "bench", "weights"):
        r.refused("a damaged header", flipped(right, 1000), "header is damaged", command)
    r.verdict("other weights")


def every(scratch):
    r = Refusals(scratch)
    headers(r)
    data_bits(r)
    others(r)


def jobs(scratch):
    return [("packed", every, scratch)]
