"""The comparison of Watchword with px and cntlm: each cell of the table in the document is what the probe of its row finds."""
import contextlib
import dataclasses
import http.client
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading

import psutil
import pytest

from rig.bodies import eventually
from rig.broker import PREFIX, ROOT, program
from rig.client import password_answer
from rig.field_servers import PYTHON_FOLDER, version_of
from rig.forwarding import ForwardProxy
from rig.scripted import ScriptedServer, end_listening, head_from, response
from rig.servers import Server, find, free_port, private, wait_for_port, written
from rig.terminal import Terminal


PX_FOLDER = PYTHON_FOLDER.with_name(".build-px")


class Unsupported(Exception):
    """The program has no option for this."""


@dataclasses.dataclass
class Wish:
    """A local proxy: `upstreams` are "host:port", all with the login `user`, `password`, of which the program knows what
    `knows` contains: "user", "password". Without upstreams it connects to servers itself.

    `by_host` is (a host, the upstream for it). `tickets` and `keyring` are the environments of a user with Kerberos tickets
    and of a session with a keyring.
    """

    upstreams: list = dataclasses.field(default_factory=list)
    scheme: str = "Basic"
    user: str = "nobody"
    password: str = ""
    knows: tuple = ("user", "password")
    direct: str = ""
    by_host: tuple = ()
    pac: str = ""
    tickets: dict = dataclasses.field(default_factory=dict)
    keyring: dict = dataclasses.field(default_factory=dict)

    @property
    def domain(self):
        return "TESTDOM" if self.scheme == "NTLM" else ""


class Watchword:
    """The broker with `front.proxy`. An agent is asked for what it does not know."""

    def __init__(self, stage, wish):
        self.port = free_port()
        lines = [f'[front]\nproxy = "127.0.0.1:{self.port}"\nhosts = ["127.0.0.1", "[::1]", "localhost", "*.test"]',
                 '[schemes]\nntlm = ["127.0.0.1"]\nnegotiate = ["localhost"]', "[proxy]"]
        if wish.pac:
            lines.append(f'pac = "{wish.pac}"')
        elif wish.upstreams:
            lines += [f'url = "http://{wish.upstreams[0]}"', *[f'except = ["{wish.direct}"]'] * bool(wish.direct)]
        if wish.by_host:
            lines.append(f'[[proxy.rule]]\nhosts = ["{wish.by_host[0]}"]\nuse = ["http://{wish.by_host[1]}"]')
        elif len(wish.upstreams) > 1:
            lines.append(f'[[proxy.rule]]\nhosts = ["*.test"]\nuse = {[f"http://{one}" for one in wish.upstreams]}')
        text = "\n".join(lines) + "\n"
        file = private(stage.folder / "checked.toml", text)
        done = subprocess.run([program("watchwordd"), "--check-config", f"--config={file}"], capture_output=True)
        if done.returncode != 0:
            raise Unsupported(done.stdout + done.stderr)
        self.broker = stage.configured(text, environment={**wish.tickets, **wish.keyring})
        self.pid = self.broker.process.pid
        wait_for_port(self.port)
        if wish.password and not wish.keyring:
            answer = password_answer(wish.user, wish.password, **({"domain": wish.domain} if wish.domain else {}))
            stage.agent(answer, self.broker)

    def stop(self):
        assert self.broker.stop() == 0

    @staticmethod
    def version():
        return ""


