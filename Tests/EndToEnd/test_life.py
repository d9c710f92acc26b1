"""The daemon as a process: its socket, its exit, and that its resources do not grow."""
import os
import signal
import socket
import stat
import subprocess

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer, trust_answer
from rig.scripted import response
from rig.subjects import AS_NOBODY, home_of_nobody, let_others_reach
from rig.waiting import is_ready


def test_rule_a3_the_socket_is_private_and_there_is_one_broker(stage):
    broker = stage.broker()
    assert stat.S_IMODE(os.stat(broker.socket).st_mode) == 0o600
    words = [program("watchwordd"), "--socket", broker.socket]
    second = subprocess.run(words, env=broker.environment, capture_output=True, text=True, timeout=30)
    assert second.returncode == 3
    assert "already listens" in second.stderr and second.stderr.count("\n") == 1
    assert stage.client(delivery=None).call("ping")["result"] == {}


@pytest.mark.parametrize("options", [
    ["--socket", "{}", "--log-level", "info", "--challenge-deadline-ms", "1000"], ["--socket={}", "--log-level=info"],
    ["--log-level", "debug", "--log-level", "info", "--socket", "{}"]], ids=["plain", "equals", "repeated"])
def test_each_form_of_the_options_starts_the_broker(tmp_path, options):
    """Usual forms and others are parsed by different code."""
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    path = str(folder / "s")
    process = subprocess.Popen(
        [program("watchwordd"), *[word.format(path) for word in options]], env={"HOME": str(tmp_path)}, stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: os.path.exists(path), "the broker listens")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            assert b'"result":{}' in connection.recv(4096)
    finally:
        process.terminate()
        _, log = process.communicate(timeout=20)
    assert process.returncode == 0 and " notice " in log and " debug " not in log


@pytest.mark.parametrize("options, problem", [
    (["--log-level", "loud"], "--log-level must be one of: trace, debug"), (["--ready-fd", "2"], "--ready-fd must be an open descriptor"),
    (["--ready-fd", "999"], "--ready-fd must be an open descriptor"), (["--ready-fd", "x"], "The value 'x' is invalid"),
    (["--challenge-deadline-ms", "0"], "must be between 1 and 86400000"), (["--ca-file", "/nonexistent"], "cannot read /nonexistent (--ca-file)"),
    (["--socket"], "Missing value for '--socket"), (["--sock", "x"], "Unknown option '--sock'"), (["x"], "Unexpected argument 'x'")])
def test_invalid_options_are_explained(tmp_path, options, problem):
    done = subprocess.run([program("watchwordd"), *options], env={"HOME": str(tmp_path)}, capture_output=True, text=True, timeout=30)
    assert done.returncode == 64 and problem in done.stderr, done.stderr


def test_rule_a3_a_folder_that_others_can_enter_is_refused(tmp_path):
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o755)
    failed = subprocess.run([program("watchwordd"), "--socket", str(open_folder / "s")], capture_output=True, text=True, timeout=30)
    assert failed.returncode == 1 and "0755" in failed.stderr
    assert list(open_folder.iterdir()) == []


def test_sigterm_notifies_the_clients_and_the_broker_exits_with_0(stage):
    server = stage.server(lambda request: None)
    broker = stage.broker()
    client = stage.client()
    call = client.start("fetch/run", {"url": server.url})
    eventually(lambda: server.requests, "it is not sent")
    broker.process.send_signal(signal.SIGTERM)
    assert client.notifications.get(timeout=30)["method"] == "server/closing"
    assert client.call("ping")["error"]["data"]["kind"] == "shuttingDown"
    assert client.wait(call)["error"]["code"] == -32800
    assert broker.process.wait(30) == 0
    assert not os.path.exists(broker.socket)


def test_rule_l7_and_m5_the_process_is_hardened_and_its_environment_clean(stage, certificates, tls_server):
    keys = stage.folder / "keys"
    broker = stage.broker(
        "--ca-file", str(certificates / "ca.pem"),
        environment={"SSLKEYLOGFILE": str(keys), "https_proxy": "http://127.0.0.1:1", "LC_ALL": "C"})
    assert stage.client(delivery=None).fetch(tls_server("good").url)["result"]["status"] == 200
    assert not keys.exists()
    status = open(f"/proc/{broker.process.pid}/status").read()
    assert "NoNewPrivs:\t1" in status and "Umask:\t0077" in status
    assert "Max core file size        0                    0" in open(f"/proc/{broker.process.pid}/limits").read()


def test_rule_m5_no_descriptor_of_the_process_that_started_it_stays_open(stage):
    folder = stage.folder / "run"
    folder.mkdir(mode=0o700)
    readable, writable = os.pipe()
    environment = {"HOME": str(stage.folder), "PATH": os.environ["PATH"]}
    broker = subprocess.Popen([program("watchwordd"), "--socket", str(folder / "s")], env=environment, pass_fds=[writable])
    os.close(writable)
    try:
        assert is_ready(readable, 20) and os.read(readable, 1) == b"", "the last writer has closed the pipe"
        eventually((folder / "s").exists, "the broker has ended")
    finally:
        broker.terminate()
        os.close(readable)
    assert broker.wait(30) == 0


