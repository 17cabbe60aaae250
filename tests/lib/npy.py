"""C-ordered little-endian .npy files, without numpy."""
import array
import ast
import math
import struct
import typing

# The dtypes of .npy, and the codes that array.array has for them; bool is read as bytes.
CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|u1": "B", "|b1": "B"}


class Array(typing.NamedTuple):
    """`numbers` are in C order, as many as the product of `shape`."""
    shape: tuple
    numbers: array.array

    def rows(self):
        """Nested lists, one inside another for each dimension but the last, which is an array.array."""
        if len(self.shape) == 1:
            return self.numbers
        width = math.prod(self.shape[1:])
        return [Array(self.shape[1:], self.numbers[i * width:(i + 1) * width]).rows() for i in range(self.shape[0])]


def header(descr, shape, version=1, align=64):
    """The magic, the version and the dictionary of a file; `align` is what its length is a multiple of."""
    text = repr({"descr": descr, "fortran_order": False, "shape": tuple(shape)}).encode()
    form = "<H" if version == 1 else "<I"
    text += b" " * (-(8 + struct.calcsize(form) + len(text) + 1) % align) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack(form, len(text)) + text


def write(path, numbers, shape=None, descr="<i4"):
    """Numbers in C order, of one dimension without `shape`; the path."""
    data = array.array(CODES[descr], list(numbers)).tobytes()
    with open(path, "wb") as file:
        file.write(header(descr, (len(numbers),) if shape is None else shape) + data)
    return path


def read(path):
    """An Array."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:6] != b"\x93NUMPY":
        raise ValueError("%s is no .npy file" % path)
    wide = data[6] > 1
    size = struct.unpack_from("<I" if wide else "<H", data, 8)[0]
    begin = (12 if wide else 10) + size
    said = ast.literal_eval(data[begin - size:begin].decode("latin1"))
    if said["fortran_order"]:
        raise ValueError("%s is in Fortran's order" % path)
    numbers = array.array(CODES[said["descr"]])
    numbers.frombytes(data[begin:])
    if len(numbers) != math.prod(said["shape"]):
        raise ValueError("%s has %d numbers, and the shape %s" % (path, len(numbers), said["shape"]))
    return Array(said["shape"], numbers)
