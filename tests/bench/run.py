#!/usr/bin/env python3
"""attnc beside other programs, on the same weights and inputs, in turns: see README.md.

    python3 tests/bench/run.py [--quick] [--only ROW,…] [--rounds N] [--seconds S] [--json FILE] [--no-peers] [--list]

--only takes names of rows or what they begin with. Exit status 1: a result differs, or ours did not run."""
import argparse
import os
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]  # `lib` is that of tests/
import env  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the most telling rows, few rounds: two minutes")
    parser.add_argument("--only", default="", help="rows, or what their names begin with, by commas")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0, help="of a turn")
    parser.add_argument("--patience", type=float, help="seconds that a row waits for others to leave its cores")
    parser.add_argument("--json", help="where report.json goes as well")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="ours alone")
    parser.add_argument("--no-gcc", action="store_true", help="ours by clang alone")
    parser.add_argument("--list", action="store_true", help="names of all rows")
    parser.add_argument("--llama2c", default=os.environ.get("LLAMA2C", ""), help="run.c of llama2.c")
    parser.add_argument("--onnx2c", default=os.environ.get("ONNX2C", ""), help="the program onnx2c")
    parser.add_argument("--out", default=env.OUT, help="where the report goes")
    args = parser.parse_args()
    args.rounds = args.rounds or (3 if args.quick else 7)
    if args.patience is None:
        args.patience = 5 if args.quick else 20
    args.seconds = args.seconds or (0.2 if args.quick else 0.4)
    return args


def difference(ours, theirs):
    """max |a - b| / (1 + max |b|); of tokens, how many differ."""
    import numpy as np
    if ours.size != theirs.size:
        return float("inf")
    ours, theirs = ours.reshape(-1), theirs.reshape(-1)
    if ours.dtype.kind == "i":
        return float((ours != theirs).sum())
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return float("inf")
    return float(abs(ours.astype(np.float64) - theirs).max() / (1 + abs(ours).max()))


def check_outputs(row, result, paths):
    """All against ours, the first of the entries."""
    import numpy as np
    first = row.entries[0].name
    if first not in result.times:
        return
    ours = np.load(paths[first])
    for entry in row.entries[1:]:
        if entry.name not in result.times or not entry.checked:
            continue
        result.differences[entry.name] = difference(ours, np.load(paths[entry.name]))
        if not result.differences[entry.name] <= (row.bound if entry.bound is None else entry.bound):
            result.wrong.append(entry.name)


def judge_all(row, workers, folder, result, failures):
    """What each answers to the judge's inputs, beside the reference; those whose results are wrong leave the row."""
    import numpy as np
    from contest import those_that
    paths = {w.name: os.path.join(folder, "%s.%d.npy" % (row.name, i)) for i, w in enumerate(workers)}
    workers = those_that(lambda w: w.ask({"do": "judge", "inputs": row.judge.inputs, "output": paths[w.name]}), workers,
                         failures)
    first = next((e.name for e in row.entries if e.reference), None)
    if first not in [w.name for w in workers]:
        raise RuntimeError("the f32 model that judges did not run: %s" % failures.get(first))
    reference = np.load(paths[first])
    fine = []
    for worker in workers:
        figures = row.judge.figures(np.load(paths[worker.name]), reference)
        if worker.name != first and row.judge.wrong(figures):
            failures[worker.name] = "its results are wrong, " + ", ".join("%s %.3g" % pair for pair in figures.items())
            worker.close()
            continue
        if worker.name != first:
            result.errors[worker.name] = figures
        worker.settle()
        fine.append(worker)
    timed = {e.name for e in row.entries if e.timed}
    for worker in fine:
        if worker.name not in timed:
            worker.close()
    return [w for w in fine if w.name in timed]


