#!/usr/bin/env python3
"""`--precision P` on the commands: it is the precision of the blocks that state none, so that a command with it does
what it does with a spec that states the same, and what attnc does not have yet is refused. Speaks TAP."""
import concurrent.futures
import json
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from lib import npy, safetensors  # noqa: E402
from lib.attnc import COMPILERS, FIXTURES, QUICK, UNOPTIMIZED, attnc, run  # noqa: E402
from lib.tap import Skip, run_tests  # noqa: E402
from lib.targets import here  # noqa: E402
from lib.turns import has_turn, in_turn  # noqa: E402

SPEC = "specs/small_encoder.attn"
FORGED = """#include "small_encoder.h"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    (void)argc;
    void *weights = aligned_alloc(64, (SMALL_ENCODER_WEIGHTS_BYTES + 63) / 64 * 64);
    void *room = aligned_alloc(64, (SMALL_ENCODER_WORKSPACE_BYTES(1) + 63) / 64 * 64);
    FILE *file = fopen(argv[1], "rb");
    if (!file || fread(weights, 1, SMALL_ENCODER_WEIGHTS_BYTES, file) != SMALL_ENCODER_WEIGHTS_BYTES) return 2;
    small_encoder_ctx ctx;
    if (small_encoder_init(&ctx, weights, SMALL_ENCODER_WEIGHTS_BYTES, NULL)) return 3;
    const int lengths[] = {5}, tokens[] = {1, 2, 3, 4, 5};
    float hidden[5 * SMALL_ENCODER_HIDDEN_WIDTH];
    small_encoder_input input = {.size = sizeof input, .batch = 1, .lengths = lengths, .tokens = tokens};
    small_encoder_output output = {.size = sizeof output, .hidden = hidden};
    int status = small_encoder_forward(&ctx, &input, &output, room, SMALL_ENCODER_WORKSPACE_BYTES(1));
    fclose(file);
    free(weights);
    free(room);
    return status;
}
"""
INT8 = "--precision=weights=int8"