class Px:
    def __init__(self, stage, wish):
        assert PX_FOLDER.exists(), "px is missing; run contrib/install-dependencies --peers"
        self.port = free_port()
        user = f"{wish.domain}\\{wish.user}" if wish.domain else wish.user
        options = [f"--port={self.port}", "--foreground", "--threads=4", "--workers=1"]
        folder, pac = made(stage), wish.pac
        if wish.by_host:
            pac = folder / "hosts.pac"
            pac.write_text(
                f'function FindProxyForURL(url, host) {{ return host == "{wish.by_host[0]}" ? "PROXY {wish.by_host[1]}"'
                f' : "PROXY {wish.upstreams[0]}"; }}')
        elif wish.upstreams:
            options += [f"--proxy={','.join(wish.upstreams)}"]
        if wish.upstreams or wish.pac:
            options += [f"--auth={wish.scheme.upper()}"]
        if wish.direct:
            options.append(f"--noproxy={wish.direct}")
        if pac:
            options.append(f"--pac={pac}")
        if "user" in wish.knows and not wish.tickets:
            options.append(f"--username={user}")
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(PX_FOLDER), **wish.tickets, **wish.keyring}
        if "password" in wish.knows:
            environment["PX_PASSWORD"] = wish.password
        self.server = Server(
            ["/usr/bin/python3", "-m", "px", *options], self.port, folder / "px.log", env=environment, cwd=folder)
        self.pid, self.stop = self.server.process.pid, self.server.stop

    @staticmethod
    def version():
        return version_of("/usr/bin/python3", "-m", "px", "--help", env={**os.environ, "PYTHONPATH": str(PX_FOLDER)})


class Cntlm:
    def __init__(self, stage, wish):
        if wish.by_host or wish.pac or wish.keyring or wish.tickets or wish.scheme not in ["NTLM", "Basic"]:
            raise Unsupported
        self.port, folder = free_port(), made(stage)
        lines = [f"Listen 127.0.0.1:{self.port}", f"Username {wish.user}", f"Domain {wish.domain or 'none'}", "Auth NTLMv2"]
        lines += [f"Password {wish.password or 'none'}"] * ("password" in wish.knows)
        # It does not start without an upstream.
        lines += [f"Proxy {one}" for one in wish.upstreams or ["127.0.0.1:1"]]
        lines += [f"NoProxy {wish.direct or '*'}"] * bool(wish.direct or not wish.upstreams)
        path = written(folder, {"cntlm.conf": "\n".join(lines) + "\n"}) / "cntlm.conf"
        path.chmod(0o600)
        self.server = Server([find("cntlm"), "-f", "-c", str(path)], self.port, folder / "cntlm.log")
        self.pid, self.stop = self.server.process.pid, self.server.stop

    @staticmethod
    def version():
        return version_of(find("cntlm"), "-h", pattern=r"(?<=version )[\d.]+")


def made(stage):
    folder = pathlib.Path(stage.folder) / f"local-proxy-{free_port()}"
    folder.mkdir()
    return folder


PROGRAMS = {"Watchword": Watchword, "px": Px, "cntlm": Cntlm}


PAGE = b"the page of the comparison"
#: Within this time in seconds, a program that forwards or answers a request has done so.
PATIENCE = 5


class Origin:
    """A server that reads bodies in chunks, too, and sends 100 Continue. `requests` are [head, body]; the body of a request that
    is not complete is None."""

    def __init__(self, family=socket.AF_INET):
        self.requests, self.host = [], "127.0.0.1" if family == socket.AF_INET else "::1"
        self.listener = socket.create_server((self.host, 0), family=family)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://{self.host if family == socket.AF_INET else '[::1]'}:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self.listener.accept()[0],), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as stream, contextlib.suppress(OSError, ValueError):
            while first := stream.readline():
                head = first + head_from(stream)
                if re.search(rb"(?im)^expect: *100-continue", head):
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                self.requests.append(request := [head, None])
                request[1] = self._body(head, stream)
                connection.sendall(response(200, PAGE + first.split(b" ")[1]))

    @staticmethod
    def _body(head, stream):
        if re.search(rb"(?im)^transfer-encoding: *chunked", head):
            body = b""
            while size := int(stream.readline(), 16):
                body += stream.read(size)
                stream.readline()
            stream.readline()
            return body
        length = re.search(rb"(?im)^content-length: *(\d+)", head)
        return stream.read(int(length[1])) if length else b""

    def close(self):
        end_listening(self.listener)


