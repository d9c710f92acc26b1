"""The choice of the upstream proxy: rules per host, failover, PAC files with their functions and limits, and the settings of the desktop."""
import contextlib
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer
from rig.forwarding import ForwardProxy
from rig.local_fronts import run
from rig.scripted import response
from rig.servers import free_port, private
from rig.waiting import output


@pytest.fixture
def origin(stage):
    return stage.server(lambda request: response(200, b"page"))


@pytest.fixture
def proxies(stage):
    """Makes proxies that forward everything."""
    return lambda count, check=lambda request: None: [stage.server(ForwardProxy(check)) for _ in range(count)]


def rule(hosts, *use):
    return f"[[proxy.rule]]\nhosts = {hosts!r}\nuse = {list(use)!r}\n"


def dead():
    """The URL of a proxy that does not run."""
    return f"http://127.0.0.1:{free_port()}"


def fetched(client, url, **params):
    reply = client.fetch(url, **params)
    assert "result" in reply, reply
    return reply["result"]


DIRECT = "function FindProxyForURL() { return 'DIRECT'; }"


def pac(stage, text, mode=0o600):
    return f'[proxy]\npac = "file://{private(stage.folder / "proxy.pac", text, mode)}"\n'


def evaluators(broker):
    """The process IDs of the broker's evaluator and of its resolver."""
    return [one.pid for one in psutil.Process(broker.process.pid).children(recursive=True) if one.name() == "watchword-pac"]


