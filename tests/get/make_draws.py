#!/usr/bin/env python3
"""Writes tests/get/draws.json: what sampling and beam search of transformers give with the options of the programs that
attnc get writes. Needs torch and transformers 5.24.

    tests/get/make_draws.py

draws.json has "model", "prompt" and "ends", the tokens that end the text of a search, and three lists:
- "sampled": {"words", "pairs": [[a, b, probability], ...]}, the probabilities of the first two new tokens by the logits
  processors of transformers in float64; b is -1 where a ends the text.
- "searched": {"words", "out"}, the new tokens of a greedy search or of beams in float64.
- "heard": {"model", "sound", "words", "firsts": {word: probability}}, the first word of a text that a Whisper samples,
  by the logits processors of transformers in float64; that of the end stands for a text without a word.
The words are options of a program."""
import json
import os
import random
import sys
import tempfile
import wave

import numpy as np
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
SOUNDS = os.path.join(HERE, "../parity/sounds")
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from fixtures import copied  # noqa: E402
from parity.make_sounds import FRAMES, FRENCH, NO_TIMES, START, TRANSCRIBE, spectrogram  # noqa: E402

MODEL, PROMPT, END = "llama_odd", [3, 5, 3, 9], 2
ENDS, PAD = [2, 17, 33, 21], 0  # of searches
COMBINED, BEAMED = 10, 12
RARE = 3e-6  # a beginning of times that is less probable is left out
SURE = 1e-3  # no bound of a rule lies that near to a probability, relative to it
NAMES = {"--temperature": "temperature", "--top-k": "top_k", "--top-p": "top_p", "--min-p": "min_p",
         "--repeat-penalty": "repetition_penalty", "--beams": "num_beams", "--length-penalty": "length_penalty",
         "--no-repeat-ngram": "no_repeat_ngram_size", "--min-new": "min_new_tokens"}
SINGLE = ({"--temperature": 0.4}, {"--temperature": 1}, {"--temperature": 3}, {"--temperature": 2, "--top-k": 4},
          {"--temperature": 1, "--top-k": 1}, {"--temperature": 2, "--top-p": 0.5},
          {"--temperature": 1.5, "--top-p": 1},
          {"--temperature": 2, "--min-p": 0.3}, {"--temperature": 1.5, "--repeat-penalty": 1.8},
          {"--temperature": 1, "--repeat-penalty": 0.6}, {"--temperature": 2, "--no-repeat-ngram": 1},
          {"--temperature": 2, "--min-new": 2, "--top-k": 9})
WHISPERS = (("several", 1, ["--temperature", "0,1.5", "--logprob-threshold", "0"]),
            ("several", 1, ["--temperature", "0.7"]), ("several", 1, ["--temperature", "0,0,1", "--fallback",
                                                                     "--logprob-threshold", "0"]))


def combined(rnd):
    makers = {"--top-k": lambda: rnd.randrange(2, 20), "--top-p": lambda: round(rnd.uniform(0.3, 0.95), 2),
              "--min-p": lambda: round(rnd.uniform(0.02, 0.4), 2),
              "--repeat-penalty": lambda: round(rnd.uniform(0.6, 2), 2)}
    names = rnd.sample(sorted(makers), rnd.randrange(2, 5))
    return {"--temperature": round(rnd.uniform(0.5, 3), 2), **{name: makers[name]() for name in names}}


def beamed(rnd):
    found = {}
    if rnd.random() < 0.8:
        found["--beams"] = rnd.randrange(2, 6)
        if rnd.random() < 0.7:
            found["--length-penalty"] = round(rnd.uniform(-2, 2), 2)
    if "--beams" not in found or rnd.random() < 0.5:
        found["--repeat-penalty"] = round(rnd.uniform(0.7, 2), 2)
    return found


def spelled(options):
    """The words of options. The value "" stands for none."""
    return [word for name, value in options.items() for word in (name, str(value)) if word != ""]


def rows_of(model, texts, options, earlier):
    """The probabilities of the tokens after texts of one length, whose last `earlier` tokens are new."""
    given = {NAMES[name]: float(value) if name == "--temperature" else value for name, value in options.items()}
    if "min_new_tokens" in given:
        given["min_new_tokens"] = min(given["min_new_tokens"] - earlier, 1)  # of the one that is new here
    ids = torch.tensor(texts)
    with torch.no_grad():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=1, do_sample=True,
                             output_scores=True, return_dict_in_generate=True, pad_token_id=0, **{"top_k": 0, **given})
    return out.scores[0].double().softmax(-1).tolist()


