"""A tokenizer.json in which each word is a token, for models of VOCAB rows."""

VOCAB = 37
START, END = 35, 36
WORDS = {"w%d" % i: i for i in range(VOCAB)}


def part(name, segment=0):
    return {"Sequence" if name in "AB" else "SpecialToken": {"id": name, "type_id": segment}}


# "w3 w5" is [35] 3 5 [36], and a pair has a 36 between its texts.
TOKENIZER = {
    "version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
    "post_processor": {"type": "TemplateProcessing", "single": [part("w35"), part("A"), part("w36")],
                       "pair": [part("w35"), part("A"), part("w36"), part("B", 1), part("w36", 1)],
                       "special_tokens": {name: {"id": name, "ids": [WORDS[name]], "tokens": [name]}
                                          for name in ("w35", "w36")}},
    "decoder": None, "model": {"type": "WordLevel", "vocab": WORDS, "unk_token": "w1"}}
