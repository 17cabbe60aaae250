""".safetensors files, without the library."""
import array
import json
import os
import struct

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1,
         "C64": 8, "QI8": 1, "BYTES": 1}


def pack(header, data=b""):
    """The bytes of a file, whose header may say anything."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def write(path, tensors):
    """{name: (shape, numbers)}, as F32."""
    whole, data = {}, b""
    for name, (shape, numbers) in tensors.items():
        part = array.array("f", numbers).tobytes()
        whole[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    with open(path, "wb") as file:
        file.write(pack(whole, data))


def read(path):
    """The header, with its __metadata__, and the bytes behind it."""
    with open(path, "rb") as file:
        data = file.read()
    begin = 8 + struct.unpack_from("<Q", data)[0]
    return json.loads(data[8:begin]), data[begin:]


def split(folder, names):
    """Divides FOLDER/model.safetensors among files with an index, as transformers saves large models: `names` maps the
    list of tensors to lists of them, one a file."""
    path = os.path.join(folder, "model.safetensors")
    header, data = read(path)
    header.pop("__metadata__", None)
    index = {}
    for number, part in enumerate(names(list(header)), 1):
        file, own, body = "model-%d.safetensors" % number, {}, b""
        for name in part:
            begin, end = header[name]["data_offsets"]
            own[name] = {**header[name], "data_offsets": [len(body), len(body) + end - begin]}
            body += data[begin:end]
            index[name] = file
        with open(os.path.join(folder, file), "wb") as shard:
            shard.write(pack(own, body))
    with open(path + ".index.json", "w", encoding="utf-8") as file:
        json.dump({"metadata": {}, "weight_map": index}, file)
    os.remove(path)
