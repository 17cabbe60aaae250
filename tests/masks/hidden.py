"""Values that are not finite: rows that see them are not finite, and the other rows are as if they were not there."""
import math
import os
import random
import tempfile

from lib import npy
from lib.attnc import attnc

QUERIES, KEYS, WIDTH = 150, 187, 20
POISON = {40: math.nan, 41: math.inf, 100: -math.inf, 175: math.nan}  # by key
MASKS = {  # the words of a spec, and which key a query sees
    "window": ("window 24", lambda q, k: abs(q - k) < 24),
    "causal": ("mask causal", lambda q, k: k <= q),
    "sinks": ("mask where k <= q and (q - k < 9 or k < 3)", lambda q, k: k <= q and (q - k < 9 or k < 3)),
    "rests": ("mask where (q + k) mod 3 == 0", lambda q, k: (q + k) % 3 == 0),
    "pieces": ("mask where floor(q/30) == floor(k/30)", lambda q, k: q // 30 == k // 30),
    "edges": ("mask where abs(q - k) < 20 or q mod 50 == 0 or k mod 60 == 7",
              lambda q, k: abs(q - k) < 20 or q % 50 == 0 or k % 60 == 7),
}


def context(folder, words, values, engine):
    """[QUERIES][WIDTH]: the result of attention for these values of keys."""
    spec, value = os.path.join(folder, "m.attn"), npy.write(folder + "/v.npy", values, (KEYS, WIDTH), "<f4")
    with open(spec, "w", encoding="utf-8") as file:
        file.write("model m { attention cross { score dot, project none, d_query 8, d_key 8, d_value %d\n"
                   "queries <= %d, keys <= 600, %s } }\n" % (WIDTH, QUERIES, words))
    attnc("run", spec, "--weights", "random:1", "--in", "query=%s/q.npy" % folder, "--in", "key=%s/k.npy" % folder,
          "--in", "value=" + value, "--out", "context=%s/c.npy" % folder, "--engine", *engine, status=0)
    return npy.read(folder + "/c.npy").numbers


def values_stay_hidden(name, precision, engine):
    words, sees = MASKS[name]
    draw = random.Random(name + precision)
    clean = [draw.gauss(0, 1) for _ in range(KEYS * WIDTH)]
    poisoned = list(clean)
    for key, number in POISON.items():
        poisoned[key * WIDTH + key % WIDTH] = number
    with tempfile.TemporaryDirectory() as folder:
        for rows, of in ((QUERIES, "q"), (KEYS, "k")):
            npy.write("%s/%s.npy" % (folder, of), [draw.gauss(0, 1) for _ in range(rows * 8)], (rows, 8), "<f4")
        stated = "%s, precision attention %s" % (words, precision)
        wanted, found = (context(folder, stated, values, engine) for values in (clean, poisoned))
    for q in range(QUERIES):
        bad = {key % WIDTH for key in POISON if sees(q, key)}
        for column in range(WIDTH):
            a, b = wanted[q * WIDTH + column], found[q * WIDTH + column]
            assert math.isfinite(b) == (column not in bad), "row %d, column %d: %g" % (q, column, b)
            assert column in bad or abs(a - b) <= 1e-4 * (1 + abs(a)), "row %d, column %d: %g, was %g" % (
                q, column, b, a)
