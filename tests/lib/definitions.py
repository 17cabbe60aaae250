"""definitions.py: the words of masks and scores with the expressions they stand for, from definitions.attn."""
import os
import re

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../compiler/model/definitions.attn")
# What these words read has no other name in a spec, or is rounded as no expression is.
MORE_THAN_EXPRESSIONS = {"prefix", "given", "alibi_bf16", "relative"}
NUMBERS = {"N": "5", "S": "2", "C": "30", "M": "8", "F": "1", "POS": "pos"}


def words():
    """{name: (settings, expression)}, with numbers in place of the capital letters."""
    with open(PATH, encoding="utf-8") as file:
        text = re.sub("#.*", "", file.read())
    found = {}
    for name, body in re.findall(r"^(\w+)\s*\{(.*?)\}", text, re.M | re.S):
        body = re.sub(r"\b[A-Z]+\b", lambda letter: NUMBERS[letter.group()], body) if name != "relative" else body
        at = re.search(r"\blet\b|\bscore\b|\bmask where\b", body).start()
        found[name] = (body[:at].strip(), body[at:].strip())
    assert set(found) > MORE_THAN_EXPRESSIONS, found
    return {name: forms for name, forms in found.items() if name not in MORE_THAN_EXPRESSIONS}


def masks():
    return {name: forms for name, forms in words().items() if "mask" in forms[1]}


def scores():
    """The same for scores; each expression states the tables that it reads."""
    found = {name: forms for name, forms in words().items() if "score" in forms[1]}
    let = found["alibi"][1].split("score")[0]
    at, expression = found["alibi_at"]
    found["alibi_at"] = (at, let + expression)
    return found
