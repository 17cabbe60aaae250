"""What takes long and is tried in parts takes turns with the commits."""
import functools
import os
import subprocess
import zlib

from .attnc import LONG, QUICK


@functools.cache
def commit():
    """The head's hash, or zeros without git."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False,
                          cwd=os.path.dirname(os.path.abspath(__file__)))
    return head.stdout.strip() or "0" * 40


def turn():
    """The hash as a number; ATTNC_TURN=N says another, so that each turn of a commit can be had."""
    return int(os.environ.get("ATTNC_TURN") or str(int(commit()[:8], 16)))


def seeds(usual, quick, long):
    """The numbers of random cases: other ones with each commit, and the first `long` ones with ATTNC_LONG=1."""
    count = quick if QUICK else long if LONG else usual
    first = 0 if LONG else turn() % 1000 * count
    return range(first, first + count)


def rotated(items, at=0):
    """The item of number `at`, moved on by the turn. Each of 2 to 8 parts meets every item in time: without the
    division, a part of three would meet two of six items."""
    return items[(at + turn() // 840) % len(items)]


def has_turn(name, parts=2):
    """Whether a test of this name has its turn, which comes with one of `parts` commits."""
    return LONG or (zlib.crc32(name.encode()) + turn()) % parts == 0


def in_turn(items, parts=2):
    """Every item whose number is, modulo `parts`, the commit's; all of them with ATTNC_LONG=1."""
    return list(items) if LONG else list(items)[turn() % parts::parts]
