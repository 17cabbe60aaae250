"""What the parts of this suite share: attnc, .npy files, TAP."""
import array
import ast
import os
import struct
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ATTNC = os.environ.get("ATTNC", os.path.join(ROOT, "build", "attnc"))
FIXTURES = os.environ.get("ATTNC_FIXTURES", "")
QUICK = os.environ.get("ATTNC_QUICK") == "1"
TARGETS = ("scalar", "avx2", "avx512")
SPECS = ("ring", "pair", "prefixed", "longrope")
CODES = {"<f4": "f", "<i4": "i", "<i8": "q"}
NO_TARGET = 77  # status of a test program whose target this machine does not have

TIMEOUT = 600

lock = threading.Lock()
processors = threading.BoundedSemaphore(os.cpu_count() or 1)  # tests wait for each other's commands, not for each other


def result(name, problem=None, skip=None):
    """One line of TAP, with the problem's lines behind it."""
    with lock:
        print(("not ok " if problem else "ok ") + "decode/" + name + (" # SKIP " + skip if skip else ""))
        for line in (problem or "").splitlines()[:20]:
            print("# " + line)
        sys.stdout.flush()


def run(argv, **more):
    with processors:
        try:
            return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=TIMEOUT, **more)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(argv, 124, "", "no end after %d s: %s" % (TIMEOUT, " ".join(argv)))


def attnc(*args, **more):
    return run([ATTNC, *args], cwd=ROOT, **more)


def spec_path(name):
    return os.path.join(HERE, name + ".attn")


def spec_text(name):
    with open(spec_path(name), encoding="utf-8") as file:
        return file.read()


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def write_npy(path, rows, code="i"):
    """Rows of one length, or a plain list; ids by default."""
    batched = bool(rows) and isinstance(rows[0], (list, tuple))
    shape = (len(rows), len(rows[0])) if batched else (len(rows),)
    numbers = array.array(code, [n for row in rows for n in row] if batched else rows)
    descr = next(name for name, known in CODES.items() if known == code)
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + numbers.tobytes())
    return path


def read_npy(path):
    """A list, or a list of lists, of a C-ordered, little-endian .npy file of one or two dimensions."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError(path)
    begin = 10 + struct.unpack_from("<H", data, 8)[0]
    header = ast.literal_eval(data[10:begin].decode("latin1"))
    numbers = array.array(CODES[header["descr"]])
    numbers.frombytes(data[begin:])
    shape = header["shape"]
    if len(shape) == 1:
        return list(numbers)
    return [list(numbers[i * shape[1]:(i + 1) * shape[1]]) for i in range(shape[0])]


def lacks_target(done):
    """The reason, where attnc refused because of the machine."""
    text = (done.stderr.strip().splitlines() or [""])[-1]
    return text if done.returncode == 3 or "this machine" in text else None
