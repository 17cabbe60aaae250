"""Specs with a block `generation`, for what carries the search of the spec: packages, crates and pages."""
import os
import re

DECODER = """model %s {
    d_model 32
    vocab 41
    norm rmsnorm pre
    start 1
    end 2 33
    decoder {
        seq <= 48
        layers 2 { attention self { heads 4, kv_heads 2, mask causal, position rope }
                   ffn { d_ff 64, activation silu gated } }
    }
    head logits
    generation { %s }
}
"""
BOTH = """model %s {
    d_model 24
    vocab 41
    start 1
    end 2
    encoder {
        seq <= 24
        position learned
        layers 1 { attention self { heads 2 }
                   ffn { d_ff 40 } }
    }
    decoder {
        seq <= 32
        position learned
        layers 2 { attention self { heads 2, mask causal }
                   attention cross { heads 2 }
                   ffn { d_ff 40 } }
    }
    head logits
    generation { %s }
}
"""
PENALTIES = """repetition_penalty 1.7, no_repeat_ngram 2, min_new 3, max_new 14
                 suppress 3 5
                 suppress_first 36
                 bad_word 19
                 bad_word 4 25
                 force_last 2
                 temperature 0.8, top_k 20"""
BEAMS = """beams 3, length_penalty 0.8, length_form power, early_stopping full
                 no_repeat_ngram 2, repetition_penalty 1.4, max_length 17"""
SAMPLED = "sample, temperature 1.3, top_k 12, top_p 0.9, min_p 0.03, repetition_penalty 1.2, min_length 9, max_new 12"
FORCED = """force_first 6
                 suppress_first 29
                 force_last 2
                 no_repeat_ngram 3, min_length 6, max_length 15"""

# By the names of the specs: the text, with the prompt and the source that are continued.
PROMPT, SOURCE = [7, 12, 7, 9], [3, 5, 7, 2, 9, 11]
SPECS = {"penalties": (DECODER, PENALTIES, PROMPT, None), "by_beams": (DECODER, BEAMS, PROMPT, None),
         "sampled": (DECODER, SAMPLED, PROMPT, None), "forced": (BOTH, FORCED, [1], SOURCE),
         "forced_beams": (BOTH, "beams 4, length_penalty 0\n                 " + FORCED, [1], SOURCE)}


def spec(folder, name):
    """The path of the spec, written into the folder."""
    text, block, _, _ = SPECS[name]
    path = os.path.join(folder, name + ".attn")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text % (name, block))
    return path


def without_search(text):
    """The text of an imported spec without its block `generation`."""
    return re.sub(r"\n    generation \{.*?\n    \}", "", text, flags=re.S)
