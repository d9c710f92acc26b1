"""`watchword run`: unchanged programs whose requests go through the broker."""
import os
import signal
import socket
import subprocess
import sys

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer
from rig.local_fronts import exchange, run
from rig.scripted import response
from rig.servers import free_port


def test_curl_logs_in_to_a_server_without_knowing_the_password(stage):
    server, password = stage.protected()
    broker = stage.broker()
    asked = stage.agent(password_answer("bob", password), broker).asked
    done = run(broker, "sh", "-c", f"curl -sS {server.url}/a && curl -sS {server.url}/b && curl -sS {server.url}/c")
    assert (done.returncode, done.stderr) == (0, b""), done
    assert len(asked) == 1 and asked[0]["requester"]["subject"] == "exe:/usr/bin/curl"
    assert [request.target for request in server.requests] == ["/a", "/a", "/b", "/c"]
    assert all(request.header("Proxy-Authorization") is None for request in server.requests)
    assert all(request.header("Via").startswith("1.1 watchword-") for request in server.requests)


def test_a_descendant_whose_parent_has_ended_needs_no_token(stage, tmp_path):
    """As of build daemons, for example. The shell waits for it, and sees no zombie of it."""
    server = stage.server(lambda request: response(200, b"page"))
    script = (
        f"setsid -f sh -c 'sleep 0.3; echo $$ >{tmp_path}/pid; curl -sS -o {tmp_path}/page -w %{{http_code}} -x http://${{http_proxy#*@}}"
        f" {server.url}/ >{tmp_path}/code.new; mv {tmp_path}/code.new {tmp_path}/code'\n"
        f"while ! test -s {tmp_path}/code; do sleep 0.05; done; cat {tmp_path}/code; sleep 0.2; ! test -e /proc/$(cat {tmp_path}/pid)")
    done = run(stage.broker(), "sh", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"200", b""), done
    assert (tmp_path / "page").read_bytes() == b"page"


def test_the_end_of_an_adopted_process_is_not_that_of_the_program(stage):
    assert run(stage.broker(), "sh", "-c", "setsid -f sh -c 'sleep 0.1; exit 3'; sleep 0.5; exit 7").returncode == 7


@pytest.mark.parametrize("command, code", [
    (["true"], 0), (["sh", "-c", "exit 7"], 7), (["/nonexistent/program"], 127), (["/etc/passwd"], 126)])
def test_the_exit_code_is_that_of_the_program(stage, command, code):
    done = run(stage.broker(), *command)
    assert done.returncode == code
    assert (b"cannot run" in done.stderr) == (code > 100), done.stderr


def test_a_program_that_a_signal_ends(stage):
    assert run(stage.broker(), "sh", "-c", "kill -SEGV $$").returncode == -signal.SIGSEGV


def test_signals_of_other_processes_reach_the_program(stage):
    broker = stage.broker()
    script = "import signal, sys; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5)); print('ready', flush=True); signal.pause()"
    process = subprocess.Popen(
        [program("watchword"), "run", "--socket", broker.socket, "--", sys.executable, "-c", script], stdout=subprocess.PIPE,
        env={**os.environ, "HOME": str(broker.home)})
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGUSR1)
    assert process.wait(20) == 5


def test_the_front_ends_with_the_program(stage):
    broker = stage.broker()
    run(broker, "true")
    client = stage.client(broker=broker)
    eventually(lambda: client.call("front/list", {})["result"]["fronts"] == [], "the front is closed")


def test_without_a_broker_the_reason_is_shown(tmp_path):
    done = subprocess.run(
        [program("watchword"), "run", "--no-start", "--socket", str(tmp_path / "none.sock"), "--", "true"], capture_output=True,
        timeout=20)
    assert done.returncode == 2 and b"no broker listens" in done.stderr


def test_a_large_upload_and_download(stage, tmp_path):
    received = []

    def page(request):
        received.append(request.body)
        return response(200, b"d" * (8 << 20) if request.method == "GET" else b"taken")

    server = stage.server(page)
    body = os.urandom(3 << 20)
    (tmp_path / "body").write_bytes(body)
    broker = stage.broker()
    done = run(broker, "curl", "-sS", "--data-binary", f"@{tmp_path}/body", server.url)
    assert done.stdout == b"taken" and received == [body], done
    done = run(broker, "curl", "-sS", "-o", str(tmp_path / "got"), server.url)
    assert (tmp_path / "got").read_bytes() == b"d" * (8 << 20), done


