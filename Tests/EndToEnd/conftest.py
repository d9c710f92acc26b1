import os
import pathlib
import re
import secrets
import sys
import tempfile
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from rig import leaks, schemas, servers, strict  # noqa: E402
from rig.broker import Broker  # noqa: E402
from rig.client import Client  # noqa: E402
from rig.fixtures import *  # noqa: E402, F403
from rig.keyring import Keyring, build_git_helper  # noqa: E402
from rig.scripted import ScriptedServer, basic_server  # noqa: E402
from rig.subjects import Consenter, sandboxed  # noqa: E402

STARTED = time.monotonic()


def pytest_configure(config):
    config.addinivalue_line("markers", "tier3(reason): takes long, compares times, or takes the machine to its limits; contrib/test --all")


def pytest_collection_modifyitems(items):
    for module in {item.module for item in items}:
        strict.apply(module)


def pytest_make_parametrize_id(val):
    """Names a response without its date: every process of a run must give the same names."""
    return re.sub(rb"Date: [^\r\n]*\r\n", b"", val).decode("ascii", "backslashreplace") if isinstance(val, bytes) else None


def pytest_terminal_summary(terminalreporter, exitstatus):
    """Prints the duration of each tier with its budget, in the last run of `contrib/test`."""
    running = os.environ.get("WATCHWORD_TIER_RUNNING")
    if not running:
        return
    last = running % (time.monotonic() - STARTED) + ("" if exitstatus == 0 else ", failed")
    for line in [*os.environ.get("WATCHWORD_TIER_TIMES", "").splitlines(), last]:
        terminalreporter.write_line(line)


class Stage:
    """One broker with its clients and scripted servers. At the end of the test, no secret may be anywhere but where it is
    allowed."""

    def __init__(self, folder):
        self.folder, self.brokers, self.clients, self.servers, self.secrets = folder, [], [], [], {}
        self.keyrings, self.watched, self.sandboxes = [], [], []

    def broker(self, *options, **more):
        folder = self.folder / f"broker{len(self.brokers)}"
        folder.mkdir(mode=0o700)
        broker = Broker(folder, *options, **more).start()
        self.brokers.append(broker)
        return broker

    def configured(self, text, *options, **more):
        """Starts a broker whose configuration is `text`."""
        path = servers.private(self.folder / f"config-{len(self.brokers)}.toml", text)
        return self.broker("--config", str(path), *options, **more)

    def client(self, *arguments, broker=None, at="socket", **more):
        """`at` is "restricted" for a client of the restricted socket."""
        client = Client(getattr(broker or (self.brokers or [self.broker()])[0], at), *arguments, **more)
        self.clients.append(client)
        return client

    def agent(self, answer=None, broker=None, **more):
        """Returns an agent of the broker; `answer` is that of the client."""
        agent = self.client(answer=answer, broker=broker, **more)
        assert "result" in agent.call("agent/register", {"name": "tests"})
        return agent

    def consenter(self, broker, allow="no"):
        self.clients.append(Consenter(broker.socket, allow))
        return self.clients[-1]

    def sandbox(self, broker=None, *details):
        """Returns a client in a sandbox; `details` are those of `flatpak`."""
        self.sandboxes.append(sandboxed(broker or self.brokers[0], *details))
        return self.sandboxes[-1]

    def keyring(self):
        """Returns a message bus without a keyring, on which one can be started."""
        keyring = Keyring(self.folder / f"keyring{len(self.keyrings)}")
        self.keyrings.append(keyring)
        return keyring.start_bus()

    def server(self, server_or_handler):
        server = server_or_handler if hasattr(server_or_handler, "wire") else ScriptedServer(server_or_handler)
        self.servers.append(server)
        return server

    def protected(self, user="bob", **more):
        """Returns a server that requires a login with Basic, and its password; further arguments are those of basic_server."""
        password = self.secret()
        server = self.server(basic_server(user, password, **more))
        self.allow(password, server)
        return server, password

    def watch(self, *servers):
        """Adds servers that outlive the test, such as those of the session: at the end, their records are searched for secrets,
        too."""
        self.watched += servers

    def secret(self, *allowed):
        """Returns a password that only the servers `allowed` may receive."""
        text = "pw" + secrets.token_hex(12)
        self.secrets[text] = allowed
        return text

    def allow(self, secret, server):
        self.secrets[secret] = (*self.secrets[secret], server)

    def end(self):
        for client in [*self.clients, *self.sandboxes]:
            client.close()
        for broker in self.brokers:
            if broker.process.poll() is None:
                assert broker.stop() == 0, broker.log
        for client in self.clients:
            schemas.check_messages(client.messages)
        for server in self.servers:
            for secret, may_reach_resources in getattr(server, "issued_secrets", dict)().items():
                self.secrets.setdefault(secret, (server, *(server.resources if may_reach_resources else ())))
        for secret, allowed in self.secrets.items():
            places = {f"server on port {server.port}": server.wire for server in [*self.servers, *self.watched] if server not in allowed}
            places.update({f"client {index}": client.received_bytes for index, client in enumerate(self.clients)})
            for broker in self.brokers:
                places.update(leaks.files_below(broker.folder))
            found = leaks.places_with(secret, places)
            assert not found, f"a secret was found in {found}"
        for server in self.servers:
            server.close()

    def end_services(self):
        """Ends all processes, even after a failed test."""
        for one in self.sandboxes:
            one.close()
        for keyring in self.keyrings:
            keyring.end()
        for broker in self.brokers:
            if broker.process and broker.process.poll() is None:
                broker.kill()


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path)
    try:
        yield stage
        stage.end()
    finally:
        stage.end_services()


@pytest.fixture
def gnome(stage):
    """A running gnome-keyring, unlocked and empty."""
    return stage.keyring().start_gnome()


@pytest.fixture(scope="session")
def git_helper(tmp_path_factory):
    return build_git_helper(tmp_path_factory.mktemp("git-helper"))


@pytest.fixture(scope="session", autouse=True)
def the_run():
    """Checks the records of all servers at the end of the session, after the servers have ended."""
    yield
    leaks.check_the_run()


@pytest.fixture(scope="session")
def account():
    password = "pw" + secrets.token_hex(12)
    leaks.SHARED.append((password, ["nginx", "apache2", "squid"]))
    return "bob", password


@pytest.fixture(scope="session")
def tls(tmp_path_factory):
    return servers.certificates(tmp_path_factory.mktemp("tls"))


def _served(make):
    server = make
    yield server
    server.stop()


@pytest.fixture(scope="session")
def nginx(tmp_path_factory, account):
    yield from _served(servers.nginx(tmp_path_factory.mktemp("nginx"), *account))


@pytest.fixture(scope="session")
def nginx_tls(tmp_path_factory, account, tls):
    yield from _served(servers.nginx(tmp_path_factory.mktemp("nginx-tls"), *account, tls=tls))


@pytest.fixture(scope="session")
def apache(account):
    # If started by root, Apache serves as another user, who must be able to reach the folder.
    with tempfile.TemporaryDirectory(prefix="watchword-apache-") as folder:
        os.chmod(folder, 0o755)
        yield from _served(servers.apache_digest(folder, *account))


@pytest.fixture(scope="session")
def httpbin(tmp_path_factory):
    yield from _served(servers.httpbin(tmp_path_factory.mktemp("httpbin")))
