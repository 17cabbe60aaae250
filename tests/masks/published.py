"""The masks of specs/masks: Python's formula of each, and their sections of docs/masks.md with the pictures that
attnc prints."""
import glob
import os
import re
import typing

from lib import npy
from lib.attnc import ROOT, attnc
from masks import patterns

FOLDER, PAGE, MARK = "specs/masks", "docs/masks.md", "<!-- the rest is made by tests/masks/run.py --renew -->\n"
DRAWN_ROWS = 24  # of a picture of the page; each character is one pair


class Mask(typing.NamedTuple):
    """`sees(i, j, of)` is whether query i sees key j, `of` the inputs by name; a list has a function for each layer.
    None: there is no mask, and all keys are visible. `draw` are the integers that the page draws it for. `crosses` is
    the same of the cross attention of a decoder, whose inputs of the source's rows count the keys. `pairs` are the
    integers of pairs by name, each a function of the query and the key."""
    sees: typing.Any
    draw: dict = {}
    crosses: typing.Any = None
    pairs: dict = {}


def causal(i, j, _):
    return j <= i


def clamp(x, low, high):
    return max(low, min(x, high))


def neighbours(i, j, _):
    """3 x 3 of an image of 6 x 5 rows."""
    return (abs(clamp(i % 6, 1, 4) - j % 6) <= 1) and (abs(clamp(i // 6, 1, 3) - j // 6) <= 1)


def tiles(i, j, _):
    """Tiles of 2 x 2 of an image of 6 x 4 rows; the rows of a text follow."""
    near = abs(i % 6 // 2 - j % 6 // 2) <= 1 and abs(i // 6 // 2 - j // 6 // 2) <= 1
    return i >= 24 or j >= 24 or near


def tiles_of_video(i, j, _):
    """Tiles of 2 x 2 x 2 of six frames of 6 x 6 rows; the rows of a text follow."""
    def tile(row):
        return row % 6 // 2, row // 6 % 6 // 2, row // 36 // 2
    return i >= 216 or j >= 216 or all(abs(a - b) <= 1 for a, b in zip(tile(i), tile(j)))


def windows(shift):
    """Windows of 4 x 4 of an image of 8 x 4 rows, which begin `shift` rows and columns before it."""
    def window(row):
        return (row % 8 + shift) // 4, (row // 8 + shift) // 4
    return lambda i, j, _: window(i) == window(j)


def training(i, j, _):
    """Twelve noised rows and the same rows without noise, in blocks of four."""
    own, other = i % 12 // 4, j % 12 // 4
    if i < 12 and j < 12:
        return own == other
    return j >= 12 and (own > other if i < 12 else own >= other)


PARENTS = [-1, -1, 0, 0, 1, 2, 2, 3, 4, 4, 5, 7, 8, 9, 9, 11]  # of the rows of a tree of drafts, after 8 of the prompt


def tree_orders():
    """{"pre": numbers, "post": numbers} of a walk through the tree; the rows of the prompt have the root's."""
    pre, post = [0] * 8 + [0] * len(PARENTS), [31] * 8 + [0] * len(PARENTS)
    count = {"pre": 0, "post": 0}

    def walk(node):
        for child in (row for row, parent in enumerate(PARENTS) if parent == node):
            count["pre"] += 1
            pre[8 + child] = count["pre"]
            walk(child)
            post[8 + child] = count["post"]
            count["post"] += 1

    walk(-1)
    return {"pre": pre, "post": post}


def tree_bits():
    """{"ancestors": a bit for each draft that the row sees}; the rows of the prompt see none."""
    bits = []
    for row, parent in enumerate(PARENTS):
        bits.append(1 << row | (bits[parent] if parent >= 0 else 0))
    return {"ancestors": [0] * 8 + bits}


def drafted(i, j, _):
    """Whether j is in the prompt, or i itself or an ancestor of it."""
    if i < 8 or j < 8:
        return j <= i
    row = i - 8
    while row >= 0 and row != j - 8:
        row = PARENTS[row]
    return row >= 0


def images(i, j, of):
    return j <= i or (of["image"][i] == of["image"][j] and of["image"][i] >= 0)


# four images of four rows each, of which the last two stand next to each other in the text
SHOWN = {"first": [2] * 4 + [9] * 4 + [15] * 4 + [16] * 4, "until": [9] * 4 + [15] * 4 + [16] * 4 + [64] * 4}
IMAGES = {"image": [-1] * 4 + [0] * 6 + [-1] * 4 + [1] * 5 + [-1] * 5}
MASKS = {
    "causal": Mask(causal),
    "causal_window": Mask(lambda i, j, _: i - 6 < j <= i),
    "window_both_sides": Mask(lambda i, j, _: abs(i - j) <= 4),
    "unequal_sides": Mask([lambda i, j, _: 0 <= i - j < 8 or 0 < j - i < 4,
                           lambda i, j, _: 0 <= i - j < 12 or 0 < j - i < 2]),
    "chunks": Mask(lambda i, j, _: i // 8 == j // 8 and j <= i),
    "chunks_with_past": Mask(lambda i, j, _: 0 <= i // 5 - j // 5 <= 2),
    "documents": Mask(lambda i, j, of: of["document"][i] == of["document"][j] and j <= i),
    "prefix": Mask(lambda i, j, of: j < of["prefix_length"][0] or j <= i),
    "image_blocks": Mask(images, IMAGES),
    "image_blocks_window": Mask(lambda i, j, of: images(i, j, of) and j > i - 8, IMAGES),
    "image_cross": Mask(causal, SHOWN, lambda i, j, of: of["first"][j] <= i < of["until"][j]),
    "shared_prompt": Mask(lambda i, j, of: j <= i and of["answer"][j] in (0, of["answer"][i])),
    "global_rows": Mask(lambda i, j, of: abs(i - j) <= 2 or of["is_global"][i] or of["is_global"][j],
                        {"is_global": [1] + [0] * 11}),
    "sinks_and_window": Mask(lambda i, j, _: j <= i and (i - j <= 6 or j < 3)),
    "dilated_window": Mask(lambda i, j, _: abs(i - j) <= 9 and (i - j) % 3 == 0),
    "block_diffusion": Mask(lambda i, j, _: j // 4 <= i // 4),
    "block_diffusion_training": Mask(training),
    "tree_of_drafts": Mask(drafted, tree_orders()),
    "tree_bits": Mask(drafted, tree_bits()),
    "neighbourhood_2d": Mask(neighbours),
    "tiles_2d": Mask(tiles),
    "tiles_3d": Mask(tiles_of_video),
    "windows_2d": Mask([windows(0), windows(2)]),
    "prompt_and_window": Mask(lambda i, j, of: j <= i and (of["is_prompt"][j] or i - j < 5),
                              {"is_prompt": [1] * 8 + [0] * 56}),
    "alibi": Mask(causal),
    "softcap": Mask(causal),
    "temperature": Mask(causal),
    "alibi_cyclic": Mask(None),
    "distance_buckets": Mask(None),
    "content_by_distance": Mask(None),
    "pair_table": Mask(None, pairs={"dist": lambda i, j: min(9, abs(i - j) * 5 // 4)}),
    "learned_sink": Mask(causal),
    "sigmoid": Mask(causal),
    "differential": Mask(causal),
}


def path_of(name):
    return "%s/%s.attn" % (FOLDER, name)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def length_of(name):
    """(the rows that the spec allows, whether they are the only length); of a decoder over an encoder, the decoder's"""
    relation, rows = re.findall(r"\bseq (<=|=) (\d+)", read(path_of(name)))[-1]
    return int(rows), relation == "="


def keys_of(name, rows):
    """The keys of cross attention for that many rows of the text."""
    return min(rows, int(re.search(r"\bseq <= (\d+)", read(path_of(name)))[1]))


def listed(numbers):
    """3,3,0 as --draw takes it: 2*3,0"""
    runs = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1][0] += 1
        else:
            runs.append([1, number])
    return ",".join("%d*%d" % (count, number) if count > 1 else str(number) for count, number in runs)


def explain(name, rows, more=()):
    """The words of a call that draws a mask."""
    words = ["explain", path_of(name)]
    if length_of(name)[0] != rows:
        words += ["--seq", str(rows)]
    for of, numbers in MASKS[name].draw.items():
        words += ["--draw", "%s=%s" % (of, listed(numbers))]
    return words + list(more)


def inputs_of(pictures, rows):
    """The integers for which these pictures are drawn."""
    of = {}
    for picture in pictures:
        for name, numbers in (patterns.integers(picture.given) if picture.given else {}).items():
            of[name] = [numbers[row % len(numbers)] for row in range(rows)]
    return of


def functions(name):
    """A function for each layer."""
    sees = MASKS[name].sees
    return [] if sees is None else sees if isinstance(sees, list) else [sees]


def views(name, rows):
    """(the output of its weights, the number of keys, the function) of each mask of a spec, in explain's order"""
    found = [("attention.%d" % layer, rows, sees) for layer, sees in enumerate(functions(name))]
    crosses = MASKS[name].crosses
    return found + ([("cross_attention.0", keys_of(name, rows), crosses)] if crosses else [])


def formula(name):
    """The pictures of attnc against Python's formula, for the rows of the page and for the most that the spec has."""
    most, exact = length_of(name)
    for rows in {most} if exact else {min(DRAWN_ROWS, most), most}:
        pictures = patterns.pictures(attnc(*explain(name, rows), status=0).stdout)
        of = inputs_of(pictures, rows)
        wanted = views(name, rows)
        assert len(pictures) == len(wanted), "%d masks are drawn" % len(pictures)
        for picture, (output, keys, sees) in zip(pictures, wanted):
            assert picture.rows == rows and picture.keys == keys, picture.text
            assert output.startswith("cross") == picture.place.endswith("cross attention"), picture.place
            patterns.compare(picture, lambda i, j, sees=sees: sees(i, j, of))


def weights(name, folder, engine):
    """Weights of attention are above 0 exactly where the formula says that a key is visible."""
    most, exact = length_of(name)
    rows = most if exact else min(DRAWN_ROWS, most)
    of = inputs_of(patterns.pictures(attnc(*explain(name, rows), status=0).stdout), rows)
    spec = os.path.join(folder, name + ".attn")
    with open(spec, "w", encoding="utf-8") as file:
        file.write(read(path_of(name)).replace("d_model 16", "d_model 16, export attention"))
    def given(of_input, numbers):
        return ["--in", "%s=%s" % (of_input, npy.write(os.path.join(folder, of_input + ".npy"), numbers))]

    tokens, words = [row * 7 % 32 for row in range(rows)], []
    for of_input in ["source", "target"] if MASKS[name].crosses else ["tokens"]:
        words += given(of_input, tokens[:keys_of(name, rows)] if of_input == "source" else tokens)
    for of_input, numbers in of.items():
        of_source = re.search(r"input rows %s .*of source" % of_input, read(path_of(name)))
        count = 1 if of_input == "prefix_length" else keys_of(name, rows) if of_source else rows
        words += given(of_input, numbers[:count])
    for of_input, number in MASKS[name].pairs.items():
        path = os.path.join(folder, of_input + ".npy")
        npy.write(path, [number(i, j) for i in range(rows) for j in range(rows)], (rows, rows), "<i8")
        words += ["--in", "%s=%s" % (of_input, path)]
    seen = views(name, rows) or [("attention.0", rows, lambda i, j, _: True)]
    out = ["--out=%s=%s/%s.npy" % (output, folder, output) for output, _, _ in seen]
    attnc("run", spec, "--weights", "random:1", *words, "--engine", engine, *out, status=0)
    for output, keys, sees in seen:
        numbers = npy.read("%s/%s.npy" % (folder, output)).numbers
        assert len(numbers) == 2 * rows * keys, "%d weights" % len(numbers)
        for at, weight in enumerate(numbers):
            i, j = divmod(at % (rows * keys), keys)
            assert (weight > 0) == bool(sees(i, j, of)), \
                "%s, %s: query %d, key %d has the weight %g" % (engine, output, i, j, weight)


def check(name, target):
    """attnc check, of one row, of some and of the most."""
    most, exact = length_of(name)
    attnc("check", path_of(name), "--target", target, *([] if exact else ["--lengths", "1,17,%d" % most]), status=0)


# ---------------------------------------------------------------- docs/masks.md

def section(name):
    """A mask's part of the page."""
    text = read(path_of(name))
    comment = [line[2:] for line in re.match(r"(?:#.*\n)+", text)[0].splitlines()]
    lines = text.splitlines()
    shown = [line.strip() for line in lines if re.match(r" {4,8}(input rows|let) ", line)]
    # what the attention says, without its heads
    said = re.findall(r"attention (?:self|cross) \{\s*heads 2,?\s*(.*?)\s*\}(?=, ffn|\n)", text, re.S)
    shown += [re.sub(r"\n {16}", "\n", each) for each in said if each]
    most, exact = length_of(name)
    words = explain(name, most if exact else min(DRAWN_ROWS, most), ["--target", "avx2"])
    picture = "\n".join(each.text for each in patterns.pictures(attnc(*words, status=0).stdout))
    what, *rest = comment
    formulas = [line for line in rest if re.match(r"visible|score|weight|b\(i\)|x = | ", line)]
    prose = [what.split(": ", 1)[1]] + [line.rstrip(".") for line in rest if line not in formulas]
    prose[0] = prose[0][0].upper() + prose[0][1:]
    parts = ["## " + name, ".\n".join(prose) + ".", fenced("\n".join(formulas)),
             "In [%s](../%s):" % (path_of(name), path_of(name)), fenced("\n".join(shown)),
             fenced("attnc %s\n\n%s" % (" ".join(words), picture.rstrip("\n"))) if picture
             else "All keys are visible, and no mask is drawn."]
    return "\n\n".join(parts) + "\n"


def fenced(text):
    return "```text\n%s\n```" % text


def page():
    """What docs/masks.md should be: its own words as they are, and the sections."""
    head, mark, _ = read(PAGE).partition(MARK)
    assert mark, "the line `%s` is missing" % MARK.strip()
    return head + MARK + "".join("\n" + section(name) for name in MASKS)


def page_is_printed():
    wanted = page()
    assert read(PAGE) == wanted, "`tests/masks/run.py --renew` writes other pictures to " + PAGE


def every_spec():
    names = {os.path.basename(path)[:-5] for path in glob.glob(os.path.join(ROOT, FOLDER, "*.attn"))}
    assert names == set(MASKS), "specs without a formula, or the other way round: %s" % (names ^ set(MASKS))


def renew():
    text = page()
    with open(os.path.join(ROOT, PAGE), "w", encoding="utf-8") as file:
        file.write(text)
