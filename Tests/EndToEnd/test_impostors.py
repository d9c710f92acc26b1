"""Another user listens on the broker's socket, or could: no client sends it a byte."""
import os
import socket
import subprocess

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.clients import CLIENTS
from rig.desktop import AGENT
from rig.languages import SCRIPTS, built
from rig.waiting import is_ready

STRANGER = 65534
# The test's own connections send as many bytes; a message of a client is longer.
MARK = 3
ASYNCIO = """
import asyncio, sys
from watchword.aio import AsyncWatchword
async def main():
    async with AsyncWatchword(answer=lambda challenge: ("bob", "x")) as broker:
        await broker.fetch(sys.argv[1])
asyncio.run(main())
"""
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="plays another user")


class Impostor:
    """Listens as user `uid` (the kernel records the caller of listen(2)), sends nothing, and counts the bytes of its clients."""

    def __init__(self, folder, uid, owner):
        self.path = str(folder / "broker.sock")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        os.chown(self.path, owner, -1)
        read, write = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            self._serve(listener, uid, write)
        os.close(write)
        listener.close()
        self.reports, self.text = read, ""
        eventually(lambda: self._read().startswith("listening\n"), "the impostor does not listen")

    def _serve(self, listener, uid, reports):
        try:
            os.setresuid(uid, uid, uid)
            listener.listen(8)
            os.write(reports, b"listening\n")
            while True:
                connection, _ = listener.accept()
                connection.settimeout(20)
                received = len(connection.recv(65536))
                os.write(reports, f"{received}\n".encode())
                # Ends the wait of a client that has sent something.
                connection.close()
        finally:
            os._exit(1)

    def received(self):
        """Returns the bytes of each connection of a client. The connections are served in turn: when one of the test has ended,
        all earlier ones have been counted."""
        with socket.socket(socket.AF_UNIX) as own:
            own.settimeout(20)
            own.connect(self.path)
            own.sendall(bytes(MARK))
            assert own.recv(1) == b""
        return [count for line in self._read().splitlines()[1:] if (count := int(line)) != MARK]

    def _read(self):
        while is_ready(self.reports, 0) and (data := os.read(self.reports, 4096)):
            self.text += data.decode()
        return self.text

    def end(self):
        os.kill(self.child, 9)
        os.waitpid(self.child, 0)
        os.close(self.reports)


@pytest.fixture
def impostor(tmp_path):
    made = []

    def make(uid=STRANGER, mode=0o700, directory_owner=0, owner=None):
        folder = tmp_path / "run"
        folder.mkdir()
        made.append(Impostor(folder, uid, uid if owner is None else owner))
        os.chown(folder, directory_owner, -1)
        folder.chmod(mode)
        return made[-1]

    yield make
    for one in made:
        one.end()


def helper(path, _):
    return subprocess.run([program("watchword"), "fetch", "http://bob:x@127.0.0.1:1/"], env={
        "WATCHWORD_SOCKET": path, "HOME": os.path.dirname(path), "PATH": "/usr/bin:/bin"}, capture_output=True, timeout=30)


def asyncio_client(path, _):
    return subprocess.run(["/usr/bin/python3", "-c", ASYNCIO, "http://127.0.0.1:1/"], env={
        "WATCHWORD_SOCKET": path, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(CLIENTS / "python"),
        "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, timeout=30)


def language(name):
    def run(path, folders):
        login = folders.mktemp("login") / "login"
        login.write_text("bob\nx\n")
        return built(name, folders).run("http://127.0.0.1:1/", path, login)
    return run


CLIENTS_OF = {"helper": helper, "asyncio": asyncio_client, **{name: language(name) for name in SCRIPTS}}
#: These clients use SO_PEERCRED; the others check owners and modes.
WITHOUT_PEERCRED = ["node", "shell"]


@pytest.fixture(params=list(CLIENTS_OF))
def client(request, tmp_path_factory):
    def run(path):
        return CLIENTS_OF[request.param](path, tmp_path_factory)
    run.name = request.param
    return run


def check_refused(done, impostor):
    assert done.returncode != 0 and done.stdout == b""
    assert b"refusing to use the socket " + impostor.path.encode() in done.stderr, done.stderr
    assert set(impostor.received()) <= {0}


def test_rule_x6_a_socket_of_another_user_receives_nothing(client, impostor):
    one = impostor()
    done = client(one.path)
    check_refused(done, one)
    assert (b"user 65534" if client.name != "shell" else b"another user") in done.stderr


@pytest.mark.parametrize("mode, owner", [(0o777, 0), (0o1777, 0), (0o770, 0), (0o755, STRANGER)])
def test_rule_x6_a_directory_in_which_others_can_replace_the_socket_is_refused(client, impostor, mode, owner):
    one = impostor(uid=0, mode=mode, directory_owner=owner)
    done = client(one.path)
    check_refused(done, one)
    assert one.received() == [], "the client does not even connect"
    assert b"the directory " in done.stderr


def test_clients_send_data_to_the_users_own_broker(client, impostor):
    """Control: without an impostor, the clients do send data."""
    one = impostor(uid=0, mode=0o755)
    done = client(one.path)
    assert done.returncode != 0
    eventually(lambda: sum(one.received()) > 0, lambda: done.stderr)


@pytest.mark.parametrize("name", WITHOUT_PEERCRED)
def test_ancestor_directories_are_checked_without_peer_credentials(name, tmp_path, tmp_path_factory, impostor):
    one = impostor(uid=0)
    tmp_path.chmod(0o777)
    done = CLIENTS_OF[name](one.path, tmp_path_factory)
    tmp_path.chmod(0o700)
    check_refused(done, one)
    assert one.received() == []


@pytest.mark.parametrize("options", [{}, {"uid": 0, "mode": 0o777}])
def test_the_agent_sends_nothing(impostor, tmp_path, options):
    one = impostor(**options)
    environment = {"WATCHWORD_SOCKET": one.path, "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin",
                   "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "SSH_ASKPASS": "/bin/true"}
    log = tmp_path / "agent.log"
    with open(log, "wb") as file:
        agent = subprocess.Popen(
            [AGENT, "--fallback", "askpass"], env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        said = "user 65534 listens there" if not options else "can be written by other users"
        eventually(lambda: said in log.read_text(), log.read_text)
    finally:
        agent.terminate()
        agent.wait(30)
    assert set(one.received()) <= {0}
