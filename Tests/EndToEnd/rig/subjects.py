"""Clients in other processes: in a sandbox, under another name, as another user; and an agent that consents."""
import contextlib
import json
import os
import pathlib
import queue
import shutil
import socket
import subprocess
import tempfile
import textwrap

from .broker import program
from .client import Client, connected, lines_of
from .scripted import reset_at_close
from .waiting import is_ready

# Uses only the standard library: sends each line that it reads to the broker, and prints each line received.
RELAY = textwrap.dedent("""
    import socket, sys, threading
    wire = socket.socket(socket.AF_UNIX)
    wire.connect(sys.argv[1])
    def show():
        for line in wire.makefile("rb"):
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
        sys.stdout.buffer.write(b'"closed"\\n')
        sys.stdout.flush()
    threading.Thread(target=show, daemon=True).start()
    for line in sys.stdin.buffer:
        wire.sendall(line)
""")


class Relay:
    """A client in a process of its own; `command` starts the interpreter."""

    def __init__(self, socket, *command, **more):
        self.process = subprocess.Popen(
            [*command, "/usr/bin/python3", "-c", RELAY, socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **more)
        self.number, self.buffer = 0, b""

    def send(self, message):
        self.process.stdin.write(lines_of(message))

    def read(self, seconds=30):
        while b"\n" not in self.buffer:
            assert is_ready(self.process.stdout.fileno(), seconds), "the broker does not reply"
            data = self.process.stdout.read(1 << 16)
            assert data, "the client has exited"
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    def call(self, method, params=None):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params or {}})
        while (message := self.read()) == "closed" or message.get("id") != self.number or "method" in message:
            assert message != "closed", "the broker has closed the connection"
        return message

    def fetch(self, url, **more):
        return self.call("fetch/run", {"url": url, **more})

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


class Consenter(Client):
    """An agent for consent; `allow` is its answer, or a function of the question."""

    def __init__(self, path, allow="no"):
        self.allow = allow
        super().__init__(path, delivery=None)
        self.takes["auth/confirm"] = self._confirm
        assert "result" in self.call("agent/register", {"name": "desk", "asksConfirm": True, "methods": ["clientCertificate"]})

    def _confirm(self, message):
        self.asked.append(message["params"])
        allow = self.allow(message["params"]) if callable(self.allow) else self.allow
        if allow is not None:
            self.reply(message, {"allow": allow})


def flatpak(application="org.example.Maps", instance="17"):
    """Returns the command of a sandbox as Flatpak makes it: a root of its own with `/.flatpak-info`, which the sandboxed
    program cannot change."""
    info = f"[Application]\nname={application}\nruntime=runtime/org.example.Platform\n\n[Instance]\ninstance-id={instance}\n"
    readable, writable = os.pipe()
    os.write(writable, info.encode())
    os.close(writable)
    folders = [option for name in ("usr", "etc", "work", "tmp", "check") if os.path.isdir(f"/{name}") for option in ("--ro-bind", f"/{name}", f"/{name}")]
    links = [option for name in ("bin", "lib", "lib64", "sbin") for option in ("--symlink", f"usr/{name}", f"/{name}")]
    command = ["bwrap", *folders, *links, "--proc", "/proc", "--dev", "/dev", "--ro-bind-data", str(readable), "/.flatpak-info"]
    return command, readable


def sandboxed(broker, *details):
    """Returns a client of a broker in a sandbox; `details` are those of `flatpak`."""
    command, info = flatpak(*details)
    client = Relay(broker.socket, *command, pass_fds=[info])
    os.close(info)
    return client


#: Runs a command as the user nobody.
AS_NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def home_of_nobody(folder, *programs):
    """Makes a home directory of the user nobody with copies of these programs; returns the environment of programs in it."""
    folder.mkdir(mode=0o755)
    let_others_reach(folder)
    (folder / "run").mkdir(mode=0o700)
    for name in programs:
        shutil.copy(program(name), folder / name)
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, 65534, 65534)
    return {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "PATH": os.environ["PATH"]}


def let_others_reach(folder):
    """Allows other users to enter every folder on the path: pytest's own folders are private."""
    top = pathlib.Path(tempfile.gettempdir())
    for one in [folder, *folder.parents]:
        if one != top and one.is_relative_to(top):
            one.chmod(one.stat().st_mode | 0o055)


class PromptAgent:
    """A scripted agent for the prompts of programs (`auth/prompt`), which records them."""

    def __init__(self, client, **more):
        self.client = client
        registered = client.call("agent/register", {"name": "scripted", "asksPrompt": True, **more})
        assert "result" in registered, registered

    def next(self, method="auth/prompt"):
        """Returns the next request or notification of this method."""
        return next(message for message in iter(lambda: self.client.notifications.get(timeout=30), None) if message["method"] == method)

    def asked(self):
        """Returns the prompts that have arrived and were not taken yet."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self.client.notifications.get_nowait())
        return [message for message in found if message["method"] == "auth/prompt"]

    def answer(self, prompt, value):
        self.client.reply(prompt, {"action": "answer", "value": value})

    def allow(self, prompt):
        self.client.reply(prompt, {"action": "allow"})

    def cancel(self, prompt, **more):
        self.client.reply(prompt, {"action": "cancel", **more})


# Closes the connection without a message, like a killed program.
WHOLLY = ("close", "reset", "kill")
# Can still read, but not answer.
HALF = ("half",)


class DyingClient:
    """Subscribes with `subscription`, starts a fetch of each URL, and reads until it receives a challenge."""

    def __init__(self, path, way, *urls, subscription=None, **params):
        self.way = way
        calls = [("auth/subscribe", {"mode": "everything", **(subscription or {})}), *(("fetch/run", {"url": url, **params}) for url in urls)]
        text = lines_of(*({"id": number, "method": method, "params": params} for number, (method, params) in enumerate(calls)))
        if way == "kill":
            self.process = Relay(path).process
            self.process.stdin.write(text)
            self.lines = self.process.stdout
        else:
            self.socket = connected(path, 30)
            self.socket.sendall(text)
            self.lines = self.socket.makefile("rb")

    def messages(self):
        for line in self.lines:
            if (message := json.loads(line)) != "closed":
                yield message

    def message(self):
        return next(self.messages(), None)

    def wait_for(self, method):
        found = next((message for message in self.messages() if message.get("method") == method), None)
        assert found, f"no {method} arrived"
        return found

    def statuses(self):
        """Returns the statuses of the replies that arrive until the end, in order."""
        return [message["result"]["status"] for message in self.messages() if "status" in message.get("result", {})]

    def die(self):
        if self.way == "kill":
            self.process.kill()
            self.process.wait()
        elif self.way == "half":
            self.socket.shutdown(socket.SHUT_WR)
            return
        elif self.way == "reset":
            reset_at_close(self.socket)
        self.lines.close()
        (self.process.stdin if self.way == "kill" else self.socket).close()
