"""A decoder's C as a library: a text whose rows have integers, in states."""
import ctypes
import mmap
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import turns  # noqa: E402
from lib.attnc import UNOPTIMIZED, attnc, run  # noqa: E402
from lib.targets import here  # noqa: E402

PAGE = mmap.PAGESIZE
LIBC = ctypes.CDLL(None, use_errno=True)


def ints(numbers):
    return (ctypes.c_int32 * len(numbers))(*numbers)


def numbers(row):
    """An array of real numbers, or of integers."""
    return (ctypes.c_float * len(row))(*row) if isinstance(row[0], float) else ints(row)


def memory(size):
    """Zeros at the begin of a page, of which a child has a copy, and their address. The memory must outlive the uses of
    the address."""
    block = mmap.mmap(-1, (size + PAGE - 1) // PAGE * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return block, ctypes.addressof(ctypes.c_char.from_buffer(block))


def record(header, name):
    """A struct of the header: its fields after the size and the count are pointers."""
    body = re.search(r"typedef struct %s \{\n(.*?)\n\} %s;" % (name, name), header, re.S).group(1)
    names = re.findall(r"(\w+);", re.sub(r"/\*.*?\*/", "", body, flags=re.S))
    kinds = {"size": ctypes.c_size_t, "batch": ctypes.c_int}
    return type(name, (ctypes.Structure,), {"_fields_": [(x, kinds.get(x, ctypes.c_void_p)) for x in names]})


class Decoder:
    """The model m of a spec with random weights, whose rows have `width` columns."""

    def __init__(self, folder, text, seed, width):
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write(text)
        target = turns.rotated(here(), seed)
        attnc("compile", spec, "-o", folder, "--weights", "random:%d" % seed, "--embed-weights", "--target", target,
              status=0)
        library = os.path.join(folder, "m.so")
        run(UNOPTIMIZED, "-std=c11", "-shared", "-fPIC", "-w", os.path.join(folder, "m.c"), "-o", library, status=0)
        with open(os.path.join(folder, "m.h"), encoding="utf-8") as file:
            header = file.read()
        self.wide = set(re.findall(r"const int64_t \*in_(\w+);", header))  # whose bits are read
        with open(os.path.join(folder, "m.c"), encoding="utf-8") as file:
            self.caches = {name: int(at) for name, at in re.findall(r"#define m_cache_(\w+) (\d+)", file.read())}
        sizes = {name: [int(n) for n in re.findall(r"(\d+)u", text)]
                 for name, text in re.findall(r"#define M_(\w+_BYTES)\S* (.*(?:\\\n.*)*)", header)}
        statuses = re.search(r"\n    M_OK = 0,\n(.*?)\n};", header, re.S).group(1)
        self.statuses = {name: 1 + n for n, name in enumerate(re.findall(r"^    M_(\w+),? +/\*", statuses, re.M))}
        self.statuses.update((name, int(n)) for name, n in re.findall(r"^    M_(\w+) = (\d+) +/\*", statuses, re.M))
        self.width, self.state_bytes = width, sizes["STATE_BYTES"][0]
        self.work = max(sum(sizes["WORKSPACE_BYTES"]), sum(sizes["DECODE_WORKSPACE_BYTES"]))
        self.input, self.output = record(header, "m_input"), record(header, "m_output")
        self.rows, self.decoded = record(header, "m_rows"), record(header, "m_decoded")
        self.inputs = [name[3:] for name, _ in self.rows._fields_ if name.startswith("in_")]
        self.library = ctypes.CDLL(library)
        self.library.m_embedded.restype = ctypes.c_void_p
        self.context = (ctypes.c_char * 256)()
        weights = ctypes.c_void_p(self.library.m_embedded())
        status = self.library.m_init(self.context, weights, ctypes.c_size_t(sizes["WEIGHTS_BYTES"][0]), None)
        assert status == 0, status
        self.workspace, self.at = memory(self.work)

    def integers(self, name, row):
        return (ctypes.c_int64 * len(row))(*row) if name in self.wide else numbers(row)

    def state(self):
        block, at = memory(self.state_bytes)
        status = self.library.m_state_init(ctypes.c_void_p(at), ctypes.c_size_t(self.state_bytes))
        assert status == 0, status
        return block, at

    def copy(self, to, state):
        return self.library.m_state_copy(ctypes.c_void_p(to[1]), ctypes.c_void_p(state[1]))

    def rewind(self, state, rows):
        return self.library.m_state_rewind(ctypes.c_void_p(state[1]), rows)

    def _call(self, function, given, made, words, arrays, lengths, pairs):
        """Rows of words and of numbers, by the names of the inputs. The status, the rows hidden as bytes, and
        the maps."""
        kept = {"tokens": ints(words),
                **{"in_" + name: self.integers(name, row) for name, row in arrays.items() if row is not None}}
        for name, array in kept.items():
            setattr(given, name, ctypes.addressof(array))
        kept_lengths = ints(lengths) if lengths else None
        given.size, given.batch = ctypes.sizeof(given), len(lengths) if lengths else given.batch
        given.lengths = ctypes.addressof(kept_lengths) if lengths else None
        hidden = (ctypes.c_float * (len(words) * self.width))()
        maps = (ctypes.c_float * max(pairs, 1))()
        made.size, made.hidden = ctypes.sizeof(made), ctypes.addressof(hidden)
        if hasattr(made, "attention"):
            made.attention = ctypes.addressof(maps)
        status = function(self.context, ctypes.byref(given), ctypes.byref(made), ctypes.c_void_p(self.at),
                          ctypes.c_size_t(self.work))
        return status, bytes(hidden), list(maps)

    def forward(self, words, arrays):
        return self._call(self.library.m_forward, self.input(), self.output(), words, arrays, [len(words)],
                          64 * len(words) ** 2)

    def decode(self, states, words, arrays, lengths, pairs=0):
        """Appends rows to states in one call; without lengths, a row to each."""
        held = (ctypes.c_void_p * len(states))(*[at for _, at in states])
        given = self.rows()
        given.batch, given.states = len(states), ctypes.addressof(held)
        return self._call(self.library.m_decode, given, self.decoded(), words, arrays, lengths, pairs)

    def short(self, states, words, arrays):
        """The same by m_prefill for one state, or by m_step for a row of each state: the status and the rows."""
        hidden = (ctypes.c_float * (len(words) * self.width))()
        made = self.decoded()
        made.size, made.hidden = ctypes.sizeof(made), ctypes.addressof(hidden)
        one = len(states) == 1
        held = (ctypes.c_void_p * len(states))(*[at for _, at in states])
        status = (self.library.m_prefill if one else self.library.m_step)(
            self.context, ctypes.c_void_p(states[0][1]) if one else held, ints(words),
            *[self.integers(name, arrays[name]) for name in self.inputs], len(words), ctypes.byref(made),
            ctypes.c_void_p(self.at), ctypes.c_size_t(self.work))
        return status, bytes(hidden)


def protect(state, begin, end):
    """Takes all access away from the whole pages between two offsets of a state; returns how many there are."""
    first, last = (begin + PAGE - 1) // PAGE * PAGE, end // PAGE * PAGE
    if last <= first:
        return 0
    if LIBC.mprotect(ctypes.c_void_p(state[1] + first), ctypes.c_size_t(last - first), 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    return (last - first) // PAGE


def in_child(function):
    """How a process ends that calls the function: 0 where it returns True, 1 where not, or less than 0 by a signal."""
    child = os.fork()
    if child == 0:
        os._exit(0 if function() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
