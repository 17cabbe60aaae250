#!/usr/bin/env python3
"""What is handed out: the archive and the Debian package have the same bytes whenever they are made, the package
installs, works and goes without a trace, and the documentation's site has every page and no link that leads nowhere.
TAP on stdout."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from html.parser import HTMLParser

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import LONG, ROOT, make  # noqa: E402
from lib.attnc import run as run_command  # noqa: E402
from lib.tap import Skip, run_tests  # noqa: E402

SITE = os.path.join(ROOT, "build", "site", "html")


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def newest(pattern):
    return max(glob.glob(os.path.join(ROOT, "build", pattern)), key=os.path.getmtime)


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip("needs " + program)


class Links(HTMLParser):
    """The names, the links and the resources of a page."""

    def __init__(self, path):
        super().__init__()
        self.names, self.links, self.loaded = set(), [], []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.names |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag in ("script", "img", "iframe") and attrs.get("src"):
            self.loaded.append(attrs["src"])
        if tag == "link" and attrs.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.loaded.append(attrs["href"])


class Release:
    def __init__(self, scratch):
        self.scratch = scratch

    def test_archive(self):
        needs("git", "gzip")
        if not os.path.exists(os.path.join(ROOT, ".git")):
            raise Skip("these files are not a clone")
        make("dist", status=0)
        first = contents(newest("attnc-*.tar.gz"))
        make("dist", status=0)
        assert contents(newest("attnc-*.tar.gz")) == first, "two archives of a commit differ"
        with tarfile.open(newest("attnc-*.tar.gz")) as archive:
            names = archive.getnames()
            top = {name.split("/")[0] for name in names}
            assert len(top) == 1 and top.pop() + "/Makefile" in names, sorted(names)[:5]
        if LONG:
            run_command("tar", "-xzf", newest("attnc-*.tar.gz"), "-C", self.scratch, status=0)
            run_command("make", "-s", "-C", os.path.join(self.scratch, names[0].split("/")[0]), status=0)

    def test_package(self):
        needs("dpkg-deb", "dpkg", "strip", "xz")
        make("deb", status=0)
        package = newest("attnc_*.deb")
        first = contents(package)
        make("deb", status=0)
        assert contents(package) == first, "two packages of a build differ"
        root = os.path.join(self.scratch, "root")
        os.makedirs(os.path.join(root, "var/lib/dpkg/updates"))
        os.makedirs(os.path.join(root, "var/lib/dpkg/info"))
        for name in ("status", "available"):
            with open(os.path.join(root, "var/lib/dpkg", name), "w", encoding="utf-8"):
                pass
        # Into an empty root, whose data base has none of the libraries.
        dpkg = ["dpkg", "--root=" + root, "--force-not-root", "--force-depends", "--log=/dev/null"]
        run_command(*dpkg, "-i", package, status=0)
        program = os.path.join(root, "usr/bin/attnc")
        assert run_command(program, "--version", status=0).stdout.startswith("attnc ")
        out = os.path.join(self.scratch, "out")
        specs = os.path.join(root, "usr/share/attnc/specs")
        run_command(program, "compile", os.path.join(specs, "by_hand.attn"), "-o", out, status=0)
        run_command(program, "check", os.path.join(specs, "by_hand.attn"), status=0)
        assert os.path.exists(os.path.join(root, "usr/share/doc/attnc/copyright"))
        run_command(*dpkg, "-r", "attnc", status=0)
        left = [os.path.join(at, name) for at, _, names in os.walk(os.path.join(root, "usr")) for name in names]
        assert not left, "files are left behind: %s" % left

    def site(self):
        """Makes the site once, with a Python of its own that has the generator."""
        python = os.path.join(ROOT, "build", "site-python", "bin", "python")
        if not os.path.exists(python):
            run_command(sys.executable, "-m", "venv", os.path.dirname(os.path.dirname(python)), status=0)
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            if subprocess.run([python, "-m", "pip", "install", "-q", "mkdocs-material<10"], check=False,
                              stdout=nowhere, stderr=nowhere, timeout=600).returncode:
                raise Skip("pip cannot install mkdocs-material")
        make("docs", "PYTHON=" + python, status=0)

    def test_site(self):
        self.site()
        for page in glob.glob(os.path.join(ROOT, "docs", "*.md")) + [os.path.join(ROOT, "index.md")]:
            name = os.path.basename(page)[:-3] + ".html"
            assert os.path.exists(os.path.join(SITE, name)), "there is no " + name
        pages = {path: Links(path) for path in glob.glob(os.path.join(SITE, "**", "*.html"), recursive=True)}
        assert len(pages) > 15, sorted(pages)
        demo = os.path.join(SITE, "demo", "dates", "index.html")
        assert os.path.exists(demo) == bool(shutil.which("wasm-ld")), "the site has the models where they can be made"
        for path, page in pages.items():
            if os.path.basename(path) == "404.html":  # which is served for any path
                continue
            for link in page.loaded:
                if link.startswith("data:"):
                    continue
                assert not re.match("[a-z]+:|//", link), "%s loads %s" % (path, link)
                self.leads(path, link, pages)
            for link in page.links:
                if not re.match("[a-z]+:", link):
                    self.leads(path, link, pages)
        with open(os.path.join(SITE, "search", "search_index.json"), encoding="utf-8") as file:
            found = [entry["location"] for entry in json.load(file)["docs"] if "sliding" in entry["text"]
                     or "kv_heads" in entry["title"]]
        assert any(location.startswith("language.html") for location in found), found

    def leads(self, path, link, pages):
        name, _, anchor = link.partition("#")
        to = os.path.normpath(os.path.join(os.path.dirname(path), name.split("?")[0])) if name else path
        assert os.path.exists(to), "%s: %s leads nowhere" % (path, link)
        if anchor and to in pages and not anchor.startswith("__"):
            assert anchor in pages[to].names, "%s: %s has no such place" % (path, link)


if __name__ == "__main__":
    sys.exit(run_tests("release", Release))
