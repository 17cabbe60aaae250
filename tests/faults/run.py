#!/usr/bin/env python3
"""Every allocation and every system call of attnc fails once, and attnc ends at every moment: a clear error with the
right status, nothing half-written, nothing left behind. TAP on stdout.

calls.c does something to one system call, memory.c to one allocation. ATTNC_LONG=1 tries all of them; without it long
commands try some, evenly spread. `run.py NAME…` tries these commands alone."""
import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from commands import KINDS, commands  # noqa: E402
from lib.attnc import ATTNC, LONG, ROOT, run  # noqa: E402
from lib.tap import Report  # noqa: E402

VERBOSE = bool(os.environ.get("FAULTS_VERBOSE"))
OLD = b"what was there before\n"
USER, MEMORY = 1, 5
READS = ("read", "pread64", "readv")
WRITES = ("write", "writev", "pwrite64")
CHANGES = WRITES + ("openat", "close", "fsync", "fdatasync", "lseek", "rename", "renameat", "unlink", "rmdir", "mkdir",
                    "ftruncate")
REMOVES = ("unlink", "unlinkat", "rmdir")
OF_MEMORY = ("mmap", "mprotect", "mremap", "brk", "madvise")
ERRORS = {"clone": errno.EAGAIN, "clone3": errno.EAGAIN, "fork": errno.EAGAIN, "vfork": errno.EAGAIN,
          "wait4": errno.ECHILD, "access": errno.EACCES, "getrandom": errno.ENOSYS,
          **dict.fromkeys(WRITES + ("fsync", "fdatasync", "close", "mkdir", "ftruncate"), errno.ENOSPC),
          **dict.fromkeys(OF_MEMORY, errno.ENOMEM)}


class Outcome:
    """What a run left: its status (negative: a signal), both streams, files, and what the injector tells."""
    def __init__(self, status, out, err, files, left, report):
        self.status, self.out, self.err, self.files, self.left = status, out, err, files, left
        self.report = dict(line.split(" ", 1) for line in report if line and not line[0].isdigit())
        self.calls = [line.split(" ", 2) for line in report if line and line[0].isdigit()]
        self.hit = self.report.get("hit", "none -").split(" ", 1)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def files_in(folder):
    """{name: bytes}, with the folders inside `folder` in the names."""
    paths = [os.path.join(inner, name) for inner, _, names in os.walk(folder) for name in names]
    return {os.path.relpath(path, folder): read(path) for path in sorted(paths)}


