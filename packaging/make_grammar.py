#!/usr/bin/env python3
"""make_grammar.py > packaging/attn.tmLanguage.json: the TextMate grammar of specs, from compiler/model/settings.def.

A word has a color where attnc takes it: a setting in the blocks that it may stand in, an option behind its setting. All
else stays plain, so that a misspelt word shows. The regular expressions are within what Oniguruma, which editors use,
and Python's re, which the test uses, read alike."""
import json
import os
import re
import sys

MODEL = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "compiler", "model")

# Words that the table lacks, by the file that reads them.
NUMBERED_BLOCKS = "layers", "dense"
BLOCK_WORDS = {"attention": ["self", "cross"], "layers": ["shared"]}  # behind the block's name; resolve.c
LIST_WORDS = ["prefix", "ignore"]  # in `weights`; source_names.c
TEXT_WORDS = ["prompt", "default", "lower_case", "truncate"]  # in `text`; text.c
CONDITION_WORDS = "and or not mod if then else".split()
FUNCTIONS = "min max abs clamp floor sign bit sqrt exp log tanh sigmoid sin cos erf".split()
TEXT_SIDES = ["left", "right"]  # after `truncate`
GROUPED_WORDS = ["int4", "int8"]  # a choice of an option; a size of groups may stand behind it; settings.c
SOURCE_WORDS = ["from", "transpose", "rows", "interleaved", "parts", "take", "optional"]  # so, behind a string

NAME = "[A-Za-z_][A-Za-z0-9_]*"
ITEM_END = "(?=[,{}#]|$)"


def read(name):
    with open(os.path.join(MODEL, name), encoding="utf-8") as file:
        return file.read()


def letters():
    """The positions, the head, the score and the index that expressions read: the letters of is_letter in words.c."""
    return re.search(r'^bool is_letter\(.*strchr\("(\w+)"', read("words.c"), re.M)[1]


def with_tables(text):
    """settings.def, with the options written out that it takes from another table: `#define ROW(name, …) OPTION(…)`,
    then `#include "FILE"`; and with the rows of `#define ROWS(part) …` for each `ROWS(NAME)`, whose names have `part##`
    in them."""
    def options(match):
        row, setting, file = match.groups()
        words = re.findall(r"^%s\((\w+)," % row, read(file), re.M)
        return "".join('OPTION(%s, "%s", flag, %s, 0, "")\n' % (setting, word, setting) for word in words)
    text = re.sub(r'^#include "((?:blocks|norm_settings|precisions)\.def)"\n', lambda match: read(match.group(1)), text, flags=re.M)
    text = re.sub(r"\\\n *", "", text)  # lines that a backslash continues
    for macro, part, rows in re.findall(r"^#define (\w+)\((\w+)\) (.*##.*)\n", text, re.M):
        each = re.sub(r" (?=(?:FIELD|OPTION|CHOICE)\()", "\n", rows).replace(part + "##", "%s")
        text = re.sub(r"^%s\((\w+)\)$" % macro, lambda match, each=each: each.replace("%s", match[1]), text, flags=re.M)
    taken = r'^#define (\w+)\(name, .*?\) OPTION\((\w+), .*\n#include "(\w+\.def)"\n'
    return re.sub(taken, options, text, flags=re.M)


def read_rows(text):
    """Of settings.def: {block: parents}, {setting: (blocks, form)}, {setting: {word: takes}}, where an option that takes
    a word has the list of those words."""
    blocks, settings, options = {}, {}, {}
    choices, fields = {}, {}  # {field: words}, {(setting, word): field}
    text = re.sub(r'"\n +"', "", text)  # a string in two parts
    for line in re.sub(r",\n +", ", ", text).splitlines():
        if not re.match(r"(BLOCK|SETTING|OPTION|CHOICE)\(", line):
            continue
        found = re.fullmatch(r'(\w+)\((\w+), (?:"(\w*|=)", )?([\w |]+?), (?:(\w+), (?:\w+, )?)?".*"\)', line)
        if not found:
            sys.exit("settings.def: this line is not understood: " + line)
        kind, name, word, third, fourth = found.groups()
        if kind == "BLOCK":
            blocks[name] = {place[3:].lower() for place in third.split(" | ")}
        elif kind == "SETTING":
            settings[name] = ({place[3:].lower() for place in third.split(" | ")}, fourth)
            options[name] = {}
        elif kind == "CHOICE":
            choices.setdefault(name, []).append(word)
        else:
            options[name][word] = third
            fields[name, word] = fourth
    for (name, word), field in fields.items():
        if options[name][word] == "word":
            options[name][word] = choices[field]
    return blocks, settings, options


def places(setting_blocks, blocks):
    """The blocks that a setting speaks of and all around them, as with_ancestors of settings.c has it."""
    found = set(setting_blocks)
    while True:
        more = found | {parent for block in found for parent in blocks[block]} - {"file"}
        if more == found:
            return found
        found = more


