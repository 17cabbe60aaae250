"""Contestants of a row: processes that are started and prepared once and then take turns."""
import json
import os
import select
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TICKS = os.sysconf("SC_CLK_TCK")
# Seconds after which a worker that does not answer is given up.
LIMIT = 300


class WorkerFailed(Exception):
    pass


class Worker:
    def __init__(self, name, family, params, cores, log):
        self.name, self.family, self.params = name, family, params
        self.version = self.note = ""
        environment = dict(os.environ, OMP_NUM_THREADS=str(params.get("threads", 1)), TOKENIZERS_PARALLELISM="false",
                           HF_HUB_OFFLINE="1", **params.get("environment", {}))
        pin = ["taskset", "-c", ",".join(map(str, cores))]
        self.log = open(log, "w", encoding="utf-8")
        self.process = subprocess.Popen(pin + [sys.executable, os.path.join(HERE, "worker.py"), family],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env=environment)

    def tell(self, command):
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise WorkerFailed("its process ended") from error

    def answer(self):
        if not select.select([self.process.stdout], [], [], LIMIT)[0]:
            self.process.kill()
            raise WorkerFailed("no answer for %d s" % LIMIT)
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            raise WorkerFailed("its process ended, by signal %d" % -code if code < 0 else
                               "its process ended with status %d, see %s" % (code, os.path.basename(self.log.name)))
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerFailed(answer["error"])
        return answer

    def ask(self, command):
        self.tell(command)
        return self.answer()

    def cpu_seconds(self):
        try:
            with open("/proc/%d/stat" % self.process.pid, encoding="utf-8") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / TICKS

    def settle(self):
        """Waits until its threads sleep: some pools spin for a while after the last call. Seconds it took."""
        begin, before = time.monotonic(), self.cpu_seconds()
        while time.monotonic() - begin < 1:
            time.sleep(0.03)
            now = self.cpu_seconds()
            if now == before:
                break
            before = now
        return time.monotonic() - begin

    def close(self):
        try:
            self.tell({"do": "quit"})
        except WorkerFailed:
            pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()


def prepare_all(workers, paths, failures):
    """All load at the same time, then each runs once. Those that cannot are left out, with the reason in `failures`."""
    for worker in workers:
        worker.tell(dict(worker.params, do="prepare"))
    loaded, ready = [], []
    for worker in workers:
        try:
            answer = worker.answer()
            worker.version, worker.note = answer["version"], answer["note"]
            loaded.append(worker)
        except WorkerFailed as error:
            failures[worker.name] = str(error)
            worker.close()
    # One after another: pools that spin do not come forward when several want the same cores.
    for worker in loaded:
        try:
            worker.ask({"do": "run", "output": paths[worker.name]})
            worker.settle()
            ready.append(worker)
        except WorkerFailed as error:
            failures[worker.name] = str(error)
            worker.close()
    return ready


def run_rounds(workers, number, seconds, sample, failures):
    """One round. Seconds a call by name, and the largest share of a core that an idle worker took."""
    times, idle = {}, 0.0
    # Backwards every other time: what drifts with the clock favours nobody.
    for worker in list(workers)[::-1 if number % 2 else 1]:
        others = [w for w in workers if w is not worker]
        before, begin = sum(w.cpu_seconds() for w in others), time.monotonic()
        try:
            times[worker.name] = worker.ask({"do": "time", "seconds": seconds, "sample": sample})["median"]
        except WorkerFailed as error:
            failures[worker.name] = str(error)
            workers.remove(worker)
            worker.close()
            continue
        spent, took = sum(w.cpu_seconds() for w in others) - before, time.monotonic() - begin
        idle = max(idle, (spent - 1.5 / TICKS) / took)  # a tick is the clock's resolution
        worker.settle()
    return times, max(idle, 0.0)
