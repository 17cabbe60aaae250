"""GGUF files, without the library: a writer, and the formulas of the block formats."""
import math
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
# Of tensors: the number of the type, the numbers of a block and its bytes.
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22),
         "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176),
         "Q6_K": (14, 256, 210), "IQ4_NL": (20, 32, 18), "I32": (26, 1, 4), "F64": (28, 1, 8), "BF16": (30, 1, 2),
         "MXFP4": (39, 32, 17)}


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value(item, kind=None):
    """A value behind its type; (KIND, value) states the type, which otherwise follows from the value."""
    if isinstance(item, tuple):
        kind, item = item
    elif isinstance(item, list):
        parts = [value(part) for part in item] or [struct.pack("<I", U32)]
        return struct.pack("<I", ARRAY) + parts[0][:4] + struct.pack("<Q", len(item)) + b"".join(p[4:] for p in parts)
    elif isinstance(item, (str, bytes)):
        kind = STRING
    else:
        kind = BOOL if isinstance(item, bool) else F32 if isinstance(item, float) else U32
    body = string(item) if kind == STRING else struct.pack("<" + FORMATS[kind], item)
    return struct.pack("<I", kind) + body


def pack(keys, tensors, version=3, alignment=32):
    """The bytes of a file; tensors are (name, shape with rows first, type, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    head += b"".join(string(key) + value(item) for key, item in keys)
    data = b""
    for name, shape, kind, body in tensors:
        data += bytes(-len(data) % alignment)
        number = TYPES[kind][0] if isinstance(kind, str) else kind
        head += string(name) + struct.pack("<I", len(shape)) + struct.pack("<%dQ" % len(shape), *reversed(shape))
        head += struct.pack("<IQ", number, len(data))
        data += body
    return head + bytes(-len(head) % alignment) + data


LETTERS = ["<unk>", "<s>", "</s>", "\u2581"] + [chr(97 + i) for i in range(26)]


def llama(pieces, width, hidden, length, kind, numbers):
    """The keys and the tensors of a llama of one layer, whose tokenizer has these pieces, the first three of them as in
    LETTERS. `numbers(shape)` makes the bytes of a tensor: a matrix has this kind, and a vector F32."""
    shapes = {"token_embd": [len(pieces), width], "output_norm": [width]}
    for stem, rows, columns in (("attn_q", width, width), ("attn_k", width // 2, width), ("attn_v", width // 2, width),
                                ("attn_output", width, width), ("ffn_gate", hidden, width), ("ffn_up", hidden, width),
                                ("ffn_down", width, hidden)):
        shapes["blk.0." + stem] = [rows, columns]
    shapes["blk.0.attn_norm"] = shapes["blk.0.ffn_norm"] = [width]
    keys = {"general.architecture": "llama", "llama.embedding_length": width, "llama.block_count": 1,
            "llama.feed_forward_length": hidden, "llama.attention.head_count": 4,
            "llama.attention.head_count_kv": 2, "llama.context_length": length,
            "llama.attention.layer_norm_rms_epsilon": 1e-5, "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": pieces, "tokenizer.ggml.scores": [-1.0] * len(pieces),
            "tokenizer.ggml.token_type": [(I32, number) for number in [2, 3, 3] + [1] * (len(pieces) - 3)],
            "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2}
    return keys, [(stem + ".weight", shape, kind if len(shape) > 1 else "F32", numbers(shape))
                  for stem, shape in shapes.items()]


def half(data, at):
    return struct.unpack_from("<e", data, at)[0]


def f32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def nibbles(data, at):
    return [b & 15 for b in data[at:at + 16]] + [b >> 4 for b in data[at:at + 16]]


def fifths(data, at):
    bits = int.from_bytes(data[at:at + 4], "little")
    return [(bits >> i & 1) << 4 for i in range(32)]


def parts(data, highs, lows):
    """Q4_K and Q5_K: scales and least numbers in 6 bits are one run of bits, apart from the order of the bits."""
    d, m = half(data, 0), half(data, 2)
    s = data[4:16]
    scales = [s[i] & 63 for i in range(4)] + [(s[8 + i] & 15) + 16 * (s[i] >> 6) for i in range(4)]
    least = [s[4 + i] & 63 for i in range(4)] + [(s[8 + i] >> 4) + 16 * (s[4 + i] >> 6) for i in range(4)]
    out = []
    for part in range(8):
        for i in range(32):
            byte = data[lows + 32 * (part // 2) + i]
            code = byte >> 4 if part % 2 else byte & 15
            if highs:
                code += 16 * (data[highs + i] >> part & 1)
            out.append(d * scales[part] * code - m * least[part])
    return out


def q6_k(data):
    d, out = half(data, 208), [0.0] * 256
    for i in range(32):
        for h in range(2):
            low, high = data[64 * h:64 * h + 64], data[128 + 32 * h + i]
            for run, four in enumerate((low[i] & 15, low[32 + i] & 15, low[i] >> 4, low[32 + i] >> 4)):
                at = 128 * h + 32 * run + i
                scale = struct.unpack_from("<b", data, 192 + at // 16)[0]
                out[at] = d * scale * (four + 16 * (high >> 2 * run & 3) - 32)
    return out


IQ4_NL = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6)
# Each number exactly, as a double; f32() rounds it.
DECODERS = {
    "Q4_0": lambda b: [half(b, 0) * (q - 8) for q in nibbles(b, 2)],
    "Q4_1": lambda b: [half(b, 0) * q + half(b, 2) for q in nibbles(b, 4)],
    "Q5_0": lambda b: [half(b, 0) * (q + h - 16) for q, h in zip(nibbles(b, 6), fifths(b, 2))],
    "Q5_1": lambda b: [half(b, 0) * (q + h) + half(b, 2) for q, h in zip(nibbles(b, 8), fifths(b, 4))],
    "Q8_0": lambda b: [half(b, 0) * q for q in struct.unpack("<32b", b[2:])],
    "Q4_K": lambda b: parts(b, None, 16), "Q5_K": lambda b: parts(b, 16, 48), "Q6_K": q6_k,
    "IQ4_NL": lambda b: [half(b, 0) * IQ4_NL[q] for q in nibbles(b, 2)],
    "MXFP4": lambda b: [math.ldexp(E2M1[q], b[0] - 127) for q in nibbles(b, 1)],
}


def numbers(kind, data):
    """What a tensor of blocks holds, as f32."""
    size = TYPES[kind][2]
    return [f32(x) for at in range(0, len(data), size) for x in DECODERS[kind](data[at:at + size])]


# Where a block has f16: scales and least numbers, which random bytes would make NaN or infinite.
HALVES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q4_K": (0, 2), "Q5_K": (0, 2),
          "Q6_K": (208,), "IQ4_NL": (0,), "MXFP4": ()}


def blocks(kind, count, chance):
    """Random bytes with scales that are numbers, some of them subnormal, negative or 0; Q8_0 has no -128, which
    llama.cpp does not write."""
    _, size, bytes_each = TYPES[kind]
    out = b""
    for _ in range(count // size):
        block = bytearray(chance.randbytes(bytes_each))
        for at in HALVES[kind]:
            scales = (chance.uniform(-2, 2), chance.uniform(-1e-5, 1e-5), 0.0)
            block[at:at + 2] = struct.pack("<e", chance.choice(scales))
        if kind == "Q8_0":
            block[2:] = block[2:].replace(b"\x80", b"\x81")
        if kind == "MXFP4":
            block[0] = chance.choice((chance.randrange(100, 140), 0, 1, 2))
        out += bytes(block)
    return out
