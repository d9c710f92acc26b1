"""`fetch.deny` applies to every address that is connected to, whatever name or proxy leads there."""
import contextlib
import pathlib
import signal

import pytest
from rig.audit import wait_for
from rig.scripted import ScriptedServer, response


@pytest.fixture
def server():
    with contextlib.closing(ScriptedServer(lambda request: response(200, b"welcome"))) as server:
        yield server


def is_denied(reply):
    return reply.get("error", {}).get("data", {}).get("kind") == "denied"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "x.localhost", "x.localhost.", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]",
                                  "[::ffff:7f00:1]", "[::1]", "127.0.0.2"])
def test_loopback_is_denied_under_every_name(stage, server, host):
    client = stage.client(broker=stage.configured('[fetch]\ndeny = ["127.0.0.1"]\n'))
    assert is_denied(client.fetch(f"http://{host}:{server.port}/"))
    assert is_denied(client.fetch("http://host.invalid/", proxy={"url": f"http://{host}:{server.port}"}))
    assert server.connections == 0


@pytest.mark.parametrize("kind", ["http", "https", "socks5h"])
def test_a_proxy_does_not_circumvent_the_rule(stage, server, kind):
    client = stage.client(broker=stage.configured('[fetch]\ndeny = ["127.0.0.1"]\n'))
    for url in ["http://host.invalid/", "https://host.invalid/"]:
        assert is_denied(client.fetch(url, proxy={"url": f"{kind}://127.0.0.1:{server.port}"}))
    configured = stage.configured(f'[fetch]\ndeny = ["[::1]"]\n[proxy]\nurl = "{kind}://localhost:{server.port}"\n')
    assert is_denied(stage.client(broker=configured).fetch("http://host.invalid/"))
    assert server.connections == 0


def test_with_an_allow_list_a_fetch_cannot_name_another_proxy(stage, server):
    client = stage.client(broker=stage.configured('[fetch]\nallow = ["host.invalid"]\n'))
    assert is_denied(client.fetch("http://host.invalid/", proxy={"url": server.url}))
    assert server.connections == 0


def test_a_redirect_does_not_circumvent_the_rule(stage, server):
    with contextlib.closing(ScriptedServer(lambda request: response(302, b"", f"Location: {server.url.replace('127.0.0.1', 'x.localhost')}"))) as first:
        broker = stage.configured(f'[fetch]\ndeny = ["127.0.0.1:{server.port}"]\n')
        assert is_denied(stage.client(broker=broker).fetch(first.url))
        assert first.connections == 1 and server.connections == 0


def test_a_connection_opened_before_a_reload_is_not_used(stage, server):
    broker = stage.configured("[fetch]\ndeny = []\n")
    client = stage.client(broker=broker)
    assert client.fetch(server.url)["result"]["status"] == 200
    pathlib.Path(broker.options[1]).write_text('[fetch]\ndeny = ["127.0.0.1"]\n')
    broker.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "configuration reloaded" in broker.log)
    assert is_denied(client.fetch(server.url.replace("127.0.0.1", "x.localhost")))
    assert is_denied(client.fetch(server.url))
    assert len(server.requests) == 1
