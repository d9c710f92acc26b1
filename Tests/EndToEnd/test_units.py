"""The units in a real user manager without root's privileges, and without one: activation, start, reload, stop, watchdog, sockets that are
removed while the broker runs, the effect of the hardening, and the filter of system calls."""
import contextlib
import errno
import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import time

import pytest

from programs import attempts
from rig.bodies import eventually
from rig.broker import ROOT, program
from rig.client import Client, password_answer
from rig.manager import Activation, with_units
from rig.scripted import basic_server
from rig.servers import private
from rig.terminal import Shell
from rig.waiting import is_ready

UNITS = ROOT / "contrib" / "systemd"
SERVICE = (UNITS / "watchword.service").read_text()
# The error of an attempt that no setting forbids, where the attempt does not succeed.
OTHERWISE = {"RestrictAddressFamilies": errno.EPERM, "RestrictRealtime": errno.ESRCH}


@pytest.fixture(scope="module")
def manager():
    with with_units("desk", "StandardError=append:%h/service.log\n") as manager:
        yield manager


@pytest.fixture
def desk(manager):
    """The sockets listen, as after `systemctl --user enable --now watchword.socket`; no broker runs."""
    manager.do("enable", "--now", "watchword.socket")
    # watchword.socket wants the restricted socket, and does not wait for it.
    manager.wait_for(lambda: manager.value("watchword-restricted.socket", "ActiveState") == "active")
    yield manager
    manager.do("disable", "--now", "watchword.socket", "watchword.service")
    manager.systemctl("reset-failed")
    (manager.units / "watchword.service.d" / "changed.conf").unlink(missing_ok=True)
    manager.do("daemon-reload")


def change(manager, lines):
    manager.unit("watchword.service.d/changed.conf", f"[Service]\n{lines}\n")
    manager.do("daemon-reload")


def configure(manager, text):
    path = manager.home / ".config" / "watchword" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    manager.own(path.parent)
    return path


def main_pid(manager):
    return int(manager.value("watchword.service", "MainPID"))


def test_systemd_finds_no_mistake_in_the_units(tmp_path):
    for unit in UNITS.iterdir():
        text = unit.read_text().replace("@bindir@/watchwordd", "/bin/true")
        (tmp_path / unit.name.replace("@.", "@host.")).write_text(text)
    (tmp_path / "run").mkdir(mode=0o700)
    checked = subprocess.run(
        ["systemd-analyze", "--user", "--man=no", "verify", *map(str, sorted(tmp_path.glob("*.s*")))], capture_output=True,
        text=True, timeout=60, env={"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run"), "PATH": os.environ["PATH"]})
    about_ours = [line for line in (checked.stdout + checked.stderr).splitlines() if "watchword" in line]
    assert checked.returncode == 0 and about_ours == [], checked.stderr


