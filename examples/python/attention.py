"""attention.py: reads a date with the package `dates`, and draws which letters the decoder looks at.

The parts between lines of `# %%` are cells for editors that run them one by one; as a program it is called as

    python3 attention.py "3rd of May '97" dates.svg
"""

# %% The model: letters are tokens, and the decoder begins with START.
import sys
from xml.sax.saxutils import escape

import dates

SYMBOLS = " 0123456789abcdefghijklmnopqrstuvwxyz',-./"
START, END = len(SYMBOLS) + 1, len(SYMBOLS) + 2
model = dates.load()


def ids(text):
    """The token of each letter; 0 stands for all that the model does not know."""
    return [SYMBOLS.find(letter) + 1 for letter in text.lower()]


# %% The text, and what the model reads in it.
text = sys.argv[1] if len(sys.argv) > 1 else "3rd of May '97"
answer = [token for token in model.generate(source=ids(text), max_new=11) if token != END]
date = "".join(SYMBOLS[token - 1] for token in answer)
print(text, "->", date)

# %% Attention: one map for each head, with a row for each letter of the answer and a column for each of the text.
results = model.forward(source=ids(text), target=[START, *answer[:-1]])
heads = results["cross_attention"][0]
print("cross_attention", results["cross_attention"].shape)


# %% The drawing, a square for each weight: the darker, the larger.
def drawing(maps, rows, columns, size=18):
    """SVG of maps [heads, rows, columns]."""
    width, height = size * (len(columns) + 2), size * (len(rows) + 3)
    parts = []
    for h, weights in enumerate(maps):
        left = h * width
        parts.append('<text x="%d" y="%d">head %d</text>' % (left + size, size, h))
        for j, letter in enumerate(columns):
            parts.append('<text x="%d" y="%d">%s</text>' % (left + size * (j + 1.3), 2 * size, escape(letter)))
        for i, letter in enumerate(rows):
            parts.append('<text x="%d" y="%d">%s</text>' % (left, size * (i + 2.8), escape(letter)))
            for j, weight in enumerate(weights[i]):
                parts.append('<rect x="%d" y="%d" width="%d" height="%d" fill-opacity="%.3f"/>'
                             % (left + size * (j + 1), size * (i + 2.1), size - 1, size - 1, weight))
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="monospace" font-size="13">'
            "%s</svg>\n" % (width * len(maps), height, "".join(parts)))


path = sys.argv[2] if len(sys.argv) > 2 else "dates.svg"
with open(path, "w", encoding="utf-8") as file:
    file.write(drawing(heads, date, text))
print("written to", path)