def set_desktop(broker, *settings):
    """Stores proxy settings as a settings dialog does: schema, key, value."""
    commands = " && ".join(f"gsettings set org.gnome.system.proxy{schema} {key} \"{value}\"" for schema, key, value in settings)
    environment = {"HOME": str(broker.home), "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(broker.home)}
    output("dbus-run-session", "--", "sh", "-c", commands, env=environment)


class Evaluator:
    """One process. `environment` is all it gets."""

    def __init__(self, script, environment=None):
        self.process = subprocess.Popen(
            [program("watchword-pac")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment or {"TZ": "UTC"})
        data = script.encode()
        #: The reply to the loading of the script.
        self.loaded = self._ask(b"load %d\n" % len(data) + data)

    def find(self, url="http://h.test/", host="h.test"):
        return self._ask(f"find {url} {host}\n".encode())

    def _ask(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()
        return self.process.stdout.readline().decode().rstrip("\n")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)


def test_each_host_uses_the_proxies_of_its_rule(stage, origin, proxies):
    first, second = proxies(2)
    broker = stage.configured(
        f'[proxy]\nurl = "{dead()}"\nexcept = ["127.0.0.1"]\n' + rule(["a.test"], first.url) + rule([".test"], second.url))
    client = stage.client(broker=broker)
    for host in ["a.test", "b.test", "127.0.0.1"]:
        assert fetched(client, f"http://{host}:{origin.port}/{host}")["status"] == 200
    assert [request.target.rsplit("/", 1)[1] for request in first.requests] == ["a.test"]
    assert [request.target.rsplit("/", 1)[1] for request in second.requests] == ["b.test"]
    assert [request.target for request in origin.requests] == ["/a.test", "/b.test", "/127.0.0.1"]
    assert client.fetch(f"http://c.example:{origin.port}/")["error"]["data"]["kind"] == "proxyFailed"


def test_the_next_proxy_is_used_if_one_cannot_be_reached(stage, origin, proxies):
    alive, = proxies(1)
    broken = dead()
    client = stage.client(broker=stage.configured(rule([".test"], broken, alive.url)))
    body = {"type": "string", "value": "sent once"}
    assert fetched(client, f"http://a.test:{origin.port}/", method="POST", body=body)["status"] == 200
    assert [(request.method, request.body) for request in origin.requests] == [("POST", b"sent once")]
    status = client.call("server/status", {})["result"]["upstreams"]
    assert status["unreachable"] == [broken] and status["rules"] == 1
    # The failed proxy comes last now, although it runs again.
    revived = socket.create_server(("127.0.0.1", int(broken.rsplit(":", 1)[1])))
    assert fetched(client, f"http://a.test:{origin.port}/")["status"] == 200
    assert len(alive.requests) == 2
    revived.setblocking(False)
    with revived, pytest.raises(BlockingIOError):
        revived.accept()


def test_a_tunnel_that_a_proxy_does_not_open(stage, tls, nginx_tls, proxies):
    """The first proxy takes the request, and closes the connection."""
    def end(request):
        raise OSError("no tunnel")

    first, = proxies(1, end)
    second, = proxies(1)
    broker = stage.configured(rule(["localhost"], first.url, second.url) + f"[front]\ntunnel-ports = [{nginx_tls.port}]\n")
    done = run(broker, "curl", "-sS", "--cacert", str(tls / "ca.pem"), f"https://localhost:{nginx_tls.port}/open.txt")
    assert done.stdout == b"open page\n", done
    assert [request.method for request in first.requests] == ["CONNECT"] and len(second.requests) == 1


def test_squid_with_a_login_after_one_that_does_not_run(stage, squid, account, tls, nginx, nginx_tls):
    """One question for the requests and tunnels of two programs."""
    broker = stage.configured(
        rule(["127.0.0.1", "localhost"], dead(), squid.url("basic")) + f"[front]\ntunnel-ports = [{nginx_tls.port}]\n")
    agent = stage.agent(password_answer(*account), broker)
    for url in [f"http://127.0.0.1:{nginx.port}", f"https://localhost:{nginx_tls.port}"]:
        done = run(broker, "curl", "-sS", "--cacert", str(tls / "ca.pem"), f"{url}/open.txt")
        assert done.stdout == b"open page\n", done
    assert [challenge["protectionSpace"]["port"] for challenge in agent.asked] == [squid.ports["basic"]]


# PAC files

def test_a_pac_file_chooses_the_proxy(stage, origin, proxies):
    first, second = proxies(2)
    text = (f"function FindProxyForURL(url, host) {{ if (host != url.split('/')[2].split(':')[0] || url.split('/')[3]) throw url; "
            f"return host == 'b.test' ? 'PROXY 127.0.0.1:{first.port}' : "
            f"'PROXY 127.0.0.1:{free_port()}; HTTP 127.0.0.1:{second.port}'; }}")
    client = stage.client(broker=stage.configured(pac(stage, text)))
    # The script sees no path and no user.
    for host in ["b.test", "bob:pw@c.test"]:
        assert fetched(client, f"http://{host}:{origin.port}/private?q=1")["status"] == 200
    assert (len(first.requests), len(second.requests)) == (1, 1)


BAD = {
    "throws": ("function FindProxyForURL(url, host) {\n throw new Error('broken'); }", "line 2: Error: broken"),
    "syntax": ("function FindProxyForURL(", "SyntaxError"),
    "no function": ("var x = 1;", "does not define the function FindProxyForURL"),
    "null": ("function FindProxyForURL() { return null; }", "returned no text"),
    "empty": ("function FindProxyForURL() { return ''; }", "names no supported proxy"),
    "unknown": ("function FindProxyForURL() { return 'QUIC a:1'; }", "names no supported proxy"),
    "endless": ("function FindProxyForURL() { while (true) {} }", "took longer than"),
    "endless start": ("while (true) {}", "took longer than"),
    "memory": ("function FindProxyForURL() { var s = 'x'; while (true) s += s; }", "error in the PAC file"),
    "stack": ("function FindProxyForURL() { return '' + FindProxyForURL(); }", "error in the PAC file"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_pac_file_is_reported_and_never_means_direct(stage, origin, name):
    script, text = BAD[name]
    broker = stage.configured(pac(stage, script))
    client = stage.client(broker=broker)
    error = client.fetch(origin.url)["error"]
    assert error["data"]["kind"] == "proxyFailed" and text in error["message"], error
    assert not origin.requests
    assert text in client.call("server/status", {})["result"]["upstreams"]["problem"]
    eventually(lambda: text in broker.log, "the problem is logged")


def test_an_endless_pac_file_does_not_delay_other_fetches(stage, origin):
    script = "function FindProxyForURL(url, host) { while (host == 'slow.test') {} return 'DIRECT'; }"
    client = stage.client(broker=stage.configured(pac(stage, script) + rule(["quick.test", "127.0.0.1"], "direct")))
    slow = client.start("fetch/run", {"url": "http://slow.test/"})
    for _ in range(5):
        assert fetched(client, origin.url)["status"] == 200
    # Other hosts of the file wait for the end of the process, and get their result from a new one.
    assert fetched(client, f"http://localhost:{origin.port}/")["status"] == 200
    assert "took longer than" in client.wait(slow)["error"]["message"]


@pytest.mark.parametrize("more, mode, said", [
    ("", 0o666, "other users can change the PAC file"), ("[process]\nfilter-system-calls = true\n", 0o600, "process.filter-system-calls")])
def test_a_file_that_others_can_change_or_a_filtered_broker_cannot_evaluate(stage, origin, more, mode, said):
    error = stage.client(broker=stage.configured(pac(stage, DIRECT, mode) + more)).fetch(origin.url)["error"]
    assert error["data"]["kind"] == "proxyFailed" and said in error["message"]


def test_a_pac_file_by_http(stage, origin, proxies):
    proxy, = proxies(1)
    script = f"function FindProxyForURL() {{ return 'PROXY 127.0.0.1:{proxy.port}'; }}".encode()
    library = stage.server(lambda request: response(200, script))
    client = stage.client(broker=stage.configured(f'[proxy]\npac = "{library.url}/proxy.pac"\n'))
    for host in ["a.test", "b.test"]:
        assert fetched(client, f"http://{host}:{origin.port}/")["status"] == 200
    assert len(library.requests) == 1 and len(proxy.requests) == 2
    assert library.requests[0].authorization is None


def test_the_evaluator_is_confined_and_ends_with_the_broker(stage, origin):
    broker = stage.configured(pac(stage, DIRECT))
    assert fetched(stage.client(broker=broker), origin.url)["status"] == 200
    engine, resolver = sorted(evaluators(broker))
    for pid in [engine, resolver]:
        assert "NoNewPrivs:\t1" in pathlib.Path(f"/proc/{pid}/status").read_text()
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        assert f"Max address space         {256 << 20}" in limits and "Max file size             0" in limits
        assert "broker" not in " ".join(os.readlink(f) for f in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    assert "Seccomp:\t2" in pathlib.Path(f"/proc/{engine}/status").read_text()
    broker.kill()
    eventually(lambda: not any(pathlib.Path(f"/proc/{pid}/exe").exists() for pid in [engine, resolver]), "the processes end")


# The desktop

def test_the_settings_of_the_desktop(stage, origin, proxies):
    first, second = proxies(2)
    broker = stage.configured("[proxy]\ndesktop = true\n")
    set_desktop(
        broker, ("", "mode", "'manual'"), ("", "ignore-hosts", "['*.direct.test', '127.0.0.0/8']"),
        (".http", "host", "'127.0.0.1'"), (".http", "port", first.port))
    client = stage.client(broker=broker)
    assert fetched(client, f"http://a.test:{origin.port}/")["status"] == 200
    assert fetched(client, origin.url)["status"] == 200
    assert (len(first.requests), len(origin.requests)) == (1, 2)
    assert "name no proxy for https" in client.fetch(f"https://a.test:{origin.port}/")["error"]["message"]
    script = private(stage.folder / "proxy.pac", f"function FindProxyForURL() {{ return 'PROXY 127.0.0.1:{second.port}'; }}")
    set_desktop(broker, ("", "mode", "'auto'"), ("", "autoconfig-url", f"'file://{script}'"))
    assert fetched(client, f"http://b.test:{origin.port}/")["status"] == 200
    assert (len(first.requests), len(second.requests)) == (1, 1)


@pytest.mark.parametrize("scheme", ["http", "https", "socks5h"])
def test_a_proxy_that_drops_packets_is_left(stage, origin, proxies, scheme):
    """The queue of a listening socket is full, so that the kernel drops further connections."""
    alive, = proxies(1)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        broker = stage.configured(rule([".test"], f"{scheme}://127.0.0.1:{listener.getsockname()[1]}", alive.url))
        reply = stage.client(broker=broker).fetch(f"http://a.test:{origin.port}/", connectTimeoutMs=500)
    assert "result" in reply and len(alive.requests) == 1, reply


def test_slow_hosts_do_not_starve_others(stage, origin, proxies):
    wanted, other = proxies(2)
    script = (f"function FindProxyForURL(url, host) {{ while (/^slow/.test(host)) {{}} return 'PROXY 127.0.0.1:{wanted.port}'; }}")
    client = stage.client(broker=stage.configured(pac(stage, script) + f'url = "{other.url}"\n'))
    for number in range(3):
        client.start("fetch/run", {"url": f"http://slow{number}.test/"})
    assert fetched(client, f"http://a.test:{origin.port}/")["status"] == 200
    assert [request.target for request in wanted.requests] == [f"http://a.test:{origin.port}/"]


def test_names_are_resolved_again_after_the_processes_have_ended(stage, origin, proxies):
    proxy, = proxies(1)
    script = f"function FindProxyForURL() {{ return dnsResolve('localhost') === null ? 'DIRECT' : 'PROXY 127.0.0.1:{proxy.port}'; }}"
    broker = stage.configured(pac(stage, script))
    client = stage.client(broker=broker)
    for number, host in enumerate(["a.test", "b.test", "c.test", "d.test"]):
        assert fetched(client, f"http://{host}:{origin.port}/")["status"] == 200
        # First the resolver alone, then both processes.
        for pid in sorted(evaluators(broker))[number < 2:]:
            os.kill(pid, signal.SIGKILL)
    assert len(proxy.requests) == 4


def test_alternating_results_do_not_fill_the_log(stage, origin):
    script = "function FindProxyForURL(url, host) { if (/^bad/.test(host)) throw host; return 'DIRECT'; }"
    broker = stage.configured(pac(stage, script))
    client = stage.client(broker=broker)
    for number in range(3):
        assert f"bad{number}.test" in client.fetch(f"http://bad{number}.test/")["error"]["message"]
        assert fetched(client, [origin.url, f"http://localhost:{origin.port}/"][number % 2])["status"] == 200
    assert broker.log.count("no proxy can be chosen") == 1


def test_a_password_in_the_url_of_the_desktop_is_not_shown(stage, origin):
    broker = stage.configured("[proxy]\ndesktop = true\n")
    secret = secrets.token_hex(16)
    set_desktop(broker, ("", "mode", "'auto'"), ("", "autoconfig-url", f"'http://bob:{secret}@127.0.0.1:{origin.port}/p'"))
    client = stage.client(broker=broker)
    error = client.fetch(origin.url)["error"]
    assert "correct autoconfig-url" in error["message"] and not origin.requests
    status = client.call("server/status", {})
    assert "correct autoconfig-url" in status["result"]["upstreams"]["problem"]
    assert secret not in f"{error}{status}{broker.log}"


# Evaluates the host as an expression, at a time in seconds since 1970 if it begins with one.
CALCULATOR = """
var RealDate = Date, now = 0;
Date = function () { return new RealDate(now * 1000); };
function FindProxyForURL(url, host) {
    var parts = /^@(-?[0-9]+) (.*)$/.exec(host);
    if (parts) now = Number(parts[1]);
    return String(eval(parts ? parts[2] : host));
}
"""


@pytest.fixture
def evaluator():
    started = []

    def start(script=CALCULATOR, **more):
        started.append(Evaluator(script, **more))
        return started[-1]

    yield start
    for one in started:
        one.close()


NAMES = {
    "isPlainHostName('www')": "true", "isPlainHostName('www.a.test')": "false", "isPlainHostName('::1')": "false",
    "dnsDomainIs('www.a.test', '.a.test')": "true", "dnsDomainIs('WWW.A.TEST', '.a.test')": "true",
    "dnsDomainIs('www', '.a.test')": "false", "dnsDomainIs('a.test', 'www.a.test')": "false",
    "localHostOrDomainIs('www.a.test', 'www.a.test')": "true", "localHostOrDomainIs('www', 'www.a.test')": "true",
    "localHostOrDomainIs('www.b.test', 'www.a.test')": "false", "localHostOrDomainIs('ww', 'www.a.test')": "false",
    "dnsDomainLevels('www')": "0", "dnsDomainLevels('www.a.test')": "2",
    "shExpMatch('http://a.test/x/y', '*/x/*')": "true", "shExpMatch('a.test', '*.test')": "true",
    "shExpMatch('a.test', '?.test')": "true", "shExpMatch('ab.test', '?.test')": "false", "shExpMatch('atest', 'a.test')": "false",
    "shExpMatch('x', '*')": "true",
    # A regular expression, apart from the dot, the star and the question mark, as in browsers.
    "shExpMatch('a.example', '(*.a.example|a.example)')": "true", "shExpMatch('x.a.example', '(*.a.example|a.example)')": "true",
    "shExpMatch('xa.example', '(*.a.example|a.example)')": "false", "shExpMatch('b1', '[a-c]?')": "true", "shExpMatch('d1', '[a-c]?')": "false",
    "shExpMatch('aab', 'a+b')": "true", "shExpMatch('ab', 'a|b')": "true", "shExpMatch('a.b', 'a.b')": "true",
    "isValidIpAddress('192.0.2.1')": "true", "isValidIpAddress('192.0.2.256')": "false", "isValidIpAddress('192.0.2')": "false",
    "isValidIpAddress('::1')": "false", "isValidIpAddress('a.example')": "false",
}
ADDRESSES = {
    "dnsResolve('127.0.0.1')": "127.0.0.1", "dnsResolve('localhost')": "127.0.0.1", "dnsResolve('name.invalid')": "null",
    "dnsResolve('')": "null", "dnsResolve('*')": "null", "dnsResolve(new Array(400).join('x'))": "null",
    "isResolvable('localhost')": "true", "isResolvable('name.invalid')": "false", "dnsResolveEx('::1')": "::1",
    "dnsResolveEx('name.invalid')": "", "isResolvableEx('::1')": "true",
    "convert_addr('104.16.41.2')": "1745889538", "convert_addr('x')": "0",
    "isInNet('10.1.2.3', '10.1.0.0', '255.255.0.0')": "true", "isInNet('10.2.2.3', '10.1.0.0', '255.255.0.0')": "false",
    "isInNet('localhost', '127.0.0.0', '255.0.0.0')": "true", "isInNet('name.invalid', '127.0.0.0', '255.0.0.0')": "false",
    "isInNet('192.168.1.1', '192.168.1.1', '255.255.255.255')": "true", "isInNet('1.2.3.4', '0.0.0.0', '0.0.0.0')": "true",
    "isInNet('::1', '127.0.0.0', '255.0.0.0')": "false", "isInNet('10.1.2.3', 'x', '255.0.0.0')": "false",
    "isInNetEx('2001:db8::5', '2001:db8::/32')": "true", "isInNetEx('2001:db9::5', '2001:db8::/32')": "false",
    "isInNetEx('10.1.2.3', '10.0.0.0/8')": "true", "isInNetEx('10.1.2.3', '10.0.0.0/40')": "false",
    "isInNetEx('localhost', '127.0.0.0/8')": "true", "isInNetEx('10.1.2.3', '10.0.0.0')": "false",
    "sortIpAddressList('10.2.3.9;2001:db8::2;10.2.3.1;2001:db8::1')": "2001:db8::1;2001:db8::2;10.2.3.1;10.2.3.9",
    "sortIpAddressList('x')": "false", "/^[0-9.]+$/.test(myIpAddress())": "true",
    "myIpAddressEx().split(';').every(function (a) { return a === '' || isResolvableEx(a); })": "true",
}
# 1700000000 is Tuesday, 14 November 2023, 22:13:20 UTC.
AT = "@1700000000 "
TIMES = {
    "weekdayRange('TUE')": True, "weekdayRange('MON', 'FRI')": True, "weekdayRange('WED', 'MON')": False,
    "weekdayRange('SAT', 'TUE')": True, "weekdayRange('TUE', 'GMT')": True, "weekdayRange('XYZ')": False, "weekdayRange()": False,
    "dateRange(14)": True, "dateRange(15)": False, "dateRange(1, 14)": True, "dateRange(20, 15)": True, "dateRange('NOV')": True,
    "dateRange('NOV', 'MAR')": True, "dateRange('DEC', 'MAR')": False, "dateRange('MAY', 'OCT')": False, "dateRange(2023)": True,
    "dateRange(2024)": False, "dateRange(2020, 2023)": True, "dateRange(1, 'NOV', 14, 'NOV')": True,
    "dateRange(15, 'NOV', 13, 'NOV')": False, "dateRange(20, 'DEC', 15, 'NOV')": True, "dateRange('OCT', 2023, 'NOV', 2023)": True,
    "dateRange(14, 'NOV', 2023, 14, 'NOV', 2023)": True, "dateRange(15, 'NOV', 2023, 1, 'JAN', 2024)": False,
    "dateRange(14, 'GMT')": True, "dateRange('XXX')": False, "dateRange(1, 2, 3)": False, "dateRange(1, 'NOV')": False,
    "timeRange(22)": True, "timeRange(21)": False, "timeRange(9, 22)": True, "timeRange(9, 21)": False, "timeRange(20, 4)": True,
    "timeRange(22, 13, 22, 13)": True, "timeRange(22, 14, 22, 20)": False, "timeRange(22, 13, 20, 22, 13, 20)": True,
    "timeRange(22, 13, 21, 22, 14, 0)": False, "timeRange(22, 'GMT')": True, "timeRange('x')": False, "timeRange(1, 2, 3)": False,
}
# Wednesday, 07:13:20.
IN_TOKYO = {"timeRange(7)": True, "timeRange(22)": False, "timeRange(22, 'GMT')": True, "weekdayRange('WED')": True,
            "weekdayRange('TUE', 'GMT')": True, "dateRange(15)": True}


@pytest.mark.parametrize("zone, expected, before", [
    ("UTC", NAMES | ADDRESSES, ""), ("UTC", TIMES, AT), ("Asia/Tokyo", IN_TOKYO, AT)], ids=["names", "times", "local times"])
def test_the_functions_of_scripts(evaluator, zone, expected, before):
    one = evaluator(environment={"TZ": zone})
    assert one.loaded == "ok "
    found = {expression: one.find(host=before + expression) for expression in expected}
    assert found == {expression: f"ok {str(result).lower()}" for expression, result in expected.items()}


def test_results_and_errors_are_one_line(evaluator):
    one = evaluator("function FindProxyForURL(url, host) { if (host === 'a') throw 'x\\ny'; return host === 'b' ? 'x\\u0000y' : 'x\\r\\ny' + new Array(Number(host)).join('w'); }")
    assert one.find(host="a") == "error x y"
    assert one.find(host=1) == "ok x  y" and one.find(host="a") == "error x y"
    # A text that is cut off would name another proxy.
    assert one.find(host=4092) == "ok x  y" + 4091 * "w"
    for host in [4093, "b"]:
        assert one.find(host=host).startswith("error FindProxyForURL returned more than 4095 bytes or a zero character")


def test_how_the_function_is_found(evaluator):
    """By its other name, too; a getter runs protected, and a file without the function cannot be loaded."""
    assert evaluator("function FindProxyForURLEx(url, host) { return 'PROXY ' + host; }").find() == "ok PROXY h.test"
    one = evaluator("var n = 0; Object.defineProperty(this, 'FindProxyForURL', {get: function () {"
                    " if (n++ % 2) throw 'no'; return function () { return 'DIRECT'; }; }})")
    assert one.loaded == "ok "
    assert [one.find(), one.find()] == ["error no", "ok DIRECT"]
    for script, problem in [("<html></html>", "SyntaxError"), ("", "does not define the function"), ("var FindProxyForURL = 1;", "does not define")]:
        one = evaluator(script)
        assert one.loaded.startswith("error ") and problem in one.loaded
        assert one.find() == "error no script is loaded"


def test_the_limits_of_a_script(evaluator):
    """Of memory, of what it can reach, of the number of names that are resolved (a name server that never answers cannot delay an
    evaluation), and of time, without the broker."""
    one = evaluator("function FindProxyForURL(url, host) { for (var s = 'x'; s.length < host;) s += s; return '' + s.length; }")
    assert [one.find(host=1 << size).partition(" ")[0] for size in (20, 25, 20)] == ["ok", "error", "ok"]
    one = evaluator()
    for name in ["require", "process", "Duktape.modSearch", "print", "load", "XMLHttpRequest", "fetch", "readFile"]:
        assert one.find(host=f"typeof {name}") == "ok undefined", name
    one = evaluator("function FindProxyForURL() { var n = 0; for (var i = 0; i < 100; i++) if (dnsResolve('127.0.0.1')) n++; return '' + n; }")
    assert one.find() == "ok 64" and one.find() == "ok 64"
    one = evaluator("function FindProxyForURL() { while (true) {} }")
    assert one.find() == "" and one.process.wait(60) == -signal.SIGALRM


def test_without_its_resolver_the_process_ends(evaluator):
    """The broker then starts a new one; otherwise all names would be unknown to the script from then on."""
    one = evaluator("function FindProxyForURL() { return '' + dnsResolve('127.0.0.1'); }")
    assert one.find() == "ok 127.0.0.1"
    resolver, = pathlib.Path(f"/proc/{one.process.pid}/task/{one.process.pid}/children").read_text().split()
    os.kill(int(resolver), signal.SIGKILL)
    assert one.find() == "" and one.process.wait(60) != 0


SILENT_NAME_SERVER = """
import socket, subprocess, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
done = subprocess.run([sys.argv[1]], input=sys.stdin.buffer.read(), capture_output=True, env={})
sys.stdout.buffer.write(done.stdout)
assert server.recv(512), "the name server was asked"
"""


def test_a_silent_name_server_does_not_hold_up_an_evaluation(tmp_path):
    """Ten lookups together have a second. If each of them had one, the process would end itself first."""
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    script = b"function FindProxyForURL() { var t = ''; for (var i = 0; i < 10; i++) t += dnsResolve('n' + i + '.example'); return t; }"
    done = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--unshare-net", "--uid", "0", "--cap-add", "CAP_NET_BIND_SERVICE",
         "--ro-bind", str(tmp_path / "resolv.conf"), "/etc/resolv.conf", "--die-with-parent",
         sys.executable, "-c", SILENT_NAME_SERVER, program("watchword-pac")],
        input=b"load %d\n%sfind http://h.test/ h.test\n" % (len(script), script), capture_output=True, timeout=60)
    assert done.stdout == b"ok \nok " + b"null" * 10 + b"\n", done


@pytest.mark.parametrize("script, line, construct", [
    ("var a = 1;\nlet b = 1;", 2, "let"), ("var f =\n\nx => x;", 3, "an arrow function"), ("class A {}", 1, "class"),
    ("var a = `x`;", 1, "a template literal"), ("for (var a of [1]) {}", 1, "for ... of"), ("f(...[1]);", 1, "the operator ..."),
    ("function f(a = 1) {}", 1, "a default value of a parameter"), ("var [a] = [1];", 1, "destructuring"),
    ("const {a} = {};", 1, "destructuring"), ("async function f() {}", 1, "async"), ("var a = b?.c;", 1, "the operator ?."),
    ("var a = b ?? c;", 1, "the operator ??"), ("function* f() {}", 1, "a generator function"),
    ("/* let a = 1; `\n*/ // class A {}\nvar r = /[/`]=>`/, s = \"let b = `\";\nlet c;", 4, "let")])
def test_a_construct_after_ecmascript_5_is_named_with_its_line(evaluator, script, line, construct):
    assert evaluator(script).loaded == f"error line {line}: {construct} is not supported; write ECMAScript 5"


@pytest.mark.tier3  # The evaluator ends itself after a time, which a busy machine uses up.
@pytest.mark.parametrize("word", ["function ", "function(", "function;"])
def test_the_search_for_a_construct_is_not_quadratic(evaluator, word):
    start = time.monotonic()
    assert "SyntaxError" in evaluator(word * 20_000).loaded
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("script", ["var a = ;", "function f(", "x = 'a\n';", "/* "])
def test_another_syntax_error_is_reported_as_it_is(evaluator, script):
    assert "SyntaxError" in evaluator(script).loaded
