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


def busy_seconds(cores):
    """What these cores did since the machine started, for anyone; what the hypervisor took counts too."""
    total = 0
    with open("/proc/stat", encoding="utf-8") as file:
        for line in file:
            fields = line.split()
            if fields[0][3:].isdigit() and int(fields[0][3:]) in cores:
                user, nice, system, _, _, irq, softirq, steal = map(int, fields[1:9])
                total += user + nice + system + irq + softirq + steal
    return total / TICKS


class Strangers:
    """How much of the row's cores went to processes that are not of this run, while it was measured."""
    def __init__(self, cores):
        self.cores, self.spent, self.took = cores, 0.0, 0.0

    def watch(self, workers, action):
        begin, busy = time.monotonic(), busy_seconds(self.cores)
        own = sum(w.cpu_seconds() for w in workers) + time.process_time()
        result = action()
        own = sum(w.cpu_seconds() for w in workers) + time.process_time() - own
        self.spent += busy_seconds(self.cores) - busy - own
        self.took += time.monotonic() - begin
        return result

    def share(self):
        """Of one core; 0 to the number of cores."""
        return max(self.spent / self.took, 0.0) if self.took else 0.0


def wait_for_quiet(cores, limit):
    """Until others leave these cores alone for a moment; seconds of the limit that are left."""
    begin = time.monotonic()
    while time.monotonic() - begin < limit:
        busy, moment = busy_seconds(cores), time.monotonic()
        time.sleep(0.3)
        if (busy_seconds(cores) - busy) / (time.monotonic() - moment) < 0.15:
            break
    return max(limit - (time.monotonic() - begin), 0)


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


def those_that(action, workers, failures):
    """Does it for each; without those where it fails, with the reason in `failures`."""
    fine = []
    for worker in workers:
        try:
            action(worker)
            fine.append(worker)
        except WorkerFailed as error:
            failures[worker.name] = str(error)
            worker.close()
    return fine


def prepare_all(workers, paths, failures):
    """All load at the same time, then each runs once; gives those that could."""
    def loaded(worker):
        answer = worker.answer()
        worker.version, worker.note = answer["version"], answer["note"]

    def ran(worker):
        worker.ask({"do": "run", "output": paths[worker.name]})
        worker.settle()

    told = those_that(lambda worker: worker.tell(dict(worker.params, do="prepare")), workers, failures)
    # The run is one after another: pools that spin do not come forward when several want the same cores.
    return those_that(ran, those_that(loaded, told, failures), failures)


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
