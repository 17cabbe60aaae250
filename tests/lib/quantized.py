"""Matrices as quantized checkpoints hold them, and the numbers that they stand for, without any library. Each maker
returns {suffix of a name: (type, shape, bytes)} and the numbers by rows, from codes that `chance` draws."""
import struct

AWQ_ROWS = (0, 2, 4, 6, 1, 3, 5, 7)  # of the nibbles of a word, the lowest first: autoawq's packing


def f32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def f16(number):
    return struct.unpack("<e", struct.pack("<e", number))[0]


def bf16(number):
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000))[0]


ROUND = {"F32": f32, "F16": f16, "BF16": bf16}


def stored(kind, numbers):
    if kind == "BF16":
        return b"".join(struct.pack("<f", x)[2:] for x in numbers)
    return struct.pack("<%d%s" % (len(numbers), {"F32": "f", "F16": "e", "I32": "i", "I64": "q", "I8": "b"}[kind]),
                       *numbers)


def words(lines):
    return b"".join(struct.pack("<I", word) for line in lines for word in line)


def packed(codes, bits):
    """A line of words with the codes one after another, the lowest bits first."""
    whole = sum(code << i * bits for i, code in enumerate(codes))
    return [whole >> 32 * i & 0xffffffff for i in range((len(codes) * bits + 31) // 32)]


def turned(lines):
    return [list(line) for line in zip(*lines)]


def drawn_scales(chance, lines, columns, kind):
    return [[ROUND[kind](chance.uniform(1e-3, 0.02)) for _ in range(columns)] for _ in range(lines)]


def flat(lines):
    return [x for line in lines for x in line]


def gptq(chance, rows, columns, bits=4, group=32, order=None, version=1, scales="F16"):
    """`order`: the group of each column. Frantar et al. 2022, arXiv:2210.17323: w = scale * (q - zero)."""
    groups = 1 if group < 0 else -(-columns // group)
    of = order or [0 if group < 0 else c // group for c in range(columns)]
    q = [[chance.randrange(1 << bits) for _ in range(columns)] for _ in range(rows)]
    zero = [[chance.randrange(1 << bits) for _ in range(rows)] for _ in range(groups)]
    scale = drawn_scales(chance, groups, rows, scales)
    numbers = [f32(scale[of[c]][r] * (q[r][c] - zero[of[c]][r] - (version == 1)))
               for r in range(rows) for c in range(columns)]
    codes = turned([packed(line, bits) for line in q])
    zeros = [packed(line, bits) for line in zero]
    return {".qweight": ("I32", [len(codes), rows], words(codes)),
            ".qzeros": ("I32", [groups, len(zeros[0])], words(zeros)),
            ".scales": (scales, [groups, rows], stored(scales, flat(scale))),
            ".g_idx": ("I32", [columns], stored("I32", of))}, numbers


def awq(chance, rows, columns, group=32):
    """Lin et al. 2023, arXiv:2306.00978: w = scale * (q - zero)."""
    groups = columns // group
    q = [[chance.randrange(16) for _ in range(rows)] for _ in range(columns)]
    zero = [[chance.randrange(16) for _ in range(rows)] for _ in range(groups)]
    scale = drawn_scales(chance, groups, rows, "F16")

    def nibbles(line):
        return [sum(line[at + row] << 4 * i for i, row in enumerate(AWQ_ROWS)) for at in range(0, rows, 8)]

    numbers = [f32(scale[c // group][r] * (q[c][r] - zero[c // group][r])) for r in range(rows) for c in range(columns)]
    return {".qweight": ("I32", [columns, rows // 8], words(map(nibbles, q))),
            ".qzeros": ("I32", [groups, rows // 8], words(map(nibbles, zero))),
            ".scales": ("F16", [groups, rows], stored("F16", flat(scale)))}, numbers


def compressed(chance, rows, columns, bits=4, group=32, zeros=False, kind="BF16"):
    """`pack-quantized` of compressed-tensors; a group of -1 is a row."""
    groups, half = 1 if group < 0 else columns // group, 1 << bits - 1
    size = columns // groups
    q = [[chance.randrange(-half, half) for _ in range(columns)] for _ in range(rows)]
    zero = [[chance.randrange(-half, half) if zeros else 0 for _ in range(groups)] for _ in range(rows)]
    scale = drawn_scales(chance, rows, groups, kind)
    numbers = [ROUND[kind](scale[r][c // size] * (q[r][c] - zero[r][c // size]))
               for r in range(rows) for c in range(columns)]
    codes = [packed([x + half for x in line], bits) for line in q]
    made = {".weight_packed": ("I32", [rows, len(codes[0])], words(codes)),
            ".weight_scale": (kind, [rows, groups], stored(kind, flat(scale))),
            ".weight_shape": ("I64", [2], stored("I64", [rows, columns]))}
    if zeros:
        lines = turned([packed([x + half for x in line], bits) for line in turned(zero)])
        made[".weight_zero_point"] = ("I32", [len(lines), groups], words(lines))
    return made, numbers


def float_of_e4m3(code):
    exponent, fraction = code >> 3 & 15, code & 7
    size = fraction / 8 * 2.0 ** -6 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 7)
    return -size if code & 128 else size


def scaled(chance, rows, columns, block=(1, 0), codes="F8_E4M3", kind="F32", rounded="F32", suffix=".weight_scale",
           zeros=False):
    """Numbers of 8 bits, and a scale for each block; a block of 0 is all rows, or all columns."""
    height, width = block[0] or rows, block[1] or columns
    lines, across = -(-rows // height), -(-columns // width)
    q = [chance.randrange(256) for _ in range(rows * columns)]
    q = [0 if x & 127 == 127 and codes == "F8_E4M3" else x for x in q]
    zero = [[chance.randrange(-128, 128) if zeros else 0 for _ in range(across)] for _ in range(lines)]
    scale = drawn_scales(chance, lines, across, kind)
    numbers = []
    for i, code in enumerate(q):
        at = i // columns // height, i % columns // width
        value = float_of_e4m3(code) if codes == "F8_E4M3" else (code ^ 128) - 128 - zero[at[0]][at[1]]
        numbers.append(ROUND[rounded](f32(scale[at[0]][at[1]] * value)))
    made = {".weight": (codes, [rows, columns], bytes(q)), suffix: (kind, [lines, across], stored(kind, flat(scale)))}
    if zeros:
        made[".weight_zero_point"] = ("I8", [lines, across], stored("I8", flat(zero)))
    return made, numbers


def nf4(chance, rows, columns, block=64, nested=0, kind="bfloat16"):
    """Of bitsandbytes; `nested` scales share a scale of their own. Dettmers et al. 2023, arXiv:2305.14314."""
    count, rounded = rows * columns, ROUND[{"bfloat16": "BF16", "float16": "F16", "float32": "F32"}[kind]]
    blocks, q = -(-count // block), [chance.randrange(16) for _ in range(count + count % 2)]
    levels = sorted(f32(chance.uniform(-1, 1)) for _ in range(16))
    made = {".weight": ("U8", [len(q) // 2, 1], bytes(q[i] << 4 | q[i + 1] for i in range(0, len(q), 2))),
            ".weight.quant_map": ("F32", [16], stored("F32", levels))}
    about = '{"quant_type": "nf4", "blocksize": %d, "dtype": "%s", "shape": [%d, %d]' % (block, kind, rows, columns)
    if nested:
        codes = [chance.randrange(256) for _ in range(blocks)]
        outer = flat(drawn_scales(chance, 1, -(-blocks // nested), "F32"))
        inner = sorted(f32(chance.uniform(-1, 1)) for _ in range(256))
        scale = [f32(f32(inner[x] * outer[i // nested]) + f32(0.03125)) for i, x in enumerate(codes)]
        made.update({".weight.absmax": ("U8", [blocks], bytes(codes)),
                     ".weight.nested_absmax": ("F32", [len(outer)], stored("F32", outer)),
                     ".weight.nested_quant_map": ("F32", [256], stored("F32", inner))})
        about += ', "nested_blocksize": %d, "nested_dtype": "float32", "nested_offset": 0.03125' % nested
    else:
        scale = flat(drawn_scales(chance, 1, blocks, "F32"))
        made[".weight.absmax"] = ("F32", [blocks], stored("F32", scale))
    about = (about + "}").encode()
    made[".weight.quant_state.bitsandbytes__nf4"] = ("U8", [len(about)], about)
    return made, [rounded(f32(levels[q[i]] * scale[i // block])) for i in range(count)]


def llm_int8(chance, rows, columns):
    """Of bitsandbytes. Dettmers et al. 2022, arXiv:2208.07339: w = q * greatest / 127."""
    q = [chance.randrange(-127, 128) for _ in range(rows * columns)]
    greatest = flat(drawn_scales(chance, 1, rows, "F32"))
    return {".weight": ("I8", [rows, columns], stored("I8", q)), ".SCB": ("F32", [rows], stored("F32", greatest)),
            ".weight_format": ("U8", [], b"\0")}, [
                f32(f32(x * greatest[i // columns]) * f32(7.874015718698502e-3)) for i, x in enumerate(q)]


E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def mxfp4(chance, experts, rows, columns):
    """The codes and scales of GPT-OSS, and the numbers [experts][rows][columns]. OCP Microscaling Formats, version 1.0:
    a number of E2M1 times 2^(scale - 127), the scale for 32 columns; the lower half of a byte is the even column."""
    count = experts * rows * columns
    q, scale = [chance.randrange(16) for _ in range(count)], [chance.randrange(120, 130) for _ in range(count // 32)]
    blocks = ("U8", [experts, rows, columns // 32, 16], bytes(q[i] | q[i + 1] << 4 for i in range(0, count, 2)))
    return blocks, ("U8", [experts, rows, columns // 32], bytes(scale)), [
        E2M1[x] * 2.0 ** (scale[i // 32] - 127) for i, x in enumerate(q)]