class Trial:
    """One command in a folder of its own, with old files where it writes."""
    def __init__(self, tools, scratch, command):
        self.tools, self.scratch, self.command = tools, scratch, command
        self.good = self.run("list")
        assert self.good.status == 0, "%s: %s" % (command.name, self.good.err.decode())
        assert not self.good.left and set(self.good.files) == set(command.outputs), self.good.files
        assert all(text != OLD for text in self.good.files.values()), "an output was not written"
        self.memory = self.run("memory")
        assert int(self.memory.report["allocations"]) > 0 and self.same(self.memory), self.memory.err.decode()

    def run(self, how, at=0, kind="-"):
        """One run; of system calls it is the at-th of this kind to which something is done."""
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            out, temporary, report = (os.path.join(folder, name) for name in ("out", "temporary", "report"))
            os.mkdir(out)
            os.mkdir(temporary)
            for name in self.command.outputs:
                os.makedirs(os.path.dirname(os.path.join(out, name)), exist_ok=True)
                with open(os.path.join(out, name), "wb") as file:
                    file.write(OLD)
            call = [ATTNC] + [argument.replace("@", out) for argument in self.command.arguments]
            environment = {**os.environ, "TMPDIR": temporary, "TERM": "dumb"}
            environment.pop("ATTNC_FAIL_ALLOC", None)
            if how.startswith("memory"):
                environment.update(LD_PRELOAD=self.tools["memory"], FAULTS_AT=str(at), FAULTS_REPORT=report,
                                   FAULTS_ON="1" if how == "memory on" else "0")
            else:
                call = [self.tools["calls"], report, how, kind, str(at)] + call
            done = subprocess.run(call, cwd=ROOT, capture_output=True, env=environment, timeout=300, check=False)
            told = read(report).decode(errors="replace").splitlines() if os.path.exists(report) else []
            status = done.returncode
            if not how.startswith("memory"):
                ends = dict(line.split(" ", 1) for line in told if line.startswith(("status ", "signal ")))
                assert done.returncode == 0 and ends, done.stderr.decode()
                status = int(ends["status"]) if "status" in ends else -int(ends["signal"])
            hide = lambda text: text.replace(out.encode(), b"@").replace(temporary.encode(), b"TMP")  # noqa: E731
            return Outcome(status, hide(done.stdout), hide(done.stderr),
                           files_in(out), sorted(os.listdir(temporary)), told)

    def same(self, got):
        """All that the command does was done; figures that change from run to run are left out."""
        if self.command.steady:
            return got.files == self.good.files and got.out == self.good.out
        return sorted(got.files) == sorted(self.good.files) and len(got.out.split()) == len(self.good.out.split())

    def old_or_new(self, got):
        for name in self.command.outputs:
            if name not in got.files:
                return name + " is gone"
            if got.files[name] != OLD and self.command.steady and got.files[name] != self.good.files[name]:
                return name + " is neither old nor new"
        new = sum(got.files[name] != OLD for name in self.command.outputs)
        if 0 < new < len(self.command.outputs) and got.hit[0] != "rename":
            return "some files are new and some old"
        return None

    def clean(self, got, why, statuses):
        """None, or what is wrong with a run in which something failed."""
        extra = sorted(set(got.files) - set(self.command.outputs))
        if (extra or got.left) and got.hit[0] not in REMOVES:
            return "left behind: %s" % (extra + got.left)
        if int(got.report.get("descriptors", 0)) > int(self.good.report["descriptors"]):
            return "%s descriptors are open at the end" % got.report["descriptors"]
        if got.status == 0:
            if "live" in got.report and int(got.report["live"]) > int(self.memory.report["live"]):
                return "%s allocations are alive at the end, not %s" % (got.report["live"], self.memory.report["live"])
            return None if self.same(got) else "status 0, and the output is another"
        if got.status not in statuses:
            return "status %d" % got.status
        lines = [line for line in got.err.decode(errors="replace").splitlines()
                 if line not in self.good.err.decode(errors="replace").splitlines()]
        errors = [line for line in lines if line.startswith("attnc: error: ")]
        if len(errors) != 1 and got.hit != ["write", "2"]:
            return "%d messages" % len(errors)
        if errors and not any(word in errors[0] for word in (*why, "the output cannot be written")):
            return "the message does not say why"
        if errors and got.status == USER and len(errors[0].split(": ")) < 4 and "output" not in errors[0]:
            return "the message does not say where"
        return self.old_or_new(got)

    # ------------------------------------------------------------ the kinds

    def some(self, numbers, most):
        numbers = list(numbers)
        most = max(most, 2)
        if LONG or len(numbers) <= most:
            return numbers
        return sorted({numbers[i * (len(numbers) - 1) // (most - 1)] for i in range(most)})

    def out_of_memory(self):
        def one(job):
            how, at = job
            got = self.run(how, at)
            why, statuses = ("out of memory", "Cannot allocate memory"), (MEMORY,)
            if b"threads cannot be made" in got.err:  # whatever a thread lacks, POSIX has it say EAGAIN
                why, statuses = (*why, os.strerror(errno.EAGAIN)), (MEMORY, USER)
            return at, got, self.clean(got, why, statuses)
        count, most = int(self.memory.report["allocations"]), self.command.most
        return one, [(how, at) for how, share in (("memory", most), ("memory on", most // 4))
                     for at in self.some(range(1, count + 1), share)]

    def calls(self, names):
        return [(int(at), name) for at, name, _ in self.good.calls if name in names]

    def failing_calls(self):
        def one(job):
            at, name, error = job
            got = self.run("fail:%d" % error, at, name)
            if error == errno.ENOMEM:  # a loader and a thread have their own words
                why = ("out of memory", "Cannot allocate", "failed to map segment", os.strerror(errno.EAGAIN))
                return at, got, self.clean(got, why, (MEMORY, USER))
            return at, got, self.clean(got, (os.strerror(error), *self.command.also), (USER,))
        calls = [(int(at), name) for at, name, _ in self.good.calls]
        return one, [(at, name, ERRORS.get(name, errno.EIO)) for at, name in self.some(calls, self.command.most)]

    def interrupted_calls(self):
        def one(job):
            at, name = job
            got = self.run("fail:%d" % errno.EINTR, at, name)
            return at, got, self.clean(got, (os.strerror(errno.EINTR),), (USER,))
        names = READS + WRITES + ("openat", "fsync", "wait4")
        return one, self.some(self.calls(names), self.command.most // 2)

    def short_calls(self):
        def one(job):
            at, name = job
            got = self.run("short", at, name)
            return at, got, self.clean(got, self.command.also, (USER,)) if got.hit[0] in READS else (
                None if got.status == 0 and self.same(got) else "a short write did harm")
        return one, self.some(self.calls(READS + WRITES), self.command.most // 2)

    def ended(self, *signals):
        def one(job):
            when, at, name, sent = job
            got = self.run("%s:%d" % (when, sent), at, name)
            if got.hit[0] == "none":
                return at, got, "%s %d did not come" % (name, at)
            extra = set(got.files) - set(self.command.outputs)
            if sent == signal.SIGKILL:
                extra = {name for name in extra if ".part-" not in name}
            elif got.left and got.status:
                return at, got, "left behind: %s" % got.left
            if got.status not in (-sent, 0):
                return at, got, "status %d" % got.status
            return at, got, "left behind: %s" % extra if extra else self.old_or_new(got)
        jobs = [(when, *call) for call in self.calls(CHANGES) for when in ("before", "after")]
        jobs = self.some(jobs, self.command.most // len(signals) if len(signals) > 1 else self.command.most)
        return one, [(*job, sent) for job in jobs for sent in signals]

    def killed(self):
        return self.ended(signal.SIGKILL)

    def stopped(self):
        return self.ended(signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)


def tell(report, name, pool, trial, kind):
    one, jobs = getattr(trial, kind)()
    if not jobs:
        return
    bad = [(at, got, what) for at, got, what in pool.map(one, jobs) if what]
    lines = ["%d failed of %d" % (len(bad), len(jobs))] if bad else []
    for at, got, what in bad[:12]:
        lines.append("%d (%s): %s; status %d\n%s" % (at, " ".join(got.hit), what, got.status,
                                                     got.err.decode(errors="replace").strip()))
    report.result("%s: %s" % (name, kind.replace("_", " ")), "\n".join(lines) or None,
                  note="%d runs" % len(jobs) if VERBOSE else None)


def build_tools(folder):
    tools = {"calls": os.path.join(folder, "calls"), "memory": os.path.join(folder, "memory.so")}
    base = ["clang", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror"]
    run(*base, HERE + "/calls.c", "-o", tools["calls"], status=0)
    run(*base, "-shared", "-fPIC", HERE + "/memory.c", "-o", tools["memory"], "-ldl", status=0)
    return tools


def main():
    report = Report("faults")
    if not (sys.platform == "linux" and os.uname().machine == "x86_64"):
        report.result("all", skip="calls.c knows Linux on x86-64 alone")
        return report.finish()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        tools = build_tools(folder)
        for command in commands(folder):
            if sys.argv[1:] and command.name not in sys.argv[1:]:
                continue
            begin = time.monotonic()
            trial = Trial(tools, folder, command)
            for kind in KINDS:
                if kind in command.kinds:
                    tell(report, command.name, pool, trial, kind)
            if VERBOSE:
                print("# %s: %.1f s" % (command.name, time.monotonic() - begin))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
