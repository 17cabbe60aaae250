"""The cases of searches.json: a model's own rules of search, from its generation_config.json or config.json, against
the tokens that transformers generates, and the draws of sampling against its probabilities by chi-squared."""
import json
import os
import re
import shutil
import tempfile
import zipfile

from lib import npy
from lib.attnc import attnc

HERE = os.path.dirname(os.path.abspath(__file__))
DRAWS = 4000
# Values of chi-squared beyond which one of a million right samplers lies, by degrees of freedom.
LIMITS = [23.9, 27.6, 30.7, 33.4, 35.9, 38.3, 40.5, 42.7, 44.8, 46.9, 48.9, 50.8, 52.8, 54.7, 56.5, 58.4, 60.2, 62.0,
          63.8, 65.5, 67.3, 69.0]


class Search:
    def __init__(self, case):
        self.case, self.name = case, case["name"]

    def unpack(self, folder):
        with zipfile.ZipFile(os.path.join(HERE, self.case["base"] + ".zip")) as archive:
            plain = json.loads(archive.read("cases.json"))["plain"]
            with open(os.path.join(folder, "model.safetensors"), "wb") as file:
                file.write(archive.read(plain["weights"]))
        texts = {"config.json": {**plain["config"], **self.case["config"]},
                 "generation_config.json": self.case["generation"]}
        for name, content in texts.items():
            if content is not None:
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    json.dump(content, file)

    def check(self):
        """What is wrong, or None."""
        folder = tempfile.mkdtemp()
        try:
            self.unpack(folder)
            done = attnc("import", folder, "-o", os.path.join(folder, "spec.attn"))
            if "refused" in self.case:
                right = done.returncode == 1 and re.search(self.case["refused"], done.stderr)
                left = os.path.exists(os.path.join(folder, "spec.attn"))
                return None if right and not left else "status %d\n%s" % (done.returncode, done.stderr)
            if done.returncode:
                return "import: status %d\n%s" % (done.returncode, done.stderr)
            if not re.search(self.case.get("noted", ""), done.stderr):
                return "no note %s:\n%s" % (self.case["noted"], done.stderr)
            if "probabilities" in self.case:
                return self.compare_draws(folder)
            return self.compare_tokens(folder) if "out" in self.case else None
        finally:
            shutil.rmtree(folder)

    def generate(self, folder, batch, *options):
        """The tokens of `batch` equal prompts."""
        name = "source" if "source" in self.case else "tokens"
        given, out = os.path.join(folder, "in.npy"), os.path.join(folder, "out.npy")
        ids = self.case[name] * max(batch, 1)
        npy.write(given, ids, (batch, len(self.case[name])) if batch else (len(ids),), "<i4")
        done = attnc("generate", os.path.join(folder, "spec.attn"), "--weights",
                     os.path.join(folder, "model.safetensors"), "--engine", "interp", "--in", name + "=" + given,
                     "--out", "tokens=" + out, *options)
        return (None, done.stderr) if done.returncode else (npy.read(out), None)

    def compare_tokens(self, folder):
        found, problem = self.generate(folder, 0, "--max-new", str(self.case["max_new"]))
        if problem is None and list(found[1]) != self.case["out"]:
            problem = "%s instead of %s" % (list(found[1]), self.case["out"])
        return problem

    def compare_draws(self, folder):
        found, problem = self.generate(folder, DRAWS, "--max-new", "1", "--seed", "7")
        if problem:
            return problem
        width = found[0][1]
        counts = [0] * len(self.case["probabilities"])
        for token in list(found[1])[width - 1::width]:
            counts[int(token)] += 1
        chi, degrees = 0.0, -1
        for count, probability in zip(counts, self.case["probabilities"]):
            if probability == 0 and count:
                return "a token of probability 0 was drawn %d times" % count
            if probability:
                chi += (count - DRAWS * probability) ** 2 / (DRAWS * probability)
                degrees += 1
        if degrees > 0 and chi > LIMITS[degrees - 1]:
            return "chi-squared is %.1f with %d degrees of freedom" % (chi, degrees)
        return None


def searches():
    for name in ("searches.json", "searches_odd.json"):
        with open(os.path.join(HERE, name), encoding="utf-8") as file:
            for case in json.load(file):
                yield Search(case)
