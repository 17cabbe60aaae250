"""Folders that a plain server of files has, in a browser."""
import contextlib
import functools
import http.server
import os
import threading
import urllib.parse

from lib import chrome


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Site:
    """A server of the files below a folder, and the browser of all sites."""
    browser = None

    def __init__(self, root):
        self.root = root
        if not Site.browser:
            Site.browser = contextlib.ExitStack().enter_context(chrome.Browser())
        handler = functools.partial(Quiet, directory=root)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    @contextlib.contextmanager
    def open(self, folder, state="ready", width=1000, dark=False, quiet=True):
        """A page once it has that state. With `quiet`, nothing may be in its console at the end."""
        path, _, query = folder.partition("?")
        url = "http://127.0.0.1:%d/%s/?%s" % (self.server.server_port,
                                              urllib.parse.quote(os.path.relpath(path, self.root)), query)
        page = Opened(Site.browser.page(url, width, dark=dark))
        try:
            page.browser_page.wait("document.body && ['ready', 'error'].includes(document.body.dataset.state)")
            found = page.value("document.body.dataset.state")
            assert found == state, "%s: %s" % (found, page.message())
            yield page
            complaints = page.browser_page.complaints()
            assert not complaints or not quiet, complaints
        finally:
            page.browser_page.close()


class Opened:
    def __init__(self, browser_page):
        self.browser_page = browser_page
        self.run = self.value = browser_page.run

    def message(self):
        return self.value("document.getElementById('message').textContent")

    def settled(self):
        """What the page answers, once it is no longer busy."""
        self.browser_page.wait("document.body.dataset.state === 'ready'")
        return self.value("document.getElementById('output').textContent")

    def ask(self, text):
        """Types the text, clicks the button, and waits for the answer."""
        self.run("input.value = ''; input.focus()")
        if text:
            self.browser_page.type(text)
        self.run("output.replaceChildren('asked')")  # which the page removes when the click arrives
        self.browser_page.click("#run")
        self.browser_page.wait("output.textContent !== 'asked'")
        return self.settled()


SITES = {}


def site(root):
    """The site of a folder, which is started at the first call."""
    if root not in SITES:
        SITES[root] = Site(root)
    return SITES[root]
