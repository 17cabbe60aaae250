"""Builds the package attnc with the program in it, which make builds in the tree around this folder. ATTNC names a
program that is built already. Needs what the README names: clang, flex, bison, cJSON and zlib."""
import os
import re
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))


def version():
    with open(os.path.join(TREE, "compiler", "attnc.h"), encoding="utf-8") as file:
        return re.search(r'#define ATTNC_VERSION "(.*)"', file.read())[1]


def program():
    """The path of attnc, which is built where it is not there."""
    given = os.environ.get("ATTNC")
    if given:
        return os.path.abspath(given)
    subprocess.run(["make", "-s", "-C", TREE, "-j%d" % (os.cpu_count() or 1), "build/attnc"], check=True)
    return os.path.join(TREE, "build", "attnc")


class Build(build_py):
    """Puts the program into the package, without its symbols."""

    def run(self):
        super().run()
        folder = os.path.join(self.build_lib, "attnc", "bin")
        os.makedirs(folder, exist_ok=True)
        copy = shutil.copy2(program(), os.path.join(folder, "attnc"))
        os.chmod(copy, 0o755)
        subprocess.run(["strip", copy], check=True)


class Wheel(bdist_wheel):
    """A wheel for this machine and every version of Python."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class Machine(Distribution):
    """What is installed is a program of this machine."""

    def has_ext_modules(self):
        return True


setup(version=version(), cmdclass={"build_py": Build, "bdist_wheel": Wheel}, distclass=Machine)
