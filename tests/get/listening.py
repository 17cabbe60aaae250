"""The programs that attnc get writes for sounds: words, subtitles and JSON, thresholds, temperatures and files."""
import array
import json
import math
import os
import shutil
import struct
import wave
import zlib

from lib.attnc import TESTS, run
from writing import Writing


def seconds_of(path):
    with wave.open(path) as file:
        return file.getnframes() / file.getframerate()


def clamped(segments, seconds):
    """Segments [begin, end, ...] whose times are no later than the end of the sound."""
    return [[min(begin, seconds), min(end, seconds), *more] for begin, end, *more in segments]


class Listening(Writing):
    """Tests of the class that has `path`, `folder`, `get` and `lines`."""

    def listens(self, name, kind="", **changes):
        """The program of a model of tests/parity/sounds with these keys of generation_config.json."""
        folder = self.path("_".join(["listens", name, kind, *changes]))
        shutil.copytree(os.path.join(TESTS, "parity", "sounds", name), folder)
        path = os.path.join(folder, "generation_config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**config, **changes}, file)
        self.get(folder, "--name", "ear")
        return folder

    def test_transcribes(self):
        """What generate of transformers writes, by tests/parity/make_sounds.py."""
        flags = {"plain": [], "times": ["--times"], "translate": ["--translate", "--language", "fr"],
                 "french": ["--times", "--language", "fr"]}
        for name in ("several", "single"):
            folder = self.listens(name)
            with open(os.path.join(folder, "told.json"), encoding="utf-8") as file:
                told = json.load(file)
            for i, calls in enumerate(told):
                seconds = seconds_of(os.path.join(folder, "%d.wav" % i))
                for call, segments in calls.items():
                    segments = clamped(segments, seconds)
                    said = self.lines(*flags[call], os.path.join(folder, "%d.wav" % i))
                    texts = [" ".join("w%d" % word for word in words) for _, _, words in segments]
                    if "--times" in flags[call]:
                        wanted = ["00:00:%06.3f --> 00:00:%06.3f  %s" % (begin, end, text)
                                  for (begin, end, _), text in zip(segments, texts)]
                    else:
                        wanted = [" ".join(texts)]
                    assert said == wanted, (name, i, call, said, wanted)
            assert len(told[-1]["times"]) > 4, "a sound of several windows"
        paths = [os.path.join(folder, "%d.wav" % i) for i in (0, 1)]
        assert self.lines(given="\n".join(paths) + "\n") == self.lines(*paths)

    def test_subtitles(self):
        """The segments of --times as SubRip, WebVTT and JSON."""
        folder = self.listens("several", task="transcribe")
        path = os.path.join(folder, "2.wav")
        with open(os.path.join(folder, "told.json"), encoding="utf-8") as file:
            told = clamped(json.load(file)[-1]["times"], seconds_of(path))
        segments = [(begin, end, " ".join("w%d" % word for word in words)) for begin, end, words in told]
        assert len(segments) > 4
        vtt = ["00:00:%06.3f --> 00:00:%06.3f\n%s\n\n" % segment for segment in segments]
        srt = ["%d\n%s" % (i + 1, cue.replace(".", ",", 2)) for i, cue in enumerate(vtt)]
        assert run(self.program, "--vtt", path, status=0).stdout == "WEBVTT\n\n" + "".join(vtt)
        assert run(self.program, path, "--srt", path, status=0).stdout == 2 * "".join(srt)
        (line,) = self.lines("--json", path)
        found = json.loads(line)
        assert [(s["id"], s["start"], s["end"], s["text"]) for s in found["segments"]] == [
            (i, round(begin, 2), round(end, 2), text) for i, (begin, end, text) in enumerate(segments)], found
        assert found["text"] == " ".join(text for _, _, text in segments) and found["language"] in ("en", "fr"), found
        assert json.loads(self.lines("--json", "--language", "fr", path)[0])["language"] == "fr"
        for words in (["--srt", "--vtt"], ["--times", "--json"], ["--json", "--srt"]):
            self.wrong(*words, path, why="`%s`: it excludes another form" % words[1])
        self.wrong("--json=1", path, why="it takes no value")

    def test_odd_words_of_subtitles(self):
        """Words with quotes, ends of lines, arrows and controls."""
        odd = '"\\\n\n--> 0\r--->\x01\t\u00e9\u2028--'
        folder = self.path("odd_words")
        shutil.copytree(os.path.join(TESTS, "parity", "sounds", "several"), folder)
        path = os.path.join(folder, "tokenizer.json")
        with open(path, encoding="utf-8") as file:
            tokenizer = json.load(file)
        vocab = tokenizer["model"]["vocab"]
        tokenizer["model"]["vocab"] = {word + odd if word.startswith("w") else word: i for word, i in vocab.items()}
        tokenizer["model"]["unk_token"] += odd
        with open(path, "w", encoding="utf-8") as file:
            json.dump(tokenizer, file)
        self.get(folder, "--name", "odd_ear")
        sound = os.path.join(folder, "2.wav")
        said = run(self.program, "--json", sound, status=0).stdout
        segments = json.loads(said)["segments"]
        assert said.count("\n") == 1 and len(segments) > 4 and all(odd in s["text"] for s in segments), said
        for form in ("--srt", "--vtt"):
            said = run(self.program, form, sound, status=0, text=False).stdout.decode()
            cues = said.removeprefix("WEBVTT\n\n").removesuffix("\n\n").split("\n\n")
            assert len(cues) == len(segments), said
            for cue, segment in zip(cues, segments):
                text = segment["text"].replace("--->", "->").replace("-->", "->").replace("\n", " ").replace("\r", " ")
                assert cue.split("\n")[1 + (form == "--srt"):] == [text] and cue.count("-->") == 1, (cue, text)

    def test_transcribes_other_files(self):
        """Two channels, another number of samples a second, and files that are no sound."""
        folder = self.listens("several", language="fr")
        with wave.open(os.path.join(folder, "1.wav")) as file:
            samples = array.array("h", file.readframes(file.getnframes()))

        def written(name, channels, rate, numbers):
            path = self.path(name)
            with wave.open(path, "wb") as file:
                file.setnchannels(channels)
                file.setsampwidth(2)
                file.setframerate(rate)
                file.writeframes(array.array("h", numbers).tobytes())
            return path

        mono = self.lines("--times", os.path.join(folder, "1.wav"))
        assert mono == self.lines("--times", "--language", "fr", os.path.join(folder, "1.wav")), "the config's language"
        assert mono == self.lines("--times", written("two.wav", 2, 16000, [x for x in samples for _ in range(2)]))
        slow = [samples[i // 2] if i % 2 == 0 else (samples[i // 2] + samples[min(i // 2 + 1, len(samples) - 1)]) // 2
                for i in range(2 * len(samples))]
        assert len(self.lines("--times", written("fast.wav", 1, 32000, slow))) == len(mono)
        for rate in (16000, 32000):
            path, numbers = self.path("odd.wav"), array.array("f", bytes(4 * 2 * rate))
            numbers[rate // 4] = math.nan
            with open(path, "wb") as file:
                file.write(struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + 8 * rate, b"WAVE", b"fmt ", 16, 3, 1, rate,
                                       4 * rate, 4, 32, b"data", 8 * rate) + numbers.tobytes())
            done = run(self.program, path, status=1)
            assert "odd.wav: a sample at second 0.25 is NaN or infinite" in done.stderr, done.stderr
        for path, words in ((written("empty.wav", 1, 16000, []), "it has no samples"),
                            (os.path.join(folder, "config.json"), "config.json: "),
                            (self.path("nothing.wav"), "nothing.wav: ")):
            assert words in run(self.program, path, status=1).stderr, path
        for words in (["--language", "xx", "a"], ["--language"], ["--max-new", "3", "a"]):
            assert "usage: ear [--threads N] [--times|--srt|--vtt|--json]" in run(self.program, *words, status=2).stderr

    def test_refuses_speech(self):
        for name, key, value, words in (
                ("range", "suppress_tokens", [3, 99], "`suppress_tokens` has the token 99, which is outside the"),
                ("list", "begin_suppress_tokens", "all", "`begin_suppress_tokens` is \"all\"; the id of a token"),
                ("word", "suppress_tokens", ["a"], "`suppress_tokens` is \"a\"; the id of a token"),
                ("code", "lang_to_id", {"en": 32}, "the name `en`, which is not of the form <|code|>"),
                ("comment", "lang_to_id", {"<|*/|>": 32}, "the name `<|*/|>`, which is not of the form <|code|>"),
                ("time", "no_timestamps_token_id", -3, "`no_timestamps_token_id` has -3, which is no token")):
            folder = self.path("speech_" + name)
            shutil.copytree(os.path.join(TESTS, "parity", "sounds", "several"), folder)
            path = os.path.join(folder, "generation_config.json")
            with open(path, encoding="utf-8") as file:
                config = json.load(file)
            with open(path, "w", encoding="utf-8") as file:
                json.dump({**config, key: value}, file)
            said = self.get(folder, status=1)
            assert words in said, said

    def test_fallbacks(self):
        """What generate of transformers decides, by make_fallbacks.py: which windows are silence, at which temperature
        the text of another one is accepted, and what is measured of it."""
        with open(os.path.join(TESTS, "get", "fallbacks.json"), encoding="utf-8") as file:
            cases, folders, seen = json.load(file), {}, set()
        for case in cases:
            key = case["model"] + "_".join("%s_%s" % pair for pair in case["folder"].items()).replace(".", "_")
            if key not in folders:
                folders[key] = self.listens(case["model"], key, **case["folder"]), self.program
            folder, program = folders[key]
            sound = os.path.join(folder, "%d.wav" % case["sound"])
            done = run(program, "--json", *case["words"], sound, status=0)
            said = ["ear: %s: %.2f to %.2f s: %s" % (sound, begin, end, "silence, with a probability of" if silent else
                                                     "attempt %d, at temperature %g" % (attempts, temperature))
                    for begin, end, attempts, temperature, silent in case["windows"] if silent or attempts > 1]
            found = [line.rpartition(" ")[0] if "silence" in line else line for line in done.stderr.splitlines()]
            assert found == said, (case, found, said)
            segments = json.loads(done.stdout)["segments"]
            wanted = clamped(case["segments"], seconds_of(sound))
            assert [[s["start"], s["end"], s["text"]] for s in segments] == [
                [round(begin, 2), round(end, 2), " ".join("w%d" % word for word in words)]
                for begin, end, words, *_ in wanted], (case, segments)
            for s, (*_, log_probability, compression, no_speech) in zip(segments, wanted):
                self.near([s["avg_logprob"], s["no_speech_prob"]], [log_probability, no_speech])
                if case["folder"]:
                    self.near([s["compression_ratio"]], [compression], 1e-5)
            seen |= {(bool(case["folder"]), bool(silent), attempts) for _, _, attempts, _, silent in case["windows"]}
        assert seen >= {(False, False, 1), (False, False, 2), (False, True, 1), (True, False, 1),
                        (True, False, 3)}, seen

    def test_thresholds_of_texts(self):
        """The compression of a text is zlib's, as openai's code measures it."""
        folder = self.listens("several", "texts")
        sound = os.path.join(folder, "1.wav")
        (line,) = self.lines("--json", sound)
        for s in json.loads(line)["segments"]:  # each is a window's only one
            text = s["text"].encode()
            self.near([s["compression_ratio"]], [len(text) / len(zlib.compress(text))], 1e-5)
        ratio, log_probability = s["compression_ratio"], s["avg_logprob"]
        for threshold, attempts in ((ratio * 1.001, 1), (ratio * 0.999, 3), (0, 3), ("none", 1)):
            said = run(self.program, "--json", "--temperature=0,1e-6", "--temperature", "2e-6", "--logprob-threshold",
                       "none", "--compression-threshold", str(threshold), sound, status=0).stderr
            assert said.count("attempt 3, at temperature 2e-06") == (attempts > 1) and "silence" not in said, said
        assert json.loads(self.lines("--json", "--fallback", sound)[0])["segments"], "nothing after a fallback"
        for words, why in ((["--seed", "3"], "`--seed`: it has no effect without sampling"),
                           (["--temperature", "0,x"], "up to 32 numbers"), (["--temperature="], "up to 32 numbers"),
                           (["--temperature", ",".join(33 * ["0"])], "up to 32 numbers"),
                           (["--temperature", "0,"], "up to 32 numbers"), (["--temperature=nan"], "up to 32 numbers"),
                           (["--logprob-threshold", "1"], "-1e6 to 0, or `none`"), (["--fallback=1"], "takes no value"),
                           (["--no-speech-threshold", "2"], "0 to 1, or `none`"),
                           (["--compression-threshold", "-1"], "0 to 1e6, or `none`")):
            self.wrong(*words, sound, why=why)
        assert log_probability < 0

    def test_files_of_words(self):
        """--output writes a file for each sound, and nothing for what is none."""
        folder = self.listens("several", "output")
        sounds = [os.path.join(folder, "%d.wav" % i) for i in (0, 2)]
        for form, end in (([], "txt"), (["--times"], "txt"), (["--srt"], "srt"), (["--vtt"], "vtt"),
                          (["--json"], "json")):
            to = self.path("words%d_%s" % (len(form), end))
            os.mkdir(to)
            done = run(self.program, *form, "--output", to, sounds[0], os.path.join(folder, "config.json"), sounds[0],
                       sounds[1], status=1)
            assert done.stdout == "" and done.stderr.count("\n") == 2 and "config.json: " in done.stderr, done
            assert "%s/0.%s: it has the words of another sound already" % (to, end) in done.stderr, done.stderr
            assert sorted(os.listdir(to)) == ["0." + end, "2." + end], os.listdir(to)
            for sound, name in zip(sounds, ("0", "2")):
                with open(os.path.join(to, name + "." + end), encoding="utf-8") as file:
                    assert file.read() == run(self.program, *form, sound, status=0).stdout, name
        done = run(self.program, "--output", self.path("nowhere"), sounds[0], status=1)
        assert done.stderr == "ear: %s/0.txt: No such file or directory\n" % self.path("nowhere"), done.stderr
        odd = os.path.join(os.fsencode(self.scratch), b'\xff "x".wav')
        shutil.copyfile(sounds[0], odd)
        assert json.loads(run(self.program, "--json", odd, status=0).stdout)["file"].endswith('/\xff "x".wav')
