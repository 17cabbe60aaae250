#!/usr/bin/env python3
"""Writes tests/decode/beams.json: what the beam search of Hugging Face transformers 5.23 answers, for several length
penalties, with models of tests/parity/fixtures in float64 and end tokens drawn at random. Needs torch and transformers.

A case has two penalties, close to each other, between which the answer changes: another count of tokens, by one or by
the prompt, would put that change elsewhere. It is kept where it says nothing of anything else:
- the best text leads the second best clearly (CLEAR);
- `early_stopping` is "never", so that the search stops only where nothing can become better;
- transformers lets a text end only where its rank among all continuations is within the number of beams. Cases whose
  answer depends on that rule, found by a second search without it, are left out."""
import json
import os

import numpy
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(os.path.dirname(HERE), "parity", "fixtures")
MODELS = ("llama_odd", "gpt2_odd", "bart_odd", "t5_odd")
LEAST, MOST, NEAR, NEW, CASES, TRIES, CLEAR = 0.0, 3.0, 0.1, 10, 3, 200, 1e-3


def open_model(name):
    folder = os.path.join(FIXTURES, name)
    config = transformers.AutoConfig.from_pretrained(folder)
    model = getattr(transformers, config.architectures[0]).from_pretrained(folder, attn_implementation="eager")
    model.generation_config = transformers.GenerationConfig()
    return model.double().eval()


def answer(model, ids, ends, beams, penalty, free):
    """The new tokens and how far their score leads; `free` takes the rule about ranks away."""
    config = model.config
    how = transformers.GenerationConfig(
        num_beams=beams, length_penalty=penalty, early_stopping="never", max_new_tokens=NEW, do_sample=False,
        eos_token_id=ends, pad_token_id=0, decoder_start_token_id=getattr(config, "decoder_start_token_id", None),
        num_return_sequences=2, return_dict_in_generate=True, output_scores=True)
    update = type(model)._update_finished_beams
    if free:
        model._update_finished_beams = lambda **given: update(
            model, **{**given, "top_num_beam_mask": torch.ones_like(given["top_num_beam_mask"])})
    with torch.no_grad():
        out = model.generate(torch.tensor([ids]), generation_config=how)
    if free:
        del model._update_finished_beams
    new = out.sequences[0].tolist()[1 if config.is_encoder_decoder else len(ids):]
    count = next((i + 1 for i, token in enumerate(new) if token in ends), len(new))
    lead = out.sequences_scores[0] - out.sequences_scores[1]
    return new[:count], float(lead) / (1 + abs(float(out.sequences_scores[0])))


def case_of(model, random):
    vocab = model.config.vocab_size
    ids = random.randint(3, vocab, size=random.randint(2, 8)).tolist()
    ends = sorted(set(random.randint(3, vocab, size=random.randint(1, 9)).tolist()))
    beams, penalties = int(random.choice((2, 3, 4))), [LEAST, MOST]
    found = [answer(model, ids, ends, beams, penalty, False) for penalty in penalties]
    while found[0][0] != found[1][0] and penalties[1] - penalties[0] > NEAR:
        middle = sum(penalties) / 2
        there = answer(model, ids, ends, beams, middle, False)
        side = 0 if there[0] == found[0][0] else 1
        penalties[side], found[side] = middle, there
    for penalty, (new, lead) in zip(penalties, found):
        if found[0][0] == found[1][0] or lead < CLEAR or answer(model, ids, ends, beams, penalty, True)[0] != new:
            return None
    return {"ids": ids, "end": ends, "beams": beams, "penalties": penalties, "answers": [new for new, _ in found]}


def main():
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    models = {}
    for name in MODELS:
        model, random, cases = open_model(name), numpy.random.RandomState(1), []
        for _ in range(TRIES):
            case = case_of(model, random)
            cases += [case] if case else []
            if len(cases) == CASES:
                break
        models[name] = cases
    lines = ['{"transformers": "%s", "max_new": %d, "models": {' % (transformers.__version__, NEW)]
    for i, (name, cases) in enumerate(models.items()):
        lines.append('"%s": [' % name)
        lines.append(",\n".join(json.dumps(case) for case in cases))
        lines.append("]" + ("," if i + 1 < len(models) else "}}"))
    with open(os.path.join(HERE, "beams.json"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
