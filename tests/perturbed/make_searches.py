#!/usr/bin/env python3
"""Writes tests/perturbed/searches.json: for models of the archives BASE.zip, contents of generation_config.json (or the
same keys in config.json) drawn at random, and the tokens that transformers generates from the folder, by greedy search
or beams in float64; and for sampling, the probabilities of the first new token. Needs torch and transformers 5.23.

A case is {"name", "base", "generation" (null: no such file), "config" (keys added to config.json), "tokens" or
"source", "max_new", and "out" (the tokens with the prompt) or "probabilities"}."""
import json
import os
import random
import shutil
import sys
import tempfile
import warnings

import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from bases import BASES  # noqa: E402
from searches import Search  # noqa: E402

TEXTS = ("llama", "gpt2", "qwen2", "qwen3", "mistral", "gemma", "gemma2", "phi3", "gpt_neox", "opt", "bloom", "olmo2",
         "stablelm", "cohere", "starcoder2", "mpt")
PAIRS = ("t5", "mt5", "bart", "mbart", "marian", "pegasus", "m2m_100")
VOCABULARY, EACH, SAMPLED = 23, 10, 12
LEGACY = ("eos_token_id", "num_beams", "length_penalty", "early_stopping", "repetition_penalty",
          "no_repeat_ngram_size", "bad_words_ids", "min_length", "forced_eos_token_id", "forced_bos_token_id",
          "suppress_tokens", "begin_suppress_tokens")


def drawn(rnd, pair):
    """A generation_config.json."""
    def token():
        return rnd.randrange(4, VOCABULARY)

    def tokens(most):
        return [token() for _ in range(rnd.randrange(1, most))]
    makers = {
        "repetition_penalty": lambda: round(rnd.uniform(0.7, 2), 2),
        "no_repeat_ngram_size": lambda: rnd.randrange(1, 4),
        "min_length": lambda: rnd.randrange(1, 9), "min_new_tokens": lambda: rnd.randrange(1, 5),
        "suppress_tokens": lambda: tokens(6), "begin_suppress_tokens": lambda: tokens(6),
        "bad_words_ids": lambda: [tokens(3) for _ in range(rnd.randrange(1, 7))], "forced_eos_token_id": lambda: 2,
        "eos_token_id": lambda: [2] + tokens(4),
    }
    if pair:
        makers["forced_bos_token_id"] = token
    found = {"eos_token_id": 2, "pad_token_id": 1}
    found.update((key, makers[key]()) for key in sorted(makers) if rnd.random() < 0.35)
    if rnd.random() < 0.5:
        found["num_beams"] = rnd.randrange(2, 6)
        if rnd.random() < 0.6:
            found["early_stopping"] = rnd.choice([True, False, "never"])
        if rnd.random() < 0.6:
            found["length_penalty"] = round(rnd.uniform(-1, 2), 2)
    return found


def sampled(rnd):
    found = {"eos_token_id": 2, "do_sample": True, "temperature": round(rnd.uniform(0.5, 2), 2)}
    makers = {"top_k": lambda: rnd.randrange(2, 20), "top_p": lambda: round(rnd.uniform(0.4, 0.95), 2),
              "min_p": lambda: round(rnd.uniform(0.02, 0.4), 2), "repetition_penalty": lambda: 1.5,
              "suppress_tokens": lambda: [rnd.randrange(4, VOCABULARY) for _ in range(4)]}
    found.update((key, makers[key]()) for key in sorted(makers) if rnd.random() < 0.5)
    return found


def answer(case):
    """Adds what transformers gives for the case."""
    folder = tempfile.mkdtemp()
    try:
        Search(case).unpack(folder)
        cls = getattr(transformers, BASES[case["base"]][0])
        model = cls.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval().double()
        given = torch.tensor([case.get("source", case.get("tokens"))])
        with torch.no_grad():
            if "probabilities" in case:
                out = model.generate(given, max_new_tokens=1, output_scores=True, return_dict_in_generate=True,
                                     attention_mask=torch.ones_like(given))
                case["probabilities"] = [round(p, 9) for p in out.scores[0][0].softmax(-1).tolist()]
            else:
                out = model.generate(given, max_new_tokens=case["max_new"], do_sample=False,
                                     attention_mask=torch.ones_like(given))
                case["out"] = out[0].tolist()
    finally:
        shutil.rmtree(folder)


def cases():
    for base in TEXTS + PAIRS:
        for number in range(EACH):
            rnd = random.Random("%s %d" % (base, number))
            pair = base in PAIRS
            generation, config = drawn(rnd, pair), {}
            if pair:
                generation["decoder_start_token_id"] = 3
            if number == EACH - 1:  # a folder without generation_config.json
                config, generation = {k: v for k, v in generation.items() if k in LEGACY}, None
            forced = config.get("forced_bos_token_id", (generation or {}).get("forced_bos_token_id"))
            for holder in (config, generation or {}):  # transformers refuses to force what it suppresses
                if forced in holder.get("suppress_tokens", ()):
                    del holder["suppress_tokens"]
            given = [rnd.randrange(5, VOCABULARY) for _ in range(5)]
            yield {"name": "%s/search_%d" % (base, number), "base": base, "generation": generation, "config": config,
                   "source" if pair else "tokens": given, "max_new": rnd.randrange(3, 11)}
    for number in range(SAMPLED):
        rnd = random.Random(number)
        base = rnd.choice(TEXTS)
        yield {"name": "%s/sampled_%d" % (base, number), "base": base, "generation": sampled(rnd), "config": {},
               "tokens": [rnd.randrange(5, VOCABULARY) for _ in range(5)], "max_new": 1, "probabilities": []}


def main():
    transformers.logging.set_verbosity(50)
    warnings.simplefilter("ignore")
    found = list(cases())
    for case in found:
        answer(case)
    with open(os.path.join(HERE, "searches.json"), "w", encoding="utf-8") as file:
        file.write("[\n%s\n]\n" % ",\n".join(json.dumps(case) for case in found))
    print("%d cases, %d bases" % (len(found), len({case["base"] for case in found})))


if __name__ == "__main__":
    main()