def measure(context, row):
    from contest import Strangers, Worker, prepare_all, run_rounds, wait_for_quiet
    from rows import Result
    failures, paths, workers, notes = dict(row.missing), {}, [], {}
    cores = context.row_cores(row.threads)
    for entry in row.entries:
        tag = "%s.%s" % (row.name, entry.name.replace(" ", "-").replace("/", "-"))
        paths[entry.name] = context.path("outputs", tag + ".npy")
        workers.append(Worker(entry.name, entry.family, entry.params, entry.cores or cores,
                              context.path("logs", tag + ".log")))
    try:
        workers = prepare_all(workers, paths, failures)
        notes = {w.name: (w.version, w.note) for w in workers}
        judged = Result(row, {})
        if row.judge:
            workers = judge_all(row, workers, context.path("outputs"), judged, failures)
        times, idle, rates = {}, 0.0, [context.meter.measure(row.unit_of, row.read_sizes())]
        strangers, patience = Strangers(cores), context.args.patience
        for number in range(min(context.args.rounds, row.rounds or context.args.rounds)):
            patience = wait_for_quiet(cores, patience)
            more, spent = strangers.watch(list(workers), lambda turn=number: run_rounds(
                workers, turn, context.args.seconds, row.sample, failures))
            for name, seconds in more.items():
                times.setdefault(name, []).append(seconds)
            idle = max(idle, spent)
            rates.append(context.meter.measure(row.unit_of, row.read_sizes()))
    finally:
        for worker in workers:
            worker.close()
    # A round's rates are the better ones of before and after it.
    pairs = list(zip(rates, rates[1:]))
    result = Result(row, {n: t for n, t in times.items() if n not in failures},
                    [max(a[0], b[0]) for a, b in pairs],
                    [{size: max(a[1][size], b[1][size]) for size in a[1]} for a, b in pairs])
    result.failures, result.idle, result.strangers = failures, idle, strangers.share()
    result.errors = judged.errors
    result.versions = {name: note[0] for name, note in notes.items()}
    result.notes = {name: note[1] for name, note in notes.items()}
    if not row.judge:
        check_outputs(row, result, paths)
    return result


def chosen(args, rows):
    wanted = [w for w in args.only.split(",") if w]
    unknown = [w for w in wanted if not any(name.startswith(w) for name in rows)]
    if unknown:
        sys.exit("run.py: no row begins with %s; --list shows all" % ", ".join(unknown))
    return [name for name in rows if not wanted or any(name.startswith(w) for w in wanted)]


def in_peers_environment(args):
    """Starts again under the interpreter that has the peers; goes on without them where there is none."""
    if not args.peers or os.environ.get("BENCH_INSIDE"):
        return
    path = env.python()
    if path:
        os.environ["BENCH_INSIDE"] = "1"
        os.execv(path, [path, os.path.abspath(__file__), *sys.argv[1:]])


def run_row(context, name, make, skipped):
    """A dictionary for the report."""
    import report
    from rows import NotRun
    begin = time.monotonic()
    try:
        if skipped:
            raise NotRun("left out by --quick; --only %s runs it" % name)
        row = make(context, name)
        told = report.of_result(measure(context, row)) if hasattr(row, "entries") else row
    except (NotRun, RuntimeError, OSError) as error:
        told = report.not_run(name, str(error), wrong=not skipped and not isinstance(error, NotRun))
    told["seconds"] = round(time.monotonic() - begin, 1)
    return told


def main():
    args = arguments()
    import catalogue
    if args.list:
        print("\n".join(catalogue.ROWS))
        return 0
    names = chosen(args, catalogue.ROWS)
    in_peers_environment(args)
    import machine
    import report
    from context import Context
    if not shutil.which("taskset"):
        sys.exit("run.py: needs taskset")
    os.makedirs(args.out, exist_ok=True)
    os.makedirs(env.OUT, exist_ok=True)
    cores = sorted(os.sched_getaffinity(0))
    meter = machine.Meter(env.OUT, cores[-1])
    meter.measure()
    context, told = Context(args, meter, cores), []
    for name in names:
        skipped = args.quick and not args.only and name not in catalogue.QUICK
        told.append(run_row(context, name, catalogue.ROWS[name], skipped))
        print(report.row_text(told[-1]), flush=True)
    meter.measure()
    whole = report.collect(machine.describe(), meter, args, told)
    report.write(whole, args.out, args.json)
    print(report.summary_text(whole))
    return int(any(row["wrong"] for row in told))


if __name__ == "__main__":
    sys.exit(main())
