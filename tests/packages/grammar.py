"""The grammar for editors: it is what the script writes, has the words of settings.def and no others, colors a word
where attnc takes it, and leaves nothing of the public specs plain but names."""
import glob
import os
import re
import sys

from lib.attnc import ROOT, attnc, run
from textmate import TextMate

GRAMMAR = os.path.join(ROOT, "packaging", "attn.tmLanguage.json")
LEXEMES = re.compile(r'(?P<comment>#.*)|(?P<string>"[^"\n]*")|(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)|'
                     r"(?P<word>[A-Za-z_]\w*)|(?P<operator>\.\.|<=|>=|==|!=|[=+*/<>^-])|(?P<brace>[{}])|"
                     r"(?P<comma>,)|(?P<other>\S)")
EXPECTED = {"comment": "comment.line", "string": "string.quoted", "number": "constant.numeric",
            "operator": "keyword.operator", "brace": "punctuation.section", "comma": "punctuation.separator"}

# The words of specs that settings.def lacks, in a spec that attnc takes.
OTHERS = ("let sqrt self cross shared prefix ignore from transpose rows interleaved parts take optional "
          "prompt default lower_case truncate left right and or not mod if then else q k h s i min max abs clamp floor "
          "sign bit table learned number pairs real exp log tanh sigmoid sin cos erf").split()
OTHERS_SPEC = """let half = 2 * (4
    + 4) # parentheses go on over lines
model others {
    d_model 2*half, vocab 20, norm rmsnorm
    encoder { seq <= 4, input rows doc -2..3 # of the rows
              input pairs far 0..3, input number reach real 0..9
              input rows tree
              layers 2 shared {
                  attention self { heads 2, mask where doc[q] != far[q, k] or (
                      if not (q == k and k > 1) then q mod 2 >= 2^0 - 1 # a comment
                      else min(q, max(k, 1)) < clamp(abs(k), sign(q), floor(q / 2)) and bit(tree[q], k)
                  ) or k < exp(1) + log(2)*tanh(1) - sigmoid(1) + sin(1)/cos(1) + erf(1) }
                  ffn { d_ff 4*d_model } } }
    decoder { seq <= 4, layers 1 { attention self { heads 2, scale 1/sqrt(half)
                                                    let slope = table [heads] 2^-(h + i) # of each head
                                                    learned t [heads][5] # a tensor
                                                    score dot, score s*(1 + slope[h]) + t[h, k mod 5] - abs(q - k)/4 }
                                   attention cross { heads 2 }
                                   ffn { d_ff half + 2 } } }
    head logits
    text { prompt right "R: ", default right, lower_case, truncate left }
    weights {
        prefix "a." "b."
        "decoder.layers.{layer}.ffn.up.weight" from "up.{layer}" transpose rows 0..half + 2 optional
        "encoder.layers.0.attention.query.*" from "q.*" interleaved 2 parts 3 take 0..1
        ignore "c.*"
    }
}
"""

# Two blocks `generation`, since beams exclude sampling.
GENERATION_SPECS = ["model m {\nd_model 8, vocab 11\ndecoder { seq <= 8, layers 1 { attention self { heads 2 } } }\n"
                    "head logits\ngeneration {\n%s\n}\n}\n" % items for items in (
                        "sample, temperature 2, top_k 3, top_p 0.5, min_p 0.1, repetition_penalty 1.2\n"
                        "no_repeat_ngram 3, min_length 1, max_length 9, bad_word 1 2, bad_word 3, length_form gnmt",
                        "beams 2, length_penalty 0.5, length_form power, early_stopping exact\nmin_new 1, max_new 2\n"
                        "suppress 3, suppress_first 4, force_first 5, force_last 6",
                        "early_stopping full", "early_stopping heuristic", "early_stopping never")]

# Text in `model { decoder { layers 1 { attention self { … } ffn { … } } } }`, and the words of it that stay plain.
WRONG = [("attention", "nrom layernorm eps 1", "nrom layernorm eps"), ("attention", "norm layernrom", "layernrom"),
         ("attention", "norm gelu", "gelu"), ("attention", "d_ff 3", "d_ff"), ("attention", "heads = 3", ""),
         ("attention", "position rope, learned", "learned"), ("ffn", "heads 3", "heads"),
         ("ffn", "activation gelu self", "self"), ("ffn", "let d_ff", "let d_ff"), ("ffn", "ignore \"x\"", "ignore x"),
         ("ffn", "activation \"gelu\"", ""), ("ffn", "layers 1 { norm pre }", "layers norm pre")]


