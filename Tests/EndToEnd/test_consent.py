"""Which programs use stored credentials, and with whose consent (SECURITY-RULES G1 to G10)."""
import json
import os
import shutil
import socket
import stat
import subprocess

import pytest

from rig import audit, schemas
from rig.bodies import eventually
from rig.broker import program
from rig.scripted import basic_server
from rig.subjects import AS_NOBODY, Relay, home_of_nobody
from rig.terminal import Shell

ASK = '[sharing]\nsession = "ask"\n'


@pytest.fixture
def desk(stage):
    """A broker that asks for consent, a server with a login in the session, an agent that consents, and the helper."""
    return Desk(stage, stage.configured(ASK))


class Desk:
    def __init__(self, stage, broker):
        self.stage, self.broker = stage, broker
        self.server, self.password = stage.protected()
        self.agent = stage.consenter(broker)
        self.shell = Shell(broker)
        self.keep()

    def keep(self):
        self.agent.store(self.server, "bob", self.password, realm="Staff", authenticationMethod="httpBasic")

    def fetch(self, path="/"):
        return self.shell.run("fetch", "-s", "--no-start", self.server.url + path)

    @property
    def logins(self):
        return sum(value is not None for value in self.server.authorizations)

    def close(self):
        schemas.check_messages(self.agent.messages)


def test_always_is_asked_once_and_stored(desk, stage):
    desk.agent.allow = "always"
    assert desk.fetch().returncode == 0 and desk.fetch().returncode == 0
    assert len(desk.agent.asked) == 1 and desk.logins == 2
    asked = desk.agent.asked[0]
    assert asked["subject"]["id"] == f"exe:{os.path.realpath(program('watchword'))}" and asked["subject"]["strength"] == "weak"
    assert (asked["user"], asked["source"]) == ("bob", "session") and asked["protectionSpace"]["realm"] == "Staff"
    grants = desk.broker.home / ".local" / "state" / "watchword" / "grants"
    eventually(grants.exists, "the grant was not written")
    assert stat.S_IMODE(grants.stat().st_mode) == 0o600 and desk.password not in grants.read_text()
    listed = desk.shell.run("grants", "list").stdout.decode()
    assert "always" in listed and "bob" in listed and "Staff" in listed, listed
    desk.close()


def test_a_permanent_grant_outlives_the_broker_and_ends_when_it_is_revoked(desk, stage):
    desk.agent.allow = "always"
    assert desk.fetch().returncode == 0
    desk.broker.stop()
    desk.broker.start()
    desk.agent = stage.consenter(desk.broker)
    desk.keep()
    assert desk.fetch().returncode == 0 and desk.agent.asked == []
    identifier = json.loads(desk.shell.run("grants", "list", "--json").stdout)["grants"][0]["id"]
    assert desk.shell.run("grants", "revoke", identifier).stdout == b"1 grant revoked\n"
    again = desk.fetch()
    assert again.returncode != 0 and len(desk.agent.asked) == 1 and desk.logins == 2
    assert desk.shell.run("grants", "revoke", "g99").returncode == 1


def test_without_consent_no_credential_is_sent(desk):
    # After a "no", the next question would be delayed.
    for allow in [None, "no"]:
        desk.agent.allow = allow
        running = desk.shell.start("fetch", "-s", desk.server.url, stdin=subprocess.DEVNULL)
        if allow is None:
            audit.wait_for(lambda: len(desk.agent.asked) == 1)
            running.terminate()
            withdrawn = desk.agent.notifications.get(timeout=30)
            assert withdrawn["method"] == "$/cancelRequest"
        running.communicate(timeout=30)
        assert running.returncode != 0
    assert desk.logins == 0 and len(desk.agent.asked) == 2
    audit.wait_for(lambda: "consentAnswered" in audit.kinds(desk.broker))
    text = desk.shell.run("log").stdout.decode()
    assert "wants to use a login" in text and "may not use a login" in text, text


