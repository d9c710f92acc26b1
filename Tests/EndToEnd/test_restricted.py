"""The restricted socket, for containers and other machines: fetches and their own challenges, and no stored credentials."""
import contextlib
import os
import re
import stat
import subprocess

import pytest

from rig.bodies import Attached
from rig.client import Client, password_answer
from rig.manager import Sshd, with_units
from rig.schemas import PROTOCOL
from rig.scripted import basic_server, response
from rig.subjects import Relay


#: MethodTableTests compares this table with the methods in the source.
REFUSED = re.findall(r"^\| `([^`]+)` \|.*\| no \|$", (PROTOCOL / "SPECIFICATION.md").read_text(), re.M)


@pytest.fixture
def both(stage):
    """A client that has logged in on the main socket, one on the restricted socket, and the challenges of the latter."""
    server, password = stage.protected("bob")
    main = stage.client(answer=password_answer("bob", password))
    other = stage.client(at="restricted", answer=password_answer("bob", password, persistence="permanent"))
    assert main.fetch(server.url)["result"]["auth"]["source"] == "client"
    assert main.fetch(server.url)["result"]["auth"]["source"] == "session"
    return main, other, other.asked, server


def test_rule_g4_the_restricted_socket_uses_and_stores_no_credential(both):
    main, other, asked, server = both
    for times in [1, 2]:
        assert other.fetch(server.url)["result"]["auth"]["source"] == "client"
        assert len(asked) == times, "it is asked each time"
        assert asked[-1]["requester"]["restricted"] is True
    main.call("session/clear", {})
    assert other.fetch(server.url)["result"]["auth"]["source"] == "client"
    main.answer = lambda challenge: {"action": "continue"}
    assert main.fetch(server.url)["result"]["status"] == 401, "an answer on the restricted socket is not stored"


def test_the_answer_to_another_clients_question_is_refused(stage):
    server, password = stage.protected("bob")
    main = stage.client()
    other, silent = (stage.client(at="restricted", delivery=delivery) for delivery in ("request", None))
    call = main.start("fetch/run", {"url": server.url})
    question = main.challenges.get(timeout=30)
    others = other.start("fetch/run", {"url": server.url})
    own = other.challenges.get(timeout=30)
    assert silent.fetch(server.url)["result"]["status"] == 401, "it does not wait for others"
    main.reply(question, password_answer("bob", password))
    assert main.wait(call)["result"]["status"] == 200
    other.reply(own, {"action": "continue"})
    assert other.wait(others)["result"]["status"] == 401


def test_only_methods_for_fetching_and_answering_are_offered(both):
    main, other, _, _ = both
    assert len(REFUSED) > 15
    for method in REFUSED:
        assert other.call(method, {})["error"]["data"]["kind"] == "denied", method
    assert other.call("ping", {})["result"] == {}
    assert main.call("server/status", {})["result"]["session"] == {"entries": 1, "locked": False}
    main.call("session/clear", {})
    assert main.call("ping")["result"] == {} and other.call("ping")["result"] == {}
    told = [[message.get("method") for side, message in client.messages if side == "broker"] for client in (main, other)]
    assert "credential/changed" in told[0] and "credential/changed" not in told[1]