def table():
    """What the preprocessor makes of settings.def: [(block,)], [(setting,)], [(setting, word)], [(choice,)]."""
    program = r"""
        #define BLOCK(name, parents, help) B #name
        #define SETTING(name, blocks, form, help) S #name
        #define OPTION(setting, word, takes, field, value, help) O #setting word
        #define CHOICE(field, word, value, help) C word
        #include "settings.def"
    """
    done = run("cc", "-E", "-P", "-I", "compiler/model", "-x", "c", "-", input=program, status=0)
    rows = [(kind, re.findall(r'"(.*?)"', rest))
            for kind, rest in re.findall(r'([BSOC]) ((?:"[^"]*" ?)+)', done.stdout)]
    return [[tuple(strings) for kind, strings in rows if kind == wanted] for wanted in "BSOC"]


def generation_words():
    """The items of generation.def, and the words of generation_print.c that stand after two of them."""
    with open(os.path.join(ROOT, "compiler/model/generation.def"), encoding="utf-8") as file:
        items = set(re.findall(r"^GENERATION\((\w+)", file.read(), re.M))
    with open(os.path.join(ROOT, "compiler/model/generation_print.c"), encoding="utf-8") as file:
        lists = re.findall(r"^const char \*const \w+\[\] = \{(.*), NULL\};", file.read(), re.M)
    return items | set(re.findall(r"\w+", " ".join(lists)))


def nested(block, text):
    """A spec whose innermost block `block` holds the text."""
    around = {"model": "%s", "encoder": "encoder { %s }", "decoder": "decoder { %s }",
              "layers": "decoder { layers 2 { %s } }", "layer": "decoder { layers 1 { layer { %s } } }",
              "attention": "decoder { layers 1 { attention self { %s } } }",
              "ffn": "decoder { layers 1 { ffn { %s } } }", "dense": "dense 3 { %s }",
              "probe": "d_model 8, vocab 3\nencoder { seq <= 4, layers 1 { ffn { d_ff 3 } } }\nhead pool probe\n"
                       "probe { %s }",
              "convolution": "encoder { input mel bins 2 frames 3\nconvolution { %s } }"}
    return "model m {\n%s\n}\n" % around[block].replace("%s", text)