# Prints the files that another user can read, and what it receives from the socket.
STRANGER = """
import os, socket, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        path = os.path.join(folder, name)
        if os.access(path, os.R_OK):
            print("can read", path)
wire = socket.socket(socket.AF_UNIX)
wire.settimeout(20)
try:
    wire.connect(sys.argv[2])
    wire.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}' + bytes([10]))
    print("received", wire.recv(100))
except OSError as problem:
    print(type(problem).__name__)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="another user has to be taken on")
def test_rule_a3_another_user_can_read_no_file_and_gets_no_reply(stage, tls_server):
    """Checks the default modes, then every directory accessible, then the socket accessible, too."""
    broker = stage.broker()
    client = stage.client(broker=broker, answer=lambda challenge: trust_answer(challenge, "permanent"))
    client.call("auth/subscribe", {"mode": "everything"})
    assert client.fetch(tls_server("self-signed").url)["result"]["status"] == 200
    state = broker.home / ".local" / "state" / "watchword"
    eventually(lambda: {"known-certificates", "audit.jsonl"} <= set(os.listdir(state)), lambda: os.listdir(state))
    (state / "control").touch()
    (state / "control").chmod(0o644)
    broker.log_path.chmod(0o600)  # written by the rig
    let_others_reach(broker.folder)

    def seen():
        looked = subprocess.run(
            [*AS_NOBODY, "/usr/bin/python3", "-c", STRANGER,
             broker.home.parent, broker.socket], capture_output=True, text=True, check=True)
        return looked.stdout.splitlines()

    assert seen() == ["PermissionError"]
    for folder in broker.folder.rglob("*"):
        if folder.is_dir():
            folder.chmod(0o755)
    assert seen() == [f"can read {state / 'control'}", "PermissionError"]
    os.chmod(broker.socket, 0o666)
    assert seen()[-1] in ("received b''", "ConnectionResetError", "BrokenPipeError")


@pytest.mark.tier3("thousands of fetches")
def test_memory_and_descriptors_do_not_grow(stage):
    """1,000 idle connections, 100 concurrently pending challenges, 10,000 fetches in sequence."""
    server, password = stage.protected(body=b"x" * 1024)
    broker = stage.broker()
    client = stage.client(answer=lambda params: password_answer("bob", password))
    for _ in range(500):
        assert client.fetch(server.url)["result"]["status"] == 200
    descriptors, kilobytes = broker.descriptors, broker.resident_kilobytes
    idle = []
    for _ in range(1000):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(broker.socket)
        idle.append(connection)
    asking = stage.client()
    # A realm for each path; otherwise there would be one question for all.
    other = stage.server(lambda request: response(401, b"", f'WWW-Authenticate: Basic realm="{request.target}"'))
    calls = [asking.start("fetch/run", {"url": f"{other.url}/{number}"}) for number in range(100)]
    challenges = [asking.challenges.get(timeout=30) for _ in calls]
    assert client.call("server/status")["result"]["challenges"]["pending"] == 100
    assert client.fetch(server.url)["result"]["exchanges"] == 1
    for challenge in challenges:
        asking.reply(challenge, {"action": "continue"})
    assert all(asking.wait(call)["result"]["status"] == 401 for call in calls)
    for connection in idle:
        connection.close()
    for _ in range(10_000):
        assert client.fetch(server.url)["result"]["exchanges"] == 1
    eventually(lambda: client.call("server/status")["result"]["connections"] <= 2, "connections stay open")
    if descriptors is not None:
        # Only the persistent connections to the second server may be new.
        assert broker.descriptors <= descriptors + 70
    assert broker.resident_kilobytes < kilobytes + 16_384


@pytest.mark.skipif(os.geteuid() != 0, reason="another user has to be taken on")
def test_rule_m5_a_process_of_the_same_user_cannot_read_the_process(stage):
    """It cannot write a core file of it either, because the process is not dumpable (proc(5), /proc/pid)."""
    folder = stage.folder / "nobody"
    environment = home_of_nobody(folder, "watchwordd")
    with open(folder / "log", "wb") as log:
        broker = subprocess.Popen(
            [*AS_NOBODY, folder / "watchwordd", "--socket", folder / "run" / "broker.sock"], env=environment, stdout=log, stderr=log)
    try:
        eventually(lambda: (folder / "run" / "broker.sock").exists(), lambda: (folder / "log").read_text())
        for name in ("fd", "environ", "maps", "mem"):
            looked = subprocess.run([*AS_NOBODY, "ls" if name == "fd" else "cat", f"/proc/{broker.pid}/{name}"], capture_output=True)
            assert looked.returncode != 0 and b"Permission denied" in looked.stderr, (name, looked)
    finally:
        broker.kill()
        broker.wait(30)
