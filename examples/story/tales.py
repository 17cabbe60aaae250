#!/usr/bin/env python3
"""Short tales for children, drawn from a grammar.

    tales.py [COUNT [SEED]]     prints tales with an empty line after each

A text of the grammar is told from left to right: `{a|b}` is one of its parts, `{2%a|b|c}` two of them in any order,
`[a]` is there half of the time, `<word>` is told in turn, with a capital if the word has one, `<a word>` has `a` or
`an` before it, and `~` begins a paragraph. What must stay the same within a tale (names, pronouns, things, animals) is
drawn before and kept under a word."""
import functools
import random
import sys

import plots

VOWELS = "aeiou"


# ---------------------------------------------------------------- telling

def cut(text):
    """The parts of `a|b|c`; what is in brackets stays whole."""
    found, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "{[") - (c in "}]")
        if c == "|" and depth == 0:
            found.append(text[begin:i])
            begin = i + 1
    return found + [text[begin:]]


def closing(text, at):
    """Where the bracket at `at` ends."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "{[") - (text[i] in "}]")
        if depth == 0:
            return i
    raise ValueError("no end: " + text[at:at + 40])


@functools.lru_cache(maxsize=None)
def parsed(text):
    """A list of strings, ("word", name) and ("some", count or None, parts)."""
    nodes, at = [], 0
    while at < len(text):
        if text[at] in "{[":
            end = closing(text, at)
            inner, count = text[at + 1:end], None
            if text[at] == "[":
                inner += "|"
            elif inner[1:2] == "%":
                inner, count = inner[2:], int(inner[0])
            nodes.append(("some", count, [parsed(part) for part in cut(inner)]))
            at = end + 1
        elif text[at] == "<":
            end = text.index(">", at)
            nodes.append(("word", text[at + 1:end]))
            at = end + 1
        else:
            end = at
            while end < len(text) and text[end] not in "{[<":
                end += 1
            nodes.append(text[at:end])
            at = end
    return nodes


class Teller:
    def __init__(self, rng):
        self.rng, self.words = rng, dict(plots.RULES)

    def tell(self, nodes):
        told = []
        for node in nodes:
            if isinstance(node, str):
                told.append(node)
            elif node[0] == "word":
                told.append(self.word(node[1]))
            elif node[1] is None:
                told.append(self.tell(self.rng.choice(node[2])))
            else:
                told.append(" ".join(self.tell(part) for part in self.rng.sample(node[2], node[1])))
        return "".join(told)

    def word(self, name):
        article, _, rest = name.rpartition(" ")
        text = self.tell(parsed(self.words[rest[0].lower() + rest[1:]])).strip()
        if article:
            text = article + ("n " if text[0] in VOWELS else " ") + text
        return text[0].upper() + text[1:] if (article or rest)[0].isupper() else text

    def keep(self, **words):
        """Draws each now, so that it stays the same."""
        for name, text in words.items():
            self.words[name] = self.tell(parsed(text))

    def pick(self, table):
        return self.rng.choice(table)


# ---------------------------------------------------------------- who

def made_up(rng):
    """A name that nobody has: names are to be copied, not only known."""
    name = rng.choice("B D F G J K L M N P R S T V W Z Br Tr".split() + [""])
    for _ in range(rng.choice([1, 1, 2])):
        name += rng.choice("aeiou") + rng.choice("b d k l ll m n p r s t v nd rr".split())
    return (name + rng.choice(["a", "e", "i", "o", "y", ""])).capitalize()


def person(teller, mark, girl, name, kind):
    """Name, kind and pronouns under name, kind, he, him, his, himself, each followed by the mark."""
    words = ("she", "her", "her", "herself") if girl else ("he", "him", "his", "himself")
    for key, text in zip(("he", "him", "his", "himself", "name", "kind"), words + (name, kind)):
        teller.words[key + mark] = text


def someone(teller, mark, animal, but=("", "")):
    """A child or an animal, whose name and kind are not those of `but`."""
    girl = teller.rng.random() < 0.5
    while True:
        kind = teller.pick(plots.BEASTS) if animal else "girl" if girl else "boy"
        name = teller.pick(plots.BEAST_NAMES if animal else plots.GIRLS if girl else plots.BOYS)
        if teller.rng.random() < 0.15:
            name = made_up(teller.rng)
        if name != but[0] and (not animal or kind != but[1]):
            return person(teller, mark, girl, name, kind)


def cast(teller, children):
    """The hero, a friend, and a grown-up of the hero's."""
    animal = teller.rng.random() > children
    someone(teller, "", animal)
    someone(teller, "2", animal, (teller.words["name"], teller.words["kind"]))
    elder, woman = teller.pick(plots.ELDERS)
    words = ("she", "her", "her") if woman else ("he", "him", "his")
    teller.words.update(elder=elder, he3=words[0], him3=words[1], his3=words[2])
    teller.keep(home="<den>" if animal else "<house>", mood="<moods>")
    for word in ("hobby", "introduced"):
        teller.words[word] = "<beast_%s>" % word if animal else "<child_%s>" % word
    teller.words["who"] = "animals" if animal else "children"


# ---------------------------------------------------------------- tales

def tale(rng):
    """One tale: paragraphs of plain ASCII text with a newline between them."""
    teller = Teller(rng)
    plot = rng.choice(plots.PLOTS)
    cast(teller, plot.get("children", 0.6))
    for name, text in teller.pick(plot.get("cases", [{}])).items():
        teller.words.update(teller.pick(text) if isinstance(text, list) else {name: text})
    teller.keep(**plot.get("keep", {}))
    teller.keep(**{name: teller.words[name] for name in plot.get("fixed", [])})
    told = " ".join(teller.tell(parsed(plot["text"])).split())
    return "\n".join(part.strip() for part in told.split("~"))


def main():
    count, seed = [int(word) for word in sys.argv[1:]] + [5, 1][len(sys.argv) - 1:]
    rng = random.Random(seed)
    for _ in range(count):
        print(tale(rng) + "\n")


if __name__ == "__main__":
    main()