def test_another_file_of_that_name_is_another_program(desk, tmp_path):
    desk.agent.allow = "session"
    tool = tmp_path / "tool"

    def run():
        return subprocess.run([tool, "fetch", "-s", desk.server.url], env=desk.shell.environment, capture_output=True, timeout=30).returncode

    shutil.copy(program("watchword"), tool)
    assert run() == 0 and run() == 0 and len(desk.agent.asked) == 1
    shutil.copy(program("watchword"), tmp_path / "new")
    os.replace(tmp_path / "new", tool)
    assert run() == 0 and len(desk.agent.asked) == 2
    tool.chmod(0o777)
    desk.agent.allow = "always"
    desk.shell.run("grants", "revoke", "--all")
    assert run() == 0 and desk.agent.asked[-1]["allows"] == ["once", "session"], "any user may change it"


# Senders of messages

def test_rule_i2_only_the_process_that_connected_may_write(stage):
    """A child that inherits the connection is another process."""
    broker = stage.broker()
    wire = socket.socket(socket.AF_UNIX)
    wire.connect(broker.socket)
    wire.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert b'"id":1' in wire.recv(1000)
    child = subprocess.run(
        ["/usr/bin/python3", "-c", f"import os; os.write({wire.fileno()}, b'{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}}\\n')"],
        pass_fds=[wire.fileno()], timeout=30)
    assert child.returncode == 0
    wire.settimeout(10)
    assert wire.recv(1000) == b"", "the connection has ended without a reply"
    audit.wait_for(lambda: "another process" in broker.log)


def test_rule_i2_bytes_of_two_senders_are_never_mixed(stage):
    """Two processes write to one connection at the same moment: the request of the second one gets no reply."""
    broker = stage.broker()
    for _ in range(20):
        ours, theirs = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n'
        wire = socket.socket(socket.AF_UNIX)
        wire.connect(broker.socket)
        wire.sendall(ours)
        child = os.fork()
        if child == 0:
            os.write(wire.fileno(), theirs)
            os._exit(0)
        os.waitpid(child, 0)
        wire.settimeout(10)
        received = b""
        try:
            while data := wire.recv(1000):
                received += data
        except ConnectionResetError:
            pass
        assert b'"id":1' in received and b'"id":2' not in received
        wire.close()


# As an ordinary user

def accepts(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="is run by another user already")
def test_subjects_are_identified_without_privileges(stage):
    """A broker that does not run as root can read everything that it needs to identify clients."""
    folder = stage.folder / "nobody"
    environment, path = home_of_nobody(folder, "watchwordd", "watchword"), folder / "run" / "broker.sock"
    broker = subprocess.Popen([*AS_NOBODY, folder / "watchwordd", "--socket", path], env=environment, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: accepts(path), "the broker does not listen", 20)
        agent = Relay(str(path), *AS_NOBODY, env=environment)
        assert "result" in agent.call("agent/register", {"name": "desk"})
        server = stage.server(basic_server("bob", "unused-here"))
        fetching = subprocess.Popen(
            [*AS_NOBODY, folder / "watchword", "fetch", "-s", "--no-start", server.url],
            env={**environment, "WATCHWORD_SOCKET": str(path)}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
        asked = agent.read()
        assert asked["params"]["requester"]["subject"] == f"exe:{folder / 'watchword'}"
        agent.send({"id": asked["id"], "result": {"action": "continue"}})
        assert fetching.wait(30) is not None
        agent.close()
    finally:
        broker.terminate()
        broker.wait(30)


def test_a_reload_that_tightens_the_rule_takes_effect_at_once(stage):
    """The same applies to a reload that loosens the rule. Decisions made under another rule are forgotten."""
    desk = Desk(stage, stage.configured(""))
    assert desk.fetch().returncode == 0 and desk.logins == 1 and desk.agent.asked == []
    desk.broker.reload(ASK)
    assert desk.agent.call("credential/list")["result"]["credentials"] == []
    desk.keep()
    desk.agent.allow = "no"
    assert desk.fetch().returncode != 0 and desk.logins == 1 and len(desk.agent.asked) == 1
    desk.broker.reload("")
    desk.keep()
    assert desk.fetch().returncode == 0 and desk.logins == 2 and len(desk.agent.asked) == 1
