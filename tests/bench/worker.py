#!/usr/bin/env python3
"""One contestant in a process of its own: worker.py FAMILY, then JSON commands on standard input, a line each.

    {"do": "prepare", …}   loads the model; answers version and note
    {"do": "run", "output": PATH}   runs it once, and keeps what it gave
    {"do": "judge", "inputs": PATH, "output": PATH}   runs it on other inputs, and keeps what accuracy.py compares
    {"do": "time", "seconds": S, "sample": S}   answers the median seconds a call
    {"do": "quit"}

A family is a module of peers/ with prepare(params), which gives an object with run(), output() and version; time()
where it has a C loop of its own. What it raises is told to the driver, whose row then says why it did not run."""
import importlib
import json
import os
import statistics
import sys
import time
import traceback

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import accuracy  # noqa: E402


def time_calls(run, seconds, sample):
    """The loop of lib/timer.c, for peers that are called from Python."""
    clock = time.perf_counter

    def repeat(count):
        begin = clock()
        for _ in range(count):
            run()
        return clock() - begin

    begin, count, took, samples = clock(), 1, repeat(1), []
    if took >= seconds:
        return took, 1
    while took < sample:
        if took > sample / 50:
            count = int(count * sample / took) + 1
            break
        count *= 2
        took = repeat(count)
    while not samples or clock() - begin + took / 2 < seconds:
        took = repeat(count)
        samples.append(took / count)
    return statistics.median(samples), count * len(samples)


class Peer:
    """Base of the contestants: run() is one call, output() what it gave."""
    version, note = "", ""

    def run(self):
        raise NotImplementedError

    def output(self):
        raise NotImplementedError

    def judge(self, given):
        """What accuracy.py compares: the hidden rows of each text, logits by token, or logarithms of probabilities."""
        raise NotImplementedError

    def time(self, seconds, sample):
        return time_calls(self.run, seconds, sample)


def run_once(peer, path):
    peer.run()
    np.save(path, np.asarray(peer.output()))
    return {}


def main():
    # A library may print; only answers may stand on the pipe.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peer = None
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "quit":
            break
        try:
            if command["do"] == "prepare":
                peer = importlib.import_module("peers." + sys.argv[1]).prepare(command)
                answer = {"version": peer.version, "note": peer.note}
            elif command["do"] == "judge":
                np.save(command["output"], accuracy.gathered(peer.judge(np.load(command["inputs"]))))
                answer = {}
            elif command["do"] == "run":
                answer = run_once(peer, command["output"])
            else:
                median, calls = peer.time(command["seconds"], command["sample"])
                answer = {"median": median, "calls": calls}
        except Exception as error:  # pylint: disable=broad-except
            traceback.print_exc()
            answer = {"error": "%s: %s" % (type(error).__name__, str(error).strip().split("\n")[0][:200])}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
