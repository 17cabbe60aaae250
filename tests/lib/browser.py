"""Pages in a headless browser, for tests/*/run.py."""
import html
import json
import os
import re
import shutil
import subprocess

from .tap import Skip

WIDTHS = (400, 500, 1200)
HERE = os.path.dirname(os.path.abspath(__file__))


def see(page, folder, script, width=1280, height=800, dark=False):
    """What `script`, the text of a JavaScript, leaves as JSON in a <pre id="found"> at the end of `page`, the text of a
    page. page.js stands before it. Skips without a browser."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        raise Skip("no chromium")
    path = os.path.join(folder, "seen.html")
    with open(os.path.join(HERE, "page.js"), encoding="utf-8") as file:
        script = file.read() + script
    assert page.count("</body>") == 1, "no end of the page"
    inner = page.replace("</body>", "<script>\n%s</script>\n</body>" % script)
    with open(path, "w", encoding="utf-8") as file:  # a browser's own window is at least 500 wide, a frame is not
        file.write('<!DOCTYPE html><html><meta charset="utf-8"><body style="margin: 0"><iframe style="border: 0; '
                   'width: %dpx; height: %dpx" srcdoc="%s"></iframe></body></html>' %
                   (width, height, html.escape(inner, quote=True)))
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                           "--window-size=%d,%d" % (max(width, 500), height + 100), "--virtual-time-budget=20000",
                           "--blink-settings=preferredColorScheme=%d" % (0 if dark else 1),
                           "--user-data-dir=" + os.path.join(folder, "profile"), "--dump-dom", "file://" + path],
                          capture_output=True, text=True, check=False, timeout=120)
    found = re.search(r'</iframe><pre id="found">(.*?)</pre>', done.stdout, re.S)
    assert found, "the script failed\n" + done.stderr[-2000:]
    seen = json.loads(html.unescape(found.group(1)))
    assert seen["width"] == width and seen["dark"] == dark, "%s wide, dark: %s" % (seen["width"], seen["dark"])
    return seen
