"""Samples to spectrograms and words: against forward, and against what transformers writes for the sounds of
tests/parity/sounds."""
import json
import math
import os
import wave
import zlib

import numpy as np

from lib.attnc import TESTS, attnc
from states import raises


def sounds(packages, name, *options, ear="ear_"):
    """The package of a model of tests/parity/sounds, whose name begins with `ear`, and its folder."""
    folder, spec = os.path.join(TESTS, "parity", "sounds", name), packages.path(ear + name + ".attn")
    attnc("import", folder, "-o", spec, "--name", ear + name, status=0)
    return packages.get(spec, *options, weights=folder), folder


def read(folder, name):
    """The samples of a WAVE file, or the object of a JSON file."""
    if name.endswith(".json"):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return json.load(file)
    with wave.open(os.path.join(folder, name)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def spectrograms(packages):
    """A window is cut or continued by silence, and is what the encoder reads."""
    module, folder = sounds(packages, "several")
    model, samples = module.load(), read(folder, "0.wav")
    mel = model.spectrogram(samples)
    assert mel.dtype == np.float32 and mel.ndim == 2 and np.isfinite(mel).all(), mel
    frames = mel.shape[1]
    short = samples[:80 * frames]
    np.testing.assert_array_equal(model.spectrogram(short),
                                  model.spectrogram(np.concatenate([short, np.zeros(80 * frames, np.float32)])))
    np.testing.assert_array_equal(mel, model.spectrogram(samples.astype(np.float64)))
    np.testing.assert_array_equal(mel, model.spectrogram(list(map(float, samples))))
    assert model.forward(mel=mel, target=[31])["logits"].shape[0] == 1
    for wrong in ([], np.zeros(0, np.float32), np.zeros((2, 400), np.float32)):
        raises(ValueError, "samples", model.spectrogram, wrong)
    for wrong in (np.zeros(400, np.int16), "sound", None, 3):
        raises(TypeError, "samples", model.spectrogram, wrong)
    longer = np.resize(samples, 160 * frames + 100)  # a spectrogram of the package has a window's samples alone
    np.testing.assert_array_equal(model.spectrogram(longer), model.spectrogram(longer[:160 * frames]))
    for odd in (np.nan, np.inf, -np.inf):
        wrong = samples.copy()
        wrong[100] = odd
        raises(ValueError, "sample 100 is NaN or infinite", model.spectrogram, wrong)
        raises(ValueError, "sample 100 is NaN or infinite", model.transcribe, wrong,
               config=read(folder, "generation_config.json"))


def transcribes(packages):
    """The segments that generate of transformers writes, with the languages, tasks and times of its config."""
    calls = {"plain": {"times": False}, "times": {}, "translate": {"times": False, "task": "translate",
                                                                   "language": "fr"}, "french": {"language": "fr"}}
    for name, options in (("several", ()), ("single", ("--tokenizer",))):
        folder = os.path.join(TESTS, "parity", "sounds", name)
        module, folder = sounds(packages, name, *[word for option in options for word in (option, folder)])
        model, config = module.load(), read(folder, "generation_config.json")
        for i, told in enumerate(read(folder, "told.json")):
            samples = read(folder, "%d.wav" % i)
            for call, segments in told.items():
                found = model.transcribe(samples, config, **calls[call])
                assert [list(one["tokens"]) for one in found] == [words for _, _, words in segments], (name, i, call)
                if calls[call].get("times", True):
                    np.testing.assert_allclose([(one["begin"], one["end"]) for one in found],
                                               [times for *times, _ in segments], atol=1e-6)
                texts = [" ".join("w%d" % word for word in words) for _, _, words in segments]
                assert [one.get("text") for one in found] == (texts if options else [None] * len(texts)), found
    assert len(found) > 4 or len(told["times"]) > 4, "a sound of several windows"


def falls_back(packages):
    """The temperatures, thresholds and silences of generate of transformers, by tests/get/make_fallbacks.py."""
    with open(os.path.join(TESTS, "get", "fallbacks.json"), encoding="utf-8") as file:
        cases = json.load(file)
    folder = os.path.join(TESTS, "parity", "sounds", "several")
    module, folder = sounds(packages, "several", "--tokenizer", folder, ear="patient_")
    model, plain = module.load(), read(folder, "generation_config.json")
    seen = set()
    for case in cases:
        words, given = dict(zip(case["words"][::2], case["words"][1::2])), {}
        none = {"logprob": -math.inf, "compression": math.inf, "no-speech": 1}
        for name, number in none.items():
            word = words.get("--%s-threshold" % name)
            if word is not None:
                given[name.replace("-", "_") + "_threshold"] = number if word == "none" else float(word)
        temperatures = [float(t) for t in words["--temperature"].split(",")]
        samples = read(folder, "%d.wav" % case["sound"])
        found = model.transcribe(samples, {**plain, **case["folder"]}, temperature=temperatures, **given)
        assert [list(s["tokens"]) for s in found] == [s[2] for s in case["segments"]], (case, found)
        np.testing.assert_allclose([(s["begin"], s["end"], s["avg_logprob"], s["no_speech_prob"]) for s in found],
                                   [(s[0], s[1], s[3], s[5]) for s in case["segments"]], atol=1e-4)
        if case["folder"]:  # else the text is measured, and no token's id
            np.testing.assert_allclose([s["compression_ratio"] for s in found], [s[4] for s in case["segments"]])
        at = {}
        for begin, end, attempts, temperature, silent in case["windows"]:
            seen.add((attempts, silent))
            at[begin, end] = temperature
        for s in found:
            assert any(begin <= s["begin"] and s["temperature"] == t for (begin, _), t in at.items()), (s, at)
        assert {s["temperature"] for s in found} <= set(at.values()), (found, at)
    assert seen >= {(1, False), (2, False), (3, False), (1, True)}, seen
    samples = read(folder, "1.wav")
    (only,) = model.transcribe(samples, plain, temperature=0, compression_threshold=2.4)
    text = only["text"].encode()
    np.testing.assert_allclose(only["compression_ratio"], len(text) / len(zlib.compress(text)), rtol=1e-6)
    assert model.transcribe(samples, plain, fallback=True), "nothing after a fallback"
    assert "temperature" not in model.transcribe(samples, plain)[0], "nothing is measured without a threshold"
    draws = {tuple(model.transcribe(samples, plain, temperature=1.5, seed=i)[0]["tokens"]) for i in range(20)}
    assert len(draws) > 5, draws
    for seed in (3, 2 ** 64 - 1):
        ours, again = (model.transcribe(samples, plain, temperature=1.5, seed=seed) for _ in range(2))
        assert [list(s["tokens"]) for s in ours] == [list(s["tokens"]) for s in again], seed
    for name, value in (("temperature", []), ("temperature", -1), ("temperature", [0, math.nan]),
                        ("temperature", 33 * [0]), ("temperature", math.inf), ("logprob_threshold", 1),
                        ("compression_threshold", -1), ("no_speech_threshold", 1.1), ("no_speech_threshold", math.nan)):
        raises(ValueError, name, model.transcribe, samples, plain, **{name: value})
    for name, value in (("temperature", "warm"), ("temperature", ["0"]), ("logprob_threshold", "none"),
                        ("compression_threshold", [2.4])):
        raises(TypeError, name, model.transcribe, samples, plain, **{name: value})
    raises(TypeError, "seed: an int", model.transcribe, samples, plain, temperature=1, seed=1.5)
    for seed in (-1, 2 ** 64):
        raises(ValueError, "seed: ", model.transcribe, samples, plain, temperature=1, seed=seed)
    raises(ValueError, "seed: it has no effect", model.transcribe, samples, plain, seed=3)
    raises(TypeError, "no_speech_threshold", model.transcribe, samples, {**plain, "no_speech_threshold": "high"})
    bare = sounds(packages, "several")[0].load()
    raises(ValueError, "no tokenizer", bare.transcribe, samples, plain, fallback=True)
    assert bare.transcribe(samples, plain, fallback=True, compression_threshold=math.inf), "one measure less"


def deaf(packages):
    """What transcribe refuses."""
    module, folder = sounds(packages, "several")
    model, config, samples = module.load(), read(folder, "generation_config.json"), read(folder, "0.wav")

    def with_config(**changes):
        return {**config, **changes}

    for words, wrong in (
            ("'no_timestamps_token_id' has -3, which is no token", with_config(no_timestamps_token_id=-3)),
            ("'no_timestamps_token_id' has 'a', which", with_config(no_timestamps_token_id="a")),
            ("suppress_tokens: 99", with_config(suppress_tokens=[3, 99])),
            ("'task_to_id' is no dict", with_config(task_to_id=[3])),
            ("'transcribe' has 1000000000000000000000", with_config(task_to_id={"transcribe": 10 ** 21}))):
        raises(ValueError, words, model.transcribe, samples, wrong)
    for words, wrong in (("config: the dict", "generation_config.json"), ("config: the dict", [1]),
                         ("begin_suppress_tokens", with_config(begin_suppress_tokens="all")),
                         ("lang_to_id", with_config(lang_to_id={"<|fr|>": 10 ** 21}))):
        raises(TypeError, words, model.transcribe, samples, wrong)
    raises(ValueError, "language: the config has no 'xx'", model.transcribe, samples, config, language="xx")
    raises(ValueError, "task: the config has no 'sing'", model.transcribe, samples, config, task="sing")
    raises(TypeError, "language: a str is wanted", model.transcribe, samples, config, language=3)
    raises(TypeError, "task: a str is wanted", model.transcribe, samples, config, task=3)
    raises(TypeError, "needs samples and config", model.transcribe, samples)
    raises(TypeError, "no argument 'speed'", model.transcribe, samples, config, speed=2)
    raises(TypeError, "no argument 'config' twice", model.transcribe, samples, config, config=config)
    raises(TypeError, "without names", model.transcribe, samples, config, "fr")
    raises(ValueError, "samples", model.transcribe, [], config)
    raises(TypeError, "samples: float32 or another floating-point type is wanted, found int16",
           model.transcribe, samples.astype(np.int16), config)
    vocab = model.forward(mel=model.spectrogram(samples), target=[31])["logits"].shape[1]
    raises(module.Error, "no token", model.transcribe, samples, with_config(suppress_tokens=list(range(vocab))))
    assert model.transcribe(samples, config), "it works after errors"
    plain = packages.get("seq2seq_odd").load()
    assert not hasattr(plain, "transcribe") and not hasattr(plain, "spectrogram")
