#!/usr/bin/env python3
"""mutants/NAME: a wrong of named.txt or named_narrow.txt, in a copy of the tree, is caught by the test that the table
names. Each commit takes its own 5 of them in turn, 2 with ATTNC_QUICK=1, and with ATTNC_LONG=1 all that --all takes.
Speaks TAP.

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
import moved  # noqa: E402
import mutate  # noqa: E402
import table  # noqa: E402
from lib.attnc import LONG, QUICK  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib.turns import turn  # noqa: E402
from tree import Trees, Wrong  # noqa: E402

IN_TURN = 2 if QUICK else 4
WORKERS = min(2, os.cpu_count() or 1)
SEED = 1
REPORT = Report("mutants")


def chosen(mutants):
    word = "%08x" % turn()
    ranked = sorted(mutants, key=lambda m: hashlib.sha256((word + m.name).encode()).hexdigest())
    return word, ranked[:IN_TURN]


class Results:
    """Prints results as they come, in TAP or as a table, and counts them."""

    def __init__(self, report):
        self.report, self.lock, self.counts, self.bad = report, threading.Lock(), {}, 0

    def say(self, name, file, word, why, seconds):
        name, why = name.split(":")[0], why.strip()
        good = word in ("caught", "impossible", "explained")
        with self.lock:
            self.counts[word] = self.counts.get(word, 0) + 1
            self.bad += not good
            if not self.report:
                print("%-34s %-42s %-10s %5.1f s  %s" % (name, file, word, seconds, why), flush=True)
                return
        said = "%s %s: %s (%.1f s)" % (file, word, why, seconds)
        self.report.result(name, None if good else said, skip=why if word == "impossible" else None,
                           note=said if good else None)


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
    lock = threading.Lock()

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
            key = mutant.key()
            if word == "survived" and key in explained:
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("names", nargs="*", help="of mutants with a name, or of those by chance, or `random`")
    args = parser.parse_args()
    everything = args.all or LONG
    commands = table.Commands()
    mutants, killers = table.named(commands), table.killers(commands)
    if args.names:
        mutants = [mutant for mutant in mutants if mutant.name.split(":")[0] in args.names]
    elif not everything:
        word, mutants = chosen(mutants)
        print("# turn %s: %s" % (word, ", ".join(mutant.name.split(":")[0] for mutant in mutants)))
    report = Results(None if args.all else REPORT)
    if not args.all:
        REPORT.attempt("a text is found wherever its function stands", moved.moved)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        used = [command for mutant in mutants for command in mutant.commands]
        trees = Trees(folder, WORKERS, list(commands.known.values()) if everything else used)
        jobs = [pool.submit(one, trees, report, mutant, mutant.commands) for mutant in mutants]
        for job in jobs:
            job.result()
        if everything:
            names = [] if "random" in args.names else args.names
            by_chance(trees, report, pool, args.seed, killers, names)
    if args.all:
        print(", ".join("%d %s" % (count, word) for word, count in sorted(report.counts.items())))
        return 1 if report.bad else 0
    return REPORT.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as wrong:
        REPORT.result("all", str(wrong))
        REPORT.finish()
        sys.exit(1)
