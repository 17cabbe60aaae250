"""What is added to an embedding: the page's formulas against the interpreter."""
import math

from formulas import NOTHING, STILL, Formulas
from model import draw, near
from page import Row


class Positions(Formulas):
    def test_embedding_norm_first(self):
        m = self.still("segments 3, position learned offset 2, embedding scale 2.5 normalized before_positions, "
                       "norm layernorm eps 0.5")
        names = {"eps": 0.5, "weight": m.weight("encoder.embedding.norm.weight"),
                 "bias": m.weight("encoder.embedding.norm.bias")}
        table = m.weight("encoder.embedding.positions.weight")
        f = self.page.formulas("embedding", tokens=m.weight("encoder.embedding.tokens.weight"), scale=2.5,
                               segment_table=m.weight("encoder.embedding.segments.weight"),
                               position_row=lambda t: Row([0.0] * 6))
        ids, segments = [3, 0, 10, 3], [1, 2, 0, 1]
        wanted = [self.page.meaning("norm", "layernorm", {"x": Row(f["row"](i, g, t)), **names}) + Row(table[t + 2])
                  for t, (i, g) in enumerate(zip(ids, segments))]
        near(m.outputs("hidden", {"tokens": ids, "segments": segments})[0], wanted, "norm before positions")

    def test_sinusoids(self):
        for words, fairseq, halves, offset in (("", False, False, 0), ("halves offset 3", False, True, 3),
                                               ("fairseq offset 2", True, True, 2)):
            m = self.still("input features, position sinusoidal " + words)
            f = self.page.formulas("sinusoidal", d=6, fairseq=fairseq, offset=offset)
            wanted = [[0.0] * 6 for _ in range(9)]
            for row in range(9):
                for i in range(3):
                    wanted[row][i if halves else 2 * i] = math.sin(f["angle"](row, i))
                    wanted[row][3 + i if halves else 2 * i + 1] = math.cos(f["angle"](row, i))
            near(m.outputs("hidden", {"features": [[0.0] * 6] * 9})[0], wanted, "sinusoidal " + words)

    def test_sinusoids_on_grid(self):
        for words, fairseq, halves in (("", False, False), ("halves", False, True), ("fairseq", True, True)):
            spec = "model t { d_model 12\nencoder { input patches image 4 width 6 patch 2 class registers 2\n" \
                   "position sinusoidal grid %s\n%s } }" % (words, NOTHING)
            m = self.model(spec, {key: value * 2 for key, value in STILL.items()})
            f = self.page.formulas("sinusoidal_grid", d=12, fairseq=fairseq, before=3, columns=3)
            pixels = draw(m.dice, 3, 4, 6)
            plain = self.page.formulas("patches", p=2, s=2, pixels=pixels)
            wanted = [m.weight("encoder.embedding.class_token"), *m.weight("encoder.embedding.registers")]
            for row in range(3, 9):
                square = Row(plain["square"]((row - 3) // 3, (row - 3) % 3, c, y, x)
                             for c in range(3) for y in range(2) for x in range(2))
                added = [0.0] * 12
                for half, angle in enumerate((f["column_angle"], f["line_angle"])):
                    for i in range(3):
                        added[6 * half + (i if halves else 2 * i)] = math.sin(angle(row, i))
                        added[6 * half + (3 + i if halves else 2 * i + 1)] = math.cos(angle(row, i))
                wanted.append(m.linear("encoder.embedding.patches", square) + Row(added))
            near(m.outputs("hidden", {"pixels": pixels})[0], wanted, "sinusoids on a grid " + words)
