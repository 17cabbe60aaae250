#!/usr/bin/env python3
"""Writes tests/unit/rules.txt: what `generate` of Hugging Face transformers 5.23 answers by greedy search and by beam
search, with the options that runtime/attn_rules.c and the beam search of runtime/attn_generate.c have. Needs torch and
transformers. tests/unit/test_generate_rules.c reads the file, and computes the same logits.

A line is a case: the numbers of NUMBERS, the length and the tokens of each list of LISTS, then the status (0, or 1 if
no token could be chosen, where transformers goes on with a token of probability 0), and the score of a beam search.

The logits depend on the last token alone, so that texts repeat themselves, and a little on the whole text, so that two
texts never have equal scores. A beam search whose answer changes when a constant is added to all logits, which changes
the rounding and nothing else, is left out."""
import os
import random
import warnings

import torch
import transformers
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import CausalLMOutput

HERE = os.path.dirname(os.path.abspath(__file__))
CASES, ENDS, DEAD = 600, 40, -1e8
EARLY = {1: True, 2: False, 3: "never"}  # by the value of attn_generate_options.early_stopping
NUMBERS = ("salt", "vocab", "doublings", "beams", "early_stopping", "length_penalty", "repetition_penalty",
           "no_repeat_ngram", "min_length", "min_new", "max_new")
LISTS = ("prompt", "end", "suppressed", "suppressed_first", "bad_words", "forced_first", "forced_last", "answer")
MASK = (1 << 64) - 1


def hash_tokens(salt, tokens):
    """hash_tokens of fake_model.c."""
    value = (salt * 0x9E3779B97F4A7C15 + 1) & MASK
    for token in tokens:
        value = ((value ^ token) * 0xFF51AFD7ED558CCD) & MASK
        value ^= value >> 29
    return value


def logits_of(case, text, shift):
    """ruled_logits of test_generate_rules.c, and a constant."""
    row, whole = [], hash_tokens(case["salt"], text)
    for token in range(case["vocab"]):
        coarse = (hash_tokens(case["salt"], (text[-1], token, 7)) >> 52) / 512 - 4
        fine = (hash_tokens(whole, (token, 7, 7)) >> 51) / (1 << 17)
        row.append((coarse + fine) * 2.0 ** case["doublings"] + shift)
    return row


class Config(transformers.PreTrainedConfig):
    model_type = "hashed"


class Hashed(transformers.PreTrainedModel, GenerationMixin):
    """Gives the logits of logits_of."""
    config_class = Config

    def __init__(self, case, shift):
        super().__init__(Config(vocab_size=case["vocab"]))
        self.case, self.shift = case, shift
        self.nothing = torch.nn.Parameter(torch.zeros(1))

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **_):
        return {"input_ids": input_ids}

    def forward(self, input_ids, attention_mask=None, return_dict=True):
        rows = [logits_of(self.case, text, self.shift) for text in input_ids.tolist()]
        return CausalLMOutput(logits=torch.tensor(rows, dtype=torch.float32)[:, None, :])


def words_of(flat):
    words = [[]]
    for token in flat:
        if token == -1:
            words.append([])
        else:
            words[-1].append(token)
    return words[:-1]


def generation_of(case):
    single = case["beams"] == 1
    given = {
        "end": ("eos_token_id", case["end"]), "suppressed": ("suppress_tokens", case["suppressed"]),
        "suppressed_first": ("begin_suppress_tokens", case["suppressed_first"]),
        "bad_words": ("bad_words_ids", words_of(case["bad_words"])),
        "forced_last": ("forced_eos_token_id", case["forced_last"]),
        "forced_first": ("forced_bos_token_id", case["forced_first"][0] if case["forced_first"] else None),
        "min_length": ("min_length", case["min_length"]), "min_new": ("min_new_tokens", case["min_new"]),
        "no_repeat_ngram": ("no_repeat_ngram_size", case["no_repeat_ngram"])}
    set_options = {name: value for key, (name, value) in given.items() if case[key]}
    if not single:
        set_options.update(early_stopping=EARLY[case["early_stopping"]], length_penalty=case["length_penalty"])
    return transformers.GenerationConfig(
        max_new_tokens=case["max_new"], num_beams=case["beams"], do_sample=False, pad_token_id=0, use_cache=False,
        repetition_penalty=case["repetition_penalty"], return_dict_in_generate=True, output_scores=True, **set_options)


