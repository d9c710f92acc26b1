"""Watchword, px and cntlm as local proxies that log in to an upstream proxy, started from one description."""
import dataclasses
import os
import pathlib
import subprocess

import psutil

from .broker import program
from .client import password_answer
from .field_servers import PYTHON_FOLDER, version_of
from .servers import Server, find, free_port, wait_for_port, written

PX_FOLDER = PYTHON_FOLDER.with_name(".build-px")


class Unsupported(Exception):
    """The program has no option for this."""


@dataclasses.dataclass
class Wish:
    """A local proxy: `upstreams` are "host:port", all with the login `user`, `password`, of which the program knows what
    `knows` contains: "user", "password". Without upstreams it connects to servers itself.

    `by_host` is (a host, the upstream for it). `tickets` and `keyring` are the environments of a user with Kerberos tickets
    and of a session with a keyring.
    """

    upstreams: list = dataclasses.field(default_factory=list)
    scheme: str = "Basic"
    user: str = "nobody"
    password: str = ""
    knows: tuple = ("user", "password")
    direct: str = ""
    by_host: tuple = ()
    pac: str = ""
    tickets: dict = dataclasses.field(default_factory=dict)
    keyring: dict = dataclasses.field(default_factory=dict)

    @property
    def domain(self):
        return "TESTDOM" if self.scheme == "NTLM" else ""


class Watchword:
    """The broker with `front.proxy`. An agent is asked for what it does not know."""

    def __init__(self, stage, wish):
        self.port = free_port()
        lines = [f'[front]\nproxy = "127.0.0.1:{self.port}"\nhosts = ["127.0.0.1", "[::1]", "localhost", "*.test"]',
                 '[schemes]\nntlm = ["127.0.0.1"]\nnegotiate = ["localhost"]', "[proxy]"]
        if wish.pac:
            lines.append(f'pac = "{wish.pac}"')
        elif wish.upstreams:
            lines += [f'url = "http://{wish.upstreams[0]}"', *[f'except = ["{wish.direct}"]'] * bool(wish.direct)]
        if wish.by_host:
            lines.append(f'[[proxy.rule]]\nhosts = ["{wish.by_host[0]}"]\nuse = ["http://{wish.by_host[1]}"]')
        elif len(wish.upstreams) > 1:
            lines.append(f'[[proxy.rule]]\nhosts = ["*.test"]\nuse = {[f"http://{one}" for one in wish.upstreams]}')
        text = "\n".join(lines) + "\n"
        check_configuration(stage.folder / "checked.toml", text)
        self.broker = stage.configured(text, environment={**wish.tickets, **wish.keyring})
        self.pid = self.broker.process.pid
        wait_for_port(self.port)
        if wish.password and not wish.keyring:
            answer = password_answer(wish.user, wish.password, **({"domain": wish.domain} if wish.domain else {}))
            agent = stage.client(broker=self.broker, answer=lambda challenge: answer)
            assert "result" in agent.call("agent/register", {"name": "tests"})

    def stop(self):
        assert self.broker.stop() == 0

    @staticmethod
    def version():
        return ""


class Px:
    def __init__(self, stage, wish):
        assert PX_FOLDER.exists(), "px is missing; run contrib/install-dependencies --peers"
        self.port = free_port()
        user = f"{wish.domain}\\{wish.user}" if wish.domain else wish.user
        options = [f"--port={self.port}", "--foreground", "--threads=4", "--workers=1"]
        folder, pac = made(stage), wish.pac
        if wish.by_host:
            pac = folder / "hosts.pac"
            pac.write_text(
                f'function FindProxyForURL(url, host) {{ return host == "{wish.by_host[0]}" ? "PROXY {wish.by_host[1]}"'
                f' : "PROXY {wish.upstreams[0]}"; }}')
        elif wish.upstreams:
            options += [f"--proxy={','.join(wish.upstreams)}"]
        if wish.upstreams or wish.pac:
            options += [f"--auth={wish.scheme.upper()}"]
        if wish.direct:
            options.append(f"--noproxy={wish.direct}")
        if pac:
            options.append(f"--pac={pac}")
        if "user" in wish.knows and not wish.tickets:
            options.append(f"--username={user}")
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(PX_FOLDER), **wish.tickets, **wish.keyring}
        if "password" in wish.knows:
            environment["PX_PASSWORD"] = wish.password
        self.server = Server(
            ["/usr/bin/python3", "-m", "px", *options], self.port, folder / "px.log", env=environment, cwd=folder)
        self.pid, self.stop = self.server.process.pid, self.server.stop

    @staticmethod
    def version():
        return version_of("/usr/bin/python3", "-m", "px", "--help", env={**os.environ, "PYTHONPATH": str(PX_FOLDER)})


class Cntlm:
    def __init__(self, stage, wish):
        if wish.by_host or wish.pac or wish.keyring or wish.tickets or wish.scheme not in ["NTLM", "Basic"]:
            raise Unsupported
        self.port, folder = free_port(), made(stage)
        lines = [f"Listen 127.0.0.1:{self.port}", f"Username {wish.user}", f"Domain {wish.domain or 'none'}", "Auth NTLMv2"]
        lines += [f"Password {wish.password or 'none'}"] * ("password" in wish.knows)
        # It does not start without an upstream.
        lines += [f"Proxy {one}" for one in wish.upstreams or ["127.0.0.1:1"]]
        lines += [f"NoProxy {wish.direct or '*'}"] * bool(wish.direct or not wish.upstreams)
        path = written(folder, {"cntlm.conf": "\n".join(lines) + "\n"}) / "cntlm.conf"
        path.chmod(0o600)
        self.server = Server([find("cntlm"), "-f", "-c", str(path)], self.port, folder / "cntlm.log")
        self.pid, self.stop = self.server.process.pid, self.server.stop

    @staticmethod
    def version():
        return version_of(find("cntlm"), "-h", pattern=r"(?<=version )[\d.]+")


def check_configuration(file, text):
    file.write_text(text)
    file.chmod(0o600)
    done = subprocess.run([program("watchwordd"), "--check-config", f"--config={file}"], capture_output=True)
    if done.returncode != 0:
        raise Unsupported(done.stdout + done.stderr)


def made(stage):
    folder = pathlib.Path(stage.folder) / f"local-proxy-{free_port()}"
    folder.mkdir()
    return folder


def proportional_kilobytes(pid):
    """Returns the memory of a process and its descendants, with its share of what several processes use."""
    process = psutil.Process(pid)
    return sum(one.memory_full_info().pss for one in [process, *process.children(recursive=True)]) >> 10


PROGRAMS = {"Watchword": Watchword, "px": Px, "cntlm": Cntlm}