def any_of(words):
    """A regular expression that finds one of the words, whole."""
    return r"\b(?:%s)\b" % "|".join(sorted(words))


def scoped(match, scope):
    return {"match": match, "name": scope + ".attn"}


def include(*names):
    return [{"include": "#" + name} for name in names]


def region(begin, end, patterns, **captures):
    """From `begin` to `end`; captures are group numbers `_N` of begin with their scopes."""
    rule = {"begin": begin, "end": end, "patterns": patterns}
    if captures:
        rule["beginCaptures"] = {group[1:]: {"name": scope + ".attn"} for group, scope in captures.items()}
    return rule


def braces(patterns):
    rule = region(r"\{", r"\}", patterns, _0="punctuation.section.block.begin")
    return rule | {"endCaptures": {"0": {"name": "punctuation.section.block.end.attn"}}}


def common(numeric):
    """What does not depend on a block; `numeric`: the settings whose number an expression may name."""
    number = r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    placeholder = scoped(r"\{layer\}|\*(?=\")", "constant.other.placeholder")
    string = region(r'"(?=[^"]*")', '"', [placeholder])
    anything = r'[^\s,{}#"]|"[^"]*"'
    return {
        "comment": scoped("#.*$", "comment.line.number-sign"),
        "comma": scoped(",", "punctuation.separator"),
        "string": string | {"name": "string.quoted.double.attn"},
        "let": region(r"\b(let)\s+(%s)\s*(=)" % NAME, ITEM_END,
                      [region(r"\b(table)\b(?=[ \t]*\[)", ITEM_END, include("comment", "condition"),
                              _1="keyword.other.table")] + include("expression"), _1="keyword.other.let",
                      _2="variable.other.constant", _3="keyword.operator.assignment"),
        "learned": region(r"\b(learned)\s+(%s)(?=[ \t]*\[)" % NAME, ITEM_END, include("comment", "condition"),
                          _1="keyword.other.learned", _2="variable.other.constant"),
        # what begins with no word of its place, to its end; a block of it as well
        "unknown": {"patterns": [{"match": r"(?:%s)(?:[^,{}#\"]|\"[^\"]*\")*" % anything},
                                 region(r"\{", r"\}", include("comment", "unknown"))]},
        "expression": {"patterns": [
            scoped(r"(?:(?<=\.\.)|(?<![A-Za-z0-9_.]))%s(?![A-Za-z0-9_])(?!\.(?!\.))" % number, "constant.numeric"),
            scoped(r"\bsqrt\b", "support.function"),
            scoped(any_of(numeric), "variable.language"),
            scoped("[-+*/]", "keyword.operator.arithmetic"),
            region(r"\(", r"\)|(?=[,{}])", include("comment", "expression")),
        ]},
        # after `where`, to the end of the item
        "condition": {"patterns": [
            scoped(r"(?<![A-Za-z0-9_.])%s(?![A-Za-z0-9_])(?!\.(?!\.))" % number, "constant.numeric"),
            scoped(any_of(CONDITION_WORDS), "keyword.operator.word"),
            scoped(any_of(FUNCTIONS) + r"(?=[ \t]*\()", "support.function"),
            scoped(any_of(letters()), "variable.language"),
            scoped(r"\b%s\b" % NAME, "variable.other.constant"),
            scoped(r"<=|>=|==|!=|[-+*/^<>]", "keyword.operator.arithmetic"),
            region(r"\(", r"\)|(?=[{}])", include("comment", "comma", "condition")),
            region(r"\[", r"\]|(?=[{}])", include("comment", "comma", "condition")),
        ]},
        "input_rows": region(r"\b(input)[ \t]+\b(rows|number|pairs)\b[ \t]+(%s)" % NAME, ITEM_END,
                             [scoped(r"\.\.", "keyword.operator.range"),
                              scoped(r"\breal\b", "constant.language.option"),
                              scoped(r"\bof[ \t]+source\b", "constant.language.option")] + include("expression"),
                             _1="support.type.property-name", _2="constant.language.option",
                             _3="variable.other.constant"),
    }


def setting_rule(name, form, options):
    conditions = [word for word, takes in options.items() if takes == "condition"]
    words = [word for word in options if word and word not in conditions and word != "="]
    lists = {word: takes for word, takes in options.items() if isinstance(takes, list)}
    patterns = [region(r"\b(%s)\b" % word, ITEM_END, include("comment", "condition"), _1="constant.language.option")
                for word in conditions]
    patterns += [scoped(r"\b%s[ \t]+%s" % (word, any_of(taken)), "constant.language.option")
                 for word, taken in lists.items()]
    grouped = sorted(set(sum(lists.values(), [])) & set(GROUPED_WORDS))
    patterns += [scoped(r"(?<=\b%s[ \t])[0-9]+\b" % word, "constant.numeric") for word in grouped]
    patterns += [scoped(any_of(words), "constant.language.option")] if words else []
    if form == "length":
        patterns.append(scoped("<=|=", "keyword.operator.relational"))
    if "=" in options:
        patterns.append(region("=", ITEM_END, include("comment", "condition"), _0="keyword.operator.assignment"))
    if options.get("") == "expression":
        patterns += include("comment", "condition")
    elif any(takes != "flag" for word, takes in options.items() if word not in lists):
        patterns += include("expression")
    return region(r"\b(%s)\b" % name, ITEM_END, patterns, _1="support.type.property-name")