class Bench:
    """One program and the servers around it. `fixture(name)` returns those of the rig."""

    def __init__(self, stage, fixture, program):
        self.stage, self.fixture, self.kind, self.program = stage, fixture, PROGRAMS[program], program

    def origin(self, **more):
        origin = Origin(**more)
        self.fixture("request").addfinalizer(origin.close)
        return origin

    @contextlib.contextmanager
    def running(self, **wish):
        proxy = self.kind(self.stage, Wish(**wish))
        try:
            yield proxy
        finally:
            proxy.stop()

    def upstream(self, scheme):
        """Returns the wish for an upstream that requires this scheme."""
        if scheme == "NTLM":
            return {"upstreams": [f"127.0.0.1:{self.fixture('ntlm_proxy').port}"], "scheme": scheme, "user": "alice",
                    "password": self.fixture("ntlm_users")["alice"]}
        address = f"localhost:{self.fixture('squid').ports[scheme.lower()]}"
        if scheme == "Negotiate":
            tickets = self.fixture("realm").log_in("alice", self.fixture("kerberos_users")["alice"])
            return {"upstreams": [address], "scheme": scheme, "tickets": tickets}
        user, password = self.fixture("account")
        return {"upstreams": [address], "scheme": scheme, "user": user, "password": password}

    def fetches(self, url=None, **wish):
        """Whether a program gets the page through the proxy. Only an upstream knows the name."""
        url = url or f"http://intranet.test:{self.origin().port}"
        try:
            with self.running(**wish) as proxy:
                # A program may need a failed request to choose another upstream.
                return (200, PAGE + b"/") in [get(proxy.port, url) for _ in range(2)]
        except Unsupported:
            return False