def test_a_client_starts_the_broker_and_the_restricted_socket_is_restricted(desk):
    for name in ["broker.sock", "restricted.sock"]:
        status = os.stat(desk.runtime / "watchword" / name)
        assert stat.S_ISSOCK(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600
    assert stat.S_IMODE(os.stat(desk.runtime / "watchword").st_mode) == 0o700
    assert desk.value("watchword.service", "ActiveState") == "inactive"
    main, restricted = desk.client(), desk.client("restricted.sock")
    assert "version" in main.call("server/status")["result"]
    assert restricted.call("ping")["result"] == {}
    assert restricted.call("server/status")["error"]["data"]["kind"] == "denied"
    desk.wait_for(lambda: desk.value("watchword.service", "ActiveState") == "active")
    assert desk.value("watchword.service", "StatusText") == "Listening."
    main.close(), restricted.close()


def test_the_sockets_outlive_the_broker(desk):
    files = [os.stat(desk.runtime / "watchword" / name).st_ino for name in ["broker.sock", "restricted.sock"]]
    client = desk.client()
    client.call("ping")
    first = main_pid(desk)
    os.kill(first, 9)
    desk.wait_for(lambda: main_pid(desk) not in (0, first))
    desk.do("stop", "watchword.service")
    client = desk.client()
    assert client.call("ping")["result"] == {}, "a client starts it again"
    assert [os.stat(desk.runtime / "watchword" / name).st_ino for name in ["broker.sock", "restricted.sock"]] == files
    desk.do("stop", "watchword.socket")
    assert desk.value("watchword.service", "ActiveState") == "inactive"
    assert os.listdir(desk.runtime / "watchword") == []


def test_a_reload_waits_and_reports_its_result(desk):
    configuration = configure(desk, "")
    desk.client().call("ping")
    # The broker replies before the manager has received its notification.
    desk.wait_for(lambda: desk.value("watchword.service", "ActiveState") == "active")
    pid = main_pid(desk)
    for text, said in [("malformed", "mistake"), ("[process]\nfilter-system-calls = true\n", "restart the broker for process.filter"),
                       ("[limits]\nsession-idle-s = 9\n", "Listening.")]:
        configuration.write_text(text)
        if said == "mistake":
            assert desk.systemctl("reload", "watchword.service").returncode != 0, "the command that requested the reload reports the mistake"
            continue
        desk.do("reload", "watchword.service")
        desk.wait_for(lambda: said in desk.value("watchword.service", "StatusText"))
        assert desk.value("watchword.service", "ActiveState") == "active"
    assert main_pid(desk) == pid
    configuration.unlink()


def test_a_broker_that_hangs_is_replaced(desk):
    # Notified every second: time enough for the broker on a busy machine.
    change(desk, "WatchdogSec=2s\nRestartSec=0")
    desk.client().call("ping")
    first = main_pid(desk)
    heard = {desk.value("watchword.service", "WatchdogTimestampMonotonic")}
    desk.wait_for(lambda: len(heard) > 2 or heard.add(desk.value("watchword.service", "WatchdogTimestampMonotonic")))
    assert main_pid(desk) == first, "it notifies the watchdog"
    os.kill(first, 19)
    desk.wait_for(lambda: main_pid(desk) not in (0, first))
    assert desk.value("watchword.service", "NRestarts") == "1"


def test_a_mistake_in_the_configuration_ends_in_an_error_that_clients_see(desk):
    configuration = configure(desk, "malformed")
    change(desk, "RestartSec=0")
    log = desk.home / "service.log"
    before = log.stat().st_size if log.exists() else 0
    asked = desk.run("watchword", "status")
    assert asked.returncode != 0 and asked.stderr
    desk.wait_for(lambda: desk.value("watchword.socket", "ActiveState") == "failed")
    assert b"invalid configuration file" in log.read_bytes()[before:], "other tests write to this file, too"
    configuration.unlink()
    desk.do("reset-failed")
    desk.do("start", "watchword.socket")
    assert desk.client().call("ping")["result"] == {}


def test_a_login_works_under_the_units_filters(desk, stage, certificates, tls_server):
    """The login uses TLS, name resolution, prompts and locked memory, with the filter of the configuration in addition."""
    password = stage.secret()
    server = stage.server(tls_server(handler=basic_server("bob", password).handler))
    stage.allow(password, server)
    (desk.folder / "ca.pem").write_bytes((certificates / "ca.pem").read_bytes())
    configuration = configure(desk, "[process]\nfilter-system-calls = true\n")
    change(desk, f"ExecStart=\nExecStart={desk.home}/.local/bin/watchwordd --ca-file {desk.folder}/ca.pem")
    client = desk.client()
    client.call("initialize", {"client": {"name": "rig"}, "protocolVersion": 1,
                               "capabilities": {"challenge": {"delivery": "request"}}})
    client.send({"id": 9, "method": "fetch/run", "params": {"url": server.url}})
    while (message := client.read()).get("method") != "auth/challenge":
        assert "id" not in message, message
    credential = {"type": "password", "user": "bob", "password": password, "persistence": "forSession"}
    client.send({"id": message["id"], "result": {"action": "credential", "credential": credential}})
    while (message := client.read()).get("id") != 9:
        pass
    assert message["result"]["status"] == 200
    assert client.fetch(server.url)["result"]["auth"]["source"] == "session"
    assert client.call("server/status")["result"]["systemCallFilter"] is True
    status = open(f"/proc/{main_pid(desk)}/status").read()
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    configuration.unlink()


def hardening(text):
    """Returns the settings of the unit that forbid something, by name."""
    service = text.partition("[Service]")[2].partition("UMask")
    return {line.partition("=")[0]: line for line in (service[1] + service[2]).splitlines() if re.match("[A-Z]", line)}


def test_each_line_of_the_hardening_has_an_effect(manager):
    lines = hardening(SERVICE)
    number, files = lines.pop("SystemCallErrorNumber"), lines.pop("LimitNOFILE")
    assert set(lines) == set(attempts.ATTEMPTS), "every setting has an attempt, and every attempt a setting"
    cases = {"nothing": [], "everything": [*lines.values(), number, files]}
    cases.update({name: [line, number] for name, line in lines.items()})
    program = f"/usr/bin/python3 {manager.folder}/source/Tests/EndToEnd/programs/attempts.py"
    for case, chosen in cases.items():
        manager.unit(f"attempts-{case}.service", "\n".join(
            ["[Service]", "Type=oneshot", f"ExecStart={program}", f"StandardOutput=truncate:{manager.home}/{case}.json",
             *chosen, ""]))
    manager.do("daemon-reload")
    manager.do("start", *[f"attempts-{case}.service" for case in cases])
    found = {case: json.loads((manager.home / f"{case}.json").read_text()) for case in cases}
    for name in lines:
        otherwise = OTHERWISE.get(name, 0)
        assert found["nothing"][name] == otherwise, f"without a line {name} is {found['nothing'][name]}"
        for case in [name, "everything"]:
            assert found[case][name] != otherwise, f"{name} has no effect ({case})"
    assert found["RestrictAddressFamilies"]["RestrictAddressFamilies"] == errno.EAFNOSUPPORT


def test_a_user_namespace_would_make_every_client_sandboxed(desk):
    """The reason why PrivateUsers=, and the settings that need it, are not in the unit."""
    def subject():
        client = desk.client()
        client.send({"id": 1, "method": "agent/register", "params": {"name": "desk"}})
        return client.read()

    assert "result" in subject()
    change(desk, "PrivateUsers=yes")
    desk.do("restart", "watchword.service")
    assert subject()["error"]["data"]["kind"] == "denied", "the client is treated as sandboxed"


def test_a_second_agent_exits_without_a_failure(manager):
    """The autostart entry and the unit may both start it."""
    agent = f"/usr/bin/python3 {manager.folder}/source/contrib/agent/watchword-agent"
    own = "[Service]\nEnvironment=SSH_ASKPASS=/bin/true PYTHONDONTWRITEBYTECODE=1\nStandardError=append:{}/{}.log\n"
    text = (ROOT / "contrib" / "agent" / "watchword-agent.service").read_text()
    assert "ExecStart=/usr/bin/watchword-agent\n" in text
    manager.unit("agent-first.service", f"{own.format(manager.home, 'first')}ExecStart={agent}\n")
    ended = manager.home / "ended"
    manager.unit("agent-second.service", text.replace("/usr/bin/watchword-agent", agent).replace(
        "[Service]\n",
        f"{own.format(manager.home, 'second')}ExecStopPost=/bin/sh -c 'echo $SERVICE_RESULT $EXIT_STATUS >> {ended}'\n"))
    manager.do("daemon-reload")
    lock = manager.runtime / "watchword" / "agent.lock"
    try:
        manager.do("start", "agent-first")
        manager.wait_for(lambda: lock.exists() and lock.read_text() == manager.value("agent-first", "MainPID") + "\n")
        manager.do("start", "agent-second")
        manager.wait_for(lambda: ended.exists() and manager.value("agent-second", "ActiveState") == "inactive")
        assert ended.read_text() == "success 3\n"
        said = (manager.home / "second.log").read_text()
        assert said.startswith("watchword-agent: another watchword-agent runs in this session") and said.count("\n") == 1, said
        assert manager.value("agent-first", "ActiveState") == "active"
    finally:
        manager.do("stop", "agent-first", "agent-second")


ON = "[process]\nfilter-system-calls = true\n"


def filters(broker):
    """Returns the mode of each thread: 0 for none, 2 for a filter."""
    found = set()
    for task in pathlib.Path(f"/proc/{broker.process.pid}/task").iterdir():
        # It may end meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.update(re.findall(r"^Seccomp:\s*(\d)", (task / "status").read_text(), re.M))
    return set(map(int, found))


@pytest.mark.parametrize("text,mode", [(ON, 2), ("", 0)], ids=["on", "off"])
def test_the_system_call_filter_follows_the_configuration(stage, text, mode):
    broker = stage.configured(text)
    client = stage.client(broker=broker)
    assert client.fetch("http://127.0.0.1:1/")["error"]["data"]["kind"] == "cannotConnect"
    assert filters(broker) == {mode}
    assert client.call("server/status", {})["result"]["systemCallFilter"] is (mode == 2)
    shown = Shell(broker).run("status")
    assert shown.returncode == 0 and (b"system calls are filtered" in shown.stdout) is (mode == 2), shown


def test_a_login_over_tls_is_stored_and_found(stage, gnome, certificates, tls_server):
    """Keyring, TLS, files, threads and name resolution: what a fetch needs is not filtered."""
    password = stage.secret()
    server = stage.server(tls_server(handler=basic_server("bob", password, body=b"w" * (2 << 20)).handler))
    stage.allow(password, server)
    broker = stage.configured(ON, "--ca-file", str(certificates / "ca.pem"), environment=gnome.for_broker)
    client = stage.client(broker=broker, answer=lambda challenge: password_answer("bob", password, persistence="permanent"))
    assert client.fetch(server.url)["result"]["auth"]["source"] == "client"
    # A write in progress would be cancelled.
    eventually(lambda: any(
        entry["source"] == "keyring" for entry in client.call("credential/list", {})["result"]["credentials"]), "the login was not stored in the keyring")
    assert client.call("session/clear", {})["result"] == {"removed": 1}
    found = client.fetch(server.url, auth={"interaction": "none"})["result"]
    assert found["status"] == 200 and found["auth"]["source"] == "keyring"
    assert filters(broker) == {2}


@pytest.fixture(params=["path", "abstract"])
def activation(tmp_path, request):
    activation = Activation(tmp_path, is_abstract=request.param == "abstract")
    yield activation
    activation.end()


@pytest.fixture
def plain(tmp_path):
    activation = Activation(tmp_path)
    yield activation
    activation.end()


def is_restricted(path):
    with contextlib.closing(Client(path, delivery=None)) as client:
        reply = client.call("server/status", {})
    return "error" in reply and reply["error"]["data"]["kind"] == "denied"


def test_the_manager_is_notified_of_start_reload_and_end(activation):
    configuration = activation.folder / ".config" / "watchword" / "config.toml"
    configuration.parent.mkdir(parents=True)
    activation.start()
    assert activation.next() == {"READY": "1", "STATUS": "Listening."}
    for text, said in [
            ("malformed", "Listening; the configuration is invalid."),
            ('[process]\nfilter-system-calls = true\n[tokens]\nmodule = "/m.so"\n',
             "Listening; restart the broker for tokens.module and process.filter-system-calls to take effect."),
            ("", "Listening.")]:
        configuration.write_text(text)
        before = time.monotonic_ns() // 1000
        activation.process.send_signal(signal.SIGHUP)
        began = activation.next()
        assert began["RELOADING"] == "1" and before <= int(began["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
        assert activation.next() == {"READY": "1", "STATUS": said}
    activation.process.send_signal(signal.SIGTERM)
    assert activation.next()["STOPPING"] == "1"
    assert activation.process.wait(30) == 0


@pytest.mark.parametrize("handed,names", [
    (("main", "restricted"), "broker:restricted"), (("restricted", "main"), "restricted:broker"), (("main",), "broker"),
    (("main",), "-")])
def test_sockets_are_assigned_by_name_and_not_removed(plain, handed, names):
    plain.start(handed, names)
    plain.next()
    for name in handed:
        assert is_restricted(plain.paths[name]) is (name == "restricted")
    assert not (plain.folder / ".local" / "share").exists()
    plain.process.terminate()
    assert plain.process.wait(30) == 0
    assert os.path.exists(plain.paths["main"]) and os.path.exists(plain.paths["restricted"])


@pytest.mark.parametrize("handed,names", [
    (("main", "restricted"), "-"), (("main", "restricted"), "a:b"), (("restricted",), "restricted"),
    (("main", "restricted"), "restricted:restricted")])
def test_unsupported_sockets_are_refused(plain, handed, names):
    """A restricted socket must never be taken for the main one."""
    plain.start(handed, names)
    assert plain.process.wait(30) == 1
    said = plain.process.stderr.read()
    assert "cannot use the socket from the service manager" in said and said.count("\n") == 1


@pytest.mark.parametrize("watchdog", [{}, {"WATCHDOG_USEC": "100000"}], ids=["without", "with"])
def test_the_watchdog_is_notified(plain, watchdog):
    plain.start(**watchdog)
    plain.next()
    if not watchdog:
        assert not plain.lives(0.2)
        return
    assert all(plain.lives() for _ in range(3))
    plain.process.send_signal(signal.SIGSTOP)
    while plain.lives(0.3):
        pass
    plain.process.send_signal(signal.SIGCONT)
    assert plain.lives()


@pytest.mark.parametrize("more, reports", [({}, 0), ({"NOTIFY_SOCKET": "vsock:2:1234"}, 1)], ids=["absent", "invalid"])
def test_an_absent_manager_and_an_invalid_socket_for_notifications_stop_nothing(plain, more, reports):
    plain.heard.close()
    plain.start(**more)
    assert is_restricted(plain.paths["restricted"])
    plain.process.terminate()
    assert plain.process.wait(30) == 0
    assert plain.process.stderr.read().count("invalid NOTIFY_SOCKET") == reports


def test_the_manager_of_another_service_receives_nothing(stage, plain):
    """A client that starts the broker, with `--ready-fd`, passes on the environment of its own service."""
    broker = stage.broker(environment={"NOTIFY_SOCKET": plain.address, "WATCHDOG_USEC": "100000"})
    assert stage.client(delivery=None).call("ping")["result"] == {}
    assert broker.stop() == 0 and not is_ready(plain.heard, 0)


def answers(path):
    with contextlib.suppress(OSError), contextlib.closing(Client(path, delivery=None)) as client:
        return client.call("ping").get("result") == {}


def replace_with_a_dead_socket(path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path + ".new")
    os.replace(path + ".new", path)


@pytest.mark.parametrize("harm", [os.unlink, replace_with_a_dead_socket])
def test_the_broker_listens_again(stage, harm):
    broker = stage.broker()
    before = stage.client(broker=broker, delivery=None)
    sockets = [broker.socket, broker.restricted]
    for path in sockets:
        harm(path)
    for path in sockets:
        eventually(lambda: answers(path), lambda: broker.log[-1500:])
        assert os.stat(path).st_mode & 0o777 == 0o600
    assert before.call("ping")["result"] == {}, "open connections continue"
    assert broker.stop() == 0
    assert not any(os.path.exists(path) for path in sockets)


def test_a_socket_is_created_again_with_its_removed_directory(stage):
    broker = stage.broker()
    folder = os.path.dirname(broker.socket)
    os.rename(folder, folder + ".away")
    eventually(lambda: answers(broker.socket), lambda: broker.log[-1500:])
    assert os.stat(folder).st_mode & 0o777 == 0o700


def test_a_file_that_is_not_a_socket_ends_the_broker_and_stays(stage):
    broker = stage.broker()
    private(pathlib.Path(broker.socket + ".new"), "precious").replace(broker.socket)
    assert broker.process.wait(30) == 1
    assert "not a socket" in broker.log.splitlines()[-1]
    assert pathlib.Path(broker.socket).read_text() == "precious"


@pytest.mark.parametrize("name", ["main", "restricted"])
def test_the_service_managers_socket_ends_the_broker_with_a_message(plain, name):
    """Only the service manager can create the socket again."""
    assert plain.start().next()["READY"] == "1"
    os.unlink(plain.paths[name])
    assert plain.next()["STOPPING"] == "1"
    assert plain.process.wait(30) == 4
    said = plain.process.stderr.read().splitlines()[-1]
    assert plain.paths[name] in said and "systemctl --user restart watchword.socket" in said
