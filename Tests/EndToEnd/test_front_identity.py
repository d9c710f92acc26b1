"""A front never serves the broker itself, and of several programs that have one socket open the most restricted one counts."""
import contextlib
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from rig.audit import wait_for
from rig.client import Client, password_answer
from rig.forwarding import ForwardProxy
from rig.local_fronts import exchange, open_site
from rig.scripted import response
from rig.servers import free_port
from rig.subjects import Consenter, flatpak


def denial(reply):
    error = reply.get("error", {})
    return error.get("data", {}).get("kind"), error.get("message", "")


def is_own(reply):
    kind, text = denial(reply)
    return kind == "denied" and "is a front of watchword" in text


class House:
    """A broker with a login in its session, a proxy of the configuration, and the front of a site with the login."""

    def __init__(self, stage):
        self.proxy = free_port()
        self.broker = stage.configured(f'[front]\nproxy = "127.0.0.1:{self.proxy}"\nhosts = ["127.0.0.1"]\n')
        self.server, password = stage.protected()
        self.main = stage.client(broker=self.broker, answer=lambda challenge: password_answer("bob", password))
        assert self.main.fetch(self.server.url)["result"]["status"] == 200
        _, self.site = open_site(self.main, self.server.url)
        self.seen = len(self.server.requests)

    def check(self):
        assert len(self.server.requests) == self.seen, "a request has reached the server"


@pytest.fixture
def house(stage):
    return House(stage)


@pytest.fixture(params=["main", "restricted"])
def guest(request, stage, house):
    """A client that must not use the login of the main socket's session, and one that may."""
    if request.param == "main":
        return house.main
    path = os.path.join(os.path.dirname(house.broker.socket), "restricted.sock")
    client = Client(path)
    stage.clients.append(client)
    return client


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "a.localhost", "0.0.0.0", "[::]", "[::1]", "[::ffff:127.0.0.1]",
                                  "[::ffff:0.0.0.0]"])
def test_nobody_reaches_a_front_through_the_broker(house, guest, host):
    assert is_own(guest.fetch(f"http://{host}:{house.site}/"))
    assert is_own(guest.fetch(house.server.url, proxy={"url": f"http://{host}:{house.proxy}"}))
    assert is_own(guest.fetch("https://host.invalid/", proxy={"url": f"http://{host}:{house.proxy}"}))
    assert is_own(guest.fetch(f"http://{host}:{house.proxy}/"))
    house.check()


def test_neither_a_redirect_nor_another_proxy_leads_to_a_front(stage, house, guest):
    with contextlib.closing(ForwardProxy()) as relay:
        assert is_own(guest.fetch(f"http://127.0.0.1:{house.site}/", proxy={"url": relay.url}))
        assert relay.connections == 0
    first = stage.server(lambda request: response(302, b"", f"Location: http://a.localhost:{house.site}/"))
    assert is_own(guest.fetch(first.url))
    house.check()


def test_a_front_cannot_lead_to_a_front(stage, house):
    _, text = denial(house.main.call("front/open", {"site": {"url": f"http://127.0.0.1:{house.site}"}}))
    assert "is a front of watchword" in text


def test_a_front_that_opens_later_is_not_reached_over_a_connection_from_before(stage, house):
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as listener:
        answers = []

        def serve():
            connection, _ = listener.accept()
            answers.append(connection)
            connection.recv(1 << 16)
            connection.sendall(response(200, b"page"))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        assert house.main.fetch(f"http://127.0.0.1:{port}/")["result"]["status"] == 200
        thread.join(20)
    assert "result" in house.main.call("front/open", {"site": {"url": house.server.url}, "listen": f"127.0.0.1:{port}"})
    assert is_own(house.main.fetch(f"http://127.0.0.1:{port}/"))
    for connection in answers:
        connection.close()
    house.check()


@pytest.mark.parametrize("deny", [False, True])
def test_a_pac_file_comes_neither_from_a_front_nor_from_a_denied_address(stage, deny):
    port = free_port()
    server = stage.server(lambda request: response(200, b'function FindProxyForURL(url, host) { return "DIRECT" }'))
    place = f"x.localhost:{server.port}" if deny else f"a.localhost:{port}"
    rule = f'[fetch]\ndeny = ["127.0.0.1:{server.port}"]\n' if deny else ""
    broker = stage.configured(f'{rule}[proxy]\npac = "http://{place}/proxy.pac"\n[front]\nproxy = "127.0.0.1:{port}"\nhosts = ["127.0.0.1"]\n')
    reason = "does not allow fetches" if deny else "is a front of watchword"
    wait_for(lambda: f"cannot fetch the PAC file http://{place}/proxy.pac" in broker.log and reason in broker.log)
    assert not server.requests


# The programs that have one socket open

