"""A chart of ratios as SVG: for each row, how many times faster attnc is than each peer, on a logarithmic scale."""
import math
from xml.sax.saxutils import escape

LEFT, RIGHT, TOP, BAR, GAP, SCALE = 190, 230, 46, 13, 12, 420
COLOURS = ("#4063a8", "#c27c2c", "#4b8a5a", "#8a5a9c", "#b0464f", "#607080")


def bars(rows):
    """[(title, [(peer, ratio)])] of the rows that have peers, fastest peer first."""
    out = []
    for row in rows:
        found = [(c["name"], c["ratio"]) for c in row["contestants"] if not c["ours"] and c.get("ratio")]
        if found:
            out.append((row["name"], sorted(found, key=lambda pair: pair[1])))
    return out


def text(x, y, words, size=11, anchor="start", colour="#222"):
    return '<text x="%.1f" y="%.1f" font-size="%d" text-anchor="%s" fill="%s">%s</text>' % (
        x, y, size, anchor, colour, escape(words))


def ratios(rows):
    groups = bars(rows)
    values = [ratio for _, pairs in groups for _, ratio in pairs] + [0.9, 1.1]
    low, high = math.log(min(values)), math.log(max(values) * 1.05)
    low = min(low, math.log(0.8))

    def at(value):
        return LEFT + SCALE * (math.log(value) - low) / (high - low)

    names = sorted({name for _, pairs in groups for name, _ in pairs})
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    height = TOP + sum(len(pairs) * BAR + GAP for _, pairs in groups) + 24
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif">' %
           (LEFT + SCALE + RIGHT, height),
           '<rect width="100%" height="100%" fill="white"/>',
           text(LEFT, 18, "How many times faster attnc is than each peer", 14)]
    ticks = [t for t in (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
             if math.exp(low) <= t <= math.exp(high)]
    for tick in ticks:
        out.append('<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-width="%d"/>' %
                   (at(tick), TOP - 8, at(tick), height - 16, "#333" if tick == 1 else "#ddd", 1))
        out.append(text(at(tick), TOP - 12, "%g" % tick, 10, "middle", "#555"))
    y = TOP
    for title, pairs in groups:
        out.append(text(LEFT - 10, y + len(pairs) * BAR / 2 + 4, title, 12, "end"))
        for name, ratio in pairs:
            begin, end = sorted((at(1), at(ratio)))
            out.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>' %
                       (begin, y, max(end - begin, 1), BAR - 2, colour[name]))
            out.append(text(max(end, at(1)) + 5, y + BAR - 3, "%.3g x %s" % (ratio, name), 10))
            y += BAR
        y += GAP
    return "\n".join(out + ["</svg>"])
