"""Faults of upstream proxies and PAC files that must not change the choice for other servers and programs."""
import contextlib
import os
import secrets
import signal
import socket

import pytest

from rig.upstreams import evaluators, fetched, origin, pac, proxies, rule, set_desktop  # noqa: F401


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
    for number in range(6):
        client.start("fetch/run", {"url": f"http://slow{number}.test/"})
    assert fetched(client, f"http://a.test:{origin.port}/")["status"] == 200
    assert [request.target for request in wanted.requests] == [f"http://a.test:{origin.port}/"]


def test_names_are_resolved_again_after_the_resolver_has_ended(stage, origin, proxies):
    proxy, = proxies(1)
    script = f"function FindProxyForURL() {{ return dnsResolve('localhost') === null ? 'DIRECT' : 'PROXY 127.0.0.1:{proxy.port}'; }}"
    broker = stage.configured(pac(stage, script))
    client = stage.client(broker=broker)
    for host in ["a.test", "b.test", "c.test"]:
        assert fetched(client, f"http://{host}:{origin.port}/")["status"] == 200
        os.kill(max(evaluators(broker)), signal.SIGKILL)
    assert len(proxy.requests) == 3


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


def test_an_evaluator_that_was_ended_is_started_again(stage, origin):
    broker = stage.configured(pac(stage, "function FindProxyForURL() { return 'DIRECT'; }"))
    client = stage.client(broker=broker)
    assert fetched(client, origin.url)["status"] == 200
    first = evaluators(broker)
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    assert fetched(client, f"http://localhost:{origin.port}/")["status"] == 200
    assert not set(first) & set(evaluators(broker))
