#!/usr/bin/env python3
"""make_site.py DIR: the documentation as static HTML in DIR/html, by mkdocs with the theme mkdocs-material.

README.md, docs/, the pages of the examples and the changelog are copied into DIR/pages, and their links are turned to
the copies. What a link names beside them is no page of the site, so that its words stay without a link. build/attnc
writes the reports and, where there is a clang for WebAssembly, the models that run in the browser. A link or an anchor
that leads nowhere is an error."""
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ATTNC = os.path.join(ROOT, "build", "attnc")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
REFERENCE = re.compile(r"^\[([^\]]+)\]: +(\S+)$", re.M)
FENCE = re.compile(r"^(```.*?^```\s*$)", re.M | re.S)
# The order of the menu; what is not named here follows by its name.
ORDER = ["README.md", "docs/language.md", "docs/masks.md", "docs/models.md", "docs/embedding-in-your-app.md",
         "docs/generation.md",
         "docs/tokenizers.md", "docs/python.md", "docs/rust.md", "docs/page.md", "docs/microcontrollers.md",
         "docs/precision.md", "docs/performance.md", "docs/trust.md", "docs/versions.md", "CHANGELOG.md"]
# A page of attnc itself: its name, what it shows, and the command that writes it.
REPORTS = [
    ("explain", "the roofline, the time of each step, the workspace over time and the code of MiniLM",
     ["explain", "specs/minilm.attn", "--html"]),
    ("explain_int8", "the same in int8", ["explain", "specs/minilm.attn", "--precision", "int8", "--html"]),
]

DEMOS = [("dates", "An encoder and a decoder that read a date in any form, with a map of what the decoder looked at"),
         ("story", "A small llama that continues a story")]


def pages():
    """The page of the site for each page of the repository."""
    found = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "packaging/README.md": "packaging.md"}
    for path in sorted(glob.glob("docs/*.md", root_dir=ROOT)):
        found[path] = os.path.basename(path)
    for path in sorted(glob.glob("examples/*/README.md", root_dir=ROOT)):
        found[path] = "examples/%s.md" % path.split("/")[1]
    return {path: page for path, page in found.items() if os.path.exists(os.path.join(ROOT, path))}


class Links:
    """Turns the links of one page of the repository into those of its copy."""

    def __init__(self, path, known):
        self.folder, self.known = os.path.dirname(path), known
        self.at = os.path.dirname(known[path])

    def target(self, link):
        """The link in the site; None where the site has no such page."""
        if re.match(r"[a-z]+:|#", link):
            return link
        name, _, anchor = link.partition("#")
        path = os.path.normpath(os.path.join(self.folder, name))
        assert os.path.exists(os.path.join(ROOT, path)), "%s: the link %s leads nowhere" % (self.folder, link)
        page = self.known.get(path) or self.known.get(path + "/README.md")
        return page and os.path.relpath(page, self.at or ".") + (anchor and "#" + anchor)

    def turned(self, found):
        picture, words, link = found.groups()
        target = self.target(link)
        return "%s[%s](%s)" % (picture, words, target) if target else words

    def text(self, text):
        parts = FENCE.split(text)  # every second one is code
        for i in range(0, len(parts), 2):
            names = {name for name, link in REFERENCE.findall(parts[i]) if not self.target(link)}
            parts[i] = REFERENCE.sub(lambda m: "[%s]: %s" % (m[1], self.target(m[2])) if m[1] not in names else "",
                                     LINK.sub(self.turned, parts[i]))
        return "".join(parts)


def title(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return re.search(r"^# (.*)$", file.read(), re.M)[1].replace("`", "")


def write_pages(folder, known):
    for path, page in known.items():
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = Links(path, known).text(file.read())
        to = os.path.join(folder, page)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, "w", encoding="utf-8") as file:
            file.write(text)


def write_reports(folder):
    """The reports, and a page that shows them."""
    os.makedirs(os.path.join(folder, "reports"))
    lines = ["# Reports\n\nattnc writes each of these pages; a page is one file, which loads nothing.\n"]
    for name, about, command in REPORTS:
        page = os.path.join(folder, "reports", name + ".html")
        subprocess.run([ATTNC, *command, page], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        lines.append("`attnc %s %s.html` shows %s ([page alone](reports/%s.html)).\n" %
                     (" ".join(command), name, about, name))
        lines.append('<iframe src="reports/%s.html" title="%s" width="100%%" height="640"></iframe>\n' % (name, about))
    with open(os.path.join(folder, "reports.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def write_demo(folder):
    """The pages of `make demo-page` and a page that shows them; False where this machine cannot make them."""
    made = os.path.join(os.path.dirname(folder), "demo")
    environment = {**os.environ, "ATTNC_DEMO_SERVE": "0", "ATTNC_DEMO_FOLDER": made, "ATTNC_DEMO_OFFLINE": "1"}
    if not shutil.which("wasm-ld") or subprocess.run(["scripts/demo.sh", "page"], cwd=ROOT, env=environment,
                                                     check=False, stdout=subprocess.DEVNULL).returncode:
        print("make_site.py: the demo is left out, since `make demo-page` fails here", file=sys.stderr)
        return False
    shutil.copytree(os.path.join(made, "page"), os.path.join(folder, "demo"))
    with open(os.path.join(folder, "demo.md"), "w", encoding="utf-8") as file:
        file.write("# Models in this browser\n\n`attnc page` wrote both pages ([page.md](page.md)); nothing leaves the "
                   "browser.\n")
        for name, about in DEMOS:
            file.write('\n%s ([page alone](demo/%s/index.html)).\n\n<iframe src="demo/%s/index.html" title="%s" '
                       'width="100%%" height="560"></iframe>\n' % (about, name, name, name))
    return True


def write_config(folder, known, demo):
    """mkdocs.yml with a menu of all pages."""
    shutil.copy(os.path.join(ROOT, "packaging", "site", "mkdocs.yml"), os.path.join(folder, "mkdocs.yml"))
    first = [path for path in ORDER if path in known]
    rest = sorted((path for path in known if path not in first), key=lambda path: known[path])
    lines = ["nav:"]
    for path in first + [path for path in rest if not path.startswith("examples/")]:
        lines.append("  - %r: %s" % ("attnc" if path == "README.md" else title(path), known[path]))
    lines += ["  - Models in this browser: demo.md"] if demo else []
    lines += ["  - Reports: reports.md", "  - Examples:"]
    lines += ["      - %r: %s" % (title(path), known[path]) for path in rest if path.startswith("examples/")]
    with open(os.path.join(folder, "mkdocs.yml"), "a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: scripts/make_site.py DIR")
    folder = os.path.abspath(sys.argv[1])
    if subprocess.run([sys.executable, "-c", "import mkdocs, material"], check=False, capture_output=True).returncode:
        sys.exit("make_site.py: %s has no mkdocs-material; `%s -m pip install mkdocs-material` installs it" %
                 (sys.executable, sys.executable))
    shutil.rmtree(folder, ignore_errors=True)
    known = pages()
    write_pages(os.path.join(folder, "pages"), known)
    write_reports(os.path.join(folder, "pages"))
    write_config(folder, known, write_demo(os.path.join(folder, "pages")))
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q", "-f", os.path.join(folder, "mkdocs.yml")],
                   check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})


main()