def test_an_ignored_signal_about_children_does_not_matter(stage):
    """A parent that ignores SIGCHLD passes this on to the programs that it starts."""
    broker = stage.broker()
    script = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", script, program("watchword"), "run", "--socket", broker.socket, "--", "sh", "-c", "exit 3"],
        env={**os.environ, "HOME": str(broker.home)}, timeout=30)
    assert done.returncode == 3


# After the end of the broker

WAITS = r"""
echo ${http_proxy##*:}
read go
curl -sS -o /dev/null "$1"
echo "curl: $?"
"""


class Waiting:
    """A program that `watchword run` runs, and that makes a request when it is told to."""

    def __init__(self, broker, url):
        self.process = subprocess.Popen(
            [program("watchword"), "run", "--socket", broker.socket, "--", "sh", "-c", WAITS, "sh", url], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "HOME": str(broker.home), "no_proxy": "", "NO_PROXY": ""})
        self.port = int(self.process.stdout.readline())


def listen(port, family=socket.AF_INET):
    """Listens as another user could."""
    impostor = socket.socket(family)
    impostor.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    impostor.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", port))
    impostor.listen()
    return impostor


def test_no_other_program_gets_the_requests_after_the_broker_was_killed(stage):
    server = stage.server(lambda request: response(200, b"page"))
    broker = stage.broker()
    run = Waiting(broker, server.url)
    with socket.create_connection(("127.0.0.1", run.port)):
        broker.process.kill()
        broker.process.wait()
        assert "the broker has ended" in run.process.stderr.readline()
    for family in [socket.AF_INET, socket.AF_INET6]:
        with pytest.raises(OSError, match="Address already in use"):
            listen(run.port, family)
    output, _ = run.process.communicate("go\n", timeout=30)
    assert output == "curl: 7\n" and run.process.returncode == 0 and not server.requests


def test_a_program_ends_if_another_one_has_taken_its_proxy(stage):
    broker = stage.broker()
    run = Waiting(broker, "http://example.test/")
    run.process.send_signal(signal.SIGSTOP)
    broker.process.kill()
    broker.process.wait()
    with listen(run.port) as impostor:
        run.process.send_signal(signal.SIGCONT)
        output, errors = run.process.communicate(timeout=30)
        assert output == "" and "another program has the address of its proxy" in errors
        assert run.process.returncode == -signal.SIGKILL
        impostor.settimeout(0.2)
        with pytest.raises(TimeoutError):
            impostor.accept()


def test_a_stopped_broker_does_not_end_the_program(stage):
    broker = stage.broker()
    run = Waiting(broker, "http://example.test/")
    assert broker.stop() == 0
    output, errors = run.process.communicate("go\n", timeout=30)
    assert output == "curl: 7\n" and run.process.returncode == 0 and "the broker has ended" in errors


# Other programs at the port of a front

@pytest.mark.parametrize("taken", ["127.0.0.1", "::1"])
def test_a_taken_port_is_reported_by_run_and_doctor(stage, taken):
    port = free_port()
    with listen(port, socket.AF_INET6 if taken == "::1" else socket.AF_INET):
        broker = stage.configured(f'[front]\nproxy = "127.0.0.1:{port}"\nhosts = ["127.0.0.1"]\n')
        done = run(broker, "true")
        errors = done.stderr.decode()
        assert done.returncode == 0 and f"127.0.0.1:{port}" in errors and "another program uses" in errors, errors
        assert f"[::1]:{port}" in errors or taken != "::1"
        doctor = subprocess.run(
            [program("watchword"), "doctor", "--socket", broker.socket], capture_output=True, text=True, timeout=60,
            env={**os.environ, "HOME": str(broker.home)})
        assert doctor.returncode != 0 and "another program uses" in doctor.stdout, doctor.stdout
        if taken == "::1":
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), 5)


@pytest.mark.parametrize("listening", ["127.0.0.1:0", "[::1]:0"])
def test_a_front_has_its_port_at_both_loopback_addresses(stage, listening):
    server = stage.server(lambda request: response(200, b"page"))
    client = stage.client()
    result = client.call("front/open", {"site": {"url": server.url}, "listen": listening})["result"]
    port = int(result["listen"].rsplit(":", 1)[1])
    for host in ["127.0.0.1", "::1"]:
        data = f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode()
        assert exchange((host, port), data).endswith(b"page")
    assert "result" in client.call("front/close", {"frontId": result["frontId"]})
    for family in [socket.AF_INET, socket.AF_INET6]:
        listen(port, family).close()