CONNECT = textwrap.dedent("""
    import array, ctypes, os, socket, subprocess, sys, threading
    one = socket.socket()
    if sys.argv[3] == "share":
        subprocess.Popen(["/usr/bin/sleep", "5"], pass_fds=[one.fileno()], stdout=subprocess.DEVNULL)
    if len(sys.argv) > 4:
        other = socket.socket(socket.AF_UNIX)
        other.connect(sys.argv[4])
        other.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [one.fileno()]))])
        assert other.recv(1) == b"y"
    def fetch():
        one.settimeout(20)
        one.connect(("127.0.0.1", int(sys.argv[1])))
        one.sendall(f"GET {sys.argv[2]}/ HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n".encode())
        print(one.recv(1 << 16)[:12].decode())
    def hide():
        assert ctypes.CDLL(None).unshare(0x400) == 0
        is_own.set()
        is_closed.wait()
        fetch()
    is_own, is_closed = threading.Event(), threading.Event()
    if sys.argv[3] == "thread":
        thread = threading.Thread(target=hide)
        thread.start()
        is_own.wait()
        os.close(one.fileno())
        is_closed.set()
        thread.join()
    else:
        fetch()
""")


@pytest.fixture
def asking(stage):
    """A broker that asks for consent, with a login in its session and a proxy; returns its port, the server and the agent."""
    port = free_port()
    broker = stage.configured(f'[sharing]\nsession = "ask"\n[front]\nproxy = "127.0.0.1:{port}"\nhosts = ["127.0.0.1"]\n')
    server, password = stage.protected()
    agent = Consenter(broker.socket, allow="once")
    stage.clients.append(agent)
    place = {"protocol": "http", "host": "127.0.0.1", "port": server.port, "realm": "Staff", "authenticationMethod": "httpBasic"}
    credential = {"type": "password", "user": "bob", "password": password, "persistence": "forSession"}
    assert "result" in agent.call("credential/store", {"protectionSpace": place, "credential": credential})
    return port, server, agent


def subjects(agent):
    return [asked["requester"]["subject"] for asked in agent.asked]


def connect(port, server, *more, before=(), share="no", **options):
    command = [*before, "/usr/bin/python3", "-c", CONNECT, str(port), server.url, share, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    assert done.stdout.strip() == "HTTP/1.1 200", done
    return done


def slow_service(tmp_path):
    """Takes a descriptor from another program, and keeps it."""
    path = str(tmp_path / "service")
    script = f"""
import array, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind({path!r})
listener.listen()
print("ready", flush=True)
other, _ = listener.accept()
socket.recv_fds(other, 1, 1)
other.sendall(b"y")
sys.stdin.read()
"""
    service = subprocess.Popen(["/usr/bin/perl", "-e", 'exec @ARGV', "/usr/bin/env", "-i", sys.executable, "-c", script],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert service.stdout.readline() == b"ready\n"
    return service, path


@pytest.mark.parametrize("share", ["no", "thread"])
def test_rule_g1_a_sandboxed_program_cannot_borrow_the_identity_of_a_service(asking, tmp_path, share):
    """Also if only a thread with a descriptor table of its own has the socket open."""
    port, server, agent = asking
    connect(port, server)
    assert subjects(agent)[-1].startswith("exe:/usr/bin/python3")
    service, path = slow_service(tmp_path)
    command, info = flatpak()
    try:
        connect(port, server, path, before=[*command, "--bind", str(tmp_path), str(tmp_path)], share=share, pass_fds=[info])
    finally:
        service.stdin.close()
        service.wait(20)
    assert subjects(agent)[-1] == "flatpak:org.example.Maps"


def test_rule_g1_a_socket_that_two_programs_have_open_belongs_to_an_unknown_one(asking):
    port, server, agent = asking
    connect(port, server, share="share")
    assert subjects(agent)[-1].startswith("unknown")


# The limits of the search

def test_a_program_with_many_descriptors_does_not_keep_others_out(stage):
    """Six hundred connections of a program with 19,000 descriptors."""
    port = free_port()
    server = stage.server(lambda request: response(200, b"page"))
    broker = stage.configured(f'[front]\nproxy = "127.0.0.1:{port}"\nhosts = ["127.0.0.1"]\n')
    script = f"""
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
held = [open("/dev/null") for _ in range(19000)]
connections = []
for _ in range(600):
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex(("127.0.0.1", {port}))
    connections.append(one)
print("ready", flush=True)
sys.stdin.read()
"""
    before = broker.processor_seconds
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as many:
        assert many.stdout.readline() == b"ready\n"
        start = time.monotonic()
        data = f"GET {server.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        assert exchange(("127.0.0.1", port), data).endswith(b"page")
        assert time.monotonic() - start < 5
        assert broker.processor_seconds - before < 3
        many.stdin.close()
