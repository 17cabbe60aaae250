#!/usr/bin/env python3
"""mutants/NAME: a wrong of named.txt, in a copy of the tree, is caught by the test that the table names. Each commit
takes its own 8 of them in turn, 2 with ATTNC_QUICK=1, and with ATTNC_LONG=1 all that --all takes. Speaks TAP.

    run.py --all [--seed N] [NAME…]     `make mutants`: all of them, and those that chance makes (mutate.py), as a
                                        table; it fails where one survives without its reason in explained.txt"""
import argparse
import concurrent.futures
import hashlib
import os
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import mutate  # noqa: E402
import table  # noqa: E402
from tap import commit  # noqa: E402
from tree import ROOT, Trees, Wrong  # noqa: E402

LONG = os.environ.get("ATTNC_LONG") == "1"
IN_TURN = 2 if os.environ.get("ATTNC_QUICK") == "1" else 8
WORKERS = min(2, os.cpu_count() or 1)
SEED = 1


def turn(mutants):
    word = commit()
    ranked = sorted(mutants, key=lambda m: hashlib.sha256((word + m.name).encode()).hexdigest())
    return word[:12], ranked[:IN_TURN]


class Report:
    """Prints as results come, and counts."""

    def __init__(self, tap):
        self.tap, self.lock, self.counts, self.bad = tap, threading.Lock(), {}, 0

    def say(self, name, file, word, why, seconds):
        with self.lock:
            self.counts[word] = self.counts.get(word, 0) + 1
            good = word in ("caught", "impossible", "explained")
            self.bad += not good
            if self.tap:
                skip = " # SKIP " + why if word == "impossible" else ""
                print("%sok mutants/%s%s" % ("" if good else "not ", name.split(":")[0], skip))
                print("# %s %s: %s (%.1f s)" % (file, word, why.strip().replace("\n", "\n# "), seconds))
            else:
                print("%-34s %-42s %-10s %5.1f s  %s" % (name.split(":")[0], file, word, seconds, why.strip()))
            sys.stdout.flush()


def texts_stand(mutants):
    """What all of them are about is there, whichever have their turn."""
    wrong = []
    for mutant in mutants:
        with open(os.path.join(ROOT, mutant.file), encoding="utf-8") as file:
            try:
                mutant.applied(file.read())
            except Wrong as why:
                wrong.append("%s: %s" % (mutant.name, why))
    if wrong:
        raise Wrong("\n".join(wrong))


def one(trees, report, mutant, commands):
    begin = time.monotonic()
    try:
        word, why = trees.try_mutant(mutant, commands)
    except Wrong as wrong:
        word, why = "wrong", str(wrong)
    report.say(mutant.name, mutant.file, word, why, time.monotonic() - begin)


def by_chance(trees, report, pool, seed, killers, names):
    """Of each stratum so many that build, or those of `names`."""
    explained = table.explanations()
    used, lock = set(), threading.Lock()

    def next_one(waiting):
        while True:
            with lock:
                if not waiting:
                    return
                mutant = waiting.pop(0)
            begin = time.monotonic()
            try:
                word, why = trees.try_mutant(mutant, killers(mutant.file))
            except Wrong as wrong:
                word, why = "wrong", str(wrong)
            if word == "invalid":
                continue
            key = (mutant.file, *mutant.lines)
            if word == "survived" and key in explained:
                used.add(key)
                word, why = "explained", explained[key]
            elif word != "caught" and word != "impossible":
                why = "%s\n    - %s\n    + %s" % (why, *mutant.lines)
            report.say(mutant.name, mutant.file, word, why, time.monotonic() - begin)
            return

    for mutants, wanted in mutate.drawn(trees.whole.folder, seed):
        if names:
            mutants = [mutant for mutant in mutants if mutant.name in names]
            wanted = len(mutants)
        jobs = [pool.submit(next_one, mutants) for _ in range(wanted)]
        for job in jobs:
            job.result()
    for file, old, new in sorted(set(explained) - used):
        with open(os.path.join(ROOT, file), encoding="utf-8") as source:
            if old not in [line.strip() for line in source]:
                why = "explains a line that is gone:\n    - %s\n    + %s" % (old, new)
                report.say("explained.txt", file, "wrong", why, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("names", nargs="*", help="of named.txt, or of those by chance, or `random`")
    args = parser.parse_args()
    everything = args.all or LONG
    commands = table.Commands()
    mutants, killers = table.named(commands), table.killers(commands)
    texts_stand(mutants)
    if args.names:
        mutants = [mutant for mutant in mutants if mutant.name.split(":")[0] in args.names]
    elif not everything:
        commit, mutants = turn(mutants)
        print("# commit %s: %s" % (commit, ", ".join(mutant.name.split(":")[0] for mutant in mutants)))
    report = Report(tap=not args.all)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        used = [command for mutant in mutants for command in mutant.commands]
        trees = Trees(folder, WORKERS, list(commands.known.values()) if everything else used)
        jobs = [pool.submit(one, trees, report, mutant, mutant.commands) for mutant in mutants]
        for job in jobs:
            job.result()
        if everything:
            names = [] if "random" in args.names else args.names
            by_chance(trees, report, pool, args.seed, killers, names)
    if report.tap:
        print("1..%d" % sum(report.counts.values()))
    else:
        print(", ".join("%d %s" % (count, word) for word, count in sorted(report.counts.items())))
    return 1 if report.bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as wrong:
        print("not ok mutants/all\n# %s\n1..1" % str(wrong).replace("\n", "\n# "))
        sys.exit(1)