def answer(case, shift=0.0):
    """The new tokens, whether they end for want of a token, and the score."""
    model = Hashed(case, shift)
    prompt = torch.tensor([case["prompt"]])
    with torch.no_grad():
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=generation_of(case))
    new = out.sequences[0].tolist()[len(case["prompt"]):]
    new = new[:next((i + 1 for i, token in enumerate(new) if token in case["end"]), len(new))]
    if case["beams"] > 1:
        score = float(out.sequences_scores[0])
        return ([], 1, 0.0) if score < DEAD else (new, 0, score)
    for i, row in enumerate(out.scores):
        if torch.isneginf(row).all():
            return new[:i], 1, 0.0
    return new, 0, 0.0


def case_of(draw):
    vocab = draw.randint(12, 24)

    def some(chance, most, least=1):
        return draw.sample(range(vocab), draw.randint(least, most)) if draw.random() < chance else []

    plain = draw.random() < 0.2
    rule = 0.0 if plain else 0.3
    words = [[draw.randrange(vocab) for _ in range(draw.choice((1, 1, 2, 2, 3)))] for _ in range(draw.randint(1, 12))]
    minimum = draw.choice(("min_length", "min_new", "", ""))
    case = {
        "salt": draw.getrandbits(32), "vocab": vocab, "doublings": draw.choice((-2, -1, 0, 0, 1, 2)),
        "beams": draw.choice((1, 2, 3, 4, 5)), "early_stopping": draw.choice((1, 2, 3)),
        "length_penalty": draw.choice((-1.0, -0.5, 0.0, 0.5, 1.0, 1.0, 2.0)),
        "repetition_penalty": draw.choice((0.75, 1.1, 1.3, 2.0)) if draw.random() < rule else 1.0,
        "no_repeat_ngram": draw.choice((1, 2, 2, 3, 3, 4)) if draw.random() < rule else 0,
        "prompt": [draw.randrange(vocab) for _ in range(draw.choice((1, 1, 2, 3, 5, 9)))],
        "end": some(0.8, 4), "suppressed": some(rule, 4), "suppressed_first": some(rule, 5),
        "bad_words": [token for word in words for token in [*word, -1]] if draw.random() < rule else [],
        "forced_first": some(rule, 1), "forced_last": some(rule, 2), "max_new": draw.choice((1, 4, 8, 12, 16))}
    for name in ("forced_first", "forced_last"):  # transformers refuses a forced token that is suppressed
        case[name] = [token for token in case[name] if token not in case["suppressed"]]
    if case["beams"] > 1:
        del case["forced_last"][1:]  # several have equal scores, and then topk takes one of them without a rule
    case["min_length"] = draw.randint(1, 16) if minimum == "min_length" else 0
    case["min_new"] = draw.randint(1, case["max_new"]) if minimum == "min_new" else 0
    return case


def ends_of(draw):
    """Cases without rules that differ in the end of the search alone, and whose answers are not all the same."""
    while True:
        case = {**case_of(draw), "beams": draw.randint(2, 3), "repetition_penalty": 1.0, "max_new": 16,
                "length_penalty": draw.choice((0.5, 1.0, 2.0))}
        case.update({name: 0 for name in ("no_repeat_ngram", "min_length", "min_new")})
        case.update({name: [] for name in LISTS if name not in ("prompt", "end")})
        cases = [{**case, "early_stopping": early} for early in EARLY]
        if len({tuple(answer(each)[0]) for each in cases}) > 1:
            return cases


def main():
    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    draw, lines, left_out = random.Random(46), [], 0
    cases = [case_of(draw) for _ in range(CASES)] + [case for _ in range(ENDS) for case in ends_of(draw)]
    for case in cases:
        new, status, score = answer(case)
        if case["beams"] > 1 and answer(case, 1 / 3)[:2] != (new, status):
            left_out += 1
            continue
        case["answer"] = new
        numbers = [repr(case[name]) for name in NUMBERS]
        lists = [" ".join(map(str, [len(case[name]), *case[name]])) for name in LISTS]
        lines.append(" ".join([*numbers, *lists, str(status), f"{score:.7g}"]))
    with open(os.path.join(HERE, "rules.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    print(f"{len(lines)} cases, {left_out} left out")


if __name__ == "__main__":
    main()
