#!/usr/bin/env python3
"""`attnc check` fails where an output of the interpreter is the same for all inputs, since such a comparison shows
nothing; what is the same because the inputs are, or because there is one row or one column, passes. Speaks TAP."""
import array
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import safetensors  # noqa: E402
from lib.attnc import UNOPTIMIZED, attnc  # noqa: E402
from lib.tap import run_tests  # noqa: E402

LAYERS = "layers 1 { attention self { heads 1 }, ffn { d_ff 32 } }"
CLASSES = """model classes {
    d_model 16, vocab 20
    encoder { seq <= 8, position none, %s }
    head pool mean classifier 3
}
"""
PAIR = """model pair {
    d_model 16
    encoder { vocab %d, seq <= 8, position none, layers 1 { attention self { heads 2 }, ffn { d_ff 32 } } }
    decoder { vocab %d, seq <= 8, position none, layers 1 { attention self { heads 2, mask causal }
                                                            attention cross { heads 2 }, ffn { d_ff 32 } } }
    head logits
}
"""


class Constant:
    def __init__(self, folder):
        self.folder = folder

    def check(self, text, *words):
        path = os.path.join(self.folder, "spec.attn")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return attnc("check", path, "--target", "scalar", "--cc", UNOPTIMIZED, *words)

    def zeroed(self, text, part):
        """The weights of a spec with zeros in place of one of them."""
        path, spec = os.path.join(self.folder, "zeroed.safetensors"), os.path.join(self.folder, "spec.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write(text)
        attnc("weights", spec, "--weights", "random:3", "-o", path, status=0)
        header, data = safetensors.read(path)
        header.pop("__metadata__", None)
        assert part in header, list(header)
        safetensors.write(path, {
            name: (tensor["shape"], [0.0 if name == part else x
                                     for x in array.array("f", data[slice(*tensor["data_offsets"])])])
            for name, tensor in header.items()})
        return path

    def test_constant(self):
        """Classes that do not depend on the row that they are of, in f32 and in integers."""
        text = CLASSES % LAYERS
        weights = self.zeroed(text, "classifier.weight")
        for more in ((), ("--precision", "weights=int8,activations=int8")):
            done = self.check(text, "--weights", weights, *more)
            assert done.returncode == 1, done.stdout + done.stderr
            assert re.search(r"FAIL: the output `logits` is the same in all of \d+ rows, and the inputs differ",
                             done.stdout), done.stdout
            assert done.stdout.count("FAIL") == 1, done.stdout
        done = self.check(text, "--weights", self.zeroed(text, "encoder.layers.0.ffn.up.weight"))
        assert done.returncode == 0, done.stdout

    def test_dead_source(self):
        """Rows of the source that are all the same, although their tokens differ."""
        text = PAIR % (20, 20)
        part = "encoder.final_norm.weight"
        done = self.check(text, "--weights", self.zeroed(text, part))
        assert done.returncode == 1 and "the output `encoder_hidden` is the same" in done.stdout, done.stdout

    def test_legitimate(self):
        """A vocabulary of one, also of a source alone, a single row, a single sequence, and rows of one number."""
        one_row = "model row { d_model 16, vocab 20, encoder { seq = 1, position none, %s } }" % LAYERS
        narrow = "model narrow { d_model 1, vocab 20, norm layernorm pre, encoder { seq <= 8, position none, %s } }"
        for text in ((CLASSES % LAYERS).replace("vocab 20", "vocab 1"), PAIR % (1, 20), PAIR % (1, 1), one_row,
                     narrow % LAYERS):
            done = self.check(text)
            assert done.returncode == 0, text + done.stdout + done.stderr
        text = CLASSES % LAYERS
        weights = self.zeroed(text, "classifier.weight")
        done = self.check(text, "--weights", weights, "--lengths", "5")
        assert done.returncode == 0, done.stdout


if __name__ == "__main__":
    run_tests("constant", Constant)
