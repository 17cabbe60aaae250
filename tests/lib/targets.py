"""The targets: `attnc --targets` lists them, least first, as `NAME runs` or `NAME no`; the tables that attnc emits from
tell the processor of each."""
import functools
import os
import platform
import re

from .attnc import ATTNC, ROOT, run

TABLES = os.path.join(ROOT, "compiler", "targets")


@functools.cache
def table(name):
    """The settings of a target's table: name, rank, processor, on_request, and `small` for a microcontroller."""
    with open(os.path.join(TABLES, name + ".isa"), encoding="utf-8") as file:
        text = file.read()
    base = re.search(r"^based on (\S+)$", text, re.M)
    inherited = {key: value for key, value in table(base[1]).items() if key in ("processor", "small")} if base else {}
    small = {"small": "yes"} if re.search(r"^has .*\bsmall\b", text, re.M) else {}
    return inherited | small | dict(re.findall(r"^(name|rank|processor|on_request) (\S+)$", text, re.M))


@functools.cache
def listed():
    """{name: whether this machine runs it}, least first."""
    done = run(ATTNC, "--targets", status=0)
    found = dict(re.findall(r"^(\w+) +(runs|no)$", done.stdout, re.M))
    assert len(found) == len(done.stdout.splitlines()) > 1, done.stdout
    return {name: word == "runs" for name, word in found.items()}


def of_processor(on_request=True):
    """The names of the targets of this processor, whether or not this machine has their instructions; `on_request`
    includes those that attnc emits only where they are named. Those of microcontrollers, some of which run here, have
    chunks of other sizes, and tests of their own (tests/boards)."""
    return [name for name in listed() if table(name)["processor"] in ("any", platform.machine())
            and "small" not in table(name) and (on_request or "on_request" not in table(name))]


def here(on_request=True):
    """Those of of_processor that this machine runs."""
    return [name for name in of_processor(on_request) if listed()[name]]
