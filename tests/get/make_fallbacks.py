#!/usr/bin/env python3
"""Writes tests/get/fallbacks.json: for a model and sounds of tests/parity/sounds, what `generate` of transformers
decides in float64 with thresholds and temperatures: the temperature at which each window's text is accepted, the
windows that are silence, the segments, and what was measured of them. Thresholds lie between measured values, so that
windows fall on both of their sides, and a temperature of 1e-6 samples the most probable tokens. Needs torch and
transformers 5.24.

    tests/get/make_fallbacks.py

fallbacks.json is a list of {"model", "sound", "folder", "words", "windows", "segments"}. `folder` has keys
of generation_config.json, `words` are options of the program, a window is [begin, end, attempts, temperature, silent],
and a segment [begin, end, words, log probability, compression, no speech]."""
import contextlib
import json
import os
import sys
import wave

import numpy as np
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
SOUNDS = os.path.join(HERE, "../parity/sounds")
sys.path.insert(0, os.path.dirname(HERE))
from parity.make_sounds import NO_TIMES, Margins, spectrogram  # noqa: E402

NAME, NEAR, SURE = "several", 2e-3, 2e-3
TINY = 1e-6
NEVER = {"logprob_threshold": -1e9, "compression_ratio_threshold": 1e9, "no_speech_threshold": 1.0}


class Watch:
    """The windows of a call of generate, with what is measured and decided of each attempt."""
    def __init__(self, model, thresholds):
        self.model, self.thresholds, self.windows, self.nearest = model, thresholds, [], float("inf")
        self.own = {name: getattr(type(model), name) for name in ("_need_fallback", "_retrieve_segment",
                                                                  "_get_input_segment")}
        for name in self.own:
            setattr(model, name, getattr(self, name))

    def _get_input_segment(self, **given):
        begin, count = int(given["seek"][0]), int(given["seek_num_frames"][0])
        self.windows.append({"begin": begin / 100, "end": (begin + count) / 100, "attempts": 0})
        return self.own["_get_input_segment"](**given)

    def _need_fallback(self, tokens, outputs, index, processors, config, vocab, temperature):
        found = self.own["_need_fallback"](self.model, tokens, outputs, index, processors, config, vocab, temperature)
        silence = next(p for p in processors if type(p).__name__ == "WhisperNoSpeechDetection")
        window = self.windows[-1]
        window.update(attempts=window["attempts"] + 1, temperature=temperature, silent=found[1], values={
            "logprob_threshold": float(self.model._retrieve_avg_logprobs(outputs[index]["scores"], tokens,
                                                                         temperature)),
            "compression_ratio_threshold": self.model._retrieve_compression_ratio(tokens, vocab),
            "no_speech_threshold": float(silence.no_speech_prob[index])})
        for key, value in window["values"].items():
            self.nearest = min(self.nearest, abs(value - self.thresholds[key]) / (1 + abs(value)))
        return found

    def _retrieve_segment(self, **given):
        segments, offset = self.own["_retrieve_segment"](**given)
        for segment in segments:
            segment["values"] = self.windows[-1]["values"]
        return segments, offset


def called(model, mel, temperatures, thresholds, **options):
    """The windows and segments, and the least distance of a choice from another one."""
    watch, margins = Watch(model, thresholds), Margins()
    with torch.no_grad(), contextlib.redirect_stdout(None):
        out = model.generate(mel, return_segments=True, return_dict_in_generate=True, top_k=0, temperature=temperatures,
                             logits_processor=[margins], **thresholds, **options)
    segments = []
    for s in out["segments"][0] if "segments" in out else ():
        words = [int(i) for i in s["tokens"] if i <= NO_TIMES]
        if words:
            segments.append([round(float(s["start"]), 3), round(float(s["end"]), 3), words, *s["values"].values()])
    return watch, segments, min(margins.least, watch.nearest)


def between(values):
    """Numbers between neighbours of the sorted values, those in the widest gaps first."""
    values = sorted(set(values))
    gaps = sorted(((b - a, (a + b) / 2) for a, b in zip(values, values[1:])), reverse=True)
    return [round(middle, 4) for gap, middle in gaps if gap > 4 * NEAR]


def decided(name, model, mels, options):
    """Calls of each kind whose decisions differ between windows."""
    plain = [called(model, mel, (0.0,), NEVER, **options)[0].windows for mel in mels]
    values = {key: between([w["values"][key] for windows in plain for w in windows]) for key in NEVER}
    kinds = ((("logprob_threshold",), (0.0, TINY)), (("compression_ratio_threshold",), (0.0, TINY, 2 * TINY)),
             (("no_speech_threshold", "logprob_threshold"), (0.0,)), (tuple(NEVER), (0.0, TINY)))
    for keys, temperatures in kinds:
        for rank in range(4):
            chosen = {key: values[key][min(rank, len(values[key]) - 1)] for key in keys}
            calls = [called(model, mel, temperatures, {**NEVER, **chosen}, **options) for mel in mels]
            seen = {(w["attempts"], w["silent"]) for watch, _, _ in calls for w in watch.windows}
            if min(least for _, _, least in calls) > SURE and len(seen) > 1 and \
                    ("no_speech_threshold" not in keys or any(silent for _, silent in seen)):
                break
        else:
            print(name, keys, "tells nothing")
            continue
        print(name, chosen, temperatures, seen)
        words = ["--temperature", ",".join("%g" % t for t in temperatures)]
        for key, flag in (("logprob_threshold", "--logprob-threshold"),
                          ("no_speech_threshold", "--no-speech-threshold")):
            words += [flag, "%g" % chosen[key] if key in chosen else "none"]
        folder = {key: value for key, value in chosen.items() if key == "compression_ratio_threshold"}
        if not folder:
            words += ["--compression-threshold", "none"]
        for i, (watch, segments, _) in enumerate(calls):
            yield {"model": name, "sound": i, "folder": folder, "words": words, "segments": segments,
                   "windows": [[w["begin"], w["end"], w["attempts"], w["temperature"], w["silent"]]
                               for w in watch.windows]}


def main():
    folder, mels = os.path.join(SOUNDS, NAME), []
    model = transformers.WhisperForConditionalGeneration.from_pretrained(
        folder, attn_implementation="eager").double().eval()
    while os.path.exists(os.path.join(folder, "%d.wav" % len(mels))):
        with wave.open(os.path.join(folder, "%d.wav" % len(mels))) as file:
            mels.append(spectrogram(np.frombuffer(file.readframes(file.getnframes()), "<i2")))
    found = list(decided(NAME, model, mels, {"return_timestamps": True, "task": "transcribe"}))
    with open(os.path.join(HERE, "fallbacks.json"), "w", encoding="utf-8") as file:
        json.dump(found, file)
        file.write("\n")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    main()
