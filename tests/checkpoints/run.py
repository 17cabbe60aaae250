#!/usr/bin/env python3
"""Checkpoints of PyTorch, archives and older files: their numbers, folders that have them, and what is refused. The
files new.bin and old.bin are PyTorch's own; tests/unit compares them with both.safetensors. TAP on stdout."""
import json
import os
import pickle
import shutil
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import checkpoint, safetensors  # noqa: E402
from lib.attnc import TESTS, Failed, attnc  # noqa: E402
from lib.checkpoint import Call, Storage, archive, sequence, tensor  # noqa: E402
from lib.tap import run_tests  # noqa: E402

PARITY = os.path.join(TESTS, "parity")
DENSE = "2_Dense"


def floats(*numbers):
    return struct.pack("<%df" % len(numbers), *numbers)


def ones(key="0", count=6):
    return Storage(key, "F32", floats(*[1.0] * count))


class Exit:
    """What a hostile pickle would run."""

    def __reduce__(self):
        return os.system, ("exit 1",)


class Checkpoints:
    def __init__(self, folder):
        self.folder = folder
        self.path, self.spec, self.out = (os.path.join(folder, n) for n in ("m.bin", "m.attn", "out.safetensors"))
        with open(self.spec, "w", encoding="utf-8") as file:
            file.write("model m { d_model 2, encoder { seq <= 2, input features, layers 1 { attention self "
                       "{ heads 1 } } } }")

    def refused(self, data, *parts):
        with open(self.path, "wb") as file:
            file.write(data)
        done = attnc("weights", self.spec, "--weights", self.path, "-o", self.out, status=1)
        for part in (self.path, *parts):
            if part not in done.stderr:
                raise Failed("`%s` is not in: %s" % (part, done.stderr))
        if os.path.exists(self.out):
            raise Failed("a file is left behind")

    def copy(self, name, group="fixtures"):
        path = os.path.join(self.folder, name)
        shutil.rmtree(path, ignore_errors=True)
        return shutil.copytree(os.path.join(PARITY, group, name), path)

    def imported(self, folder, weights=None):
        """The spec and the weights that it reads."""
        spec, out = os.path.join(self.folder, "imported.attn"), os.path.join(self.folder, "imported.safetensors")
        attnc("import", folder, "-o", spec, status=0)
        attnc("weights", spec, "--weights", weights or folder, "-o", out, status=0)
        with open(spec, encoding="utf-8") as text, open(out, "rb") as data:
            return text.read(), data.read()

    def same(self, folder, wanted, *weights):
        spec, data = self.imported(folder, *weights)
        if spec != wanted[0]:
            raise Failed("the spec differs:\n" + spec)
        if data != wanted[1]:
            raise Failed("the weights differ")

    # ------------------------------------------------------------ folders

    def test_folders(self):
        """A folder with pytorch_model.bin is the folder with model.safetensors."""
        for name in ("bert_odd", "gpt2_odd", "llama_odd", "t5_odd"):
            for write in (archive, sequence, lambda made: archive(made, wide=True, prefix="x/"),
                          lambda made: archive(made, protocol=4)):
                folder = self.copy(name)
                wanted = self.imported(folder)
                checkpoint.convert(folder, write)
                self.same(folder, wanted)
                self.same(folder, wanted, os.path.join(folder, "pytorch_model.bin"))

    def test_shards(self):
        folder = self.copy("llama_odd")
        wanted = self.imported(folder)
        made = list(checkpoint.tensors_of(os.path.join(folder, "model.safetensors")).items())
        os.remove(os.path.join(folder, "model.safetensors"))
        index = {}
        for i, part in enumerate((made[::2], made[1::2])):
            name = "pytorch_model-0000%d-of-00002.bin" % (i + 1)
            index.update((key, name) for key, _ in part)
            with open(os.path.join(folder, name), "wb") as file:
                file.write(archive(dict(part)))
        with open(os.path.join(folder, "pytorch_model.bin.index.json"), "w", encoding="utf-8") as file:
            json.dump({"metadata": {}, "weight_map": index}, file)
        self.same(folder, wanted)

    def test_dense_module(self):
        folder = self.copy("tanh_odd", "sentences")
        spec, out = os.path.join(self.folder, "dense.attn"), []
        for _ in range(2):
            said = attnc("import", folder, "-o", spec, status=0).stderr
            weights = next(word for word in said.split() if DENSE in word)
            attnc("weights", spec, "--weights", weights, "-o", self.out, status=0)
            with open(self.out, "rb") as file:
                out.append(file.read())
            os.remove(self.out)
            if not weights.endswith("bin"):
                checkpoint.convert(os.path.join(folder, DENSE))
        if out[0] != out[1]:
            raise Failed("the weights differ")

    def test_gamma_and_beta(self):
        """Old checkpoints of BERT name the weight and the bias of a LayerNorm so."""
        folder = self.copy("bert_odd")
        data = self.imported(folder)[1]
        path = os.path.join(folder, "model.safetensors")
        with open(path, "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            header, body = json.loads(file.read(size)), file.read()
        renamed = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
                   for k, v in header.items()}
        with open(path, "wb") as file:
            file.write(safetensors.pack(renamed, body))
        if self.imported(folder)[1] != data:
            raise Failed("the weights differ")

    # ------------------------------------------------------------ tensors

    def test_views(self):
        """Transposed and partial tensors, several of one storage, a parameter, and dictionaries inside."""
        folder = self.copy("bert_odd")
        wanted = self.imported(folder)
        path = os.path.join(folder, "model.safetensors")
        header, data = safetensors.read(path)
        header.pop("__metadata__")
        os.remove(path)
        shared, made = Storage("all", "F32", data), {}
        for i, (name, entry) in enumerate(header.items()):
            begin, end = entry["data_offsets"]
            shape = entry["shape"]
            if i % 3 == 0 and len(shape) == 2:
                numbers = struct.unpack("<%df" % ((end - begin) // 4), data[begin:end])
                columns = [numbers[r * shape[1] + c] for c in range(shape[1]) for r in range(shape[0])]
                made[name] = tensor(Storage(i, "F32", floats(*columns)), shape, (1, shape[0]))
            else:
                made[name] = tensor(shared, shape, offset=begin // 4)
            if i % 4 == 1:
                made[name] = Call("torch._utils", "_rebuild_parameter", made[name], True, {})
        with open(os.path.join(folder, "pytorch_model.bin"), "wb") as file:
            file.write(archive({"bert": made, "epoch": 3, "rates": [0.5, None, (1, "a")], "count": 2**80, 7: True}))
        spec, data = self.imported(folder)
        if data != wanted[1] or 'prefix "bert."' not in spec:
            raise Failed("the weights differ")

    # ------------------------------------------------------------ refusals

    def test_hostile_pickles(self):
        self.refused(archive({"a": Exit()}), "it calls or names `posix.system`")
        self.refused(archive({}, pkl=b"\x80\x02cos\nsystem\n."), "`os.system`", "at byte")
        self.refused(archive({}, pkl=b"\x80\x02}(X\x01\0\0\0ai__main__\nC\n."), "opcode 0x69")
        self.refused(archive({}, pkl=pickle.dumps({"a": 1}, 0)), "opcode 0x70")
        for pkl, said in ((b"", "ends in the middle"), (b"\x80\x02", "ends in the middle"),
                          (b".", "a value is missing"),
                          (b"}}.", "with values on its stack"), (b"(.", "a value is missing"),
                          (b"t.", "a mark is missing"), (b"h\0.", "its memo lacks"), (b"NNs.", "a value is missing"),
                          (b"}(Nu.", "a key without a value"), (b"N(Ne.", "no list"), (b"}(s.", "a value is missing"),
                          (b"}(NNs.", "a value is missing"), (b"NNNs.", "no list"),
                          (b"})R.", "no function"), (b"N}b.", "no dictionary"),
                          (b"(\x85.", "a mark where"), (b"\x85.", "a value is missing"),
                          (b"NN\x93.", "whose name is no string"), (b"X\x04\0\0\0a\0bc.", "NUL"),
                          (b"X\xff\xff\xff\xff.", "ends in the middle"), (b"Nr\xff\xff\xff\xff.", "memo has more"),
                          (b"ccollections", "a line without an end"),
                          (b"ccollections\nOrderedDict\nN\x85R.", "OrderedDict of no list"),
                          (b"N.", "no dictionary of tensors"), (b"].", "no dictionary of tensors")):
            self.refused(archive({}, pkl=pkl), said)
        inside = {}
        inside["a"] = inside
        self.refused(archive(inside), "nested deeper than 16")
        doubled = {"a": tensor(ones(), (2, 3))}
        for _ in range(15):
            doubled = {"%d" % i: doubled for i in range(9)}
        self.refused(archive(doubled), "more often than its size allows")
        self.refused(archive({"a" * 5000: doubled}), "more than 4096 bytes")
        self.refused(archive({"a\x1b": tensor(ones(), (2, 3))}), "control character")

    def test_hostile_tensors(self):
        whole = ones()
        for made, said in ((tensor(whole, (7,)), "more than the 6 numbers"),
                           (tensor(whole, (6,), offset=1), "more than"),
                           (tensor(whole, (2, 3), offset=-1), "more than"), (tensor(whole, (2,), (6,)), "more than"),
                           (tensor(whole, (2**62, 4)), "overflows"), (tensor(whole, (3,), (2**62,)), "more than"),
                           (tensor(whole, (100,), (0,)), "more than"), (tensor(whole, (-1,)), "whole number"),
                           (tensor(whole, (2, 3), (1,)), "2 sizes and 1 strides"),
                           (tensor(whole, (1,) * 9), "at most 8"), (tensor(whole, ("a",)), "whole number"),
                           (tensor(Storage("0", "F32", floats(1), 2), (2,)), "has 4 bytes, and 2 numbers"),
                           (tensor(Storage("0", "F32", b"", 2**62), (1,)), "overflows"),
                           (tensor(Storage("0", "F32", b"", -1), (0,)), "not that of PyTorch"),
                           (Call("torch._utils", "_rebuild_tensor_v2", 1, 0, (1,), (1,)), "not described"),
                           (Call("torch._utils", "_rebuild_tensor_v2"), "not described")):
            self.refused(archive({"a": made}), "tensor `a`", said)
        self.refused(archive({"a": tensor(whole, (2, 3))}, without=("data/0",)), "lacks its storage `0`")
        many = {str(i): tensor(ones(count=4096), (64, 64), (1, 64)) for i in range(9)}
        self.refused(archive(many), "larger than the file")
        self.refused(sequence({"a": tensor(Storage("0", "F32", floats(1, 2), more=(1,)), (1,))}), "m.bin")

    def test_damaged_files(self):
        made = {"a": tensor(ones(), (2, 3)), "b": tensor(ones("1", 2), (2,))}
        for data in (archive(made), sequence(made), archive(made, wide=True)):
            for size in range(40, len(data) - 1, max(1, len(data) // 60)):
                self.refused(data[:size])
        self.refused(archive(made, compressed=True), "is compressed")
        self.refused(archive(made, order=b"big"), "not little-endian")
        self.refused(sequence(made, little=False), "not little-endian")
        self.refused(sequence(made, version=1000), "version 1001")
        self.refused(sequence(made, keys=["0"]), "lacks the storage `1`")
        self.refused(sequence(made, keys=["0", "2"]), "no tensor has")
        self.refused(archive(made, without=("data.pkl",)), "data.pkl is missing")
        data = bytearray(archive(made))
        at = data.rindex(b"PK\1\2")
        data[at + 8] |= 1
        self.refused(bytes(data), "is encrypted")


if __name__ == "__main__":
    sys.exit(run_tests("checkpoints", Checkpoints))
