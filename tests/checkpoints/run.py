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
from lib.checkpoint import Call, Storage, archive, named, sequence, tensor, typed  # noqa: E402
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

    def test_repeated_numbers(self):
        """Views of stride 0, and views whose rows overlap, as torch.load reads them."""
        folder = self.copy("llama_odd")
        path = os.path.join(folder, "model.safetensors")
        made = checkpoint.tensors_of(path)
        os.remove(path)

        def numbers(**views):
            with open(os.path.join(folder, "pytorch_model.bin"), "wb") as file:
                file.write(archive({**made, **{name.replace("_of_", "."): view for name, view in views.items()}}))
            return self.imported(folder)[1]

        header = safetensors.read(os.path.join(PARITY, "fixtures", "llama_odd", "model.safetensors"))[0]
        norm, matrix = "model.norm.weight", "model.layers.0.mlp.up_proj.weight"
        (d,), (rows, columns) = header[norm]["shape"], header[matrix]["shape"]
        runs = [0.25 * i - 1 for i in range(rows + columns)]
        for name, shape, strides, view, whole in (
                (norm, (d,), (0,), [0.5], [0.5] * d),
                (matrix, (rows, columns), (0, 0), [0.5], [0.5] * rows * columns),
                (matrix, (rows, columns), (1, 0), runs[:rows], [runs[r] for r in range(rows) for _ in range(columns)]),
                (matrix, (rows, columns), (0, 1), runs[:columns], runs[:columns] * rows),
                (matrix, (rows, columns), (1, 1), runs, [runs[r + c] for r in range(rows) for c in range(columns)])):
            key = name.replace(".", "_of_")
            viewed = numbers(**{key: tensor(Storage("v", "F32", floats(*view)), shape, strides)})
            if viewed != numbers(**{key: tensor(Storage("v", "F32", floats(*whole)), shape)}):
                raise Failed("%s with strides %s differs" % (name, strides))
        huge = tensor(Storage("v", "F32", floats(1)), (2**31, 2**29), (0, 0))
        numbers(buffer=huge)
        if os.path.getsize(os.path.join(folder, "pytorch_model.bin")) > 1 << 20:
            raise Failed("the file is not small")
        with open(os.path.join(folder, "pytorch_model.bin"), "wb") as file:
            file.write(archive({**made, matrix: huge}))
        done = attnc("import", folder, "-o", os.path.join(self.folder, "none.attn"), status=1)
        if matrix not in done.stderr or "repeats the 1 numbers" not in done.stderr:
            raise Failed(done.stderr)

    def test_types_that_nobody_reads(self):
        """A tensor of such a type is left out with a note, and refused with its name and type where it is needed."""
        folder = self.copy("llama_odd")
        path = os.path.join(folder, "model.safetensors")
        made, matrix = checkpoint.tensors_of(path), "model.layers.0.mlp.up_proj.weight"
        shape, wanted = safetensors.read(path)[0][matrix]["shape"], self.imported(folder)[1]
        os.remove(path)
        count = shape[0] * shape[1]
        odd = {"torch.ComplexFloatStorage": tensor(Storage("odd", "C64", bytes(8 * count)), shape),
               "torch.uint16": typed(Storage("odd", "BYTES", bytes(2 * count)), "uint16", shape),
               "torch.float8_e8m0fnu": typed(Storage("odd", "BYTES", bytes(count)), "float8_e8m0fnu", shape),
               "torch.float9_to_come": typed(Storage("odd", "BYTES", bytes(9 * count)), "float9_to_come", shape),
               "F8_E4M3": typed(Storage("odd", "BYTES", bytes(count)), "float8_e4m3fn", shape),
               "_rebuild_qtensor": Call("torch._utils", "_rebuild_qtensor", Storage("odd", "QI8", bytes(count)), 0,
                                        tuple(shape), (shape[1], 1), (named("torch", "per_tensor_affine"), 0.1, 0),
                                        False, {}),
               "_rebuild_sparse_tensor": Call("torch._utils", "_rebuild_sparse_tensor", named("torch", "strided"), ()),
               "dims": tensor(Storage("odd", "F32", floats(1)), (1,) * 9)}
        for said, value in odd.items():
            for write in (archive, sequence):
                with open(os.path.join(folder, "pytorch_model.bin"), "wb") as file:
                    file.write(write({**made, "spare": value, "kind": named("torch", "float16")}))
                if self.imported(folder)[1] != wanted:
                    raise Failed("the weights differ beside a tensor of %s" % said)
                with open(os.path.join(folder, "pytorch_model.bin"), "wb") as file:
                    file.write(write({**made, matrix: value}))
                done = attnc("import", folder, "-o", os.path.join(self.folder, "none.attn"), status=1)
                if "tensor `%s`" % matrix not in done.stderr or said not in done.stderr:
                    raise Failed(done.stderr)

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
                           (tensor(whole, (100, 2), (0, 6)), "more than"), (tensor(whole, (-1,)), "whole number"),
                           (tensor(whole, (2, 3), (1,)), "2 sizes and 1 strides"),
                           (tensor(whole, ("a",)), "whole number"),
                           (tensor(Storage("0", "F32", floats(1), 2), (2,)), "has 4 bytes, and 2 numbers"),
                           (tensor(Storage("0", "F32", b"", 2**62), (1,)), "overflows"),
                           (tensor(Storage("0", "F32", b"", -1), (0,)), "not that of PyTorch"),
                           (Call("torch._utils", "_rebuild_tensor_v2", 1, 0, (1,), (1,)), "not described"),
                           (Call("torch._utils", "_rebuild_tensor_v2"), "not described")):
            self.refused(archive({"a": made}), "tensor `a`", said)
        self.refused(archive({"a": tensor(whole, (2, 3))}, without=("data/0",)), "lacks its storage `0`")
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
