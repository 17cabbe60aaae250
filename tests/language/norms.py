"""The norms inside of a sublayer: the page's formulas against the interpreter."""
from formulas import Formulas
from model import near
from page import Matrix, Row


class Norms(Formulas):
    def heads_normed(self, kind, all_heads):
        def of(m):
            def normed(which, parts):
                whole = Row(c for part in parts for c in part)
                weight = m.weight("attention.%s_norm.weight" % which)
                bias = m.weight("attention.%s_norm.bias" % which) if kind == "layernorm" else None

                def n(x, h):
                    take = (lambda w: w[h]) if isinstance(weight, Matrix) else (lambda w: w)
                    names = {"x": x, "eps": 0.25, "weight": take(weight), "bias": take(bias) if bias else 0}
                    return self.page.meaning("norm", kind, names)
                if not all_heads:
                    return [n(part, h) for h, part in enumerate(parts)]
                whole, width = n(whole, 0), len(parts[0])
                return [whole[h * width:(h + 1) * width] for h in range(len(parts))]
            return normed
        return of

    def test_qk_norm(self):
        for words, kind in (("rmsnorm", "rmsnorm"), ("layernorm", "layernorm"), ("rmsnorm all_heads", "rmsnorm"),
                            ("layernorm weight_per_head", "layernorm")):
            self.compare("kv_heads 2, qk_norm %s eps 0.25" % words, heads=4, kv_heads=2,
                         normed=self.heads_normed(kind, "all_heads" in words))

    def test_qk_norm_after_rotation(self):
        numbers = {"theta": 50, "head_dim": 8, "partial": 0.5}
        f = self.page.formulas("rope", **numbers)
        f = self.page.formulas("rope rotation", **numbers, amplitude=1, scaled=f["frequency"])
        for words, kind in (("rmsnorm", "rmsnorm"), ("rmsnorm all_heads", "rmsnorm"), ("layernorm", "layernorm"),
                            ("rmsnorm weight_per_head", "rmsnorm")):
            for interleaved in ("", "interleaved "):
                self.compare("kv_heads 2, head_dim 8, position rope %spartial 0.5 theta 50\n"
                             "clip 0.7, qk_norm %s eps 0.25 after_rotation" % (interleaved, words),
                             heads=4, kv_heads=2, turn=self.turned(f, interleaved),
                             clipped=lambda x: Row(min(max(number, -0.7), 0.7) for number in x),
                             late=self.heads_normed(kind, "all_heads" in words))

    def inner(self, m, stem, words):
        """The norm of `inner_norm` with these words."""
        kind = words.split()[0]
        names = {"eps": 0.25 if "eps" in words else float(self.page.table("norm")["eps"][2]),
                 "weight": m.weight(stem + ".inner_norm.weight")}
        if "plus_one" in words:
            names["weight"] = Row(1 + number for number in names["weight"])
        if kind == "layernorm":
            named = stem + ".inner_norm.bias" in m.shapes
            assert named == ("no_bias" not in words), words
            names["bias"] = m.weight(stem + ".inner_norm.bias") if named else 0
        return lambda x: self.page.meaning("norm", kind, {"x": x, **names})

    INNER = ("rmsnorm", "layernorm", "rmsnorm plus_one eps 0.25", "layernorm no_bias eps 0.25")

    def test_inner_norm_of_attention(self):
        for words in self.INNER:
            self.compare("value_dim 3, inner_norm " + words,
                         inner=lambda m, words=words: self.inner(m, "attention", words))

    def test_inner_norm_of_ffn(self):
        stem, one = "encoder.layers.0.ffn", Matrix([[float(i == j) for j in range(8)] for i in range(8)])
        for words in self.INNER:
            for gated in ("", " gated"):
                m = self.model("model t { d_model 6\nencoder { seq <= 9, input features\nlayers 1 { ffn { d_ff 8\n"
                               "activation silu%s, norm none, residual no, inner_norm %s } } } }" % (gated, words))
                given, n = self.rows(m, 4), self.inner(m, stem, words)
                names = {"f": lambda x: Row(self.page.meaning("activation", "silu", {"x": v}) for v in x),
                         "down": one, "down_bias": Row([0.0] * 8)}
                for part in ("up", "gate") if gated else ("up",):
                    names[part], names[part + "_bias"] = m.weight(stem + ".%s.weight" % part), m.weight(
                        stem + ".%s.bias" % part)
                f = self.page.formulas("ffn", **names)["gated" if gated else "plain"]
                wanted = [m.linear(stem + ".down", n(f(x))) for x in given]
                near(m.outputs("hidden", {"features": given})[0], wanted, "inner_norm " + words)
