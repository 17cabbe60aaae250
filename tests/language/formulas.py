"""The page's formulas against the interpreter."""
import math
import os
import re

from lib import safetensors
from lib.attnc import ROOT
from model import Model, draw, flat, near
from page import Around, Matrix, Row

NOTHING = "layers 1 { ffn { d_ff 1, norm none } }"  # with its weights at 0, rows pass as they are
STILL = {"encoder.layers.0.ffn.down.weight": [[0.0]] * 6, "encoder.layers.0.ffn.down.bias": [0.0] * 6}


class Formulas:
    def __init__(self, folder, page):
        self.folder, self.page = folder, page

    def model(self, spec, chosen=None):
        return Model(self.folder, spec, chosen)

    def still(self, settings, model=""):
        """An encoder of width 6 whose only layer does nothing: its hidden rows are its embedding."""
        return self.model("model t { d_model 6, vocab 11\n%s\nencoder { seq <= 9\n%s\n%s } }"
                          % (model, settings, NOTHING), STILL)

    def rows(self, m, count, width=6):
        return [Row(row) for row in draw(m.dice, count, width)]

    # ------------------------------------------------------------ embedding and position

    def test_embedding(self):
        m = self.still("segments 3, position learned offset 2, embedding scale 2.5")
        ids, segments = [3, 0, 10, 3], [1, 2, 0, 1]
        table = m.weight("encoder.embedding.positions.weight")
        f = self.page.formulas("embedding", tokens=m.weight("encoder.embedding.tokens.weight"), scale=2.5,
                               segment_table=m.weight("encoder.embedding.segments.weight"),
                               position_row=lambda t: table[t + 2])
        wanted = [f["row"](i, g, t) for t, (i, g) in enumerate(zip(ids, segments))]
        near(m.outputs("hidden", {"tokens": ids, "segments": segments})[0], wanted, "embedding")
        near(m.outputs("hidden", {"tokens": ids})[0], [f["row"](i, 0, t) for t, i in enumerate(ids)], "no segments")

    def test_embedding_factor(self):
        m = self.still("embedding factor 4 normalized, norm layernorm eps 0.5")
        names = {"eps": 0.5, "weight": m.weight("encoder.embedding.norm.weight"),
                 "bias": m.weight("encoder.embedding.norm.bias")}
        table = m.weight("encoder.embedding.tokens.weight")
        wanted = [m.linear("encoder.embedding.projection", self.page.meaning("norm", "layernorm", {"x": table[i],
                                                                                                   **names}))
                  for i in (7, 0, 4)]
        near(m.outputs("hidden", {"tokens": [7, 0, 4]})[0], wanted, "embedding factor normalized")

    def test_patches(self):
        spec = "model t { d_model 6\nencoder { input patches image 4 width 6 patch 2 class distillation\n%s } }"
        m = self.model(spec % NOTHING, STILL)
        pixels = draw(m.dice, 3, 4, 6)
        f = self.page.formulas("patches", p=2, s=2, pixels=pixels)
        wanted = [m.weight("encoder.embedding.class_token"), m.weight("encoder.embedding.distillation_token")]
        for line in range(2):
            for column in range(3):
                square = Row(f["square"](line, column, c, y, x) for c in range(3) for y in range(2) for x in range(2))
                wanted.append(m.linear("encoder.embedding.patches", square))
        near(m.outputs("hidden", {"pixels": pixels})[0], wanted, "patches")
        m = self.model(spec.replace("class distillation", "no_bias") % NOTHING, STILL)
        squares = [Row(f["square"](i // 3, i % 3, c, y, x) for c in range(3) for y in range(2) for x in range(2))
                   for i in range(6)]
        matrix = m.weight("encoder.embedding.patches.weight")
        near(m.outputs("hidden", {"pixels": pixels})[0], [Row(sum(a * b for a, b in zip(row, square)) for row in matrix)
                                                            for square in squares], "patches no_bias")
        spec = "model t { d_model 6\nencoder { input patches image 6 width 8 channels 2 patch 3 stride 2\n%s } }"
        m = self.model(spec % NOTHING, STILL)
        pixels = draw(m.dice, 2, 6, 8)
        f = self.page.formulas("patches", p=3, s=2, pixels=pixels)
        wanted = [m.linear("encoder.embedding.patches", Row(
            f["square"](line, column, c, y, x) for c in range(2) for y in range(3) for x in range(3)))
                  for line in range(2) for column in range(3)]
        near(m.outputs("hidden", {"pixels": pixels})[0], wanted, "patches stride")

    def test_convolution(self):
        spec = ("model t { d_model 6\nencoder { input mel bins 4 frames 7\n"
                "convolution { kernel 3 no_bias, channels 5 }\n"
                "convolution { kernel 5 stride 2, activation gelu }\n%s } }")
        m = self.model(spec % NOTHING, STILL)
        mel = draw(m.dice, 4, 7)
        rows = [[mel[c][i] for c in range(4)] for i in range(7)]
        for layer, (kernel, stride, kind) in enumerate(((3, 1, "relu"), (5, 2, "gelu"))):
            # x may be asked for the rows in front of the first and behind the last one
            f = self.page.formulas("convolution", kernel=kernel, stride=stride, x=Around(rows))
            name, wanted = "encoder.embedding.convolutions.%d" % layer, []
            for i in range((len(rows) - 1) // stride + 1):
                flat = Row(f["window"](i, c, j) for c in range(len(rows[0])) for j in range(kernel))
                wide = m.linear(name, flat) if layer else Row(sum(a * b for a, b in zip(row, flat))
                                                             for row in m.weight(name + ".weight"))
                wanted.append([self.page.meaning("activation", kind, {"x": x}) for x in wide])
            rows = wanted
        near(m.outputs("hidden", {"mel": mel})[0], rows, "convolution")

    def test_convolution_beside(self):
        m = self.still("norm layernorm eps 0.5, embedding normalized\n"
                       "convolution { kernel 3 groups 2, activation silu }")
        norms = [{"eps": 0.5, "weight": m.weight(of + ".weight"), "bias": m.weight(of + ".bias")}
                 for of in ("encoder.embedding.norm", "encoder.convolution_norm")]
        normed = [lambda x, names=names: self.page.meaning("norm", "layernorm", {"x": x, **names}) for names in norms]
        table = m.weight("encoder.embedding.tokens.weight")
        ids = (7, 0, 4, 4, 9)
        rows = [normed[0](table[i]) for i in ids]
        f = self.page.formulas("convolution", kernel=3, stride=1, x=Around(rows))
        weight, bias, wanted = m.weight("encoder.convolution.weight"), m.weight("encoder.convolution.bias"), []
        for i, row in enumerate(rows):
            wide = []
            for group in range(2):
                flat = Row(f["window"](i, c, j) for c in range(3 * group, 3 * group + 3) for j in range(3))
                wide += [sum(a * b for a, b in zip(w, flat)) + b for w, b in zip(weight[group], bias[group])]
            convolved = Row(self.page.meaning("activation", "silu", {"x": x}) for x in wide)
            wanted.append(self.page.formulas("beside", x=Row(row), convolved=convolved, norm=normed[1])["x_next"])
        near(m.outputs("hidden", {"tokens": list(ids)})[0], wanted, "convolution beside")

    # ------------------------------------------------------------ norms, blocks, ffn

    def test_norms(self):
        for words, kind, plus in (("layernorm eps 0.25", "layernorm", 0), ("rmsnorm eps 0.5", "rmsnorm", 0),
                                  ("rmsnorm plus_one eps 1e-6", "rmsnorm", 1),
                                  ("layernorm no_bias plus_one", "layernorm", 1)):
            m = self.still("input features, embedding normalized, norm %s" % words)
            given = self.rows(m, 5)
            eps = float(words.split("eps ")[1]) if "eps" in words else float(self.page.table("norm")["eps"][2])
            names = {"eps": eps, "weight": m.weight("encoder.embedding.norm.weight") + plus,
                     "bias": m.weight("encoder.embedding.norm.bias") if "encoder.embedding.norm.bias" in m.shapes
                     else 0}
            wanted = [self.page.meaning("norm", kind, {"x": x, **names}) for x in given]
            near(m.outputs("hidden", {"features": given})[0], wanted, "norm " + words)

    def norm(self, m, stem):
        """layernorm, with the page's default eps."""
        names = {"eps": float(self.page.table("norm")["eps"][2]), "weight": m.weight(stem + ".weight"),
                 "bias": m.weight(stem + ".bias")}
        return lambda x: self.page.meaning("norm", "layernorm", {"x": x, **names})

    def ffn(self, m, stem, gated=False, activation="relu"):
        names = {"f": lambda x: Row(self.page.meaning("activation", activation, {"x": v}) for v in x)}
        for part in ("up", "down") + (("gate",) if gated else ()):
            names[part] = m.weight("%s.%s.weight" % (stem, part))
            names[part + "_bias"] = m.weight("%s.%s.bias" % (stem, part))
        return self.page.formulas("ffn", **names)["gated" if gated else "plain"]

    def test_activations(self):
        kinds = [word for word in self.page.table("activation") if word not in ("gated", "limit", "plus_one", "=")]
        with open(os.path.join(ROOT, "compiler/model/activations.def"), encoding="utf-8") as file:
            assert kinds == re.findall(r"^ACTIVATION\((\w+),", file.read(), re.M), str(kinds)
        one = [[float(i == j) for j in range(6)] for i in range(6)]
        for kind in [*kinds, "= x*sigmoid(2*x) - abs(x)/8"]:
            m = self.model("model t { d_model 6\nencoder { seq <= 9, input features\n"
                           "layers 1 { ffn { d_ff 6, activation %s, bias none, norm none, residual no } } } }" % kind,
                           {"encoder.layers.0.ffn.up.weight": one, "encoder.layers.0.ffn.down.weight": one})
            given = self.rows(m, 5) + [Row([-30.0, 0.0, 30.0, 1e-3, -5.0, 5.0])]
            wanted = [Row(self.page.meaning("activation", kind, {"x": v}) if kind in kinds else
                          v / (1 + math.exp(-2 * v)) - abs(v) / 8 for v in x) for x in given]
            near(m.outputs("hidden", {"features": given})[0], wanted, "activation " + kind)

    def test_gated(self):
        m = self.model("model t { d_model 6\nencoder { seq <= 9, input features\n"
                       "layers 1 { ffn { d_ff 8, activation silu gated, norm none, residual no } } } }")
        given = self.rows(m, 4)
        f = self.ffn(m, "encoder.layers.0.ffn", True, "silu")
        near(m.outputs("hidden", {"features": given})[0], [f(x) for x in given], "gated")

    def test_limited(self):
        for words, limit, one in (("limit 0.5 plus_one", 0.5, 0.0), ("limit 0.5", 0.5, -1.0), ("plus_one", 1e9, 0.0)):
            m = self.model("model t { d_model 6\nencoder { seq <= 9, input features\nlayers 1 { ffn { d_ff 8\n"
                           "activation quick_gelu gated %s, norm none, residual no } } } }" % words)
            f = self.page.formulas("limited", L=limit,
                                   f=lambda v: self.page.meaning("activation", "quick_gelu", {"x": v}))
            given, stem, wanted = self.rows(m, 4), "encoder.layers.0.ffn.", []
            for x in given:
                gate, up = m.linear(stem + "gate", x), m.linear(stem + "up", x)
                bounded = [f["limited"](g, u) + one * f["limited"](g, limit) / (limit + 1) for g, u in zip(gate, up)]
                wanted.append(m.linear(stem + "down", Row(bounded)))
            near(m.outputs("hidden", {"features": given})[0], wanted, "activation gated " + words)

    def expert(self, m, stem, e):
        """Expert number e as a function of a row, by the page's formula of an ffn."""
        names = {"f": lambda x: Row(self.page.meaning("activation", "silu", {"x": v}) for v in x)}
        for part in ("up", "down", "gate"):
            names[part] = Matrix(m.values["%s.experts.%s.weight" % (stem, part)][e])
            names[part + "_bias"] = Row(m.values["%s.experts.%s.bias" % (stem, part)][e])
        return self.page.formulas("ffn", **names)["gated"]

    def mixture(self, m, x, words, scale=1.0, kept=None):
        """The page's formulas of a row: `words` are those of the router, `kept` the experts of the chosen groups."""
        stem, every = "encoder.layers.0.ffn", range(6)
        logits = m.linear(stem + ".router", x)
        correction = m.values[stem + ".router.correction"] if "corrected" in words else [0.0] * 6
        names = {"logit": lambda e: logits[e], "experts": every, "correction": correction, "scale": scale,
                 "expert": lambda e, row: self.expert(m, stem, e)(row)}
        score = self.page.formulas("experts", **names)["sigmoid" if "sigmoid" in words else "softmax"]
        value = self.page.formulas("experts", score=score, **names)["value"]
        best = sorted(kept(value) if kept else every, key=lambda e: (-value(e), e))[:2]
        known = self.page.formulas("experts", score=score, chosen=best, **names)
        gate = known["renormalized" if "renormalized" in words else "gate"]
        total = Row([0.0] * len(x))
        for e in best:
            total = total + names["expert"](e, x) * gate(e)
        return total

    def test_experts(self):
        def best_groups(value):
            sums = [sum(sorted((value(e) for e in range(g, g + 2)))) for g in (0, 2, 4)]
            worst = min(range(3), key=lambda g: (sums[g], -g))
            return [e for e in range(6) if e // 2 != worst]
        for words in ("softmax", "softmax renormalized", "sigmoid", "sigmoid corrected renormalized scale 2.5",
                      "softmax corrected bias", "sigmoid renormalized groups 3 top_groups 2"):
            m = self.model("model t { d_model 6\nencoder { seq <= 9, input features\nlayers 1 { ffn { d_ff 8\n"
                           "activation silu gated, norm none, residual no, experts 6, top 2, router %s } } } }" % words)
            given, kept = self.rows(m, 9), best_groups if "groups" in words else None
            scale = 2.5 if "scale" in words else 1.0
            near(m.outputs("hidden", {"features": given})[0],
                 [self.mixture(m, x, words, scale, kept) for x in given], "experts, router " + words)

    def test_shared_expert(self):
        m = self.model("model t { d_model 6\nencoder { seq <= 9, input features\nlayers 1 { ffn { d_ff 8\n"
                       "activation silu gated, norm none, residual no, experts 6, top 2, shared_expert 5 gated } } } }")
        given, stem = self.rows(m, 4), "encoder.layers.0.ffn"
        shared = self.ffn(m, stem + ".shared", True, "silu")
        wanted = []
        for x in given:
            share = 1 / (1 + math.exp(-(m.weight(stem + ".shared.router.weight") @ x)[0]))
            wanted.append(self.mixture(m, x, "softmax") + shared(x) * share)
        near(m.outputs("hidden", {"features": given})[0], wanted, "shared_expert")

    def test_norm_places(self):
        for place in ("none", "pre", "post", "after", "both"):
            m = self.model("model t { d_model 6\nencoder { seq <= 9, input features, final_norm no\n"
                           "layers 1 { ffn { d_ff 8, norm %s } } } }" % place)
            stem, given = "encoder.layers.0.ffn.", self.rows(m, 4)
            names = {"f": self.ffn(m, "encoder.layers.0.ffn")}
            for side, words in (("norm_in", ("n", "n1")), ("norm_out", ("n", "n2"))):
                if stem + side + ".weight" in m.shapes:
                    names.update({word: self.norm(m, stem + side) for word in words})
            wanted = [self.page.meaning("norm", place, {"x": x, **names}) for x in given]
            near(m.outputs("hidden", {"features": given})[0], wanted, "norm " + place)

    def test_residual(self):
        for words, option in (("yes", "yes"), ("no", "no"), ("scale 0.25", "scale"), ("scale 0.25 learned", "learned")):
            m = self.model("model t { d_model 6\nencoder { seq <= 9, input features\n"
                           "layers 1 { ffn { d_ff 8, norm none, residual %s } } } }" % words)
            names, given = {"f": self.ffn(m, "encoder.layers.0.ffn"), "s": 0.25}, self.rows(m, 4)
            if option == "learned":
                f, learned = names["f"], m.weight("encoder.layers.0.ffn.residual.weight")
                names.update(g=1, f=lambda x: Row(a * b for a, b in zip(learned, f(x))))
            wanted = [self.page.meaning("residual", option, {"x": x, **names}) for x in given]
            near(m.outputs("hidden", {"features": given})[0], wanted, "residual " + words)

    def test_final_norm(self):
        m = self.model("model t { d_model 6\nencoder { seq <= 9, input features\nlayers 1 { ffn { d_ff 8 } } } }")
        given, stem = self.rows(m, 4), "encoder.layers.0.ffn"
        f, n, last = self.ffn(m, stem), self.norm(m, stem + ".norm_in"), self.norm(m, "encoder.final_norm")
        near(m.outputs("hidden", {"features": given})[0], [last(x + f(n(x))) for x in given], "final_norm")

    def test_parallel(self):
        for words in ("parallel", "parallel shared_norm"):
            m = self.model("model t { d_model 6\nencoder { seq <= 9, input features, final_norm no, block %s\n"
                           "layers 1 { attention self { heads 2 }, ffn { d_ff 8 } } } }" % words)
            stem, given = "encoder.layers.0.", self.rows(m, 4)
            first = self.norm(m, stem + "attention.norm_in")
            second = first if "shared" in words else self.norm(m, stem + "ffn.norm_in")
            assert ("shared" in words) == (stem + "ffn.norm_in.weight" not in m.shapes), "another norm"
            rows = [first(x) for x in given]
            attended = self.attend(m, stem + "attention", rows, rows, 2)
            wanted = [self.page.meaning("block", "parallel", {
                "x": x, "n1": lambda r: r, "n2": second, "ffn": self.ffn(m, stem + "ffn"),
                "attention": lambda _, y=y: y}) for x, y in zip(given, attended)]
            near(m.outputs("hidden", {"features": given})[0], wanted, words)

    # ------------------------------------------------------------ attention

    def attend(self, m, stem, queries, keys, heads, kv_heads=None, turn=None, normed=None, kept=list, **names):
        """Rows behind the output projection, by the page's formulas; `turn(x, row)` is rope on one head's columns, and
        `kept(x)` what a state keeps of them; `late` is a norm behind the rotation, and `inner` one of all columns."""
        kv_heads = kv_heads or heads
        turn, normed = turn or (lambda x, row: x), normed or (lambda which, parts: parts)
        late, inner = names.pop("late", lambda which, parts: parts), names.pop("inner", lambda x: x)

        def heads_of(which, x, count):
            x = m.linear(stem + "." + which, x)
            width = len(x) // count
            return [x[h * width:(h + 1) * width] for h in range(count)]
        clipped = names.pop("clipped", lambda x: x)
        q, k = ([late(which, [turn(clipped(part), i) for part in normed(which, heads_of(which, x, count))])
                 for i, x in enumerate(rows)]
                for which, rows, count in (("query", queries, heads), ("key", keys, kv_heads)))
        k, v = ([[Row(kept(part)) for part in x] for x in rows]
                for rows in (k, [[clipped(part) for part in heads_of("value", x, kv_heads)] for x in keys]))
        products = names.pop("products", None)
        given = {"scale": 1 / math.sqrt(len(q[0][0])), "softcap": 0, "sink": None, "bias": lambda h, i, j: 0,
                 "visible": lambda i, j: True, **names}
        if products:
            given["bias"] = products(q, k, given["scale"])
        f = self.page.formulas("attention", q=q, k=k, v=v, heads=heads, kv_heads=kv_heads, keys=range(len(keys)),
                               **given)
        self.weights = [[[f["weight"](h, i, j) for j in range(len(keys))] for i in range(len(queries))]
                        for h in range(heads)]
        rows = []
        for i in range(len(queries)):
            columns = Row(c for h in range(heads) for c in f["context"](h, i))
            rows.append(m.linear(stem + ".output", inner(columns)))
        return rows

    def compare(self, settings, word="self", n=7, keys=None, inputs=None, heads=2, **names):
        """Attention alone, of width 8; its maps and its context."""
        lengths = "queries <= 9" + ("" if word == "self" else ", keys <= 9")
        spec = "model t { d_model 8, export attention\nattention %s { heads %d, %s\n%s } }"
        m = self.model(spec % (word, heads, lengths, settings))
        queries = self.rows(m, n, 8)
        given = {"query": queries}
        if word == "cross":
            given["key"] = keys or self.rows(m, 5, 8)
        for name in {"normed", "late", "inner"} & set(names):
            names[name] = names[name](m)
        if names.get("sink") == "learned":
            names["sink"] = m.weight("attention.sink.weight")
        if "bias" in names:
            names["bias"] = names["bias"](m)
        if "products" in names:
            names["products"] = names["products"](m)
        wanted = self.attend(m, "attention", queries, given.get("key", queries), heads, **names)
        context, maps = m.outputs("context attention", {**given, **(inputs or {})})
        near(context, wanted, settings)
        near(maps, [self.weights], "the map of " + settings)
        return m

    def test_attention(self):
        self.compare("value_dim 3")
        self.compare("", "cross")
        self.compare("kv_heads 2", heads=4, kv_heads=2)
        self.compare("kv_heads 1, head_dim 6", heads=4, kv_heads=1)
        self.compare("scale 1.5", scale=1.5)
        self.compare("score dot", scale=1)
        self.compare("softcap 0.5", softcap=0.5)
        self.compare("clip 0.4, kv_heads 1", kv_heads=1,
                     clipped=lambda x: Row(min(max(number, -0.4), 0.4) for number in x))
        self.compare("sink learned", sink="learned")

    def test_cache(self):
        f = self.page.formulas("cache")
        kept = {"f32": list, "bf16": lambda x: [f["bf16"](n) for n in x], "f16": lambda x: [f["f16"](n) for n in x],
                "int8": f["int8"]}
        found = []
        for word, keep in kept.items():
            m = self.model("model t { d_model 8, bias none, precision cache %s\ndecoder { input features, seq <= 9\n"
                           "final_norm no, layers 1 {\n"
                           "attention self { heads 4, kv_heads 2, norm none, residual no } } } }"
                           % word)
            given = self.rows(m, 5, 8)
            given[2] = Row([0] * 8)  # whose keys and values are zeros
            wanted = self.attend(m, "decoder.layers.0.attention", given, given, 4, kv_heads=2, kept=keep,
                                 visible=lambda i, j: j <= i)
            found.append(m.outputs("hidden", {"features": given})[0])
            near(found[-1], wanted, "cache " + word)
        for other in found[1:]:
            assert max(abs(a - b) for a, b in zip(flat(other), flat(found[0]))) > 1e-4, "nothing is rounded"

    def test_masks(self):
        given = {"causal": False, "prefix": False, "prefix_length": 0, "window": 0, "first": 0,
                 "mask": [[1] * 9 for _ in range(9)]}

        def visible(**names):
            return self.page.formulas("mask", **{**given, **names})["visible"]
        spots = [[int((3 * i + 5 * j) % 4 != 0) for j in range(5)] for i in range(7)]
        self.compare("mask causal", visible=visible(causal=True))
        self.compare("mask causal", "cross", visible=visible(causal=True))
        self.compare("mask prefix", inputs={"prefix_length": [3]}, visible=visible(prefix=True, prefix_length=3))
        self.compare("mask causal prefix", inputs={"prefix_length": [4]},
                     visible=visible(causal=True, prefix=True, prefix_length=4))
        self.compare("mask given", "cross", inputs={"mask": spots}, visible=visible(mask=spots))
        self.compare("window 3", visible=visible(window=3))
        self.compare("mask causal window 3, sink 2", visible=visible(causal=True, window=3, first=2))
        self.compare("mask prefix, window 2", inputs={"prefix_length": [4]},
                     visible=visible(prefix=True, prefix_length=4, window=2))

    def turned(self, f, interleaved):
        """The rotation of one head's columns, by the page's formulas f."""
        def turn(x, row):
            out = list(x)
            for i in range(f["width"] // 2):
                a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + f["width"] // 2)
                out[a], out[b] = (f["first"](x[a], x[b], row, i), f["second"](x[a], x[b], row, i))
            return Row(out)
        return turn

    def test_rope(self):
        kinds = {"": ("rope rotation", {"amplitude": 1}), "linear factor 3": ("rope linear rotation", {"amplitude": 1}),
                 "llama3 factor 8 low 1 high 4 original 40": ("rope llama3 rotation", {"amplitude": 1}),
                 "yarn factor 4 original 16": ("rope yarn rotation", {}),
                 "yarn factor 4 original 16 attention_factor 1.5 beta_fast 3 beta_slow 0.5":
                     ("rope yarn rotation", {"amplitude": 1.5}),
                 "longrope factor 2 original 5 short 1 1.5 long 2 3": ("rope longrope rotation", {})}
        base = {"theta": 50, "head_dim": 8, "partial": 0.5, "factor": 0, "low": 1, "high": 4, "original": 1,
                "beta_fast": 32, "beta_slow": 1}
        for words, (labels, more) in kinds.items():
            numbers, parts = dict(base), words.split()
            for name, value in zip(parts, parts[1:]):
                if name in numbers or name == "attention_factor":
                    numbers[name] = float(value)
            for interleaved in ("", "interleaved "):
                for n in (4, 7):
                    f = self.page.formulas("rope", **numbers)
                    f = self.page.formulas(labels, **{**numbers, **more}, **({"scaled": f["frequency"]} if not words
                                                                             else {}), n=n, short=[1, 1.5], long=[2, 3])

                    self.compare("head_dim 8, position rope %spartial 0.5 theta 50 %s" % (interleaved, words), n=n,
                                 turn=self.turned(f, interleaved))

    def test_grid(self):
        for before, words, partial in ((0, "", 1), (2, "class distillation", 1), (3, "class registers 2", 0.5)):
            for interleaved in ("", "interleaved "):
                m = self.model("model t { d_model 16, encoder { input patches image 6 width 4 patch 2 %s\n"
                               "layers 1 { attention self { heads 2, norm none, residual no, scale 0.01\n"
                               "position rope grid %spartial %g theta 30 } } } }" % (words, interleaved, partial))
                f = self.page.formulas("rope", theta=30, head_dim=8, partial=partial)
                f = self.page.formulas("grid", theta=30, width=f["width"], before=before, lines=3, columns=2)

                def turn(x, row, f=f, interleaved=interleaved):
                    out, pairs = list(x), f["width"] // 2
                    rotation = self.page.formulas("rotation", amplitude=1, scaled=lambda i: f["angle"](row, i))
                    for i in range(pairs):
                        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + pairs)
                        out[a], out[b] = rotation["first"](x[a], x[b], 1, i), rotation["second"](x[a], x[b], 1, i)
                    return Row(out)
                pixels = draw(m.dice, 3, 6, 4)
                squares = self.page.formulas("patches", pixels=pixels, p=2, s=2)
                rows = [m.linear("encoder.embedding.patches", Row(
                    squares["square"](i // 2, i % 2, c, y, x) for c in range(3) for y in range(2) for x in range(2)))
                        for i in range(6)]
                front = [m.weight("encoder.embedding." + name) for name in
                         ("class_token", "distillation_token", "registers") if "encoder.embedding." + name in m.shapes]
                rows = [row for part in front for row in (part.rows if isinstance(part, Matrix) else [part])] + rows
                wanted = self.attend(m, "encoder.layers.0.attention", rows, rows, 2, turn=turn, scale=0.01)
                near(m.outputs("hidden", {"pixels": pixels})[0], wanted, "grid %s%s" % (words, interleaved))

    def test_alibi(self):
        for heads, words, m, scaled in ((4, "", 8, False), (6, "max 4", 4, False), (2, "scaled", 8, True)):
            f = self.page.formulas("alibi", heads=heads, m=m, scaled=scaled, scale=0.5)
            self.compare("head_dim 4, position alibi " + words, heads=heads, bias=lambda model, f=f: f["bias"])

    def test_relative(self):
        for words, mask, both in (("buckets 8 distance 6", "", True), ("buckets 6 distance 8", ", mask causal", False),
                                  ("", "", True)):
            numbers = dict(zip(words.split()[::2], map(int, words.split()[1::2])))
            table = self.page.table("position")
            f = self.page.formulas("relative", both=both, **{
                name: numbers.get(name, int(table[name][2])) for name in ("buckets", "distance")})
            self.compare("position relative per_layer " + words + mask, n=9,
                         visible=lambda i, j, both=both: both or j <= i,
                         bias=lambda m, f=f: lambda h, i, j:
                         m.weight("attention.relative.weight")[f["bucket"](i, j)][h])
        # the published table: 32 buckets, distance 128, at every distance
        f = self.page.formulas("relative", both=True, buckets=32, distance=128)
        buckets = [f["bucket"](0, j) for j in range(200)]
        assert buckets[:9] == [0] + list(range(17, 25)) and buckets[16] == 26 and buckets[127] == buckets[199] == 31

    def content(self, heads, kv_heads, rows, of_query, of_key, far=0):
        """What `attend` takes as `products`, from vectors [heads][rows] or None."""
        return lambda q, k, scale: self.page.formulas(
            "content", r=rows, logarithmic=far, q=q, k=k, scale=scale, by_query=of_query is not None,
            by_key=of_key is not None, of_query=of_query, of_key=of_key,
            group=lambda h: h // (heads // kv_heads))["bias"]

    def test_content(self):
        for words, heads, kv_heads, rows, far in (("by_query", 2, 2, 17, 0), ("by_query by_key", 4, 2, 6, 0),
                                                  ("by_key", 2, 1, 9, 7), ("by_key by_query", 2, 2, 16, 8)):
            def products(m, words=words, heads=heads, kv_heads=kv_heads, rows=rows, far=far):
                table = [m.weight("attention.distances.weight")] * heads
                return self.content(heads, kv_heads, rows, table if "by_query" in words else None,
                                    table if "by_key" in words else None, far)
            self.compare("kv_heads %d, head_dim 5, position content %s rows %d%s"
                         % (kv_heads, words, rows, " logarithmic %d" % far if far else ""), heads=heads,
                         kv_heads=kv_heads, n=9, products=products)
        # the published table: 512 rows, distances below 512
        f = self.page.formulas("content", r=512, logarithmic=512)
        assert [f["row"](t, 0) for t in (0, 1, 128, 129, 511)] == [256, 257, 384, 385, 511]
        assert f["row"](0, 511) == 1 and f["row"](0, 300) == 512 - f["row"](300, 0)

    def projected(self, m, stack, stem, head_dim, words):
        """The vectors of two heads, by query and by key, of the stack's table of distances."""
        table = m.weight(stack + ".distances.weight")
        if "normalized" in words:
            table = [self.norm(m, stack + ".distances.norm")(row) for row in table]
        rows = ([m.linear(stem + ("distance_" if "own" in words else "") + which, row) for row in table]
                for which in ("key", "query"))
        return [[[row[head_dim * h:head_dim * (h + 1)] for row in x] for h in range(2)] for x in rows]

    def test_content_projected(self):
        for words in ("", "own", "normalized", "own normalized"):
            m = self.model("model t { d_model 6\nencoder { seq <= 9, input features, norm layernorm post, layers 1 {\n"
                           "attention self { heads 2, residual no, norm none, scale 0.3\n"
                           "position content by_query by_key rows 8 projected %s } } } }" % words)
            stem = "encoder.layers.0.attention"
            vectors = self.projected(m, "encoder", stem + ".", 3, words)
            given = self.rows(m, 7)
            wanted = self.attend(m, stem, given, given, 2, scale=0.3, products=self.content(2, 2, 8, *vectors))
            near(m.outputs("hidden", {"features": given})[0], wanted, "content projected " + words)

    def test_latent(self):
        """Rows behind the output projection; the norms, the rotation and the attention are the page's, too."""
        for words, mask in (("", ""), (" query 7", ", mask causal"), (" eps 0.25", ""), (" query 5 eps 0.25", "")):
            m = self.model("model t { d_model 8, bias none\n"
                           "encoder { input features, seq <= 9, final_norm no\nlayers 1 {\n"
                           "attention self { heads 2, head_dim 3, value_dim 5, norm none, residual no\n"
                           "position rope interleaved theta 50, latent 6 rope 4%s%s } } } }" % (words, mask))
            given, stem = self.rows(m, 7, 8), "encoder.layers.0.attention."
            eps = 0.25 if "eps" in words else float(self.page.table("latent")["eps"][2])

            def normed(name, x):
                return self.page.meaning("norm", "rmsnorm", {"x": x, "eps": eps, "weight": m.weight(stem + name)})
            f = self.page.formulas("rope", theta=50, head_dim=4, partial=1)
            f = self.page.formulas("rope rotation", theta=50, head_dim=4, partial=1, amplitude=1, scaled=f["frequency"])

            def turn(x, row):
                return Row(f[part](x[2 * i], x[2 * i + 1], row, i) for i in range(2) for part in ("first", "second"))

            def heads(x, width):
                return [x[h * width:(h + 1) * width] for h in range(2)]
            c = [normed("latent_norm.weight", m.linear(stem + "latent", x)) for x in given]
            s = [turn(m.linear(stem + "key_rope", x), j) for j, x in enumerate(given)]
            rows = given
            if "query" in words:
                rows = [normed("query_latent_norm.weight", m.linear(stem + "query_latent", x)) for x in given]
            q = [heads(m.linear(stem + "query", x), 3) for x in rows]
            r = [[turn(part, i) for part in heads(m.linear(stem + "query_rope", x), 4)] for i, x in enumerate(rows)]
            matrices = {name: [Matrix(one) for one in m.values[stem + part + ".weight"]]
                        for name, part in (("K", "key"), ("V", "value"))}
            f_latent = self.page.formulas("latent", q=q, r=r, c=c, s=s, scale=1 / math.sqrt(7), **matrices)
            wanted = []
            for i in range(7):
                columns = []
                for h in range(2):
                    seen = range(i + 1 if mask else 7)
                    powers = [math.exp(f_latent["score"](h, i, j)) for j in seen]
                    total = Row([0.0] * 5)
                    for j in seen:
                        total = total + f_latent["value"](h, j) * (powers[j] / sum(powers))
                    columns += list(total)
                wanted.append(m.linear(stem + "output", Row(columns)))
            near(m.outputs("hidden", {"features": given})[0], wanted, "latent" + words)

    def softmax(self, m, stem, which, rows, keys, widths, words, products=None, **names):
        """The page's formulas of the first softmax of heads of the `widths` of keys and values, or of the "second."."""
        q, k, v = ([[x[h:h + width] for h in range(0, len(x), width)] for x in (m.linear(stem + name, r) for r in of)]
                   for name, of, width in ((which + "query", rows, widths[0]), (which + "key", keys, widths[0]),
                                           ("value", keys, widths[1])))
        scale = 1 / math.sqrt(widths[0])
        bias = products(q, k, scale) if products else lambda h, i, j: 0
        sink = m.weight(stem + which + "sink.weight") if "sink" in words else None
        return self.page.formulas("attention", q=q, k=k, v=v, heads=2, kv_heads=len(v[0]), keys=range(len(keys)),
                                  scale=scale, bias=bias, sink=sink, visible=lambda i, j: j <= i, **names)

    def test_differential(self):
        """Two layers of a decoder, whose rows are normalized heads behind the output projection."""
        content = ", position content by_query by_key rows 5"
        for words in ("", " init 0.3 eps 0.5", ", sink learned", ", sink learned" + content, content + " projected",
                      content + " projected own normalized"):
            m = self.model("model t { d_model 8, bias none\n"
                           "decoder { input features, seq <= 9, position none, final_norm no\nlayers 2 {\n"
                           "attention self { heads 2, norm none, residual no, differential yes%s } } } }" % words)
            rows = given = self.rows(m, 7, 8)
            eps = 0.5 if "eps" in words else float(self.page.table("differential")["eps"][2])
            for layer in range(2):
                stem = "decoder.layers.%d.attention." % layer
                contexts = []
                for which in ("", "second."):
                    of = (self.projected(m, "decoder", stem + which, 2, words) if "projected" in words else
                          [[m.weight(stem + "distances.weight")] * 2] * 2 if "content" in words else None)
                    contexts.append(self.softmax(m, stem, which, rows, rows, (2, 4), words, softcap=0,
                                                 products=self.content(2, 2, 5, *of) if of else None)["context"])

                def rmsnorm(x, stem=stem):
                    names = {"x": x, "eps": eps, "weight": m.weight(stem + "head_norm.weight")}
                    return self.page.meaning("norm", "rmsnorm", names)
                vectors = {"l%s%d" % (part[0], i + 1): m.weight(stem + which + "lambda." + part + ".weight")
                           for i, which in enumerate(("", "second.")) for part in ("query", "key")}
                own = {"init": 0.3} if "init" in words else {}
                f = self.page.formulas("differential", layer=layer, first=contexts[0], second=contexts[1],
                                       rmsnorm=rmsnorm, **vectors, **own)
                rows = [m.linear(stem + "output", Row(c for h in range(2) for c in f["head"](h, i)))
                        for i in range(len(rows))]
            near(m.outputs("hidden", {"features": given})[0], rows, "differential" + words)

    def test_lse(self):
        """The logarithm of `total` for each head, and with `differential` for each head of either softmax."""
        for words in ("", ", sink learned", ", differential yes", ", differential yes, sink learned"):
            m = self.model("model t { export lse\nattention cross { heads 2, kv_heads 1, head_dim 3, value_dim 4\n"
                           "softcap 2, d_query 6, d_key 5, queries <= 7, keys <= 7, mask where k <= q%s } }" % words)
            rows, keys = self.rows(m, 5), self.rows(m, 6, 5)
            found = [self.softmax(m, "attention.", which, rows, keys, (3, 4), words, softcap=2)["total"]
                     for which in ("", "second.")[:2 if "differential" in words else 1]]
            wanted = [[math.log(total(h, i)) for i in range(5)] for total in found for h in range(2)]
            near(m.outputs("lse", {"query": rows, "key": keys})[0], wanted, "lse" + words)

    def test_scores(self):
        for kind, label in (("general", "general"), ("additive, d_score 5", "additive")):
            m = self.model("model t { attention cross { score %s, scale 0.5\nd_query 6, d_key 8, d_value 3\n"
                           "queries <= 4, keys <= 6 } }" % kind)
            q, k, v = self.rows(m, 4), self.rows(m, 6, 8), self.rows(m, 6, 3)
            names = {"q": q, "k": k, "scale": 0.5}
            if label == "general":
                names["W"] = m.weight("attention.score.weight")
            else:
                names.update(W=m.weight("attention.score.query.weight"), U=m.weight("attention.score.key.weight"),
                             v=m.weight("attention.score.vector.weight"))
            score = self.page.formulas(label, **names)["score"]
            wanted = []
            for i in range(4):
                weights = [math.exp(score(i, j)) for j in range(6)]
                wanted.append(sum(w * x for w, x in zip(weights, v)) / math.fsum(weights))
            near(m.outputs("context", {"query": q, "key": k, "value": v})[0], wanted, "score " + kind)

    # ------------------------------------------------------------ head

    def test_logits(self):
        for words, scale, softcap, tied in (("logits bias scale 0.5 softcap 2", 0.5, 2, False),
                                            ("logits tied", 1, 0, True), ("logits scale 3", 3, 0, False)):
            m = self.still("", "head " + words)
            hidden, logits = m.outputs("hidden logits", {"tokens": [1, 5, 10]})
            f = self.page.formulas("logits", scale=scale, softcap=softcap,
                                   W=m.weight("encoder.embedding.tokens.weight" if tied else "head.weight"),
                                   b=m.weight("head.bias") if "bias" in words else 0)
            near(logits, [f["capped" if softcap else "logits"](x) for x in hidden], words)

    def test_pools(self):
        def columns(rows, f):
            return Row(f([row[c] for row in rows]) for c in range(6))
        def weighted(x):
            return sum(i * v for i, v in enumerate(x, 1)) / sum(range(len(x) + 1))
        pools = {"mean": lambda rows: columns(rows, lambda x: math.fsum(x) / len(x)), "cls": lambda rows: rows[0],
                 "max": lambda rows: columns(rows, max), "last": lambda rows: rows[-1],
                 "mean_sqrt": lambda rows: columns(rows, lambda x: math.fsum(x) / math.sqrt(len(x))),
                 "weighted_mean": lambda rows: columns(rows, weighted)}
        l2 = self.page.formulas("pool")["l2"]
        for word, pool in pools.items():
            for more in ("", " l2"):
                m = self.still("", "head pool " + word + more)
                hidden, pooled = m.outputs("hidden pooled", {"tokens": [1, 5, 10, 4]})
                near(pooled, l2(pool(hidden)) if more else pool(hidden), "pool " + word + more)
        m = self.still("", "head pool max pooler classifier 3")
        hidden, pooled, logits = m.outputs("hidden pooled logits", {"tokens": [1, 5, 10, 4]})
        pooler = self.page.formulas("pool", W=m.weight("pooler.weight"), b=m.weight("pooler.bias"))["pooler"]
        near(pooled, pooler(pools["max"](hidden)), "pooler")
        near(logits, m.linear("classifier", pooled), "classifier")
        for word in ("relu", "gelu"):
            m = self.still("", "head pooler " + word)
            hidden, pooled = m.outputs("hidden pooled", {"tokens": [1, 5, 10, 4]})
            f = {"f": lambda x, kind=word: Row(self.page.meaning("activation", kind, {"x": v}) for v in x)}
            stated = self.page.formulas("pool", W=m.weight("pooler.weight"), b=m.weight("pooler.bias"), **f)["stated"]
            near(pooled, stated(hidden[0]), "pooler " + word)
        m = self.still("", "head pool mean l2\ndense 7 { bias none }\ndense 3 { activation mish }")
        hidden, pooled = m.outputs("hidden pooled", {"tokens": [1, 5, 10, 4]})
        f = [self.page.formulas("pool", W=m.weight("dense.%d.weight" % i), b=m.weight("dense.1.bias") if i else 0,
                                f=lambda x, kind=kind: Row(self.page.meaning("activation", kind, {"x": v}) for v in x))
             for i, kind in enumerate(("identity", "mish"))]
        near(pooled, l2(f[1]["dense"](f[0]["dense"](pools["mean"](hidden)))), "dense")
        m = self.model("model t { d_model 6\nencoder { input patches image 4 patch 2 class registers 2\n%s }\n"
                       "head pool cls_mean }" % NOTHING, STILL)
        hidden, pooled = m.outputs("hidden pooled", {"pixels": draw(m.dice, 3, 4, 4)})
        near(hidden[1:3], m.weight("encoder.embedding.registers"), "registers")
        near(pooled, Row([*hidden[0], *columns(hidden[3:], lambda x: math.fsum(x) / len(x))]), "cls_mean")
        m = self.model("model t { d_model 6, norm layernorm\nencoder { input patches image 4 patch 2 class "
                       "distillation\n%s }\nhead pool cls_distillation norm classifier 3 }" % NOTHING, STILL)
        hidden, pooled, logits = m.outputs("hidden pooled logits", {"pixels": draw(m.dice, 3, 4, 4)})
        near(pooled, columns(hidden[:2], lambda x: math.fsum(x) / 2), "cls_distillation")
        near(logits, m.linear("classifier", self.norm(m, "pool_norm")(pooled)), "norm classifier")
        m = self.still("", "head pool probe\nprobe { attention cross { heads 1, norm none, residual no } }")
        hidden, pooled = m.outputs("hidden pooled", {"tokens": [1, 5, 10, 4]})
        query = m.linear("probe.attention.query", m.weight("probe.row"))
        scores = [sum(a * b for a, b in zip(query, m.linear("probe.attention.key", row))) / 6 ** 0.5 for row in hidden]
        shares = [math.exp(score) / sum(map(math.exp, scores)) for score in scores]
        values = [m.linear("probe.attention.value", row) for row in hidden]
        sums = Row(sum(share * value[c] for share, value in zip(shares, values)) for c in range(6))
        near(pooled, m.linear("probe.attention.output", sums), "probe")
        m = self.still("", "head classifier 3")
        hidden, logits = m.outputs("hidden logits", {"tokens": [1, 5, 10, 4]})
        near(logits, m.linear("classifier", hidden[0]), "classifier of row 0")
        m = self.still("", "head classifier 3 rows")
        hidden, logits = m.outputs("hidden logits", {"tokens": [1, 5, 10, 4]})
        near(logits, [m.linear("classifier", row) for row in hidden], "classifier of rows")

    def test_transform(self):
        for words, kind in (("", "gelu"), (" silu", "silu"), (" relu transform_no_bias", "relu"),
                            (" silu transform_no_norm", "silu")):
            for head in ("head logits transform" + words, "head pool mean classifier 3 transform" + words,
                         "head classifier 4 rows transform" + words):
                m = self.still("", "norm layernorm eps 0.5\n" + head)
                last = "head" if "logits" in head else "classifier"
                hidden, logits = m.outputs("hidden logits", {"tokens": [1, 5, 10, 4]})
                bias = 0 if "no_bias" in words else m.weight("transform.bias")
                names = {"eps": 0.5, "weight": m.weight("transform_norm.weight"),
                         "bias": m.weight("transform_norm.bias")} if "no_norm" not in words else None
                f = self.page.formulas(
                    "pool", W=m.weight("transform.weight"), b=bias,
                    f=lambda x, kind=kind: Row(self.page.meaning("activation", kind, {"x": v}) for v in x),
                    n=lambda x, names=names: self.page.meaning("norm", "layernorm", {"x": x, **names})
                    if names else x)["transform"]
                rows = hidden
                if "pool" in head:
                    rows = [Row(math.fsum(row[c] for row in hidden) / len(hidden) for c in range(6))]
                near(logits, [m.linear(last, f(row)) for row in rows], head)

    # ------------------------------------------------------------ the edges, and names

    def test_no_key(self):
        """A row that sees nothing: weights and context 0, and the output's bias; a hidden key spreads no NaN."""
        for sink in ("", ", sink learned"):
            m = self.model("model t { d_model 8, export attention\n"
                           "attention cross { heads 2, mask given, queries <= 4, keys <= 4%s } }" % sink)
            keys = self.rows(m, 3, 8)
            given = {"query": self.rows(m, 2, 8), "key": keys[:2] + [Row([math.nan] * 8)],
                     "mask": [[0, 0, 0], [1, 1, 0]]}
            context, maps = m.outputs("context attention", given)
            near(context[0], m.weight("attention.output.bias"), "the row without keys" + sink)
            assert all(w == 0 for h in range(2) for w in maps[0][h][0]), "weights of a row that sees nothing"
            assert all(math.isfinite(c) for c in context[1]), "a hidden key is seen" + sink

    def test_padding(self):
        m = self.still("position learned", "head pool mean")
        tokens, mask = [[1, 2, 3, 4], [5, 6, 7, 8]], [[1, 1, 1, 1], [1, 1, 0, 0]]
        hidden, pooled = m.outputs("hidden pooled", {"tokens": tokens, "attention_mask": mask})
        alone, alone_pooled = m.outputs("hidden pooled", {"tokens": [5, 6]})
        near(hidden[1][:2], alone, "rows before padding")
        near(pooled[1], alone_pooled, "the pool of a padded row")
        assert all(c == 0 for row in hidden[1][2:] for c in row), "rows at padding"

    def test_source_names(self):
        """The page's `weights` block: a file of other names and layouts gives what the canonical one gives."""
        example = next(body for body in self.page.examples() if "weights {" in body)
        m = self.model(example)
        for end, value in (("weight", 1.0), ("bias", 0.0)):  # one tensor of all layers
            for layer in (0, 1):
                m.values["decoder.layers.%d.ffn.norm_in.%s" % (layer, end)] = [value + 0.1 * c for c in range(8)]
        m.values["head.bias"] = [0.0] * 20  # optional: zeros
        safetensors.write(m.file, {name: (m.shapes[name], flat(v)) for name, v in m.values.items()})

        def transposed(rows):
            return [list(column) for column in zip(*rows)] if hasattr(rows[0], "__len__") else rows
        there = {"model.wte.weight": m.values["decoder.embedding.tokens.weight"],
                 "transformer.wpe.weight": m.values["decoder.embedding.positions.weight"]}
        for end in ("weight", "bias"):
            there["shared_norm." + end] = m.values["decoder.layers.0.ffn.norm_in." + end]
            there["ln_f." + end] = m.values["decoder.final_norm." + end]
            for layer in range(2):
                def part(name, layer=layer, end=end):
                    return m.values["decoder.layers.%d.%s.%s" % (layer, name, end)]
                h = "model.h.%d." % layer
                there[h + "ln_1." + end] = part("attention.norm_in")
                there[h + "qkv." + end] = [row for head in range(2) for name in ("query", "key", "value")
                                           for row in part("attention." + name)[4 * head:4 * head + 4]]
                there[h + "proj." + end] = transposed(part("attention.output"))
                there[h + "gate_up." + end] = transposed(part("ffn.gate") + part("ffn.up"))
                there[h + "down." + end] = transposed(part("ffn.down"))

        def shape(values):
            return [len(values)] + (shape(values[0]) if hasattr(values[0], "__len__") else [])
        file = self.folder + "/renamed.safetensors"
        safetensors.write(file, {name: (shape(v), flat(v)) for name, v in there.items()})
        tokens = {"tokens": [3, 1, 19, 4]}
        near(m.outputs("logits", tokens, file)[0], m.outputs("logits", tokens)[0], "the renamed file")
