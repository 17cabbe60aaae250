#!/usr/bin/env python3
"""Writes by_hand.safetensors and numbers.h beside this file: the weights and the features of the exercise.

Usage: make_weights.py [FOLDER]"""
import json
import os
import struct
import sys

# Each row makes one number of a query, key or value out of the six of a feature.
WEIGHTS = {
    "query": [[1, 0, -1, 0, 2, 0], [0, 1, 0, 1, 0, -1], [1, 1, 0, 0, -1, 0]],
    "key": [[0, 1, 0, -1, 0, 1], [1, 0, 1, 0, -1, 0], [0, 0, 1, 1, 0, 0]],
    "value": [[2, 0, 0, 1, 0, 0], [0, 1, -1, 0, 1, 0], [1, 0, 0, 0, 0, 3]],
}
FEATURES = [[1, 0, 2, 0, 1, 0], [0, 1, 0, 1, 0, 1], [1, 1, 0, 0, 2, 0], [0, 2, 1, 1, 0, 1]]


def safetensors(tensors):
    header, data = {}, b""
    for name, rows in tensors.items():
        numbers = [number for row in rows for number in row]
        begin = len(data)
        data += struct.pack("<%df" % len(numbers), *numbers)
        header[name] = {"dtype": "F32", "shape": [len(rows), len(rows[0])], "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def table(name, rows):
    lines = ",\n".join("    {" + ", ".join(str(number) for number in row) + "}" for row in rows)
    return "static const float %s[%d][%d] = {\n%s,\n};\n" % (name, len(rows), len(rows[0]), lines)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    tensors = {"encoder.layers.0.attention.%s.weight" % name: rows for name, rows in WEIGHTS.items()}
    with open(os.path.join(folder, "by_hand.safetensors"), "wb") as out:
        out.write(safetensors(tensors))
    with open(os.path.join(folder, "numbers.h"), "w") as out:
        out.write("/* Made by make_weights.py. */\n")
        out.write("\n" + table("FEATURES", FEATURES))
        for name, rows in WEIGHTS.items():
            out.write("\n" + table(name.upper() + "_WEIGHT", rows))


main()