def block_rule(name, items):
    """`items`: what may stand between its braces."""
    head = [scoped(any_of(BLOCK_WORDS[name]), "storage.modifier")] if name in BLOCK_WORDS else []
    if name in NUMBERED_BLOCKS:
        head += include("expression")
    begin, captures = r"\b(%s)\b" % name, {"_1": "keyword.control.block"}
    if name == "model":
        begin += r"(?:[ \t]+(%s))?" % NAME
        captures["_2"] = "entity.name.type"
    return region(begin, r"(?<=\})|(?=[,}#]|$)", head + [braces(items)], **captures)


def weights_items():
    words = scoped(any_of(SOURCE_WORDS), "keyword.other.source")
    bounds = scoped(r"\.\.", "keyword.operator.range")
    return include("comment", "comma") + [
        region(r"\b(%s)\b" % "|".join(LIST_WORDS), ITEM_END, include("string"), _1="support.type.property-name"),
        region('(?=")', ITEM_END, include("string") + [words, bounds] + include("expression")),
    ] + include("unknown")


def text_items():
    return include("comment", "comma") + [
        region(r"\b(%s)\b" % "|".join(TEXT_WORDS), ITEM_END,
               include("string") + [scoped(any_of(TEXT_SIDES), "constant.language.option"),
                                    scoped(NAME, "variable.other.constant")], _1="support.type.property-name"),
    ] + include("unknown")


def generation_items():
    rows = re.findall(r"^GENERATION\((\w+), (\w+)", read("generation.def"), re.M)
    words = sum((re.findall(r'"(\w+)"', line) for line in re.findall(
        r"^const char \*const (?:length_forms|early_stoppings)\[\] = (.*);$", read("generation_print.c"), re.M)), [])
    return include("comment", "comma") + [
        region(any_of(name for name, _ in rows), ITEM_END,
               [scoped(any_of(words), "constant.language.option")] + include("expression"),
               _0="support.type.property-name")] + include("unknown")


def grammar():
    blocks, settings, options = read_rows(with_tables(read("settings.def")))
    front_end = "".join(read(name) for name in sorted(os.listdir(MODEL)) if name.endswith(".c"))
    gone = [word for word in sum(BLOCK_WORDS.values(), LIST_WORDS + SOURCE_WORDS + TEXT_WORDS + FUNCTIONS) if '"%s"' % word not in front_end]
    if gone:
        sys.exit("compiler/model no longer reads " + " ".join(gone))
    repository = common([name for name in settings if options[name].get("", "flag") in ("integer", "real")])
    for name, (_, form) in settings.items():
        repository["setting_" + name] = setting_rule(name, form, options[name])
    for block in blocks:
        inside = ["block_" + inner for inner in blocks if block in blocks[inner]]
        inside += ["input_rows"] if block in ("model", "encoder", "decoder") else []
        inside += ["setting_" + name for name, (where, _) in settings.items() if block in places(where, blocks)]
        items = include("comment", "comma", "let", "learned", *inside, "unknown")
        special = {"weights": weights_items, "generation": generation_items, "text": text_items}.get(block)
        repository["block_" + block] = block_rule(block, special() if special else items)
    top = ["block_" + block for block in blocks if "file" in blocks[block]]
    return {
        "comment": "Written by packaging/make_grammar.py from compiler/model/settings.def",
        "name": "attn",
        "scopeName": "source.attn",
        "fileTypes": ["attn"],
        "patterns": include("comment", "comma", "let", "learned", *top, "unknown"),
        "repository": repository,
    }


def pretty(value, indent=0):
    """JSON whose objects and arrays stand on one line where they fit."""
    text = json.dumps(value)
    if indent + len(text) < 110 or not isinstance(value, (dict, list)):
        return text
    begin, end = "{}" if isinstance(value, dict) else "[]"
    pairs = value.items() if isinstance(value, dict) else [("", one) for one in value]
    parts = [(json.dumps(key) + ": " if key else "") + pretty(one, indent + 1) for key, one in pairs]
    lines = []  # short parts share one
    for part in parts:
        if lines and "\n" not in part + lines[-1] and indent + len(lines[-1] + part) < 110:
            lines[-1] += ", " + part
        else:
            lines.append(part)
    space = "\n" + " " * (indent + 1)
    return begin + space + ("," + space).join(lines) + "\n" + " " * indent + end


if __name__ == "__main__":
    print(pretty(grammar()))