class Grammar:
    def __init__(self, folder):
        self.folder = folder
        self.blocks, self.settings, self.options, self.choices = table()
        assert len(self.blocks) > 5 and len(self.settings) > 30 and len(self.options) > 100, "settings.def is not read"
        self.textmate = TextMate(GRAMMAR)

    def scope(self, text, word):
        """Of the last `word` in the text: its innermost scope, "" for plain."""
        begin = [m.start() for m in re.finditer(r"\b%s\b" % re.escape(word), text)][-1]
        scopes = self.textmate.scopes(text)[begin:begin + len(word)]
        assert all(one == scopes[0] for one in scopes), "%s is cut" % word
        return scopes[0][-1] if scopes[0] else ""

    def test_is_written(self):
        done = run(sys.executable, "packaging/make_grammar.py", status=0)
        with open(GRAMMAR, encoding="utf-8") as file:
            assert file.read() == done.stdout, "packaging/make_grammar.py > packaging/attn.tmLanguage.json is due"

    def test_words(self):
        known = {row[0] for row in self.blocks + self.settings + self.choices}
        known |= {word for _, word in self.options if word not in ("", "=")} | generation_words()
        found, rules = set(), [self.textmate.grammar]
        while rules:
            rule = rules.pop()
            if isinstance(rule, (dict, list)):
                rules += rule.values() if isinstance(rule, dict) else rule
            elif "\\b" in rule:
                for words in re.findall(r"\\b\(?(?:\?:)?([\w|]+)\)?(?:\\b|\\s)", rule):
                    found |= set(words.split("|"))
        assert found == known | set(OTHERS), "lacks %s, has %s too much" % (sorted((known | set(OTHERS)) - found),
                                                                            sorted(found - known - set(OTHERS)))

    def test_options(self):
        """An option has the color of options; `=`, after which an expression stands, is an operator."""
        assign = self.textmate.scopes(nested("ffn", "activation = x"))
        assert ["keyword.operator.assignment.attn"] in [s[-1:] for s in assign], str(assign)
        words = sorted({word for _, word in self.options if word not in ("", "=")})
        for (setting,) in self.settings:
            block = next(b for b in ("ffn", "attention", "decoder", "model") if
                         self.scope(nested(b, setting), setting) == "support.type.property-name.attn")
            text = nested(block, "\n".join("%s %s" % (setting, word) for word in words))
            scopes, begin = self.textmate.scopes(text), text.index(setting)
            for word in words:
                at = begin + len(setting) + 1
                is_option = all(s[-1:] == ["constant.language.option.attn"] for s in scopes[at:at + len(word)])
                assert is_option == ((setting, word) in self.options), "%s %s: %s" % (setting, word, scopes[at])
                begin = at + len(word) + 1

    def test_places(self):
        """A setting has a color in a block exactly where attnc takes it there."""
        path, wrong = os.path.join(self.folder, "place.attn"), []
        for (block,) in self.blocks:
            if block in ("weights", "generation", "text"):  # whose items are no settings
                continue
            for (setting,) in self.settings:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(nested(block, setting))
                done = attnc("explain", path)
                taken = "`%s` has no meaning in `%s`" % (setting, block) not in done.stderr
                assert done.returncode == 1, "%s in %s: %d" % (setting, block, done.returncode)
                if taken != (self.scope(nested(block, setting), setting) == "support.type.property-name.attn"):
                    wrong.append("%s in %s" % (setting, block))
        assert not wrong, ", ".join(wrong)

    def check(self, path, text):
        """Each lexeme has the scope of its kind; a word has one, but for names that a spec gives. The words of it."""
        names = set(re.findall(r"(?:^ *(?:let|learned)|\binput +(?:rows|number|pairs)) +(\w+)", text, re.M))
        scopes = self.textmate.scopes(text)
        words = set()
        for found in LEXEMES.finditer(text):
            kind, at, lexeme = found.lastgroup, found.start(), found.group()
            where = "%s:%d: `%s`" % (path, text.count("\n", 0, at) + 1, lexeme)
            for own in scopes[at:found.end()]:
                if kind == "other":
                    assert lexeme in "()[]", where
                elif kind == "word":
                    assert own == scopes[at], where
                    assert own or lexeme in names, where + " has no scope"
                else:
                    assert any(scope.startswith(EXPECTED[kind]) for scope in own), where + " has %s" % own
            if kind == "word" and scopes[at]:
                words.add(lexeme)
        return words

    def test_specs(self):
        paths = [path for folder in ("specs", "examples/*", "tests/differential") for path in
                 glob.glob(os.path.join(ROOT, folder, "*.attn"))]
        assert len(paths) > 30, "%d specs" % len(paths)
        for path in paths:
            with open(path, encoding="utf-8") as file:
                self.check(os.path.relpath(path, ROOT), file.read())

    def test_other_words(self):
        path = os.path.join(self.folder, "others.attn")
        with open(path, "w", encoding="utf-8") as file:
            file.write(OTHERS_SPEC)
        attnc("explain", path, status=0)
        words = self.check("others.attn", OTHERS_SPEC)
        assert set(OTHERS) <= words, "not in the spec: %s" % (set(OTHERS) - words)

    def test_generation(self):
        words = set()
        for number, spec in enumerate(GENERATION_SPECS):
            path = os.path.join(self.folder, "generation.attn")
            with open(path, "w", encoding="utf-8") as file:
                file.write(spec)
            attnc("explain", path, status=0)
            words |= self.check("generation %d" % number, spec)
        assert generation_words() <= words, "not in the specs: %s" % (generation_words() - words)

    def test_wrong_words(self):
        for block, text, plain in WRONG:
            spec = nested(block, text)
            scopes, begin = self.textmate.scopes(spec), spec.index(text)
            found = [m.group() for m in re.finditer(r"\b[a-z_]\w*", text)
                     if not any(scope.startswith(("keyword", "support", "constant", "variable", "storage", "string"))
                                for scope in scopes[begin + m.start()])]
            assert found == plain.split(), "%s in %s: %s is plain" % (text, block, found)
        for number, good in (("1e-5", True), (".5", True), ("12abc", False), ("1.", False), ("1.2.3", False)):
            text = nested("attention", "scale " + number)
            has = {tuple(s) for s in self.textmate.scopes(text)[text.index(number):][:len(number)]}
            assert (has == {("constant.numeric.attn",)}) == good, "%s: %s" % (number, has)
            assert good or ("constant.numeric.attn",) not in has, "%s: %s" % (number, has)
        text = 'model m { ffn { "not closed\n} }\nmodel n { d_model 3 }\n'
        assert self.scope(text, "d_model").startswith("support"), "a string that is not closed goes on"
