"""Checks of the benchmark itself: its reports on made-up times, what it says of wrong results and of programs that
fail, and one row of ours alone. TAP on stdout; needs neither other programs nor a network."""
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.dom.minidom

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]  # `lib` is that of tests/
import numpy as np  # noqa: E402
import chart  # noqa: E402
import contest  # noqa: E402
import machine  # noqa: E402
import report  # noqa: E402
import run as driver  # noqa: E402
import worker as worker_file  # noqa: E402
from lib.attnc import ATTNC  # noqa: E402
from lib.tap import Report  # noqa: E402
from rows import Bar, Entry, Result, Row, against, gcc_near_clang, of_peak  # noqa: E402


def made_up(folder, theirs):
    """A row with times that make the figures easy: ours 2 ms, gcc's 2.2 ms, the peer's 5, 4 and 7 ms."""
    entries = [Entry("attnc", "ours", {}, ours=True), Entry("attnc gcc", "ours", {}, ours=True),
               Entry("peer", "x", {}), Entry("silent", "x", {})]
    row = Row("made-up", "a row <of> a test", entries, flops=1e9, bars=[
        against(2.4, "x the peer"), of_peak(0.6), gcc_near_clang(),
        Bar("nothing", 1, lambda r: r.ratio("attnc", "no"))])
    result = Result(row, {"attnc": [2e-3] * 3, "attnc gcc": [2.2e-3] * 3, "peer": [5e-3, 4e-3, 7e-3]}, [1e12] * 3,
                    [{None: 2e10}] * 3)
    result.failures["silent"] = "no such program"
    paths = {}
    for name, array in (("attnc", np.ones(4, np.float32)), ("attnc gcc", np.ones(4, np.float32)), ("peer", theirs)):
        paths[name] = os.path.join(folder, name + ".npy")
        np.save(paths[name], array)
    driver.check_outputs(row, result, paths)
    return report.of_result(result)


def whole(rows):
    return {"machine": "a machine", "target": "avx2", "rounds": 3, "seconds": 0.1, "versions": {"peer": "1.0"},
            "peak_gflops": [1000.0], "read_gb_s": [20.0], "rows": rows}


def reports(folder):
    row = made_up(folder, np.ones(4, np.float32) + 1e-6)
    states = [bar["state"] for bar in row["bars"]]
    assert states == ["reached", "not reached", "reached", "not measured"], states
    assert abs(row["ratio"] - 2.5) < 1e-9 and abs(row["bars"][1]["value"] - 0.5) < 1e-9, row
    assert row["wrong"] == [] and row["not_run"] is None
    text = report.row_text(row)
    for part in ("2.00 ms", "5.00 ms", "2.50 x", "50.0 % of peak", "not run: no such program", "differs by"):
        assert part in text, "%s is not in\n%s" % (part, text)
    both = whole([row, report.not_run("absent", "there is no such thing")])
    report.write(both, folder, os.path.join(folder, "also.json"))
    for name in ("report.md", "report.json", "ratios.svg", "also.json"):
        assert os.path.getsize(os.path.join(folder, name)) > 100, name
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
        assert json.load(file)["rows"][0]["contestants"][2]["rounds"] == [5e-3, 4e-3, 7e-3]
    assert "2 of 4 bars reached, 0 rows wrong" in report.summary_text(both)
    xml.dom.minidom.parse(os.path.join(folder, "ratios.svg"))
    xml.dom.minidom.parseString(chart.ratios([]))  # a run without peers


def wrong_results(folder):
    for theirs in (np.ones(4, np.float32) * 1.01, np.full(4, np.nan, np.float32), np.ones(5, np.float32)):
        row = made_up(folder, theirs)
        assert len(row["wrong"]) == 1 and "WRONG: peer differs" in report.row_text(row), row["wrong"]
    assert driver.difference(np.array([1, 2, 3]), np.array([1, 5, 3])) == 1


def failing_workers(folder):
    """A contestant that cannot load, and one that ends, are left out with a reason."""
    failures = {}
    cores = sorted(os.sched_getaffinity(0))[:1]
    workers = [contest.Worker(name, family, {"threads": 1}, cores, os.path.join(folder, name + ".log"))
               for name, family in (("absent", "no_such_family"), ("ended", "ours"))]
    workers[1].process.kill()
    workers[1].process.wait()
    try:
        ready = contest.prepare_all(workers, {}, failures)
    finally:
        for left in workers:
            left.process.kill()
    assert not ready and "no_such_family" in failures["absent"] and "process ended" in failures["ended"], failures


def timing(_):
    """The loop for callables: as many calls to a sample as fill it."""
    calls = []
    median, count = worker_file.time_calls(lambda: calls.append(0), 0.05, 0.005)
    assert 0 < median < 1e-4 and count <= len(calls), (median, count)


def own_row(folder):
    """Ours alone, through the shared library and its ABI."""
    options = "--only small-d8 --no-peers --no-gcc --quick --rounds 1 --seconds 0.05 --patience 0 --out"
    done = subprocess.run([sys.executable, os.path.join(HERE, "run.py"), *options.split(), folder],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"attnc +[\d.]+ us", done.stdout), done.stdout
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
        row = json.load(file)["rows"][0]
    assert {c["name"] for c in row["contestants"] if c.get("figure")} == {"attnc", "attnc full"}, row
    assert row["contestants"][1]["difference"] < 1e-6, row


def peak_chains(folder):
    """The loop that measures a peak has all the multiply-adds that it counts, in the compiler's program and here."""
    counted = re.compile(r"\s(vfmadd\w+|v?mulps|fmla|fmul)\s")
    name = re.compile(r"[0-9a-f]+ <((?:avx512|avx2|sse2|neon|scalar)_(\d+))_rounds>:")
    for path in (ATTNC, machine.library(folder)):
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        functions = re.split(r"\n(?=[0-9a-f]+ <)", text)
        named = [(name.match(f), f) for f in functions]
        chains = {m.group(1): (len(counted.findall(f)), int(m.group(2))) for m, f in named if m}
        assert len(chains) >= 5, chains
        assert all(found and found % asked == 0 for found, asked in chains.values()), (path, chains)


def main():
    checks = Report("bench")
    for check in (reports, wrong_results, failing_workers, timing, own_row, peak_chains):
        with tempfile.TemporaryDirectory() as folder:
            checks.attempt(check.__name__, check, folder)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
