"""A command on a terminal of its own: what it wrote, when, and what the screen shows of it."""
import codecs
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from fcntl import ioctl

COLUMNS = 100


def environment(**changes):
    """That of the tests, with TERM=xterm and without NO_COLOR, and then as `changes` say; None: not set."""
    every = {**os.environ, "TERM": "xterm", "NO_COLOR": None, **changes}
    return {name: value for name, value in every.items() if value is not None}


class Session:
    """chunks: (seconds since the start, bytes) in order; status: the exit status. Both outputs go to the terminal but
    where a path is given."""

    def __init__(self, command, stdout=None, stderr=None, columns=COLUMNS, timeout=120, **changes):
        begin, self.chunks = time.monotonic(), []
        child, terminal = pty.fork()
        if child == 0:
            try:
                ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
                for number, path in ((1, stdout), (2, stderr)):
                    if path:
                        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
                os.execve(command[0], command, environment(**changes))
            finally:
                os._exit(127)
        late = True
        try:
            while select.select([terminal], [], [], max(0, begin + timeout - time.monotonic()))[0]:
                self.chunks.append((time.monotonic() - begin, os.read(terminal, 1 << 16)))
        except OSError:  # how Linux says that nobody has the other end any more
            late = False
        os.close(terminal)
        if late:
            os.kill(child, signal.SIGKILL)
        self.status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        self.seconds = time.monotonic() - begin
        assert not late, "no end after %d s: %s" % (timeout, command)
        self.written = b"".join(data for _, data in self.chunks)

    def screens(self):
        """What the screen shows before the first chunk and wherever nothing follows at once."""
        screen = Screen()
        shown = [screen.text()]
        for i, (when, data) in enumerate(self.chunks):
            screen.take(data)
            if i + 1 == len(self.chunks) or self.chunks[i + 1][0] > when + 0.02:
                shown.append(screen.text())
        return shown

    def screen(self):
        return self.screens()[-1]


class Screen:
    """The lines of a terminal as wide as they need; a control character that is not known here is an error."""

    def __init__(self):
        self.decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self.rest, self.lines, self.row, self.column = "", [[]], 0, 0

    def take(self, data):
        text = self.rest + self.decoder.decode(data)
        self.rest = re.search(r"(\x1b(\[[0-9;]*)?)?\Z", text).group()  # a code that is cut in two
        for token in re.findall(r"\x1b\[[0-9;]*m|.", text[:len(text) - len(self.rest)], re.S):
            self.put(token)

    def put(self, token):
        if token == "\r":
            self.column = 0
        elif token == "\n":
            self.row += 1
            self.lines.extend([] for _ in range(self.row + 1 - len(self.lines)))
        elif token == "\t":
            self.column += 8 - self.column % 8
        elif not token.startswith("\x1b["):
            assert ord(token) >= 0x20 and not 0x7f <= ord(token) < 0xa0, "the control character %r" % token
            line = self.lines[self.row]
            line.extend(" " * (self.column + 1 - len(line)))
            line[self.column] = token
            self.column += 1

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines).rstrip("\n")
