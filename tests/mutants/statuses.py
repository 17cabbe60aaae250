#!/usr/bin/env python3
"""statuses.py TARGET: what tests/decode says of the entries of emitted C, by one compiler, without sanitizers."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.abspath("tests/decode"))
import run as decode  # noqa: E402


def main(target):
    compilers = concurrent.futures.ThreadPoolExecutor(1)
    with tempfile.TemporaryDirectory() as folder:
        decode.emit(folder, (target,))
        program = decode.build(compilers, folder, decode.COMPILERS[0], ["-O1"])
        return subprocess.run([program, target, folder], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
