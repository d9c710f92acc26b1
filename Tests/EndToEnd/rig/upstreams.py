"""Configurations of upstream proxies, and the processes that evaluate PAC files."""
import os
import subprocess

import psutil
import pytest

from .broker import program
from .forwarding import ForwardProxy
from .scripted import response
from .servers import free_port
from .waiting import output


@pytest.fixture
def origin(stage):
    return stage.server(lambda request: response(200, b"page"))


@pytest.fixture
def proxies(stage):
    """Makes proxies that forward everything."""
    return lambda count, check=lambda request: None: [stage.server(ForwardProxy(check)) for _ in range(count)]


def rule(hosts, *use):
    return f"[[proxy.rule]]\nhosts = {hosts!r}\nuse = {list(use)!r}\n"


def dead():
    """The URL of a proxy that does not run."""
    return f"http://127.0.0.1:{free_port()}"


def fetched(client, url, **params):
    reply = client.fetch(url, **params)
    assert "result" in reply, reply
    return reply["result"]


def pac(stage, text, mode=0o600):
    path = stage.folder / "proxy.pac"
    path.write_text(text)
    path.chmod(mode)
    return f'[proxy]\npac = "file://{path}"\n'


def evaluators(broker):
    """The process IDs of the broker's evaluator and of its resolver."""
    return [one.pid for one in psutil.Process(broker.process.pid).children(recursive=True) if one.name() == "watchword-pac"]


def set_desktop(broker, *settings):
    """Stores proxy settings as a settings dialog does: schema, key, value."""
    commands = " && ".join(f"gsettings set org.gnome.system.proxy{schema} {key} \"{value}\"" for schema, key, value in settings)
    environment = {"HOME": str(broker.home), "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(broker.home)}
    output("dbus-run-session", "--", "sh", "-c", commands, env=environment)


class Evaluator:
    """One process. `environment` is all it gets."""

    def __init__(self, script, environment=None):
        self.process = subprocess.Popen(
            [program("watchword-pac")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment or {"TZ": "UTC"})
        self.loaded = self.load(script)

    def load(self, script):
        """Returns the reply to the loading of a script."""
        data = script.encode()
        return self._ask(b"load %d\n" % len(data) + data)

    def find(self, url="http://h.test/", host="h.test"):
        """Returns the reply to a question."""
        return self._ask(f"find {url} {host}\n".encode())

    def _ask(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()
        return self.process.stdout.readline().decode().rstrip("\n")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait(20)
