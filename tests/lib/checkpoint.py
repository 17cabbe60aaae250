"""Checkpoints of PyTorch (.bin, .pt), without the library: an archive, or the sequence that older versions wrote."""
import io
import os
import pickle
import struct
import sys
import types
import zipfile

from . import safetensors

STORAGES = {"F32": "FloatStorage", "F16": "HalfStorage", "BF16": "BFloat16Storage", "F64": "DoubleStorage",
            "I64": "LongStorage", "I32": "IntStorage", "I16": "ShortStorage", "I8": "CharStorage",
            "U8": "ByteStorage", "BOOL": "BoolStorage", "C64": "ComplexFloatStorage", "QI8": "QInt8Storage",
            "BYTES": "storage.UntypedStorage"}
MAGIC, VERSION = 0x1950a86a20f9469cfc6c, 1001


def named(module, name):
    """A function that a pickle names; the module need not exist."""
    for i in [i for i, c in enumerate(module) if c == "."]:
        sys.modules.setdefault(module[:i], types.ModuleType(module[:i]))
    place = sys.modules.setdefault(module, types.ModuleType(module))
    if not hasattr(place, name):
        def function(*_):
            raise TypeError(name)
        function.__module__, function.__qualname__, function.__name__ = module, name, name
        setattr(place, name, function)
    return getattr(place, name)


class Call:
    """What a pickle builds by calling the function with these arguments."""

    def __init__(self, module, name, *arguments):
        self.what = named(module, name), arguments

    def __reduce__(self):
        return self.what


class Storage:
    """Bytes that tensors are views of."""

    def __init__(self, key, dtype, data, count=None, more=()):
        self.key, self.dtype, self.data, self.more = str(key), dtype, data, more
        self.count = len(data) // safetensors.SIZES[dtype] if count is None else count


def by_rows(shape):
    strides, step = [], 1
    for dim in reversed(shape):
        strides.insert(0, step)
        step *= dim
    return tuple(strides)


def tensor(storage, shape, strides=None, offset=0):
    return Call("torch._utils", "_rebuild_tensor_v2", storage, offset, tuple(shape),
                by_rows(shape) if strides is None else tuple(strides), False, {})


def typed(storage, dtype, shape):
    """A tensor whose storage is one of bytes, as PyTorch writes tensors of newer types."""
    return Call("torch._utils", "_rebuild_tensor_v3", storage, 0, tuple(shape), by_rows(shape), False, {},
                named("torch", dtype))


class Pickler(pickle._Pickler):
    """The one in Python, since that in C asks the module whether a name is its own."""

    def __init__(self, file, protocol=2, old=False):
        super().__init__(file, protocol)
        self.storages, self.old = {}, old

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        self.storages[value.key] = value
        more = (None,) if self.old else ()
        module, _, name = ("torch." + STORAGES[value.dtype]).rpartition(".")
        return ("storage", named(module, name), value.key, "cpu", value.count) + more + value.more


def pickled(value, **options):
    """The bytes, and the storages that they name."""
    file = io.BytesIO()
    pickler = Pickler(file, **options)
    pickler.dump(value)
    return file.getvalue(), pickler.storages


def archive(value, order=b"little", pkl=None, compressed=False, without=(), wide=False, prefix="archive/", **options):
    """The bytes of an archive; `pkl` stands for the pickle of the value."""
    data, storages = pickled(value, **options)
    members = {"data.pkl": data if pkl is None else pkl, "byteorder": order}
    members.update(("data/" + key, storage.data) for key, storage in storages.items())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as whole:
        for name, content in {**members, "version": b"3\n"}.items():
            if name not in without:
                with whole.open(prefix + name, "w", force_zip64=wide) as member:
                    member.write(content)
    return file.getvalue()


def sequence(value, little=True, version=VERSION, keys=None):
    """The bytes of an older file."""
    machine = {"protocol_version": VERSION, "little_endian": little, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    data, storages = pickled(value, old=True)
    keys = sorted(storages) if keys is None else keys
    out = pickled(MAGIC)[0] + pickled(version)[0] + pickled(machine)[0] + data + pickled(keys)[0]
    return out + b"".join(struct.pack("<q", storages[k].count) + storages[k].data for k in keys if k in storages)


def tensors_of(path):
    """{name: tensor} of a safetensors file, each with a storage of its own."""
    header, data = safetensors.read(path)
    header.pop("__metadata__", None)
    return {name: tensor(Storage(i, entry["dtype"], data[slice(*entry["data_offsets"])]), entry["shape"])
            for i, (name, entry) in enumerate(header.items())}


def convert(folder, write=archive):
    """Replaces FOLDER/model.safetensors by pytorch_model.bin."""
    path = os.path.join(folder, "model.safetensors")
    with open(os.path.join(folder, "pytorch_model.bin"), "wb") as file:
        file.write(write(tensors_of(path)))
    os.remove(path)