class Precision:
    def __init__(self, folder):
        self.folder = folder
        self.stated = self.spec("precision weights int8")

    def spec(self, line):
        """The spec with a line in its model."""
        with open(SPEC, encoding="utf-8") as file:
            text = re.sub(r"^(model \w+ \{)", r"\1\n    " + line, file.read(), flags=re.M)
        path = os.path.join(self.folder, re.sub(r"\W+", "_", line) + ".attn")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def outputs(self, name, *words):
        path = os.path.join(self.folder, name + ".npy")
        attnc("run", *words, "--weights", "random:3", "--in", "tokens=%s/ids.npy" % self.folder, "--out",
              "logits=" + path, status=0)
        with open(path, "rb") as file:
            return file.read()

    def test_commands(self):
        """A listing, the C and its weights, a packed file and outputs are those of a spec that states the precision."""
        npy.write(self.folder + "/ids.npy", range(9))
        assert attnc("weights", SPEC, INT8, status=0).stdout == attnc("weights", self.stated, status=0).stdout
        files = {}
        for name, words in (("given", (SPEC, INT8)), ("stated", (self.stated,)), ("plain", (SPEC,))):
            out = os.path.join(self.folder, name)
            attnc("compile", *words, "-o", out, "--target", "scalar", "--weights", "random:3", status=0)
            attnc("pack", *words, "-o", out + "/packed.attnw", "--weights", "random:3", status=0)
            files[name] = []
            for file in ("small_encoder.c", "small_encoder.h", "small_encoder.attnw", "packed.attnw"):
                with open(os.path.join(out, file), "rb") as opened:
                    files[name].append(re.sub(rb"attnc compile .*", b"", opened.read()))
            files[name] += [self.outputs(name, *words), self.outputs(name, *words, "--engine", "interp")]
        assert files["given"] == files["stated"]
        assert all(a != b for a, b in zip(files["given"], files["plain"]))
        done = attnc("pack", SPEC, "--weights", self.folder + "/given/packed.attnw", "--verify")
        assert done.returncode == 1 and "its weights are not F32" in done.stderr, done.stderr
        attnc("pack", SPEC, INT8, "--weights", self.folder + "/given/packed.attnw", "--verify", status=0)

    def test_embedded(self):
        """Weights that are no floats stand in the C to the byte."""
        path, out = self.spec("precision weights int8"), os.path.join(self.folder, "embedded")
        attnc("compile", path, "-o", out, "--target", "scalar", "--weights", "random:3", "--embed-weights", status=0)
        main, program = os.path.join(out, "main.c"), os.path.join(out, "main")
        with open(main, "w", encoding="utf-8") as file:
            file.write('#include "small_encoder.h"\n#include <stdio.h>\nint main(void) {\n'
                       "return fwrite(small_encoder_embedded(), 1, SMALL_ENCODER_WEIGHTS_BYTES, stdout) == 0;\n}\n")
        run(COMPILERS[0], "-std=c11", main, os.path.join(out, "small_encoder.c"), "-lm", "-o", program, status=0)
        attnc("pack", path, "--weights", "random:3", "-o", out + "/w.attnw", status=0)
        with open(out + "/w.attnw", "rb") as file:
            assert run(program, status=0, text=False).stdout == file.read()

    def test_forged_columns(self):
        """Numbers of outliers that no row has lead nowhere, although the weights are not verified."""
        path, out = self.spec("precision weights int8 activations int8 smooth outliers 3"), self.folder + "/forged"
        attnc("compile", path, "-o", out, "--target", "scalar", "--weights", "random:3", status=0)
        with open(os.path.join(out, "small_encoder.attnw"), "rb") as file:
            packed = file.read()
        three = rb"(?=" + 3 * rb"\0\0.[\x3f-\x42]" + rb"\0{52})"  # floats of whole numbers in a line
        found = [match.start() for match in re.finditer(three, packed, re.DOTALL) if match.start() % 64 == 0]
        assert len(found) >= 5, "%d rows of column numbers" % len(found)
        main, program = os.path.join(out, "main.c"), os.path.join(out, "main")
        with open(main, "w", encoding="utf-8") as file:
            file.write(FORGED)
        run(COMPILERS[0], "-std=c11", "-g", "-fsanitize=undefined,float-cast-overflow",
            "-fno-sanitize-recover=all", main, os.path.join(out, "small_encoder.c"), "-lm", "-o", program, status=0)
        for numbers in ((float("nan"), -1, 1e9), (float("inf"), float("-inf"), 32), (0, 31, 31.5)):
            forged = bytearray(packed)
            for at in found:
                struct.pack_into("<3f", forged, at, *numbers)
            with open(out + "/forged.attnw", "wb") as file:
                file.write(forged)
            run(program, out + "/forged.attnw", status=0)

    def test_check_and_bench(self):
        done = attnc("check", SPEC, INT8, "--lengths", "3", "--target", "scalar", "--bits", status=0).stdout
        stated = attnc("check", self.stated, "--lengths", "3", "--target", "scalar", "--bits", status=0).stdout
        plain = attnc("check", SPEC, "--lengths", "3", "--target", "scalar", "--bits", status=0).stdout
        bits = [re.search(r"^bits scalar (\w+)$", text, re.M).group(1) for text in (done, stated, plain)]
        assert bits[0] == bits[1] != bits[2], bits
        sizes = []
        for words in ((SPEC,), (SPEC, INT8)):
            done = attnc("explain", *words, status=0).stdout
            sizes.append(re.search(r"^weights +(\S+ \S+)", done, re.M).group(1))
        assert sizes[0] != sizes[1], sizes
        assert '"seq"' in attnc("bench", SPEC, INT8, "--json", status=0).stdout

    def test_unrolled(self):
        """Code without a loop rounds as code with loops does, and its steps are looked into in the same way."""
        some = in_turn(["int8", "bf16", "int4", "weights=int8:32,activations=int8", "cache=int8",
                        "weights=int4:32:offset,activations=int8", "weights=int8,activations=int8:smooth",
                        "weights=int8,activations=int8:smooth:3", "weights=int4:64,activations=int8:smooth:1",
                        "weights=int4:32:halves,activations=int8"], 5)
        for precision in some:
            for spec in ("specs/by_hand.attn", "tests/differential/unrolled_pair.attn"):
                done = attnc("check", spec, "--precision", precision, "--cc", UNOPTIMIZED, status=0).stdout
                assert "elements within the bound" in done, done
                out = self.folder + "/unrolled"
                attnc("compile", spec, "--precision", precision, "-o", out, "--target", "scalar,avx2,avx512vnni,neon",
                      status=0)
                with open(os.path.join(out, os.path.basename(spec)[:-5] + ".c"), encoding="utf-8") as file:
                    assert not re.search(r"^\s*(for|while|do)\b", file.read(), re.M), (spec, precision)

    def test_largest_sums(self):
        """Groups of codes of 255 times integers of -8: what sums them in few bits has room for them."""
        path, weights = self.folder + "/largest.attn", self.folder + "/largest.safetensors"
        npy.write(self.folder + "/ones.npy", [1.0] * 3 * 256, (3, 256), "<f4")
        rows = [[-7 / 16 if k % 128 == 1 else 8 / 16 for k in range(256)] for _ in range(16)]
        safetensors.write(weights, {"encoder.layers.0.ffn.up.weight": ((16, 256), sum(rows, [])),
                                    "encoder.layers.0.ffn.down.weight": ((256, 16), [1 / 16] * 256 * 16)})
        for stated in ("int4 32", "int4 64", "int4 128", "int4 128 offset", "int8", "int8 128", "int8 halves",
                       "int4 32 offset halves"):
            with open(path, "w", encoding="utf-8") as file:
                file.write("model largest { d_model 256, norm none, final_norm no\n"
                           "    precision weights %s activations int8\n"
                           "    encoder { input features, seq <= 3, position none\n"
                           "        layers 1 { ffn { d_ff 16, activation relu, bias none, residual no } } } }\n"
                           % stated)
            found = []
            for engine in ("interp", *here()):
                words = ("--engine", engine) if engine == "interp" else ("--target", engine)
                attnc("run", path, "--weights", weights, "--in", "features=%s/ones.npy" % self.folder, "--out",
                      "hidden=%s/largest.npy" % self.folder, *words, status=0, env={"CC": UNOPTIMIZED})
                found.append(npy.read(self.folder + "/largest.npy")[1])
            for engine, numbers in zip(here(), found[1:]):
                worst = max(abs(a - b) for a, b in zip(numbers, found[0]))
                assert worst <= 2e-5 * (1 + max(map(abs, found[0]))), (stated, engine, worst, found[0][:2])
            assert min(found[0]) > 100, found[0][:2]

    def test_inner_stays(self):
        """What a block of the spec states holds against the command line."""
        path = self.spec("precision weights bf16")
        for words in ((), (INT8,)):
            text = attnc("weights", path, *words, status=0).stdout
            assert " BF16" in text and " I8" not in text, text

    def test_presets(self):
        """A word for several parts is the model of these parts."""
        for word, parts, stated in (
                ("bf16", "weights=bf16,activations=bf16,attention=bf16",
                 "weights bf16 activations bf16 attention bf16"),
                ("int8", "weights=int8,activations=int8,attention=bf16",
                 "weights int8 activations int8 attention bf16"), ("int4", "weights=int4:32", "weights int4")):
            models = ((SPEC, "--precision", word), (SPEC, "--precision", parts), (self.spec("precision " + stated),))
            texts = [attnc("explain", *words, status=0).stdout for words in models]
            texts = [re.sub("(?m)^roofline .*", "", text) for text in texts]
            assert texts[0] == texts[1] == texts[2], texts
            assert bool(re.search("query_key_value .* to BF16", texts[0])) == (word != "int4"), texts[0]

    def test_refused(self):
        for value, status, part in (
                ("weights=int4:33", 2, "is no type of weights"), ("weights=int4:", 2, "is no type"),
                ("weights=int8:32:offset", 2, "is no type"), ("weights=int4:32:offsets", 2, "is no type"),
                ("weights=int8:halves", 2, "is no type"), ("weights=int4:32:halves:offset", 2, "is no type"),
                ("weights=int8,activations=int8:smooth:0", 2, "no type of activations"),
                ("weights=int8,activations=int8:smooth:15", 2, "no type of activations"),
                ("weights=int8,activations=int8:smooth:3x", 2, "no type of activations"),
                ("weights=int8,activations=int8:smoother", 2, "no type of activations"),
                ("weights=f32:32", 2, "is no type"), ("activations=int4", 3, "not supported yet"),
                ("activations=f16", 3, "not supported yet"), ("weights=int8,cache=int4", 2, "no type of cache"),
                ("weights=int8,attention=f16", 3, "not supported yet"), ("attention=int4", 2, "no type of attention"),
                ("fp8", 2, "is not f32, bf16, int8, int4 or PART=TYPE"), ("weights", 2, "is not f32"),
                ("weights=", 2, "no type of weights"), ("weights=int9", 2, "no type of weights"),
                ("head=f32", 2, "no part of a model"), ("weights=f32,", 2, "is not PART=TYPE"),
                ("weights=f32,weights=f32", 2, "twice"), ("", 2, "is not f32")):
            done = attnc("weights", SPEC, "--precision", value)
            fine = done.returncode == status and part in done.stderr
            assert fine, "%r: %d: %s" % (value, done.returncode, done.stderr)
        for value in ("int4", "weights=int4:128:offset", "weights=int8:64,activations=int8", "f32", "weights=f32",
                      "weights=bf16,activations=f32,attention=f32,cache=f32",
                      "cache=bf16", "cache=f16", "weights=int8,cache=int8", "weights=int8,activations=int8:smooth:14",
                      "bf16", "int8", "attention=bf16", "weights=int8,attention=int8",
                      "weights=bf16,activations=bf16"):
            attnc("weights", SPEC, "--precision", value, status=0)

    def drawn(self, spec, weights, seed):
        """160 tokens that the model draws in f32, the same on every processor with a fused multiply-add."""
        path = os.path.join(self.folder, "drawn%d.npy" % seed)
        attnc("generate", spec, "--weights", weights, "--ignore-eos", "--max-new", "159", "--temperature", "1",
              "--seed", str(seed), "--reproducible", "--out", "tokens=" + path, status=0,
              env={"CC": UNOPTIMIZED, "ATTNC_KEPT": self.folder})
        return npy.read(path)

    def test_perplexity(self):
        """How much worse stories of 260,000 weights predict 24 texts that they draw themselves. The standard deviation
        of the means is 1 % for int4."""
        model = os.path.join(FIXTURES, "models", "stories260K")
        if not FIXTURES or not os.path.exists(model):
            raise Skip("there is no stories260K in $ATTNC_FIXTURES")
        if QUICK or not has_turn("perplexity", 3):
            raise Skip("every third commit; ATTNC_LONG=1 runs it")
        spec, weights = self.folder + "/stories.attn", model + "/model.safetensors"
        attnc("import", model, "-o", spec, status=0)
        with open(spec, encoding="utf-8") as file:
            text = file.read()
        mixed = self.folder + "/mixed.attn"
        with open(mixed, "w", encoding="utf-8") as file:
            file.write(text.replace("decoder {", "decoder { precision weights int8", 1)
                       .replace("attention self {", "attention self { precision weights int4 32 offset,")
                       .replace("ffn {", "ffn { precision weights int4 32 offset,"))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            texts = list(pool.map(lambda seed: self.drawn(spec, weights, seed), range(1, 25)))
        tokens = npy.write(self.folder + "/drawn.npy", [token for text in texts for token in text.numbers], (24, 160))
        for path, precision, most in ((spec, "int8", 0.003), (spec, "int4", 0.11), (mixed, "f32", 0.06)):
            done = attnc("compare", path, "--weights", weights, "--in", "tokens=" + tokens, "--precision", precision,
                         "--json", status=0)
            logits = json.loads(done.stdout)["precisions"][0]["logits"]
            worse = logits["perplexity"] / logits["perplexity_f32"] - 1
            assert -0.01 < worse <= most, "%s in %s: %s" % (path, precision, logits)


if __name__ == "__main__":
    run_tests("precision", Precision)
