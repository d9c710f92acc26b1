"""HTTP/1.1 through a front (RFC 9110, RFC 9112): incomplete bodies, targets, cookies and activated sockets. A front never serves the broker
itself, and of several programs that have one socket open the most restricted one counts."""
import contextlib
import os
import resource
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from rig.audit import wait_for
from rig.bodies import eventually
from rig.client import password_answer
from rig.forwarding import ForwardProxy
from rig.local_fronts import exchange, open_proxy, open_site, receive_all, run
from rig.manager import Activation
from rig.scripted import DigestCheck, ScriptedServer, response
from rig.servers import free_port, private
from rig.subjects import flatpak


def request(url, *fields, path="/", method="GET"):
    lines = [f"{method} {url}{path} HTTP/1.1", "Host: x", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.fixture
def address(stage):
    return open_proxy(stage.client())[0]


@pytest.mark.parametrize("rest", [b"zz\r\n", b"5\r\nabcdeXX", b"-1\r\n"])
def test_a_malformed_chunk_in_a_streamed_body_ends_with_400(stage, address, rest):
    server = stage.server(lambda asked: None)
    part = os.urandom(100_000)
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(request(server.url, "Transfer-Encoding: chunked", method="POST"))
        connection.sendall(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        eventually(lambda: part in server.wire.replace(b"\r\n", b"") or len(server.wire) > len(part), "the origin has got the part")
        connection.sendall(rest)
        received = receive_all(connection)
    assert received.startswith(b"HTTP/1.1 400 ") and b"malformed chunk" in received
    assert b"\r\n0\r\n\r\n" not in server.wire, "the origin must not take the part for the whole body"


def test_a_tunnel_through_a_proxy_that_expects_tls(stage, squid, account, tls, nginx_tls, tmp_path):
    broker = stage.configured(
        f'[proxy]\nurl = "{squid.url("tls-basic")}"\n[front]\ntunnel-ports = [{nginx_tls.port}]\n', "--ca-file", str(tls / "ca.pem"))
    agent = stage.agent(password_answer(*account), broker)
    url = f"https://localhost:{nginx_tls.port}"
    done = run(broker, "curl", "-sS", "--cacert", str(tls / "ca.pem"), "-o", str(tmp_path / "large"), f"{url}/large.bin", f"{url}/open.txt")
    assert done.stdout == b"open page\n", done
    assert (tmp_path / "large").read_bytes() == (nginx_tls.log_path.parent / "www" / "large.bin").read_bytes()
    assert len(agent.asked) == 1 and agent.asked[0]["protectionSpace"]["isProxy"]
    eventually(lambda: agent.call("server/status", {})["result"]["engine"]["running"] == 0, "the transfers have ended")


def test_a_large_upload_and_the_end_of_the_broker_in_a_tunnel_through_a_proxy_that_expects_tls(stage, squid, tls):
    received = []
    server = stage.server(lambda asked: received.append(asked.body) or response(200, b"taken"))
    broker = stage.configured(
        f'[proxy]\nurl = "{squid.url("tls-open")}"\n[front]\ntunnel-ports = [{server.port}]\n', "--ca-file", str(tls / "ca.pem"))
    address, _ = open_proxy(stage.client(broker=broker))
    body = os.urandom(5 << 20)
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        connection.sendall(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        assert connection.recv(1 << 16).endswith(b"taken") and received == [body]
        assert broker.stop() == 0, broker.log
        assert connection.recv(1) == b""


def test_one_program_cannot_take_all_connections(stage):
    broker = stage.broker()
    resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (600, 600))
    address, _ = open_proxy(stage.client(broker=broker))
    with contextlib.ExitStack() as connections:
        for _ in range(400):
            connections.enter_context(socket.create_connection(address, timeout=20))
        eventually(lambda: "too many connections of a program" in broker.log, "the limit is reached")
        server = stage.server(lambda asked: response(200, b"page"))
        done = subprocess.run(
            ["curl", "-sS", "--noproxy", "", "-x", f"http://{address[0]}:{address[1]}", server.url], capture_output=True, timeout=30)
        assert done.stdout == b"page", done


TUNNELS = """
import socket, sys
held, code = [], "200"
while code == "200" and len(held) < 400:
    held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20))
    held[-1].sendall(f"CONNECT 127.0.0.1:{sys.argv[2]} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode())
    try:
        code = (held[-1].recv(100).decode() + " closed").split(" ")[1]
    except ConnectionResetError:
        code = "closed"
print(len(held), code, flush=True)
sys.stdin.read()
"""


def test_a_tunnel_needs_descriptors_that_are_not_reserved(stage):
    server = stage.server(lambda asked: response(200, b"page"))
    broker = stage.configured(f"[front]\ntunnel-ports = [{server.port}]\n")
    resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (600, 600))
    client = stage.client(broker=broker)
    address, _ = open_proxy(client)
    programs, ends = [], []
    try:
        for _ in range(2):
            programs.append(subprocess.Popen(
                [sys.executable, "-c", TUNNELS, str(address[1]), str(server.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            ends.append(programs[-1].stdout.readline().split())
        assert [code for _, code in ends] == ["closed", "503"], "the first one reaches the limit of a program"
        assert all(int(count) > 20 for count, _ in ends)
        assert client.fetch(server.url)["result"]["status"] == 200, "the reserve is for other work"
    finally:
        for holder in programs:
            holder.communicate(timeout=20)


TARGETS = ["/a/../b", "/a/%2e%2e/b", "/./a", "/{x}|y^`", "/a?q=<\"|>&r=../..", "//a", "/%7euser", "/a/.", "/?"]


def test_a_proxy_and_a_site_pass_the_target_on_as_it_is(stage):
    server = stage.server(lambda request: response(200, b"page"))
    client = stage.client()
    address, _ = open_proxy(client)
    host, port = open_site(client, server.url)
    for target in TARGETS:
        exchange(address, f"GET {server.url}{target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        exchange((host, port), f"GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
        assert [request.target for request in server.requests[-2:]] == [target] * 2
    assert server.requests[-1].method == "GET" and len(server.requests) == 2 * len(TARGETS)


def test_a_target_reaches_an_upstream_proxy_as_it_is(stage):
    upstream = stage.server(lambda request: response(200, b"page"))
    address, _ = open_proxy(stage.client(broker=stage.configured(f'[proxy]\nurl = "{upstream.url}"\n')))
    for method, path in [("GET", "/a/../b?{|}"), ("GET", "/?"), ("OPTIONS", "")]:
        exchange(address, f"{method} http://server.example{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        assert upstream.requests[-1].target == f"http://server.example{path}"
    assert len(upstream.requests) == 3


def test_the_digest_of_the_broker_is_for_the_target_that_it_sends(stage):
    check = DigestCheck("alice", "secret", qop="auth", proof="right")
    server = stage.server(check)
    address, _ = open_proxy(stage.agent(password_answer("alice", "secret")))
    for target in ["/a/../b?x=|", "/c|d"]:
        received = exchange(address, f"GET {server.url}{target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        assert received.endswith(b"welcome") and not check.problems, (received, check.problems)
    assert len(server.requests) == 3, "the second request logs in unasked"


def open_named(client, url, **site):
    """Returns the address, and the name with its port, of a front of `url`."""
    result = client.call("front/open", {"site": {"url": url, **site}})["result"]
    host, port = result["listen"].rsplit(":", 1)
    return (host, int(port)), result["name"]


def get(address, host, *fields):
    lines = ["GET /x?y HTTP/1.1", f"Host: {host}", "Connection: close", *fields]
    return exchange(address, ("\r\n".join(lines) + "\r\n\r\n").encode())


@pytest.fixture
def setting(stage):
    return stage.server(lambda request: response(200, b"page", "Set-Cookie: id=1; Secure; HttpOnly; SameSite=Strict; Path=/"))


def test_cookies_pass_under_the_name_only(stage, setting):
    address, name = open_named(stage.client(), setting.url)
    assert name.endswith(f".localhost:{address[1]}") and name.startswith("127-0-0-1-")
    received = get(address, name, "Cookie: id=1")
    assert b"Set-Cookie: id=1; HttpOnly; SameSite=Strict; Path=/\r\n" in received
    assert setting.requests[-1].header("Cookie") == "id=1" and setting.requests[-1].header("Host") == f"127.0.0.1:{setting.port}"
    for host in [f"127.0.0.1:{address[1]}", name.upper().replace("LOCALHOST", "localhost")]:
        received = get(address, host, "Cookie: other=1")
        isShared = host.startswith("127.0.0.1")
        assert received.startswith(b"HTTP/1.1 200 ") and (b"Set-Cookie" not in received) == isShared
        assert (setting.requests[-1].header("Cookie") is None) == isShared


def test_a_site_gets_no_cookie_of_another_one(stage, setting, tmp_path):
    """With curl, which finds the names by itself, and one file of cookies."""
    other = stage.server(lambda request: response(200, b"page"))
    client = stage.client()
    (address, name), (_, second) = open_named(client, setting.url), open_named(client, other.url)
    jar = str(tmp_path / "jar")
    for url in [f"http://{name}/", f"http://{name}/", f"http://{second}/", f"http://127.0.0.1:{address[1]}/", other.url]:
        subprocess.run(["curl", "-sS", "-f", "--noproxy", "*", "-c", jar, "-b", jar, url], check=True, timeout=30, capture_output=True)
    assert [request.header("Cookie") for request in setting.requests] == [None, "id=1", None]
    assert [request.header("Cookie") for request in other.requests] == [None, None]


def test_a_browser_is_led_to_the_name(stage, setting):
    address, name = open_named(stage.client(), setting.url)
    received = get(address, f"127.0.0.1:{address[1]}", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: none")
    assert received.startswith(b"HTTP/1.1 307 ") and f"Location: http://{name}/x?y\r\n".encode() in received
    assert not setting.requests
    assert get(address, name, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: none").startswith(b"HTTP/1.1 200 ")


def test_the_name_of_another_site_is_refused(stage, setting):
    client = stage.client()
    (address, _), (_, second) = open_named(client, setting.url), open_named(client, "http://other.example")
    port = address[1]
    for host in [f"{second.split(':')[0]}:{port}", f"x.localhost:{port}", second]:
        assert get(address, host).startswith(b"HTTP/1.1 403 ")
    assert not setting.requests


def test_a_unix_socket_passes_cookies(stage, setting, tmp_path):
    client = stage.client()
    path = str(tmp_path / "site.sock")
    tmp_path.chmod(0o700)
    assert "name" not in client.call("front/open", {"site": {"url": setting.url}, "listen": path})["result"]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: id=1\r\nConnection: close\r\n\r\n")
        received = receive_all(connection)
    assert b"Set-Cookie: id=1" in received and setting.requests[0].header("Cookie") == "id=1"


@pytest.fixture
def activation(tmp_path):
    with contextlib.closing(ActivationWithFront(tmp_path)) as activation:
        yield activation


class ActivationWithFront(Activation):
    """Also listens at a TCP port. `configure` writes the configuration."""

    def __init__(self, folder):
        super().__init__(folder)
        self.listeners["front"] = socket.create_server(("127.0.0.1", 0))
        self.port = self.listeners["front"].getsockname()[1]
        (self.folder / ".config" / "watchword").mkdir(parents=True, mode=0o700)
        self.close = self.end

    def configure(self, text):
        private(self.folder / ".config" / "watchword" / "config.toml", text)

    def fetch(self, url):
        return subprocess.run(
            ["curl", "-sS", "--noproxy", "", "-x", f"http://127.0.0.1:{self.port}", url], capture_output=True, timeout=30)


def test_a_program_that_connects_before_the_broker_starts_is_served(activation):
    activation.configure(f'[front]\nproxy = "127.0.0.1:{activation.port}"\nhosts = ["127.0.0.1"]\n')
    with contextlib.closing(ScriptedServer(lambda request: response(200, b"page"))) as server:
        def served_early():
            with socket.create_connection(("127.0.0.1", activation.port), timeout=30) as early:
                early.sendall(f"GET {server.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                activation.start(("main", "front"), "broker:front")
                assert early.makefile("rb").read().endswith(b"\r\n\r\npage")

        served_early()
        assert activation.next()["READY"] == "1"
        assert activation.fetch(server.url).stdout == b"page"
        activation.process.terminate()
        activation.process.communicate(timeout=30)
        assert activation.process.returncode == 0
        # The service manager still has the socket.
        served_early()


def test_a_socket_at_another_address_than_the_configured_one_is_not_used(activation):
    activation.configure('[front]\nproxy = "127.0.0.1:1"\n')
    activation.start(("main", "front"), "broker:front")
    assert activation.next()["READY"] == "1"
    activation.process.terminate()
    errors = activation.process.communicate(timeout=30)[1]
    assert f"the socket of the service manager is not used" in errors and f"127.0.0.1:{activation.port}" in errors


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.2"])
def test_a_socket_that_others_could_reach_is_refused(activation, address):
    activation.configure("")
    activation.listeners["front"].close()
    activation.listeners["front"] = socket.create_server((address, 0))
    activation.start(("main", "front"), "broker:front")
    errors = activation.process.communicate(timeout=30)[1]
    assert activation.process.returncode != 0 and "does not listen on a TCP port of 127.0.0.1 or ::1" in errors


def is_own(reply):
    return reply["error"]["data"]["kind"] == "denied" and "is a front of watchword" in reply["error"]["message"]


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
    return stage.client(broker=house.broker, at="restricted")


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


def test_a_front_cannot_lead_to_a_front(house):
    error = house.main.call("front/open", {"site": {"url": f"http://127.0.0.1:{house.site}"}})["error"]
    assert "is a front of watchword" in error["message"]


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
    agent = stage.consenter(broker, allow="once")
    agent.store(server, "bob", password, realm="Staff", authenticationMethod="httpBasic")
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