def pairs_of(model, options):
    """The probabilities of pairs of tokens."""
    (firsts,) = rows_of(model, [PROMPT], options, 0)
    seconds = rows_of(model, [[*PROMPT, a] for a in range(len(firsts))], options, 1)
    pairs = []
    for a, first in enumerate(firsts):
        if a == END and first:
            pairs.append([a, -1, first])
        elif first:
            pairs += [[a, b, first * p] for b, p in enumerate(seconds[a]) if p]
    return pairs


def is_sure(model, options, pairs):
    """Whether a temperature that is a little different leaves the same tokens."""
    seen = {(a, b) for a, b, _ in pairs}
    return all({(a, b) for a, b, _ in pairs_of(model, {**options, "--temperature": options["--temperature"] * scale})}
               == seen for scale in (1 - SURE, 1 + SURE))


def sampled(model):
    for options in (*SINGLE, *(combined(random.Random(i)) for i in range(COMBINED))):
        pairs = pairs_of(model, options)
        if is_sure(model, options, pairs):
            print(options, len(pairs), "pairs")
            yield {"words": spelled(options), "pairs": [[a, b, round(p, 9)] for a, b, p in pairs]}


def searched(model):
    for i in range(BEAMED):
        options = beamed(random.Random(i))
        ids = torch.tensor([PROMPT])
        with torch.no_grad():
            out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False,
                                 eos_token_id=ENDS, pad_token_id=PAD,
                                 **{NAMES[name]: value for name, value in options.items()})
        new = [token for token in out[0].tolist()[len(PROMPT):] if token != PAD]
        print(options, new)
        yield {"words": spelled(options), "out": new}


def heard(name, sound, words):
    """The first word of a text without times. Tokens of times that come before it are no words."""
    folder = os.path.join(SOUNDS, name)
    model = transformers.WhisperForConditionalGeneration.from_pretrained(
        folder, attn_implementation="eager").double().eval()
    rules = model.generation_config
    processors = transformers.LogitsProcessorList([
        transformers.SuppressTokensLogitsProcessor(rules.suppress_tokens),
        transformers.SuppressTokensAtBeginLogitsProcessor(rules.begin_suppress_tokens, 4),
        transformers.TemperatureLogitsWarper(float(words[words.index("--temperature") + 1].split(",")[-1]))])
    with wave.open(os.path.join(folder, "%d.wav" % sound)) as file:
        mel = spectrogram(np.frombuffer(file.readframes(file.getnframes()), "<i2"))
    firsts, before = [0.0] * (NO_TIMES + 1), {(START, FRENCH, TRANSCRIBE, NO_TIMES): 1.0}
    with torch.no_grad():
        source = model.model.encoder(mel[:, :, :FRAMES]).last_hidden_state
        while before:
            ids = torch.tensor(list(before))
            rows = model(encoder_outputs=(source.expand(len(before), -1, -1),), decoder_input_ids=ids).logits[:, -1]
            rows, later = processors(ids, rows).softmax(-1).tolist(), {}
            for (text, share), row in zip(before.items(), rows):
                for token, p in enumerate(row):
                    if token <= NO_TIMES:
                        firsts[token] += share * p
                    elif share * p > RARE:
                        later[(*text, token)] = share * p
            before = later
    print(name, sound, words, sum(firsts))
    return {"model": name, "sound": sound, "words": words,
            "firsts": {i: round(p / sum(firsts), 9) for i, p in enumerate(firsts) if p}}


def main():
    with tempfile.TemporaryDirectory() as folder:
        copied(MODEL, folder)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").double().eval()
        found = {"model": MODEL, "prompt": PROMPT, "ends": ENDS, "sampled": list(sampled(model)),
                 "searched": list(searched(model)), "heard": [heard(*case) for case in WHISPERS]}
    with open(os.path.join(HERE, "draws.json"), "w", encoding="utf-8") as file:
        json.dump(found, file)
        file.write("\n")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    main()
