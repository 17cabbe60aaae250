"""Sampling, beams and penalties of the programs that attnc get writes, and of attnc generate, against the
probabilities and tokens of transformers in draws.json, which make_draws.py has written."""
import json
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from lib import npy
from lib.attnc import LONG, attnc, run
from listening import Listening
from options import PLAIN, write

HERE = os.path.dirname(os.path.abspath(__file__))
DRAWS = 20000 if LONG else 4000  # of attnc generate
RUNS = 800 if LONG else 150  # of a program, with a seed each
FEWEST = 5  # draws that are expected of an outcome; rarer outcomes count together
END = 30  # token of the Whisper
ALONE = ("--no-repeat-ngram", "--min-new")  # options of attnc generate alone


def limit(freedoms):
    """The value that chi-squared exceeds once in about 3 million times (Wilson and Hilferty 1931)."""
    part = 2.0 / (9 * freedoms)
    return freedoms * (1 - part + 5 * part ** 0.5) ** 3


def judge(counts, probabilities):
    """What is wrong with a Counter of outcomes that have these probabilities, or None."""
    draws, chi, parts, rest = sum(counts.values()), 0.0, [], [0, 0.0]
    for outcome in counts:
        if outcome not in probabilities:
            return "%s was drawn %d times, and has the probability 0" % (outcome, counts[outcome])
    for outcome, probability in probabilities.items():
        if draws * probability >= FEWEST:
            parts.append((counts[outcome], draws * probability))
        else:
            rest = [rest[0] + counts[outcome], rest[1] + draws * probability]
    if rest[1] >= FEWEST:
        parts.append(rest)
    for count, expected in parts:
        chi += (count - expected) ** 2 / expected
    if len(parts) > 1 and chi > limit(len(parts) - 1):
        return "chi-squared is %.1f with %d degrees of freedom" % (chi, len(parts) - 1)
    return None


class Drawing(Listening):
    """Tests of the class that has `path`, `folder`, `get` and `lines`."""

    @staticmethod
    def told():
        with open(os.path.join(HERE, "draws.json"), encoding="utf-8") as file:
            return json.load(file)

    def drawer(self, name, **rules):
        told = self.told()
        folder = self.folder(name, told["model"], PLAIN, bos_token_id=None)
        if rules:
            write(os.path.join(folder, "generation_config.json"), json.dumps(rules))
        self.get(folder)
        npy.write(self.path("prompts.npy"), told["prompt"] * DRAWS, (DRAWS, len(told["prompt"])), "<i4")
        return told, self.text(told["prompt"])

    def by_seeds(self, *words):
        """What the program prints with each of RUNS seeds."""
        def one(seed):
            return run(self.program, *words, "--seed", str(seed), status=0).stdout.removesuffix("\n")
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(one, range(RUNS)))

    def drawn_pairs(self, words):
        """The first two new tokens of a batch of attnc generate, as often as they were drawn."""
        attnc("generate", self.spec, "--weights", self.weights, "--in", "tokens=" + self.path("prompts.npy"),
              "--engine", "interp", "--max-new", "2", *words, "--seed", "7", "--out",
              "tokens=" + self.path("drawn.npy"), status=0)
        (rows, width), numbers = npy.read(self.path("drawn.npy"))
        return Counter((int(numbers[i * width + width - 2]), int(numbers[i * width + width - 1])) for i in range(rows))

    def test_drawn_pairs(self):
        """Pairs of tokens of attnc generate and of the program, and the first tokens of seeds next to each other."""
        told, text = self.drawer("draws_pairs")
        problems = []
        for at, case in enumerate(told["sampled"]):
            wanted = {(a, b): p for a, b, p in case["pairs"]}
            ends = {a for a, b in wanted if b < 0}
            found = Counter()
            for (a, b), count in self.drawn_pairs(case["words"]).items():
                found[a, -1 if a in ends else b] += count
            problems.append((case["words"], judge(found, wanted)))
            if any(word in ALONE for word in case["words"]) or (at % 6 and not LONG):
                continue
            said = [line.split() for line in self.by_seeds("--max-new", "2", "--no-prompt", *case["words"], text)]
            pairs = [(int(words[0][1:]), int(words[1][1:]) if len(words) > 1 else -1) for words in said]
            problems.append((["program", *case["words"]], judge(Counter(pairs), wanted)))
            firsts = Counter()
            for (a, _), probability in wanted.items():
                firsts[a] += probability
            next_to = {(a, b): firsts[a] * firsts[b] for a in firsts for b in firsts}
            problems.append((["seeds", *case["words"]],
                             judge(Counter((a, b) for (a, _), (b, _) in zip(pairs[::2], pairs[1::2])), next_to)))
        assert not any(problem for _, problem in problems), [one for one in problems if one[1]]

    def test_tokens_of_transformers(self):
        """Beams, their length penalty and the repetition penalty, token by token."""
        told, text = self.drawer("searches_alike", eos_token_id=self.told()["ends"])
        for case in told["searched"]:
            beams = "--beams" in case["words"]
            more = ["--length-form", "power", "--early-stopping", "heuristic"] if beams else []
            if beams and "--length-penalty" not in case["words"]:
                more += ["--length-penalty", "1"]
            words = ["--beam" if word == "--beams" else word for word in case["words"]]
            assert self.continued(told["prompt"], "--max-new", "8", *words, *more) == case["out"], case
            assert self.lines("--max-new", "8", "--no-prompt", *case["words"], text) == [
                " " + self.text(case["out"])], case

    def test_drawn_words(self):
        """The first word of texts of a Whisper that are sampled, at once and after a fallback."""
        for at, case in enumerate(self.told()["heard"]):
            folder = self.listens(case["model"], "sampled%d" % at)
            said = self.by_seeds(*case["words"], "--language", "fr", os.path.join(folder, "%d.wav" % case["sound"]))
            end = "%d" % END  # stands for a text without a word
            seen = Counter(line.split()[0][1:] if line.split() else end for line in said)
            problem = judge(seen, case["firsts"])
            assert len(seen) > 3 and not problem, (case["words"], problem)
