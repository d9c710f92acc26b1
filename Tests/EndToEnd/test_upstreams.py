"""The choice of the upstream proxy: rules per host, failover, PAC files and the settings of the desktop."""
import os
import pathlib
import socket

import pytest

from rig.bodies import eventually
from rig.client import password_answer
from rig.local_fronts import run
from rig.scripted import response
from rig.servers import free_port
from rig.upstreams import dead, evaluators, fetched, origin, pac, proxies, rule, set_desktop  # noqa: F401


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
    broker = stage.configured(rule([".test"], broken, alive.url))
    client = stage.client(broker=broker)
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


def test_tunnels_of_programs_use_the_rules(stage, tls, nginx_tls, proxies):
    alive, = proxies(1)
    broker = stage.configured(rule(["localhost"], dead(), alive.url) + f"[front]\ntunnel-ports = [{nginx_tls.port}]\n")
    done = run(broker, "curl", "-sS", "--cacert", str(tls / "ca.pem"), f"https://localhost:{nginx_tls.port}/open.txt")
    assert done.stdout == b"open page\n", done
    assert alive.reached == [("localhost", nginx_tls.port)]


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
    text = (f"function FindProxyForURL(url, host) {{ if (dnsDomainIs(host, '.a.test')) return 'DIRECT'; "
            f"return host == 'b.test' ? 'PROXY 127.0.0.1:{first.port}' : "
            f"'PROXY 127.0.0.1:{free_port()}; HTTP 127.0.0.1:{second.port}'; }}")
    client = stage.client(broker=stage.configured(pac(stage, text)))
    for host in ["b.test", "c.test"]:
        assert fetched(client, f"http://{host}:{origin.port}/")["status"] == 200
    assert (len(first.requests), len(second.requests)) == (1, 1)


def test_the_pac_file_sees_no_path_and_no_user(stage, origin, proxies):
    proxy, = proxies(1)
    script = (f"function FindProxyForURL(url, host) {{ if (url != 'http://a.test:{origin.port}/' || host != 'a.test') throw url; "
              f"return 'PROXY 127.0.0.1:{proxy.port}'; }}")
    client = stage.client(broker=stage.configured(pac(stage, script)))
    assert fetched(client, f"http://bob:pw@a.test:{origin.port}/private?q=1")["status"] == 200


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


def test_a_bad_pac_file_with_a_proxy_for_that_case(stage, origin, proxies):
    proxy, = proxies(1)
    broker = stage.configured(pac(stage, "function FindProxyForURL() { throw 1; }") + f'url = "{proxy.url}"\n')
    assert fetched(stage.client(broker=broker), origin.url)["status"] == 200
    assert len(proxy.requests) == len(origin.requests) == 1


def test_an_endless_pac_file_does_not_delay_other_fetches(stage, origin):
    script = "function FindProxyForURL(url, host) { while (host == 'slow.test') {} return 'DIRECT'; }"
    broker = stage.configured(pac(stage, script) + rule(["quick.test", "127.0.0.1"], "direct"))
    client = stage.client(broker=broker)
    slow = client.start("fetch/run", {"url": "http://slow.test/"})
    for _ in range(5):
        assert fetched(client, origin.url)["status"] == 200
    # Other hosts of the file wait for the end of the process, and get their result from a new one.
    assert fetched(client, f"http://localhost:{origin.port}/")["status"] == 200
    assert "took longer than" in client.wait(slow)["error"]["message"]


def test_a_changed_file_is_used_after_a_reload(stage, origin, proxies):
    first, second = proxies(2)
    text = "function FindProxyForURL() {{ return 'PROXY 127.0.0.1:{}'; }}"
    broker = stage.configured(pac(stage, text.format(first.port)))
    client = stage.client(broker=broker)
    fetched(client, f"http://a.test:{origin.port}/")
    pac(stage, text.format(second.port))
    broker.reload()
    fetched(client, f"http://a.test:{origin.port}/")
    assert (len(first.requests), len(second.requests)) == (1, 1)


def test_other_users_must_not_change_the_file(stage, origin):
    broker = stage.configured(pac(stage, "function FindProxyForURL() { return 'DIRECT'; }", mode=0o666))
    error = stage.client(broker=broker).fetch(origin.url)["error"]
    assert "other users can change the PAC file" in error["message"]


def test_a_pac_file_by_http(stage, origin, proxies):
    proxy, = proxies(1)
    script = f"function FindProxyForURL() {{ return 'PROXY 127.0.0.1:{proxy.port}'; }}".encode()
    library = stage.server(lambda request: response(200, script))
    client = stage.client(broker=stage.configured(f'[proxy]\npac = "{library.url}/proxy.pac"\n'))
    for host in ["a.test", "b.test"]:
        assert fetched(client, f"http://{host}:{origin.port}/")["status"] == 200
    assert len(library.requests) == 1 and len(proxy.requests) == 2
    assert library.requests[0].authorization is None


def test_the_evaluator_ends_with_the_broker(stage, origin):
    script = "function FindProxyForURL() { return 'DIRECT'; }"
    broker = stage.configured(pac(stage, script))
    assert fetched(stage.client(broker=broker), origin.url)["status"] == 200
    children = evaluators(broker)
    assert len(children) == 2, "the script and the names"
    broker.kill()
    eventually(lambda: not any(pathlib.Path(f"/proc/{pid}/exe").exists() for pid in children), "the processes end")


def test_the_evaluator_is_confined(stage, origin):
    broker = stage.configured(pac(stage, "function FindProxyForURL() { return 'DIRECT'; }"))
    assert fetched(stage.client(broker=broker), origin.url)["status"] == 200
    engine, resolver = sorted(evaluators(broker))
    for pid in [engine, resolver]:
        assert "NoNewPrivs:\t1" in pathlib.Path(f"/proc/{pid}/status").read_text()
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        assert f"Max address space         {256 << 20}" in limits and "Max file size             0" in limits
        assert "broker" not in " ".join(os.readlink(f) for f in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    assert "Seccomp:\t2" in pathlib.Path(f"/proc/{engine}/status").read_text()


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
    error = client.fetch(f"https://a.test:{origin.port}/")["error"]
    assert "name no proxy for https" in error["message"]
    script = stage.folder / "proxy.pac"
    script.write_text(f"function FindProxyForURL() {{ return 'PROXY 127.0.0.1:{second.port}'; }}")
    script.chmod(0o600)
    set_desktop(broker, ("", "mode", "'auto'"), ("", "autoconfig-url", f"'file://{script}'"))
    assert fetched(client, f"http://b.test:{origin.port}/")["status"] == 200
    assert (len(first.requests), len(second.requests)) == (1, 1)


def test_a_filtered_broker_says_why_it_cannot_evaluate(stage, origin):
    broker = stage.configured(pac(stage, "function FindProxyForURL() { return 'DIRECT'; }") + "[process]\nfilter-system-calls = true\n")
    error = stage.client(broker=broker).fetch(origin.url)["error"]
    assert error["data"]["kind"] == "proxyFailed" and "process.filter-system-calls" in error["message"]
