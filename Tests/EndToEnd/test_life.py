"""The daemon as a process: its socket, its end, and that nothing grows."""
import os
import shutil
import signal
import socket
import stat
import subprocess
import time

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.client import Client, password_answer
from rig.scripted import basic_server, response
from rig.subjects import let_others_reach


def start_second(broker):
    return subprocess.run([program("watchwordd"), "--socket", broker.socket], env=broker.environment, capture_output=True, text=True, timeout=20)


def test_the_socket_is_private_and_there_is_one_broker(stage):
    broker = stage.broker()
    assert stat.S_IMODE(os.stat(broker.socket).st_mode) == 0o600
    second = start_second(broker)
    assert second.returncode == 3
    assert "already listens" in second.stderr and second.stderr.count("\n") == 1
    assert stage.client(delivery=None).call("ping")["result"] == {}


def test_a_stale_file_is_taken_over_after_a_kill(stage):
    broker = stage.broker()
    broker.kill()
    assert os.path.exists(broker.socket)
    broker.start()
    assert stage.client(delivery=None).call("ping")["result"] == {}


def test_what_is_no_socket_is_left_alone(stage):
    broker = stage.broker()
    broker.stop()
    with open(broker.socket, "w") as file:
        file.write("precious")
    failed = start_second(broker)
    assert failed.returncode == 1 and "not a socket" in failed.stderr
    assert open(broker.socket).read() == "precious"


def test_a_folder_that_others_can_enter_is_refused(tmp_path):
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o755)
    failed = subprocess.run([program("watchwordd"), "--socket", str(open_folder / "s")], capture_output=True, text=True, timeout=20)
    assert failed.returncode == 1 and "0755" in failed.stderr
    assert list(open_folder.iterdir()) == []


def test_a_socket_handed_over_by_the_service_manager(stage, tmp_path):
    path = str(tmp_path / "handed")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(8)
    code = ("import os,sys; os.dup2(int(sys.argv[1]), 3); os.set_inheritable(3, True); "
            "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1'); os.execv(sys.argv[2], [sys.argv[2]])")
    process = subprocess.Popen(["/usr/bin/python3", "-c", code, str(listener.fileno()), program("watchwordd")], pass_fds=[listener.fileno()])
    listener.close()
    try:
        assert Client(path, delivery=None).call("ping")["result"] == {}
    finally:
        process.terminate()
    assert process.wait(20) == 0
    assert os.path.exists(path)


def test_sigterm_tells_the_clients_and_ends_well(stage):
    server = stage.server(lambda request: None)
    broker = stage.broker()
    client = stage.client()
    call = client.start("fetch/run", {"url": server.url})
    while not server.requests:
        time.sleep(0.01)
    broker.process.send_signal(signal.SIGTERM)
    assert client.notifications.get(timeout=10)["method"] == "server/closing"
    assert client.call("ping")["error"]["data"]["kind"] == "shuttingDown"
    assert client.wait(call)["error"]["code"] == -32800
    assert broker.process.wait(20) == 0
    assert not os.path.exists(broker.socket)


def test_the_process_is_hardened_and_its_environment_clean(stage):
    broker = stage.broker(environment={"SSLKEYLOGFILE": str(stage.folder / "keys"), "http_proxy": "http://127.0.0.1:1", "LC_ALL": "C"})
    server = stage.server(lambda request: response(200, b"ok"))
    assert stage.client(delivery=None).fetch(server.url)["result"]["status"] == 200
    status = open(f"/proc/{broker.process.pid}/status").read()
    assert "NoNewPrivs:\t1" in status
    assert "Max core file size        0                    0" in open(f"/proc/{broker.process.pid}/limits").read()


def test_nothing_grows(stage):
    """1,000 idle connections, 100 challenges pending at once, 10,000 fetches in a row."""
    password = stage.secret()
    server = stage.server(basic_server("bob", password, body=b"x" * 1024))
    stage.allow(password, server)
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
    # A realm for each path: else all would be one question.
    other = stage.server(lambda request: response(401, b"", f'WWW-Authenticate: Basic realm="{request.target}"'))
    calls = [asking.start("fetch/run", {"url": f"{other.url}/{number}"}) for number in range(100)]
    challenges = [asking.challenges.get(timeout=20) for _ in calls]
    assert client.call("server/status")["result"]["challenges"]["pending"] == 100
    assert client.fetch(server.url)["result"]["exchanges"] == 1
    for challenge in challenges:
        asking.reply(challenge, {"action": "continue"})
    assert all(asking.wait(call)["result"]["status"] == 401 for call in calls)
    for connection in idle:
        connection.close()
    for _ in range(10_000):
        assert client.fetch(server.url)["result"]["exchanges"] == 1
    end = time.monotonic() + 10
    while client.call("server/status")["result"]["connections"] > 2 and time.monotonic() < end:
        time.sleep(0.05)
    if descriptors is not None:
        # The second server's kept connections are all that may be new.
        assert broker.descriptors <= descriptors + 70
    assert broker.resident_kilobytes < kilobytes + 16_384


@pytest.mark.skipif(os.geteuid() != 0, reason="another user has to be taken on")
def test_its_own_user_cannot_look_into_it(stage):
    """Nor leave a core of it: what the process is to the kernel is not dumpable (proc(5), /proc/pid)."""
    folder = stage.folder / "nobody"
    folder.mkdir(mode=0o755)
    let_others_reach(folder)
    shutil.copy(program("watchwordd"), folder / "watchwordd")
    (folder / "run").mkdir(mode=0o700)
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, 65534, 65534)
    demote = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    environment = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "PATH": os.environ["PATH"]}
    with open(folder / "log", "wb") as log:
        broker = subprocess.Popen(
            [*demote, folder / "watchwordd", "--socket", folder / "run" / "broker.sock"], env=environment, stdout=log, stderr=log)
    try:
        eventually(lambda: (folder / "run" / "broker.sock").exists(), lambda: (folder / "log").read_text())
        for name in ("fd", "environ", "maps", "mem"):
            looked = subprocess.run([*demote, "ls" if name == "fd" else "cat", f"/proc/{broker.pid}/{name}"], capture_output=True)
            assert looked.returncode != 0 and b"Permission denied" in looked.stderr, (name, looked)
    finally:
        broker.kill()
        broker.wait(20)
