"""Logs in to glewlwyd's pages with headless Chromium, driven over a pipe by the DevTools protocol."""
import contextlib
import fcntl
import json
import os
import subprocess
import tempfile
import time
import urllib.parse

from .browser import OPTIONS
from .servers import find
from .waiting import ended, is_ready

#: One step of the login page: returns what to do, after clicking what can be clicked.
STEP = """(() => {
  const username = document.getElementById("username")
  if (username) return "credentials"
  for (const box of document.querySelectorAll("input[id^=grant-]")) if (!box.checked) box.click()
  const buttons = [...document.querySelectorAll("button")].filter(button => button.offsetParent)
  for (const text of ["Grant access", "Continue"]) {
    const found = buttons.find(button => button.innerText.trim() == text)
    if (found) { found.click(); return text }
  }
  return "waiting"
})()"""


class ProtocolError(Exception):
    pass


class Chromium:
    """A browser with a new profile and one page."""

    def __init__(self, profile, *options):
        # Chromium reads commands from descriptor 3 and writes to 4: NUL-terminated JSON. Both are moved above 9 first, so that
        # bash can assign them.
        with contextlib.ExitStack() as stack:
            def pipe():
                ends = os.pipe()
                for end in ends:
                    stack.callback(os.close, end)
                return [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]

            (its_input, self._output), (self._input, its_output) = pipe(), pipe()
        script = f'exec "$@" 3<&{its_input} 4>&{its_output} {its_input}<&- {its_output}>&-'
        words = [find("chromium"), *OPTIONS, *options, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", *words], pass_fds=[its_input, its_output], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "HOME": str(profile)})
        os.close(its_input)
        os.close(its_output)
        self._buffer, self._number, self._session = b"", 0, None
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            stack.pop_all()

    def call(self, method, **params):
        """Calls a method of the DevTools protocol; returns its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params, **({"sessionId": self._session} if self._session else {})}
        os.write(self._output, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._buffer:
                assert is_ready(self._input, 30), f"no answer to {method} within 30 s"
                data = os.read(self._input, 1 << 16)
                assert data, "Chromium has ended"
                self._buffer += data
            text, _, self._buffer = self._buffer.partition(b"\0")
            reply = json.loads(text)
            if reply.get("id") == self._number:
                if "error" in reply:
                    raise ProtocolError(reply["error"])
                return reply["result"]

    def evaluate(self, script):
        """Returns the value of a script in the page, or None while the page changes."""
        try:
            return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")
        except ProtocolError:
            return None

    def type_into(self, element, text):
        self.evaluate(f"(element => {{ element.focus(); element.select() }})(document.getElementById({json.dumps(element)}))")
        self.call("Input.insertText", text=text)

    def close(self):
        ended(self.process)
        os.close(self._input)
        os.close(self._output)


def log_in(server, url, *options, seconds=40):
    """Opens `url`, which leads to glewlwyd, logs in there as its user, and grants everything; returns the URL and the text of the
    page at the end, which is the program's, or glewlwyd's about a completed device."""
    origin, been_there, end = urllib.parse.urlsplit(server.url).netloc, False, time.monotonic() + seconds
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, contextlib.closing(Chromium(profile, *options)) as browser:
        browser.call("Page.navigate", url=url)
        while True:
            current = browser.evaluate("location.href") or ""
            is_there = urllib.parse.urlsplit(current).netloc == origin
            been_there |= is_there
            done = "prompt=deviceComplete" in current if is_there else been_there and current.startswith("http")
            if done and browser.evaluate("document.readyState") == "complete":
                return current, browser.evaluate("document.body.innerText")
            assert time.monotonic() < end, f"the login is stuck at {current}: {browser.evaluate('document.body.innerText')!r}"
            if is_there and not done and browser.evaluate(STEP) == "credentials":
                browser.type_into("username", server.USER)
                browser.type_into("password", server.PASSWORD)
                browser.evaluate("document.getElementById('loginbut').click()")
            time.sleep(0.2)