def get(port, url, **fields):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", f"{url}/", headers=fields)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def exchange(port, *parts, until=None):
    """Sends the parts, the second one after an answer to the first, and returns the bytes received within `PATIENCE`, or up to `until`."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection, contextlib.suppress(OSError):
        for part in parts:
            connection.sendall(part)
            while data := connection.recv(1 << 16):
                received += data
                if part is not parts[-1] or until and until in received:
                    break
    return received


def yes(value):
    return "yes" if value else "no"


def login(scheme):
    return lambda bench: yes(bench.fetches(**bench.upstream(scheme)))


def keyring(bench):
    """The password is nowhere else, and there is no agent."""
    user, password = bench.fixture("account")
    port = bench.fixture("squid").ports["basic"]
    gnome = bench.fixture("gnome")
    gnome.put(password, service="Px", username=user)
    gnome.put(password, server="localhost", port=str(port), protocol="http-proxy", user=user)
    wish = bench.upstream("Basic") | {"keyring": gnome.for_broker, "knows": ("user",)}
    return yes(bench.fetches(**wish))


def prompt(bench):
    if bench.program == "cntlm":
        return prompt_of_cntlm(bench)
    return "when a login is needed" if bench.fetches(**bench.upstream("NTLM") | {"knows": ("user",)}) else "no"


def prompt_of_cntlm(bench):
    terminal = Terminal("/usr/sbin/cntlm", "-f", "-I", "-u", "alice", "-d", "TESTDOM", "-l", str(free_port()), "127.0.0.1:1",
                        environment={"PATH": os.environ["PATH"], "TERM": "dumb"})
    terminal.expect("Password:")
    os.kill(terminal.child, 9)
    os.waitpid(terminal.child, 0)
    without = bench.upstream("NTLM") | {"knows": ("user",)}
    with contextlib.suppress(AssertionError):  # it ends at once
        assert not bench.fetches(**without)
    return "at its start"


def by_host(bench):
    """The first upstream is for one host only, and the second one for others."""
    one, other = bench.stage.server(ForwardProxy()), bench.stage.server(ForwardProxy())
    port = bench.origin().port
    with contextlib.suppress(Unsupported):
        with bench.running(upstreams=[f"127.0.0.1:{one.port}"], by_host=("other.test", f"127.0.0.1:{other.port}")) as proxy:
            for name in ["intranet", "other"]:
                assert get(proxy.port, f"http://{name}.test:{port}") == (200, PAGE + b"/")
    return yes(([host for host, _ in one.reached], [host for host, _ in other.reached]) == (["intranet.test"], ["other.test"]))


def pac(bench):
    wish = bench.upstream("NTLM")
    script = f'function FindProxyForURL(url, host) {{ return "PROXY {wish.pop("upstreams")[0]}"; }}'.encode()
    server = bench.stage.server(ScriptedServer(
        lambda request: response(200, script, "Content-Type: application/x-ns-proxy-autoconfig", "Connection: close")))
    return yes(bench.fetches(**wish, pac=f"{server.url}/proxy.pac"))


def direct(bench):
    return yes(bench.fetches(bench.origin().url, upstreams=[f"127.0.0.1:{free_port()}"], direct="127.0.0.1"))


def sent(head, *parts, until=None, result=lambda origin, received: yes(PAGE in received)):
    """A probe that sends a request to an origin without an upstream. `head` has {url} and {host}."""
    def probe(bench):
        origin = bench.origin()
        text = head.format(url=origin.url, host=f"127.0.0.1:{origin.port}").encode().replace(b"\n", b"\r\n").replace(b"\r\r", b"\r")
        with bench.running() as proxy:
            return result(origin, exchange(proxy.port, text, *parts, until=until))

    return probe


def passage(origin, received):
    """Whether an ambiguous request reached the origin, and whether its body became a request of its own."""
    with contextlib.suppress(AssertionError):  # a program may close the connection before the origin has read the request
        eventually(lambda: origin.requests or received, "the request arrives", seconds=1)
    if any(b"/smuggled" in head.split(b"\r\n")[0] for head, _ in origin.requests):
        return "smuggled"
    return "forwarded" if origin.requests else "refused"


def kept(*names):
    def result(origin, received):
        (head, _), = origin.requests
        return "forwarded" if any(re.search(rb"(?im)^%s:" % name, head) for name in names) else "removed"

    return result


def other_users(bench):
    origin = bench.origin()
    with bench.running() as proxy:
        script = f"import os; os.setuid(65534); from http.client import *; c = HTTPConnection('127.0.0.1', {proxy.port}, timeout=20)\n" \
                 f"c.request('GET', '{origin.url}/'); print(c.getresponse().status)"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "200" or done.returncode == 1, done
    return "served" if done.stdout.strip() == "200" else "refused"


def memory(bench):
    """The proportional set size of the process and its descendants in MB after one request."""
    with bench.running() as proxy:
        assert get(proxy.port, bench.origin().url)
        process = psutil.Process(proxy.pid)
        return f"{sum(one.memory_full_info().pss for one in [process, *process.children(recursive=True)]) / 1_024_000:.1f} MB"


FIELDS = "Host: {host}\n"
PLAIN = f"GET {{url}}/ HTTP/1.1\n{FIELDS}\n"
PIPELINED = "".join(f"GET {{url}}/{number} HTTP/1.1\n{FIELDS}\n" for number in range(5))
CHUNKED = f"POST {{url}}/ HTTP/1.1\n{FIELDS}Transfer-Encoding: chunked\n\n5\nhello\n0\n\n"
AMBIGUOUS = f"POST {{url}}/ HTTP/1.1\n{FIELDS}Content-Length: 5\nTransfer-Encoding: chunked\n\n0\n\n"
UNKNOWN = f"POST {{url}}/ HTTP/1.1\n{FIELDS}Transfer-Encoding: xchunked\n\nGET {{url}}/smuggled HTTP/1.1\n{FIELDS}\n"
FOLDED = f"GET {{url}}/ HTTP/1.1\n{FIELDS}X-Field: one\n two\n\n"
HOPS = f"GET {{url}}/ HTTP/1.1\n{FIELDS}Connection: X-Hop\nX-Hop: 1\nKeep-Alive: timeout=5\nTE: gzip\n\n"
PASSWORD = f"GET {{url}}/ HTTP/1.1\n{FIELDS}Proxy-Authorization: Basic eDp5\n\n"
CONTINUE = f"POST {{url}}/ HTTP/1.1\n{FIELDS}Expect: 100-continue\nContent-Length: 5\n\n"

#: The rows of the table, in its order.
PROBES = {
    "upstream with Basic": login("Basic"),
    "upstream with Digest": login("Digest"),
    "upstream with NTLM": login("NTLM"),
    "upstream with Kerberos": login("Negotiate"),
    "password from the desktop's keyring": keyring,
    "asks for the password": prompt,
    "another upstream if one is down": lambda bench: yes(bench.fetches(**(wish := bench.upstream("NTLM")) | {
        "upstreams": [f"127.0.0.1:{free_port()}", *wish["upstreams"]]})),
    "upstreams chosen by host": by_host,
    "PAC file": pac,
    "hosts without the upstream": direct,
    "server with an IPv6 address": lambda bench: yes(bench.fetches(bench.origin(family=socket.AF_INET6).url)),
    "pipelined requests": sent(PIPELINED, until=b"comparison/4", result=lambda _, received: yes(
        re.findall(rb"comparison/(\d)", received) == [b"0", b"1", b"2", b"3", b"4"])),
    "upload in chunks": sent(CHUNKED, until=PAGE, result=lambda origin, _: yes(origin.requests and origin.requests[0][1] == b"hello")),
    "`Expect: 100-continue`": sent(CONTINUE, b"hello", until=PAGE, result=lambda _, received: yes(b" 100 " in received and PAGE in received)),
    "`Via`": sent(PLAIN, until=PAGE, result=lambda origin, _: yes(kept(b"via")(origin, _) == "forwarded")),
    "`Connection` and the fields that it names": sent(HOPS, until=PAGE, result=kept(b"x-hop", b"keep-alive", b"te")),
    "`Proxy-Authorization` of the program": sent(PASSWORD, until=PAGE, result=kept(b"proxy-authorization")),
    "`Content-Length` with `Transfer-Encoding`": sent(AMBIGUOUS, until=PAGE, result=passage),
    "unknown `Transfer-Encoding`": sent(UNKNOWN, until=PAGE + b"/smuggled", result=passage),
    "folded header lines": sent(FOLDED, until=PAGE, result=passage),
    "other users of the machine": other_users,
    "memory when idle": memory,
}

pytestmark = pytest.mark.tier3("compares other programs")

DOCUMENT = ROOT / "contrib/docs/front-comparison.md"


def table():
    """Returns the cells by (row, program), and the names of the columns."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", DOCUMENT.read_text(), re.MULTILINE)]
    heading, _, *rows = rows
    return {row[0]: dict(zip(PROGRAMS, row[1:], strict=True)) for row in rows}, heading[1:]


CELLS, HEADING = table()


def test_the_table_has_a_row_for_each_probe():
    assert list(CELLS) == list(PROBES)


def test_the_versions_are_those_installed():
    assert HEADING == [" ".join([name, kind.version()]).strip() for name, kind in PROGRAMS.items()]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("row", PROBES)
def test_a_cell(row, program, stage, request):
    if row == "other users of the machine" and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    def fixture(name):
        return request if name == "request" else request.getfixturevalue(name)

    found, written = PROBES[row](Bench(stage, fixture, program)), CELLS[row][program]
    if row == "memory when idle":
        found, written = float(found.split()[0]), float(written.split()[0])
        # The table is about a release build; pages of a debug build are larger.
        most = 2 if program == "Watchword" and not PREFIX else 1.5
        assert written / 1.5 < found < written * most, found
    else:
        assert found == written
