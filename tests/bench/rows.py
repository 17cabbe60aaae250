"""What a row is: contestants that compute the same, the bars that it is measured against, and its result."""
import statistics


class NotRun(Exception):
    """A row that cannot be had here; the text says why."""


class Entry:
    """One contestant: its name in the table, the module of peers/ that runs it, and what that needs to know."""
    def __init__(self, name, family, params, ours=False, **more):
        self.name, self.family, self.params, self.ours = name, family, params, ours
        self.cores = more.pop("cores", None)        # fewer than the row's, for one that is there for comparison
        self.bound = more.pop("bound", None)        # of the difference from ours; None: the row's
        self.checked = more.pop("checked", True)
        self.bytes = more.pop("bytes", None)        # of a call; None: the row's
        self.read_size = more.pop("read_size", None)  # bytes of the buffer of its bandwidth; None: past caches
        self.reference = more.pop("reference", False)  # the f32 model that a row of low precision is judged by
        self.timed = more.pop("timed", True)
        assert not more, more


class Row:
    def __init__(self, name, title, entries, **more):
        self.name, self.title, self.entries = name, title, entries
        self.threads = more.pop("threads", 1)
        self.work = more.pop("work", 1)           # units a call
        self.unit = more.pop("unit", "ms")        # "ms", "us", or a rate: "tokens/s"
        self.flops = more.pop("flops", None)      # of a call, for the share of the peak
        self.bytes = more.pop("bytes", None)      # of a call, for the share of the read bandwidth
        self.bound = more.pop("bound", 2e-5)      # max |a - b| / (1 + max |b|), b is ours
        self.sample = more.pop("sample", 0.0)     # least seconds of a sample
        self.bars = more.pop("bars", [])
        self.missing = more.pop("missing", {})    # peers that cannot be had, and why
        self.note = more.pop("note", "")
        self.rounds = more.pop("rounds", None)    # at most, where a call takes seconds
        self.judge = more.pop("judge", None)      # in low precision: an error for everyone in place of the bound
        self.unit_of = more.pop("unit_of", None)  # "int8" or "bf16": the peak is that of what multiplies such rows
        assert not more, more

    def read_sizes(self):
        return {e.read_size for e in self.entries}

    def shown(self, seconds):
        """A time in the row's unit."""
        scale = {"s": 1, "ms": 1e3, "us": 1e6}.get(self.unit)
        return seconds * scale if scale else self.work / seconds


class Bar:
    """`measure(result)` gives a number or None; at least (or, `most`, at most) `needed` is reached."""
    def __init__(self, text, needed, measure, most=False, percent=False):
        self.text, self.needed, self.measure, self.most, self.percent = text, needed, measure, most, percent

    def judge(self, result):
        value = self.measure(result)
        if value is None:
            return {"bar": self.text, "needed": self.needed, "value": None, "state": "not measured",
                    "percent": self.percent, "most": self.most}
        good = value <= self.needed if self.most else value >= self.needed
        return {"bar": self.text, "needed": self.needed, "value": value, "state": "reached" if good else "not reached",
                "percent": self.percent, "most": self.most}


class Result:
    """Times of a row by contestant, a number a round; peaks, and reads by the buffer's size, of the same rounds."""
    def __init__(self, row, times, peaks=(), reads=()):
        self.row, self.peaks, self.reads = row, list(peaks), list(reads)
        self.times = {name: values for name, values in times.items() if values}
        self.differences, self.failures, self.wrong, self.errors = {}, {}, [], {}
        self.versions, self.notes, self.idle, self.strangers = {}, {}, 0.0, 0.0
        self.ours = [e.name for e in row.entries if e.ours and not e.cores and not e.reference and e.name in self.times]
        self.peers = [e.name for e in row.entries if not e.ours and e.name in self.times]

    def median(self, name):
        return statistics.median(self.times[name])

    def ratio(self, ours, other):
        """How many times faster ours is: the median over rounds of the ratio in each round. None if one is missing."""
        if ours is None or other is None or ours not in self.times or other not in self.times:
            return None
        pairs = list(zip(self.times[other], self.times[ours]))
        return statistics.median(theirs / own for theirs, own in pairs) if pairs else None

    def best(self, names):
        names = [n for n in names if n in self.times]
        return min(names, key=self.median) if names else None

    def own(self):
        """The figure of ours that bars are about: what clang built, and of two ways to unroll the faster."""
        return self.best([n for n in self.ours if "gcc" not in n])

    def best_peer(self, containing="", without=None):
        return self.best([n for n in self.peers if containing in n and not (without and without in n)])

    def share(self, name, what="flops"):
        """Of the measured peak of all the row's cores (flops), or of the read bandwidth of one (bytes)."""
        entry = next((e for e in self.row.entries if e.name == name), None)
        if entry is None or (entry.reference and self.row.unit_of):
            return None
        amount = entry.bytes if what == "bytes" and entry.bytes else getattr(self.row, what)
        rates = self.peaks if what == "flops" else [r[entry.read_size] for r in self.reads]
        rates = [r for r in rates if r]
        if amount is None or not rates or name not in self.times:
            return None
        fewer = len(entry.cores) if entry.cores else self.row.threads
        count = fewer if what == "flops" else 1
        return statistics.median(amount / t / (rate * count) for t, rate in zip(self.times[name], rates))


def against(needed, text, containing="", of=None, without=None):
    """At least `needed` times as fast as the best peer of that kind; `of`: the best of ours whose names hold that."""
    def measure(r):
        own = r.best([n for n in r.ours if of in n and "gcc" not in n]) if of else r.own()
        return r.ratio(own, r.best_peer(containing, without))
    return Bar(text, needed, measure)


def error_of(names, figure, needed, text=None):
    """At most `needed` in that figure of the judge, for the worst of ours that `names` picks and that ran."""
    def measure(r):
        found = [e[figure] for n, e in r.errors.items() if n in r.ours and names(n)]
        return max(found) if found else None
    return Bar(text or figure, needed, measure, most=True)


def of_peak(needed):
    return Bar("of the multiply-add peak", needed, lambda r: r.share(r.own()), percent=True)


def of_read(needed):
    return Bar("of the read bandwidth", needed, lambda r: r.share(r.own(), "bytes"), percent=True)


def gcc_near_clang():
    """Best of what gcc built against the best of what clang built."""
    def measure(r):
        gcc = r.best([n for n in r.ours if "gcc" in n])
        return None if gcc is None or r.own() is None else statistics.median(
            g / c for g, c in zip(r.times[gcc], r.times[r.own()]))
    return Bar("gcc's time / clang's", 1.15, measure, most=True)
