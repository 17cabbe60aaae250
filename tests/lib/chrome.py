"""A headless Chromium that tests drive by the Chrome DevTools Protocol, over the pipe that the browser offers."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from .tap import Skip

PATIENCE = 60  # seconds for an answer of the browser
# The browser reads commands from its descriptor 3 and answers on 4, each message ended by a NUL.
SHELL = 'exec "$@" 3<&"$READS" 4>&"$WRITES"'


def browser_path():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    raise Skip("no chromium")


class Browser:
    """With `with`, it is ended at the end. Each page() is a tab."""

    def __init__(self, *more):
        self.folder = tempfile.mkdtemp(prefix="attnc-browser-")
        reads, self.commands = os.pipe()
        self.answers, writes = os.pipe()
        self.buffer, self.last, self.waiting = b"", 0, []
        command = [browser_path(), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                   "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   "--disable-extensions", "--user-data-dir=" + self.folder, *more, "about:blank"]
        with open(os.path.join(self.folder, "stderr"), "wb") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                ["bash", "-c", SHELL, "bash", *command], pass_fds=(reads, writes), stdout=log, stderr=log,
                env={**os.environ, "READS": str(reads), "WRITES": str(writes)})
        os.close(reads)
        os.close(writes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, until):
        """The next message, or None when it is `until`."""
        while b"\0" not in self.buffer:
            ready = select.select([self.answers], [], [], max(0, until - time.monotonic()))[0]
            if not ready:
                return None
            got = os.read(self.answers, 1 << 16)
            assert got, "the browser ended: " + self.log()
            self.buffer += got
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def log(self):
        with open(os.path.join(self.folder, "stderr"), encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def call(self, method, session=None, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while (answer := self.receive(until)) is not None:
            if answer.get("id") == self.last:
                assert "error" not in answer, "%s: %s" % (method, answer["error"])
                return answer["result"]
            self.waiting.append(answer)
        raise AssertionError("%s: no answer within %d s" % (method, PATIENCE))

    def events(self, session):
        """The events of a session so far, which are then forgotten."""
        while (event := self.receive(time.monotonic() + 0.01)) is not None:
            self.waiting.append(event)
        own = [event for event in self.waiting if event.get("sessionId") == session]
        self.waiting = [event for event in self.waiting if event.get("sessionId") != session]
        return own

    def page(self, url, width=1000, height=800, dark=False):
        return Page(self, url, width, height, dark)


class Page:
    def __init__(self, browser, url, width, height, dark):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.problems = []
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        # Workers are sessions of their own.
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=False, flatten=True)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def run(self, script):
        """The value of an expression of JavaScript, which may be a promise."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, script, seconds=60):
        """Until the expression is true; its value."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = self.run(script)
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError("%s did not come true within %d s: %s" % (
            script, seconds, self.run("document.body.outerHTML.slice(0, 3000)")))

    def complaints(self):
        """Exceptions, and what the console has as errors and warnings."""
        for event in self.browser.events(self.session):
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                self.problems.append(json.dumps(params["exceptionDetails"])[:600])
            if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                self.problems.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))
            if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                self.problems.append(json.dumps(params["args"])[:600])
        return self.problems

    def type(self, text):
        """Types into the element that has the focus."""
        self.call("Input.insertText", text=text)

    def key(self, key, code=0, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    def click(self, selector):
        """A click of a mouse in the middle of an element."""
        x, y = self.run("(() => { const e = document.querySelector(%s); e.scrollIntoView({block: 'center'}); "
                        "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
                        % json.dumps(selector))
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