def test_the_socket_file_exists_as_long_as_the_broker(stage):
    broker = stage.broker()
    status = os.stat(broker.restricted)
    assert stat.S_ISSOCK(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600
    assert broker.stop() == 0
    assert not os.path.exists(broker.restricted)


def test_tokens_and_ids_of_the_main_socket_are_invalid_on_the_restricted_one(stage):
    """The reverse is also refused; and on the same socket, only tokens are valid on another connection."""
    server = stage.server(lambda request: response(200, b"of the user"))
    broker = stage.broker()
    for own, foreign in [("socket", "restricted"), ("restricted", "socket")]:
        client, other, beside = (stage.client(at=path) for path in (own, foreign, own))
        begun = client.call("fetch/start", {"url": server.url})["result"]
        refused = Attached(getattr(broker, foreign), begun["attachToken"])
        assert refused.reply["error"]["data"]["kind"] == "unknownFetch"
        for stranger in (other, beside):
            assert stranger.call("fetch/read", {"fetchId": begun["fetchId"]})["error"]["data"]["kind"] == "unknownFetch"
            assert stranger.call("fetch/cancel", {"fetchId": begun["fetchId"]})["result"] == {"cancelled": False}
            assert stranger.call("fetch/list")["result"]["fetches"] == []
        assert Attached(getattr(broker, own), begun["attachToken"]).read() == b"of the user"


def test_a_challenge_of_the_main_socket_cannot_be_answered_on_the_restricted_one(stage):
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    broker = stage.broker()
    for own, foreign in [(broker.socket, broker.restricted), (broker.restricted, broker.socket)]:
        client, other = Client(own, delivery="notification"), Client(foreign)
        stage.clients += [client, other]
        call = client.start("fetch/run", {"url": server.url})
        pending = client.notifications.get(timeout=30)["params"]["challengeId"]
        answer = password_answer("bob", password)
        assert other.call("auth/respond", {"challengeId": pending, "answer": answer})["result"]["accepted"] is False
        assert other.call("auth/listPending")["result"]["challenges"] == []
        client.call("auth/respond", {"challengeId": pending, "answer": {"action": "continue"}})
        assert client.wait(call)["result"]["status"] == 401
    assert set(server.authorizations) == {None}


class Afar:
    """The desk with its broker behind systemd's sockets, and a folder that stands for the other machine."""

    def __init__(self, manager):
        self.manager, self.other = manager, manager.folder / "other"
        self.other.mkdir(mode=0o700)
        self.remote = str(self.other / "desk.sock")
        manager.own(self.other)
        self.tunnels = []

    def tunnel(self, sshd):
        """Starts ssh, and waits for the forwarded socket."""
        there_and_here = f"{self.remote}:{self.manager.runtime}/watchword/restricted.sock"
        ssh = sshd.ssh("-N", "-o", "ExitOnForwardFailure=yes", "-R", there_and_here, "other")
        self.tunnels.append(ssh)
        self.manager.wait_for(lambda: self.answers() or ssh.poll() is not None)
        return ssh

    def answers(self):
        """Whether the broker at the desk answers: sshd accepts connections of root, too, and the broker sees ssh as the client.
        """
        # Otherwise nothing listens, or ssh has closed the connection.
        with contextlib.suppress(OSError, KeyError):
            return self.call("ping").get("result") == {}

    def call(self, method):
        with contextlib.closing(Client(self.remote, delivery=None)) as client:
            return client.call(method)

    def there(self, *command):
        return self.manager.run(*self.surroundings, *command)

    @property
    def surroundings(self):
        return ["env", f"HOME={self.other}", f"XDG_RUNTIME_DIR={self.other}", f"WATCHWORD_SOCKET={self.remote}"]

    def job(self, *command):
        return subprocess.Popen(self.manager.inside(*self.surroundings, *command), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def desk():
    with with_units("afar") as manager:
        manager.do("enable", "--now", "watchword.socket")
        yield manager


@pytest.fixture
def sshd(desk):
    sshd = Sshd(desk)
    yield sshd
    sshd.stop()


@pytest.fixture
def afar(desk):
    afar = Afar(desk)
    yield afar
    for ssh in afar.tunnels:
        ssh.kill()
        ssh.wait(30)
    subprocess.run(["rm", "-r", str(afar.other)], check=True)


@pytest.fixture
def agent(desk):
    agents = []
    yield lambda *words: agents.append(Agent(desk, *words)) or agents[0]
    for one in agents:
        one.relay.close()


class Agent:
    """An agent at the desk, which answers one question after the other."""

    def __init__(self, desk, user, password):
        self.relay = desk.client()
        self.password = {"type": "password", "user": user, "password": password, "persistence": "forSession"}
        assert "result" in self.relay.call("agent/register", {"name": "desk"})

    def answer(self):
        while (message := self.relay.read()).get("method") != "auth/challenge":
            pass
        self.relay.send({"id": message["id"], "result": {"action": "credential", "credential": self.password}})
        return message["params"]


def test_a_remote_job_asks_at_the_local_agent_and_never_receives_the_password(desk, sshd, afar, agent, stage):
    server, password = stage.protected("bob", body=b"the report\n")
    afar.tunnel(sshd)
    at_desk = agent("bob", password)
    for _ in range(2):
        job = afar.job("watchword", "fetch", "--json", server.url)
        asked = at_desk.answer()
        said, wrong = job.communicate(timeout=30)
        assert job.returncode == 0 and "the report" in said, wrong
        assert password not in said + wrong
        # The broker identifies the client as the desk's ssh; everything else is the program's own claim.
        assert asked["requester"]["restricted"] is True and asked["requester"]["subject"] == "exe:/usr/bin/ssh"
        assert asked["requester"]["name"] == "watchword"
    shown = desk.run("watchword", "credentials", "list")
    assert shown.stdout == "No stored credentials.\n", "the agent's answer applied to that fetch only"
    assert password not in "".join(path.read_text(errors="replace") for path in afar.other.rglob("*") if path.is_file())


def test_credentials_stored_at_the_desk_are_not_used_remotely(desk, sshd, afar, stage):
    server, password = stage.protected("bob")
    afar.tunnel(sshd)
    store = ["watchword", "credentials", "store", server.url, "--user", "bob", "--keep", "session", "--password-stdin"]
    stored = subprocess.run(desk.inside(*store), input=password + "\n", capture_output=True, text=True, timeout=30)
    assert stored.returncode == 0, stored.stderr
    assert desk.run("watchword", "fetch", server.url).returncode == 0
    there = afar.there("watchword", "fetch", "--no-start", "-u", "bob:", server.url)
    assert there.returncode == 67, there.stderr
    client = Relay(afar.remote, *desk.inside())
    for method in ["server/status", "credential/list", "agent/register", "session/clear", "broker/lock", "events/subscribe"]:
        assert client.call(method, {"name": "a"})["error"]["data"]["kind"] == "denied", method
    assert client.call("ping")["result"] == {}
    client.close()
    listed = afar.there("watchword", "credentials", "list")
    assert listed.returncode == 1 and "restricted socket" in listed.stderr
    desk.run("watchword", "session", "clear")


def test_a_lost_connection_is_reported_and_nothing_hangs(desk, sshd, afar, stage):
    server = stage.server(lambda request: None)
    ssh = afar.tunnel(sshd)
    job = afar.job("watchword", "fetch", server.url)
    desk.wait_for(lambda: server.requests)
    sshd.end_sessions()
    assert ssh.wait(30) == 255
    said, wrong = job.communicate(timeout=30)
    assert job.returncode not in (0, 67) and wrong.count("\n") == 1 and "closed the connection" in wrong, wrong
    later = afar.there("watchword", "fetch", "--no-start", server.url)
    assert later.returncode not in (0, 67) and "no broker listens" in later.stderr
    # The fetch of the job that has ended also ends at the desk.
    client = desk.client()
    desk.wait_for(lambda: client.call("server/status")["result"]["fetches"]["running"] == 0)
    client.close()
    afar.tunnel(sshd)
    assert afar.answers(), "the next connection works: sshd replaces the old socket"


def test_an_existing_remote_socket_is_reported(desk, afar):
    sshd = Sshd(desk, more="StreamLocalBindUnlink no")
    try:
        subprocess.run(desk.inside("touch", afar.remote), check=True)
        ssh = afar.tunnel(sshd)
        assert ssh.wait(30) == 255 and "remote port forwarding failed" in ssh.stdout.read()
    finally:
        sshd.stop()


def test_the_unit_forwards_and_reconnects(desk, afar, stage):
    """Also if sshd does not replace old sockets: the unit removes the socket that it left."""
    sshd = Sshd(desk, more="StreamLocalBindUnlink no")
    unit = "watchword-forward@other.service"
    try:
        settings = desk.home / ".config" / "watchword" / "forward-other.conf"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text(f"WATCHWORD_REMOTE_SOCKET={afar.remote}\n")
        desk.own(settings.parent)
        desk.unit(f"{unit}.d/test.conf", "[Service]\nRestartSec=50ms\n")
        desk.do("daemon-reload")
        desk.do("enable", "--now", unit)
        desk.wait_for(afar.answers)
        assert afar.call("server/status")["error"]["data"]["kind"] == "denied"
        assert oct(os.stat(afar.remote).st_mode & 0o777) == "0o600"
        first = desk.value(unit, "MainPID")
        sshd.end_sessions()
        desk.wait_for(lambda: desk.value(unit, "MainPID") not in ("0", first) and afar.answers())
        desk.do("disable", "--now", unit)
        assert not afar.answers()
    finally:
        desk.systemctl("stop", unit)
        sshd.stop()
